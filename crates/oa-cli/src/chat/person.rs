//! Permission questions, passed between a prompt that reads lines and the screen.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::mpsc;

use open_agent::TerminalPrompt;
use tokio::sync::mpsc as channel;

/// The screen's end, which receives questions and sends answers.
#[derive(Debug)]
pub(super) struct Questions {
    asked: channel::UnboundedReceiver<String>,
    answers: mpsc::Sender<String>,
}

impl Questions {
    /// Creates both ends.
    pub(super) fn new() -> (Self, TerminalPrompt) {
        // Only one question is open at a time, so neither queue grows.
        let (ask, asked) = channel::unbounded_channel();
        let (answers, answered) = mpsc::channel();
        let reader = Answers { answered, read: VecDeque::new() };
        let writer = Writer { ask, text: Vec::new() };
        (Self { asked, answers }, TerminalPrompt::new(io::BufReader::new(reader), writer))
    }

    /// Waits for the next question; forever if there will be none.
    pub(super) async fn next(&mut self) -> String {
        match self.asked.recv().await {
            Some(question) => question,
            None => std::future::pending().await,
        }
    }

    /// Answers the open question.
    pub(super) fn answer(&self, line: &str) {
        // Without the agent, there is no receiver.
        // A line break within the answer would make the rest of it the answer to the next question.
        let _ = self.answers.send(format!("{}\n", line.replace(['\n', '\r'], " ")));
    }

    /// Denies the remaining questions of a turn that is over.
    pub(super) fn refuse_rest(&mut self) {
        while self.asked.try_recv().is_ok() {
            self.answer("");
        }
    }
}

/// Creates a prompt that reads standard input, and the questions that its caller prints: in their place behind the text
/// of the answer, which another thread would overtake.
pub(super) fn from_stdin() -> (channel::UnboundedReceiver<String>, TerminalPrompt) {
    let (ask, asked) = channel::unbounded_channel();
    let writer = Writer { ask, text: Vec::new() };
    (asked, TerminalPrompt::new(io::BufReader::new(io::stdin()), writer))
}

/// The answers, as the input of a prompt.
struct Answers {
    answered: mpsc::Receiver<String>,
    read: VecDeque<u8>,
}

impl Read for Answers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read.is_empty() {
            // Without a screen, the input ends.
            // Blocks the thread of the question, not the runtime.
            self.read.extend(self.answered.recv().unwrap_or_default().into_bytes());
        }
        self.read.read(buffer)
    }
}

/// The output of a prompt: text written up to a flush is one question.
struct Writer {
    ask: channel::UnboundedSender<String>,
    text: Vec<u8>,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let text = String::from_utf8_lossy(&std::mem::take(&mut self.text)).into_owned();
        self.ask.send(text).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

#[cfg(test)]
mod tests {
    use open_agent::{Permission, PermissionRequest, json};

    use super::*;

    #[tokio::test]
    async fn questions_get_their_answers() {
        let (mut questions, prompt) = Questions::new();
        let request = PermissionRequest::new("remove", json!({"path": "a\u{202e}"}), "c1", vec![]);
        let first = prompt.ask(request.clone());
        let question = questions.next().await;
        assert_eq!(question, r#"remove({"path":"a\u{202e}"})? [y]es, [n]o, [a]lways: "#);
        questions.answer("n not\nthat");
        assert_eq!(first.await, Permission::deny("the user said no: not that"));

        let second = prompt.ask(request.clone());
        questions.next().await;
        questions.answer("y");
        assert_eq!(second.await, Permission::Allow);

        let late = prompt.ask(request);
        drop(questions);
        assert!(matches!(late.await, Permission::Deny(_)));
    }
}
