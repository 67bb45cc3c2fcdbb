//! Files that go with a prompt.

use std::path::PathBuf;

use oa_files::Attachment;
use open_agent::{Error, Message};

use super::conversation::Conversation;
use crate::failure::{Failure, Result};
use crate::places;

/// The name of standard input.
pub(super) const INPUT: &str = "-";

/// Reads the files of the command line. Standard input is read along with the prompt, and not where it is typed.
pub(super) fn read(paths: &[PathBuf], talks: bool) -> Result<Vec<Attachment>> {
    let is_input = |path: &&PathBuf| path.as_os_str() == INPUT;
    if talks && paths.iter().any(|path| is_input(&path)) {
        let why = "-: this is the terminal: send the file through a pipe, and pass a prompt";
        return Err(Failure::usage(why));
    }
    let files = paths.iter().filter(|path| !is_input(path)).map(|path| {
        // Shells do not expand the `~` of `--attach=~/photo.png`.
        let path = path.to_str().map_or_else(|| path.clone(), places::expanded);
        Attachment::read(&path).map_err(Error::from)
    });
    Ok(files.collect::<Result<_, _>>()?)
}

/// Returns the message of a prompt and its files.
pub(super) fn message(prompt: String, files: &[Attachment]) -> Message {
    let mut message = Message::user(prompt);
    message.content.extend(files.iter().map(|file| file.block().clone()));
    message
}

impl Conversation {
    /// Adds the files of a line to those for the next prompt: all of them, or none if one cannot be read.
    pub(super) async fn attach(&mut self, line: String) -> Result<()> {
        let read = move || -> Result<Vec<_>, Error> {
            let paths = oa_files::paths(&line, places::expanded)?;
            Ok(paths.iter().map(|path| Attachment::read(path)).collect::<Result<_, _>>()?)
        };
        let files = tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other)??;
        self.attached.retain(|old| files.iter().all(|new| new.path() != old.path()));
        self.attached.extend(files);
        Ok(())
    }

    /// Lists the files for the next prompt.
    pub(super) fn list_attached(&self) -> String {
        let files: Vec<_> = self.attached.iter().map(ToString::to_string).collect();
        match files.is_empty() {
            true => "No files are attached; /attach FILE attaches one.".to_owned(),
            false => format!("For the next prompt: {}", files.join(", ")),
        }
    }
}
