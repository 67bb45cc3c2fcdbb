//! Shortening the conversation before a request.

use oa_types::{ErrorRecord, Message, MessageRole};

use super::Turn;
use super::phase::Phase;
use super::shorten_state::{ShortenState, Unshortened};
use super::steps::invalid;
use crate::budget::Spent;
use crate::error::{Error, ErrorKind};
use crate::repair::is_valid;
use crate::round::Round;
use crate::shorten::{OverflowSizes, ReportedTokens, ShortenOutcome, ShortenStep};

impl Turn {
    /// Returns the data for shortening the conversation, after [`Action::Shorten`](crate::Action::Shorten).
    #[must_use]
    pub fn shorten_step(&self) -> ShortenStep {
        let (prompt, keep_from) = self.must_stay();
        let refused = self.shortening.as_ref().filter(|state| state.is_overflow);
        ShortenStep {
            history: self.history().clone(),
            prompt,
            keep_from,
            reported: self.reported(),
            can_ask: self.exhausted().is_none(),
            left: self.left(),
            is_overflow: matches!(self.phase, Phase::Shortening { is_overflow: true, .. }),
            sizes: refused.map_or_else(OverflowSizes::default, |state| state.sizes),
        }
    }

    /// Records that the server rejected the request as too long before its answer began, and the sizes that it stated.
    /// Returns true if the turn continues: it returns [`Action::Shorten`](crate::Action::Shorten) and sends the request
    /// once more. Otherwise the request has failed; call [`fail`](Self::fail).
    ///
    /// It continues once per request, and only if [`shorten`](crate::Options::shorten) is set. If it does not, what was
    /// shortened for the prompt was shortened in vain, and [`fail`](Self::fail) restores it.
    pub fn retry_shorter(&mut self, sizes: OverflowSizes) -> bool {
        let Phase::Requesting { sent: true, prompt } = self.phase else { return false };
        let Some(state) = &mut self.shortening else { return false };
        if state.is_overflow {
            state.is_in_vain = true;
            return false;
        }
        (state.is_overflow, state.sizes) = (true, sizes);
        // The request that follows is the same step.
        self.progress.budget.steps = self.progress.budget.steps.saturating_sub(1);
        self.phase = Phase::Shortening { handed: false, prompt, is_overflow: true };
        true
    }

    pub(super) fn take_shortened(
        &mut self,
        outcome: ShortenOutcome,
    ) -> Result<(), Box<ErrorRecord>> {
        if !matches!(self.phase, Phase::Shortening { handed: true, .. }) {
            return Ok(());
        }
        match outcome {
            ShortenOutcome::Cut { by, spent } => {
                self.spend(spent);
                self.take_cut(by)
            }
            ShortenOutcome::Failed { error, spent } => {
                self.spend(spent);
                self.fails(error)
            }
            ShortenOutcome::Keep => {
                self.shortened(Spent::default());
                Ok(())
            }
            ShortenOutcome::Replace { history, spent } => {
                // The summary has been paid for, even if the conversation is refused.
                self.spend(spent);
                if let Err(error) = self.shorten_to(history) {
                    return self.fails(invalid(&error));
                }
                self.shortened(spent);
                Ok(())
            }
        }
    }

    /// Records the prompt of the turn that begins.
    pub(super) fn note_prompt(&mut self) {
        if !self.options.shorten {
            return;
        }
        let history = self.history();
        let is_user = |message: &Message| message.role == MessageRole::User;
        let asked = self.asked.as_ref().map(|asked| asked.place);
        let asked = asked.filter(|place| history.get(*place).is_some_and(is_user));
        let prompt = asked.or_else(|| history.iter().rposition(is_user));
        let state = self.shortening.get_or_insert_default();
        (state.prompt, state.is_overflow) = (prompt, false);
    }

    /// Records the size of the conversation, as the server reported it with an answer; 0 if it did not.
    pub(super) fn note_reported(&mut self, tokens: u64) {
        let reported = ReportedTokens { tokens, messages: self.history().len() };
        let revision = self.conversation.last_revision();
        if let Some(state) = &mut self.shortening {
            state.reported = (tokens > 0).then_some((reported, revision));
        }
    }

    /// Returns the reported size, if the messages that it covers are unchanged.
    fn reported(&self) -> Option<ReportedTokens> {
        let (reported, revision) = self.shortening.as_ref()?.reported?;
        let messages = self.revisions().get(..reported.messages)?;
        // A message that was changed or inserted since has a later revision.
        messages.iter().all(|message| *message <= revision).then_some(reported)
    }

    /// Begins the phase of the next request, after steered messages have entered.
    pub(super) fn before_request(&mut self, prompt: Option<usize>) {
        if let Some(state) = &mut self.shortening {
            (state.is_overflow, state.is_in_vain) = (false, false);
            self.phase = Phase::Shortening { handed: false, prompt, is_overflow: false };
        } else {
            self.plan_request(prompt);
        }
    }

    /// Continues with the request, unless a summary has used up the budgets.
    fn shortened(&mut self, spent: Spent) {
        if !spent.is_zero() && self.ends_used_up() {
            return;
        }
        match self.phase {
            // The request is already planned.
            Phase::Shortening { prompt, is_overflow: true, .. } => {
                self.phase = Phase::Requesting { sent: false, prompt };
            }
            Phase::Shortening { prompt, .. } => self.plan_request(prompt),
            _ => {}
        }
    }

    /// Keeps the conversation for a failure before the answer begins, unless an earlier shortening has kept it.
    fn keep_unshortened(&mut self) {
        let Phase::Shortening { prompt: Some(_), .. } = self.phase else { return };
        if let Some(state) = &mut self.shortening {
            state.unshortened.get_or_insert_with(|| {
                Box::new(Unshortened {
                    conversation: self.conversation.clone(),
                    round: self.round.clone(),
                    failure: self.failure.clone(),
                    reported: state.reported,
                })
            });
        }
    }

    /// Restores the conversation that was shortened for the prompt in vain.
    pub(super) fn unshorten(&mut self) {
        let Some(state) = self.shortening.as_mut().filter(|state| state.is_in_vain) else { return };
        if let Some(before) = state.unshortened.take() {
            let Unshortened { conversation, round, failure, reported } = *before;
            self.conversation.restore(conversation);
            (self.round, self.failure, state.reported) = (round, failure, reported);
        }
    }

    /// Returns true if the conversation was shortened for the prompt, but the server rejected the rest, too:
    /// [`fail`](Self::fail) then restores it.
    #[must_use]
    pub fn is_shortened_in_vain(&self) -> bool {
        let is_in_vain = |state: &ShortenState| state.is_in_vain && state.unshortened.is_some();
        self.phase.prompt().is_some() && self.shortening.as_deref().is_some_and(is_in_vain)
    }

    /// Forgets the conversation before shortening: from now on, a failure does not restore it.
    pub(super) fn forget_unshortened(&mut self) {
        if let Some(state) = &mut self.shortening {
            state.unshortened = None;
        }
    }

    /// Returns the index of the prompt that began the turn, and the index from which all messages must be kept.
    fn must_stay(&self) -> (Option<usize>, usize) {
        let history = self.history();
        let of = |role: MessageRole| history.iter().rposition(|message| message.role == role);
        let prompt = self.shortening.as_ref().and_then(|state| state.prompt);
        let prompt = prompt.filter(|prompt| *prompt < history.len());
        // An answer before the prompt is of an earlier turn, and may be shortened away.
        let after_prompt = |answer: &usize| prompt.is_none_or(|prompt| prompt < *answer);
        // Refused answers and the replies to them must stay, because the end of the turn removes them.
        let refused = self.refused.first().map(|refused| refused.start);
        let answers = [of(MessageRole::Assistant), self.round.answer_place(), refused];
        let answer = answers.into_iter().flatten().filter(after_prompt).min();
        (prompt, answer.or(prompt).unwrap_or_default())
    }

    /// Replaces the conversation with a shorter one, in which earlier messages may be missing or replaced.
    fn shorten_to(&mut self, messages: Vec<Message>) -> Result<(), Error> {
        let refuse = |why: &str| {
            let message = format!("the shortened conversation is invalid: {why}");
            Err(Error::new(ErrorKind::InvalidHistory, message))
        };
        // All checks come before the first change, so that a refusal leaves the conversation as it was: the
        // end is verbatim, the user's messages of this turn and the system message are there, and `repair`
        // finds nothing to do. Then every index into history moves.
        let (prompt, keep_from) = self.must_stay();
        let old = self.history();
        let kept = &old[keep_from..];
        let start = messages.len().checked_sub(kept.len());
        let Some(start) = start.filter(|start| messages[*start..] == *kept) else {
            return refuse("it does not end with the last answer and all that follows");
        };
        let mut prompt_now = prompt.filter(|prompt| *prompt >= keep_from);
        prompt_now = prompt_now.map(|prompt| prompt - keep_from + start);
        if let Some(prompt) = prompt.filter(|prompt| *prompt < keep_from) {
            let mut end = start;
            let is_user = |place: &usize| old[*place].role == MessageRole::User;
            // From the last to the first, and each one before the one found last: equal messages need a match
            // each.
            for place in (prompt..keep_from).rev().filter(is_user) {
                let found = messages[..end].iter().rposition(|message| *message == old[place]);
                let Some(found) = found else {
                    return refuse("a message of the user is missing");
                };
                (end, prompt_now) = (found, Some(found));
            }
        }
        let system = old.first().filter(|first| first.role == MessageRole::System);
        if system.is_some_and(|system| messages.first() != Some(system)) {
            return refuse("the system message is missing");
        }
        if !is_valid(&messages) {
            return refuse("calls and results do not match, or a message is empty");
        }
        self.keep_unshortened();
        self.asked = self.asked.take().and_then(|asked| {
            prompt_now.map(|place| super::failed::SubmittedPrompt { place, ..asked })
        });
        // The messages that it would remove may be gone.
        self.failure = None;
        if let Phase::Shortening { prompt: Some(prompt), .. } = &mut self.phase {
            // A prompt whose answer has not begun is always the last message.
            *prompt = messages.len().saturating_sub(1);
        }
        for refused in &mut self.refused {
            *refused = refused.start - keep_from + start..refused.end - keep_from + start;
        }
        if !self.round.shift(keep_from, start) {
            self.round = Round::new(Vec::new(), Default::default(), 0, self.answers);
        }
        if let Some(state) = &mut self.shortening {
            (state.prompt, state.reported) = (prompt_now, None);
        }
        let kept = messages.len() - start;
        self.conversation.shorten_to(messages, kept);
        Ok(())
    }
}
