//! Content that is a list of parts (QUIRKS row 38).

use oa_json::JsonStr;

use crate::allowance::Allowance;
use crate::chunk::{Choice, Part};
use crate::json::{Read, Reader};
use crate::reasoning::read_words;

/// The parts of one content. Other parts have none of the members that are read.
#[derive(Debug, Default)]
pub(crate) struct Parts<'a> {
    list: Vec<Part<'a>>,
    refusal: String,
}

impl<'a> Parts<'a> {
    pub(crate) fn read(reader: &mut Reader<'a, '_>, allowance: &mut Allowance) -> Read<Self> {
        let mut parts = Self::default();
        let Some(mut items) = reader.array()? else { return Ok(parts) };
        while reader.item(&mut items)? {
            if allowance.hold_one::<Part<'_>>() {
                parts.read_part(reader, allowance)?;
            } else {
                reader.skip()?;
            }
        }
        Ok(parts)
    }

    fn read_part(&mut self, reader: &mut Reader<'a, '_>, allowance: &mut Allowance) -> Read<()> {
        if reader.peek() == Some(b'"') {
            self.list.extend(reader.text()?.map(|text| Part::Text(text.text())));
            return Ok(());
        }
        let (mut text, mut thinking, mut is_thought) = (None, String::new(), false);
        let known = self.refusal.len();
        let Some(mut members) = reader.object()? else { return Ok(()) };
        while let Some(name) = reader.member(&mut members)? {
            match &*name {
                "text" => text = reader.text()?.map(JsonStr::text),
                "thinking" | "summary" => read_words(reader, &mut thinking)?,
                "refusal" => read_words(reader, &mut self.refusal)?,
                "type" => {
                    let kind = reader.string_or_absent()?.map_or("", |kind| kind.raw);
                    is_thought = matches!(kind, "reasoning" | "thinking");
                }
                _ => reader.skip()?,
            }
        }
        thinking.extend(text.take_if(|_| is_thought));
        // Once here, and twice while it grew.
        let words = 3 * (thinking.len() + self.refusal.len() - known);
        let part = if thinking.is_empty() { 0 } else { size_of::<Part<'_>>() };
        if allowance.hold(part + words) && !thinking.is_empty() {
            self.list.push(Part::Thinking(thinking.into()));
        }
        self.list.extend(text.map(Part::Text));
        Ok(())
    }

    /// Adds the parts to a choice. A refusal in them counts only if the choice has no member of that name.
    pub(crate) fn tell(self, choice: &mut Choice<'a>) {
        if !self.list.is_empty() {
            choice.rare().parts = self.list;
        }
        if !self.refusal.is_empty() && choice.refusal().is_none() {
            choice.rare().refusal = Some(self.refusal.into());
        }
    }
}
