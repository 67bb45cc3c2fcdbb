//! Text and thinking on their way to the blocks. Some are held back until their kind is clear.

use std::borrow::Cow;

use oa_json::ThinkingTags;
use oa_types::wire::LoadingNotice;

use crate::blocks::{Blocks, Voice};
use crate::budget::{Budget, COPIES};
use crate::echo::Echo;
use crate::error::{Error, ErrorKind};
use crate::quirks::{Quirks, ThinkTags};
use crate::repeat::{take_apart, unsaid};
use crate::text::{TextFilter, is_sure};
use crate::think::{self, Splitter};
use crate::thought::{self, Thought};

/// Text passes through four filters, most of which are usually inactive: for text that the server marks as thinking
/// ([`Thought`]), text that repeats itself ([`TextFilter`]), text that repeats thinking ([`Echo`]), and tags
/// ([`Splitter`]). Thinking passes through one, because it may repeat itself too.
#[derive(Debug)]
pub(crate) struct Speech {
    pub(crate) blocks: Blocks,
    text: TextFilter,
    thinking: TextFilter,
    /// A proxy's notice, which is no thinking (QUIRKS row 149).
    pub(crate) notice: LoadingNotice,
    /// The length of the first delta of thinking, with which the thinking begins; 0 before that.
    first_thought: usize,
    /// Created when marked text arrives, which few streams have.
    thought: Option<Box<Thought>>,
    echo: Echo,
    splitter: Option<Splitter>,
    /// One of the filters that few streams need may be active.
    wary: bool,
    /// The maximum size of an answer's text and thinking, in bytes.
    limit: usize,
}

impl Speech {
    #[inline]
    pub(crate) fn new(quirks: Quirks, limit: usize) -> Self {
        Self {
            blocks: Blocks::default(),
            text: TextFilter::new(quirks.text),
            thinking: TextFilter::from_the_start(quirks.text),
            notice: LoadingNotice::default(),
            first_thought: 0,
            thought: None,
            echo: Echo::default(),
            splitter: Splitter::new(quirks.think_tags),
            wary: true,
            limit,
        }
    }

    /// Takes text.
    #[inline]
    pub(crate) fn add_text(&mut self, text: &str, budget: &mut Budget) -> Result<(), Error> {
        // `wary` becomes false with the first text of most answers. While it is false, only the filter for
        // repeats and the splitter, if there is one, see the text.
        if self.wary && !self.is_plain(text) {
            return self.add_text_warily(text, budget);
        }
        let Self { blocks, text: filter, splitter, limit, .. } = self;
        let limit = *limit;
        if splitter.is_none() && filter.take_short(text) {
            return blocks.say(Voice::Text, text, limit, budget);
        }
        if filter.held() + splitter.as_ref().map_or(0, Splitter::held) + text.len() > limit {
            return Err(Error::new(ErrorKind::TextTooLong, limit));
        }
        reserve(filter, text, blocks, limit, budget)?;
        filter.push(text, &mut |text| match splitter {
            None => blocks.say(Voice::Text, text, limit, budget),
            Some(splitter) => {
                splitter.reserve(text, budget)?;
                splitter.push(text, &mut |voice, words| blocks.say(voice, words, limit, budget))
            }
        })
    }

    /// Takes text that the server marks as thinking.
    #[cold]
    pub(crate) fn add_thought(&mut self, text: &str, budget: &mut Budget) -> Result<(), Error> {
        self.flush_but_thought(budget)?;
        self.check_room(text)?;
        self.wary = true;
        let Self { blocks, thought, limit, .. } = self;
        let thought = thought.get_or_insert_default();
        thought.settle(&mut |voice, words| blocks.say(voice, words, *limit, budget))?;
        thought.release(budget);
        thought.reserve_marked(text, budget)?;
        thought.push_marked(text, &mut |voice, words| blocks.say(voice, words, *limit, budget))
    }

    /// Takes thinking.
    #[inline]
    pub(crate) fn think(&mut self, words: &str, budget: &mut Budget) -> Result<(), Error> {
        if self.thinking.is_settled() {
            self.flush_text(budget)?;
            return self.blocks.say(Voice::Thinking, words, self.limit, budget);
        }
        self.think_first(words, budget)
    }

    /// Takes thinking beside text. If it is what the thinking already is, the server sends all of it with each text.
    #[cold]
    pub(crate) fn think_beside(&mut self, words: &str, budget: &mut Budget) -> Result<(), Error> {
        let Self { blocks, thinking, first_thought, .. } = self;
        // Short thinking, such as a line break, may be the same twice.
        let is_telling = is_sure(u32::MAX, words);
        if is_telling && thinking.is_new() && *first_thought > 0 && blocks.thinking() == words {
            return Ok(());
        }
        thinking.is_sure |= is_telling && thinking.ends_with(words);
        self.think(words, budget)
    }

    /// Takes thinking that may repeat itself.
    #[inline(never)]
    fn think_first(&mut self, words: &str, budget: &mut Budget) -> Result<(), Error> {
        // Nothing new does not separate the text around it.
        if self.thinking.has_all(words) {
            return Ok(());
        }
        self.flush_text(budget)?;
        let Self { blocks, thinking, notice, first_thought, limit, .. } = self;
        let limit = *limit;
        if thinking.is_new() {
            // The filter would copy the first delta, nearly always only to find that the second does not begin with
            // it. This is checked here without a copy.
            match *first_thought {
                0 if blocks.thinking().is_empty() => {
                    let words = notice.rest(words);
                    self.wary |= notice.is_open();
                    if !words.is_empty() {
                        blocks.say(Voice::Thinking, &words, limit, budget)?;
                    }
                    *first_thought = words.len();
                    return Ok(());
                }
                // Earlier thinking came another way, such as between tags, and is not compared.
                0 => {}
                length => {
                    let first = &blocks.thinking()[..length];
                    if !words.starts_with(first) {
                        thinking.settle();
                        return blocks.say(Voice::Thinking, words, limit, budget);
                    }
                    thinking.begin_with(first, budget)?;
                }
            }
        }
        if thinking.held() + words.len() > limit {
            return Err(Error::new(ErrorKind::TextTooLong, limit));
        }
        reserve(thinking, words, blocks, limit, budget)?;
        thinking.push(words, &mut |words| blocks.say(Voice::Thinking, words, limit, budget))?;
        self.wary |= self.thinking.held() > 0;
        Ok(())
    }

    /// Emits text unchanged, after all held-back text.
    pub(crate) fn say(
        &mut self,
        voice: Voice,
        words: &str,
        budget: &mut Budget,
    ) -> Result<(), Error> {
        self.flush(budget)?;
        self.blocks.say(voice, words, self.limit, budget)
    }

    /// Returns the text of a message after deltas as the deltas would have come out: without the thinking in it, which
    /// is added to `thinking`, and without thinking that it repeats.
    pub(crate) fn take_apart(
        &mut self,
        text: String,
        thinking: &mut String,
        is_thought: bool,
        tags: ThinkTags,
        budget: &mut Budget,
    ) -> Result<String, Error> {
        let begin = text.trim_start();
        let is_thought = is_thought || (self.thought.is_some() && begin.starts_with(thought::OPEN));
        if !is_thought && !begin.starts_with(think::OPEN) && tags == ThinkTags::Off {
            return Ok(text);
        }
        let said = self.blocks.said(Voice::Text, budget)?;
        let is_known = unsaid(&said.text, &mut said.edges, &text).is_empty();
        if is_known && !said.edges.of(&said.text).is_empty() {
            // It only repeats the text, whatever looks like thinking in it.
            return Ok(text);
        }
        // Text that may repeat thinking, the text behind it, and the thinking in that.
        let copies = 3 * COPIES * text.len();
        budget.hold(copies)?;
        let said = self.blocks.said(Voice::Thinking, budget)?;
        let streamed = said.edges.of(&said.text);
        let splitter = match tags {
            _ if is_thought => Some(Splitter::inside(thought::TAGS)),
            ThinkTags::StartsInThinking if !begins_inside(begin, streamed) => {
                Splitter::new(ThinkTags::Split)
            }
            tags => Splitter::new(tags),
        };
        let text = take_apart(&text, thinking, streamed, splitter);
        budget.release(copies);
        text
    }

    /// Emits the part of this text that is new. It is all text of the answer in this voice.
    pub(crate) fn say_rest(
        &mut self,
        voice: Voice,
        whole: &str,
        budget: &mut Budget,
    ) -> Result<(), Error> {
        let said = self.blocks.said(voice, budget)?;
        let rest = unsaid(&said.text, &mut said.edges, whole);
        if rest.is_empty() { Ok(()) } else { self.say(voice, rest, budget) }
    }

    /// Releases all held-back text, including a partial tag.
    #[inline]
    pub(crate) fn flush(&mut self, budget: &mut Budget) -> Result<(), Error> {
        // After plain text, only a partial tag is held back.
        let is_open = self.splitter.is_none()
            && self.text.held() == 0
            && (!self.wary || self.is_nothing_rare_held());
        if is_open { Ok(()) } else { self.let_all_go(budget) }
    }

    #[inline(never)]
    fn let_all_go(&mut self, budget: &mut Budget) -> Result<(), Error> {
        self.flush_but_thought(budget)?;
        let Self { blocks, thought, limit, .. } = self;
        let Some(thought) = thought else { return Ok(()) };
        thought.flush(&mut |voice, words| blocks.say(voice, words, *limit, budget))
    }

    fn flush_but_thought(&mut self, budget: &mut Budget) -> Result<(), Error> {
        // In the order of the filters: what one of them releases passes through the next ones, which are
        // flushed after it. The echo also compares text with the thinking, so that is completed before.
        self.flush_text(budget)?;
        self.flush_thinking(budget)?;
        if let Some(text) = self.echo.flush(self.blocks.thinking()) {
            self.say_text(&text, budget)?;
        }
        self.echo.release(budget);
        let Self { blocks, splitter, limit, .. } = self;
        match splitter {
            None => Ok(()),
            Some(splitter) => {
                splitter.flush(&mut |voice, words| blocks.say(voice, words, *limit, budget))
            }
        }
    }

    /// Returns true if the filters that few streams need are inactive for this text: nothing is held back, and the
    /// text cannot begin to repeat thinking.
    #[inline(never)]
    fn is_plain(&mut self, text: &str) -> bool {
        if !self.is_nothing_rare_held() {
            return false;
        }
        let begin = text.trim_start();
        if begin.starts_with('<') && !self.blocks.thinking().is_empty() {
            return false;
        }
        if !begin.is_empty() {
            self.echo.end_watch();
            self.wary = false;
        }
        true
    }

    /// Takes text while one of these filters may be active.
    #[inline(never)]
    fn add_text_warily(&mut self, text: &str, budget: &mut Budget) -> Result<(), Error> {
        self.check_room(text)?;
        let mut text = Cow::Borrowed(text);
        if let Self { blocks, thought: Some(thought), limit, .. } = self
            && thought.is_open()
        {
            thought.reserve_plain(&text, budget)?;
            let plain = thought
                .push_plain(&text, &mut |voice, words| blocks.say(voice, words, *limit, budget))?;
            let Some(plain) = plain else { return Ok(()) };
            text = Cow::Owned(plain);
        }
        if text.is_empty() {
            return Ok(());
        }
        reserve(&mut self.text, &text, &self.blocks, self.limit, budget)?;
        // Collected first, because the next filter needs all of `self`, which the closure cannot borrow.
        let mut pieces = String::new();
        self.text.push(&text, &mut |piece| {
            budget.reserve(&mut pieces, piece.len(), 1)?;
            pieces.push_str(piece);
            Ok(())
        })?;
        self.pass_echo(&pieces, budget)?;
        budget.release(pieces.capacity());
        if let Some(thought) = &mut self.thought {
            thought.release(budget);
        }
        Ok(())
    }

    /// Returns true if the filters that few streams need hold nothing back.
    #[inline]
    fn is_nothing_rare_held(&self) -> bool {
        let held = self.thinking.held() + self.echo.held();
        held == 0 && !self.is_thought_open() && !self.notice.is_open()
    }

    /// Returns true while the next text may close the marked text.
    fn is_thought_open(&self) -> bool {
        self.thought.as_ref().is_some_and(|thought| thought.is_open())
    }

    /// Emits text unless it repeats thinking.
    fn pass_echo(&mut self, text: &str, budget: &mut Budget) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        // Thinking that is held back arrived before this text, which may repeat it.
        self.flush_thinking(budget)?;
        self.echo.reserve(text, budget)?;
        let Some(text) = self.echo.push(text, self.blocks.thinking()) else { return Ok(()) };
        self.say_text(&text, budget)?;
        self.echo.release(budget);
        self.wary = !self.echo.is_over() || self.is_thought_open();
        Ok(())
    }

    /// Emits text, and thinking between its tags.
    fn say_text(&mut self, text: &str, budget: &mut Budget) -> Result<(), Error> {
        let Self { blocks, splitter, limit, .. } = self;
        match splitter {
            None => blocks.say(Voice::Text, text, *limit, budget),
            Some(splitter) => {
                splitter.reserve(text, budget)?;
                splitter.push(text, &mut |voice, words| blocks.say(voice, words, *limit, budget))
            }
        }
    }

    /// Releases text that may have been a repeat, because something else follows.
    #[inline]
    fn flush_text(&mut self, budget: &mut Budget) -> Result<(), Error> {
        if self.text.held() == 0 { Ok(()) } else { self.let_text_go(budget) }
    }

    #[inline(never)]
    fn let_text_go(&mut self, budget: &mut Budget) -> Result<(), Error> {
        let mut pieces = String::new();
        self.text.flush(&mut |piece| {
            budget.reserve(&mut pieces, piece.len(), 1)?;
            pieces.push_str(piece);
            Ok(())
        })?;
        self.pass_echo(&pieces, budget)?;
        budget.release(pieces.capacity());
        Ok(())
    }

    /// Releases thinking that may have been a repeat, because something else follows.
    fn flush_thinking(&mut self, budget: &mut Budget) -> Result<(), Error> {
        let Self { blocks, thinking, notice, limit, .. } = self;
        let no_notice = notice.close();
        if !no_notice.is_empty() {
            blocks.say(Voice::Thinking, &no_notice, *limit, budget)?;
        }
        thinking.flush(&mut |words| blocks.say(Voice::Thinking, words, *limit, budget))
    }

    /// Checks that held-back and new text together do not exceed the limit of an answer.
    fn check_room(&self, text: &str) -> Result<(), Error> {
        if self.held() + text.len() > self.limit {
            return Err(Error::new(ErrorKind::TextTooLong, self.limit));
        }
        Ok(())
    }

    /// Returns the number of bytes held back, of text and thinking.
    pub(crate) fn held(&self) -> usize {
        let split = self.splitter.as_ref().map_or(0, Splitter::held);
        let thought = self.thought.as_ref().map_or(0, |thought| thought.held());
        self.text.held() + split + self.echo.held() + thought + self.thinking.held()
    }
}

/// Returns true if the text of a message begins with thinking whose opening tag is in the prompt. A server that removes
/// thinking from its messages removes the closing tag, too; without one, the text is thinking if it repeats that.
fn begins_inside(text: &str, streamed: &str) -> bool {
    if ThinkingTags::at_start_of(text).is_some() {
        return false;
    }
    let is_streamed = text.starts_with(streamed) || streamed.starts_with(text.trim_end());
    text.contains(think::CLOSE) || (!streamed.is_empty() && is_streamed)
}

/// Makes room in a filter for the next text. If text limit and budget are exceeded, the text limit is reported.
#[inline]
fn reserve(
    filter: &mut TextFilter,
    words: &str,
    blocks: &Blocks,
    limit: usize,
    budget: &mut Budget,
) -> Result<(), Error> {
    filter.reserve(words, budget).map_err(|error| {
        let is_too_long = blocks.text_bytes() + words.len() > limit;
        if is_too_long { Error::new(ErrorKind::TextTooLong, limit) } else { error }
    })
}
