use std::env;

/// What stands behind a program's name: flags such as `--yes`, and words.
///
/// Flags and values are taken out first; what is left of them at the end is told.
#[derive(Debug)]
pub struct Arguments(Vec<String>);

impl Arguments {
    /// Reads those of this program.
    pub fn read() -> Self {
        Self(env::args().skip(1).collect())
    }

    /// Takes a flag out, and returns whether it was there.
    pub fn flag(&mut self, name: &str) -> bool {
        let count = self.0.len();
        self.0.retain(|argument| argument != name);
        self.0.len() < count
    }

    /// Takes a name out and what stands behind it: `--in FOLDER`.
    pub fn value(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(at) = self.0.iter().position(|argument| argument == name) else {
            return Ok(None);
        };
        if at + 1 == self.0.len() {
            return Err(format!("{name} wants a value"));
        }
        self.0.remove(at);
        Ok(Some(self.0.remove(at)))
    }

    /// Returns the words that are left, as one text.
    pub fn words(self) -> Result<String, String> {
        match self.0.iter().find(|argument| argument.starts_with("--")) {
            Some(unknown) => Err(format!("{unknown} means nothing here")),
            None => Ok(self.0.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;

    fn arguments(line: &str) -> Arguments {
        Arguments(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn flags_and_values_stand_anywhere_among_the_words() {
        let mut read = arguments("what --yes is --in folder this");
        assert_eq!(read.value("--in"), Ok(Some("folder".to_owned())));
        assert!(read.flag("--yes") && !read.flag("--yes"));
        assert_eq!(read.value("--in"), Ok(None));
        assert_eq!(read.words().as_deref(), Ok("what is this"));
    }

    #[test]
    fn what_is_not_understood_is_told() {
        assert!(arguments("--in").value("--in").is_err());
        assert_eq!(arguments("a --yess").words().unwrap_err(), "--yess means nothing here");
    }
}
