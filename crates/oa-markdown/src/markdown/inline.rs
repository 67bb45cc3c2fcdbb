//! Inline Markdown.

use std::borrow::Cow;

use pulldown_cmark::{Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};

use super::marker;
use crate::style::{Color, Span, Style};

/// Parses a line that holds no blocks: in the cell of a table or a headline, `#` and `> 10 ms` are text.
pub(super) fn line(text: &str, base: Style) -> Vec<Span> {
    match marker::sign_of_block(text) {
        Some(at) => spans(&format!("{}\\{}", &text[..at], &text[at..]), base),
        None => spans(text, base),
    }
}

/// Parses the text of a block. Line breaks are kept; `\n` in the result ends a line.
pub(super) fn spans(text: &str, base: Style) -> Vec<Span> {
    let mut styles = vec![base];
    let mut spans = Spans::default();
    let mut links: Vec<(String, usize)> = Vec::new();
    let mut lists: Vec<Option<u64>> = Vec::new();
    let text = &*with_definitions(text);
    for (event, range) in parser(text).into_offset_iter() {
        let style = styles.last().copied().unwrap_or(base);
        match event {
            Event::Start(tag) => {
                let inner = match &tag {
                    Tag::Emphasis => style.italic(),
                    Tag::Strong => style.bold(),
                    Tag::Strikethrough => style.strike(),
                    Tag::Link { link_type, dest_url, .. } => {
                        // The text of such a link is its address. The address of others follows the text,
                        // unless they are equal.
                        let is_plain = matches!(link_type, LinkType::Autolink | LinkType::Email);
                        let url = if is_plain { "" } else { dest_url };
                        links.push((url.to_owned(), spans.length()));
                        style.underline()
                    }
                    Tag::Image { dest_url, .. } => {
                        links.push((dest_url.to_string(), spans.length()));
                        style
                    }
                    Tag::Item => {
                        spans.begin_block();
                        match lists.last_mut() {
                            Some(Some(number)) => {
                                let sign =
                                    text[range].trim_start_matches(|c: char| c.is_ascii_digit());
                                let sign = if sign.starts_with(')') { ')' } else { '.' };
                                spans.push(&format!("{number}{sign} "), base.dim());
                                *number += 1;
                            }
                            _ => spans.push("• ", base.dim()),
                        }
                        style
                    }
                    Tag::List(first) => {
                        lists.push(*first);
                        style
                    }
                    Tag::Heading { level, .. } => {
                        spans.begin_block();
                        heading(style, *level == HeadingLevel::H1)
                    }
                    // The text of an item begins next to its marker.
                    Tag::Paragraph if !lists.is_empty() => style,
                    _ => {
                        spans.begin_block();
                        style
                    }
                };
                styles.push(inner);
            }
            Event::End(tag) => {
                styles.pop();
                if matches!(tag, TagEnd::List(_)) {
                    lists.pop();
                }
                if matches!(tag, TagEnd::Link | TagEnd::Image)
                    && let Some((url, begun)) = links.pop()
                    && !url.is_empty()
                    && spans.since(begun) != url
                {
                    spans.push(&format!(" ({url})"), base.dim());
                }
            }
            Event::Code(code) => spans.push(&code, style.color(Color::Cyan)),
            Event::HardBreak | Event::SoftBreak => spans.push("\n", style),
            Event::Html(tag) | Event::InlineHtml(tag) if is_line_break(&tag) => {
                spans.push("\n", style);
            }
            Event::Rule => spans.push("---", style),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => spans.push(&text, style),
            Event::TaskListMarker(is_done) => {
                spans.push(if is_done { "[x] " } else { "[ ] " }, style);
            }
        }
    }
    spans.0
}

/// Returns the style of a headline.
pub(super) fn heading(base: Style, is_first_level: bool) -> Style {
    if is_first_level { base.bold().underline() } else { base.bold() }
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH)
}

/// The most rounds that look for definitions. One finds all that differ; another one, those that repeat a name.
const ROUNDS: usize = 8;

/// Escapes definitions of links, such as `[1]: http://a.b`, so that they are shown. A definition is meant for other
/// blocks, which may have been shown already, and the parser shows nothing of it.
fn with_definitions(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for _ in 0..ROUNDS {
        let mut places: Vec<_> = {
            let parser = parser(&text);
            let places = parser.reference_definitions().iter().map(|(_, found)| found.span.start);
            places.filter(|at| text[*at..].starts_with('[')).collect()
        };
        if places.is_empty() {
            break;
        }
        places.sort_unstable();
        let mut escaped = String::with_capacity(text.len() + places.len());
        let mut done = 0;
        for at in places {
            escaped.push_str(&text[done..at]);
            escaped.push('\\');
            done = at;
        }
        escaped.push_str(&text[done..]);
        text = Cow::Owned(escaped);
    }
    text
}

/// Returns true for `<br>`, which models write where a line break is impossible, such as in tables.
fn is_line_break(tag: &str) -> bool {
    let tag = tag.trim().trim_start_matches('<').trim_end_matches('>').trim_end_matches('/');
    tag.trim_end().eq_ignore_ascii_case("br")
}

#[derive(Default)]
struct Spans(Vec<Span>);

impl Spans {
    fn push(&mut self, text: &str, style: Style) {
        // Entities such as `&#27;` are already decoded here.
        let span = Span::new(text, style);
        match self.0.last_mut() {
            Some(last) if last.style == style => last.text.push_str(&span.text),
            _ => self.0.push(span),
        }
    }

    /// Begins a new line for a nested block.
    fn begin_block(&mut self) {
        if let Some(last) = self.0.last()
            && !last.text.ends_with('\n')
        {
            let style = last.style;
            self.push("\n", style);
        }
    }

    fn length(&self) -> usize {
        self.0.iter().map(|span| span.text.len()).sum()
    }

    /// Returns the text after the first `begun` bytes.
    fn since(&self, begun: usize) -> String {
        let all: String = self.0.iter().map(|span| span.text.as_str()).collect();
        all.get(begun..).unwrap_or_default().to_owned()
    }
}
