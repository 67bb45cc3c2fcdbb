//! The story of a script and what happened, for people.

use std::fmt;

use crate::requests::Request;
use crate::script::Script;

pub(crate) struct Story<'a> {
    pub(crate) forgotten: usize,
    pub(crate) notes: &'a [String],
    /// The number of the request that got each reply.
    pub(crate) played: &'a [usize],
    pub(crate) problems: &'a [String],
    pub(crate) requests: &'a [Request],
    pub(crate) script: &'a Script,
}

impl fmt::Display for Story<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "scripted:")?;
        for (index, scene) in self.script.scenes.iter().enumerate() {
            let summary = scene.reply.summary();
            match self.played.get(index) {
                Some(request) => writeln!(f, "  {}. {summary} -> request {request}", index + 1)?,
                None => writeln!(f, "  {}. {summary} -> never played", index + 1)?,
            }
        }
        match &self.script.otherwise {
            Some(scene) => writeln!(f, "  otherwise {}", scene.reply.summary())?,
            None if self.script.scenes.is_empty() => writeln!(f, "  nothing")?,
            None => {}
        }

        writeln!(f, "asked:")?;
        if self.forgotten > 0 {
            writeln!(f, "  ({} earlier requests are forgotten)", self.forgotten)?;
        }
        for request in self.requests {
            writeln!(f, "  {}. {}", request.number(), request.summary())?;
        }
        if self.requests.is_empty() {
            writeln!(f, "  nothing")?;
        }
        for note in self.notes {
            writeln!(f, "  ({note})")?;
        }

        if !self.problems.is_empty() {
            writeln!(f, "wrong:")?;
        }
        for problem in self.problems {
            // Messages of assertions have several lines.
            writeln!(f, "  - {}", problem.replace('\n', "\n    "))?;
        }
        Ok(())
    }
}
