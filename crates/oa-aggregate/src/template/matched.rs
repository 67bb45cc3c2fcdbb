//! A payload that matched a template.

use std::borrow::Cow;

use oa_types::Usage;

use crate::chunk::{Choice, Chunk, Fragment};
use crate::details::DetailFragment;
use crate::template::chunk_template::ChunkTemplate;
use crate::template::shape::{ChunkShape, Content};

/// A payload that matched a template: the template's shape with the payload's values.
#[derive(Debug)]
pub(crate) struct Matched<'a> {
    pub(crate) shape: &'a ChunkShape,
    /// The number of the choice.
    pub(crate) index: i64,
    /// Text, thinking or a piece of arguments; empty if there is none.
    pub(crate) words: &'a str,
    pub(crate) detail: Option<DetailFragment<'a>>,
    pub(crate) usage: Option<&'a Usage>,
    /// The template, if it is from an earlier answer: the id and model of this one have not been read yet.
    identity: Option<&'a ChunkTemplate>,
}

impl<'a> Matched<'a> {
    /// Combines the template that matched last with its values. `raw_detail` is the length of the detail as sent.
    #[inline]
    pub(crate) fn new(
        template: &'a ChunkTemplate,
        words: &'a str,
        detail: &'a str,
        raw_detail: usize,
        is_first: bool,
    ) -> Self {
        let shape = template.shape();
        let fragment = |shape| DetailFragment { shape, words: detail, raw: raw_detail };
        Self {
            shape,
            index: template.index(),
            words,
            detail: shape.detail.as_deref().map(fragment),
            usage: template.usage(),
            identity: is_first.then_some(template),
        }
    }

    /// Returns true if it has the id and model, as the first of its answer that matched a template of an earlier one.
    #[inline]
    pub(crate) fn has_identity(&self) -> bool {
        self.identity.is_some()
    }

    /// Returns the server's id of the answer, if it has the identity.
    pub(crate) fn id(&self) -> Option<Cow<'a, str>> {
        self.identity?.id()
    }

    /// Returns the model of the answer, if it has the identity.
    pub(crate) fn model(&self) -> Option<Cow<'a, str>> {
        self.identity?.model()
    }

    /// Returns the thinking; that of the detail if there is no other.
    #[inline]
    pub(crate) fn thinking(&self) -> &'a str {
        match &self.detail {
            // As in the full reading: a name without text gives way to the detail.
            Some(detail) if self.words.is_empty() => detail.thinking(),
            _ => self.words,
        }
    }

    /// Returns the chunk that the full reading would return, except for an id and a model that are known.
    pub(crate) fn into_chunk(self) -> Chunk<'a> {
        let has_choice = !matches!(self.shape.content, Content::NoChoice);
        Chunk {
            id: self.id(),
            model: self.model(),
            usage: self.usage.copied(),
            choice: has_choice.then(|| self.choice()),
            ..Chunk::default()
        }
    }

    fn choice(&self) -> Choice<'a> {
        let some = |words: &'a str| (!words.is_empty()).then_some(Cow::Borrowed(words));
        let mut choice = Choice { index: self.index, ..Choice::default() };
        choice.finish_reason = self.shape.finish_reason.as_deref().map(Cow::Borrowed);
        match &self.shape.content {
            Content::NoChoice => {}
            Content::Text => choice.text = some(self.words),
            Content::Thinking => choice.thinking = some(self.thinking()),
            Content::Arguments(fragment) => {
                let lend = |text: &'a Option<Cow<'static, str>>| text.as_deref().map(Cow::Borrowed);
                choice.call = Some(Fragment {
                    index: fragment.index,
                    id: lend(&fragment.id),
                    name: lend(&fragment.name),
                    arguments: some(self.words),
                    legacy: fragment.legacy,
                    ..Fragment::default()
                });
            }
        }
        if let Some(detail) = &self.detail {
            let rare = choice.rare();
            rare.details.push(detail.value());
            rare.detail_bytes = detail.json_length();
        }
        choice
    }
}
