use std::{env, process};

/// The command-line arguments: flags such as `--yes`, and words.
///
/// Take flags and values first; unknown ones are reported at the end.
#[derive(Debug)]
pub struct Arguments(Vec<String>);

impl Arguments {
    /// Reads this program's arguments. With `--help`, prints the header of the given source and exits.
    pub fn read(source: &str) -> Self {
        let arguments: Vec<String> = env::args().skip(1).collect();
        if arguments.iter().any(|argument| matches!(&**argument, "--help" | "-h")) {
            print!("{}", help(source));
            process::exit(0);
        }
        Self(arguments)
    }

    /// Reads the arguments of a program that takes none.
    pub fn none(source: &str) -> Result<(), String> {
        Self::read(source).end()
    }

    /// Reports what was not taken.
    pub fn end(self) -> Result<(), String> {
        match &*self.words()? {
            "" => Ok(()),
            words => Err(format!("unknown argument {words:?}; see --help")),
        }
    }

    /// Removes a flag and returns true if it was present.
    pub fn flag(&mut self, name: &str) -> bool {
        let count = self.0.len();
        self.0.retain(|argument| argument != name);
        self.0.len() < count
    }

    /// Removes an option and returns its value: `--in FOLDER`.
    pub fn value(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(at) = self.0.iter().position(|argument| argument == name) else {
            return Ok(None);
        };
        if at + 1 == self.0.len() {
            return Err(format!("{name} needs a value"));
        }
        self.0.remove(at);
        Ok(Some(self.0.remove(at)))
    }

    /// Returns the remaining words as one text.
    pub fn words(self) -> Result<String, String> {
        match self.0.iter().find(|argument| argument.starts_with("--")) {
            Some(unknown) => Err(format!("unknown argument {unknown}; see --help")),
            None => Ok(self.0.join(" ")),
        }
    }
}

/// Returns the description at the top of a program's source.
fn help(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::{Arguments, help};

    #[test]
    fn help_is_the_head_of_the_source() {
        let source = "//! Adds.\n//!\n//!     run -- --fast\n\nuse std::env;\n//! no\n";
        assert_eq!(help(source), "Adds.\n\n    run -- --fast\n");
    }

    fn arguments(line: &str) -> Arguments {
        Arguments(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn flags_and_words_mix_in_any_order() {
        let mut read = arguments("what --yes is --in folder this");
        assert_eq!(read.value("--in"), Ok(Some("folder".to_owned())));
        assert!(read.flag("--yes") && !read.flag("--yes"));
        assert_eq!(read.value("--in"), Ok(None));
        assert_eq!(read.words().as_deref(), Ok("what is this"));
    }

    #[test]
    fn unknown_arguments_are_errors() {
        assert!(arguments("--in").value("--in").is_err());
        assert_eq!(
            arguments("a --yess").words().unwrap_err(),
            "unknown argument --yess; see --help"
        );
    }
}
