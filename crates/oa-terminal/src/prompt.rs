use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use oa_hooks::{Permission, PermissionRequest, ToolSpec};
use oa_redact::visible;
use tokio::sync::oneshot;

use crate::answer::Answer;

/// Asks a person at a terminal whether a call may run.
///
/// ```
/// use std::io;
///
/// use oa_hooks::{Permission, PermissionRequest};
/// use oa_terminal::TerminalPrompt;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // TerminalPrompt::stdio() reads standard input.
/// let person = TerminalPrompt::new(io::Cursor::new("no, not that one\n"), io::sink());
/// let request = PermissionRequest::new("remove", json!({"path": "notes.txt"}), "call_1", vec![]);
/// assert!(matches!(person.ask(request).await, Permission::Deny(_)));
/// # }
/// ```
///
/// The call is shown on one line. Invisible and control characters are escaped, such as `\u{202e}` (see
/// [`visible`](oa_redact::visible())). A call longer than 1,000 characters is cut in the middle, and shown with
/// its size and the size of the part left out. A call of a sub-agent has the names of the agents in front of it, such
/// as `researcher > fetch({..})`.
///
/// One line is read per question:
///
/// | line | effect |
/// | --- | --- |
/// | `y` | runs the call |
/// | `a` | runs the call, and from then on every call of this tool by this agent without asking, whatever its arguments, until the tool changes |
/// | `s` | shows the whole call and asks again; offered only if the call was cut |
/// | `n`, with or without a reason | denies the call; the model reads the reason |
/// | anything else, or the end of the input | denies the call |
///
/// A tool changes if the [request](PermissionRequest::tool) has another description or schema than the one that was
/// answered with `a`, such as after an MCP server has replaced it. The question then says so.
#[derive(Clone)]
pub struct TerminalPrompt(Arc<Mutex<Terminal>>);

struct Terminal {
    input: Box<dyn BufRead + Send>,
    output: Box<dyn Write + Send>,
    /// The tools, each behind the names of its agents, as they were described when all their calls were allowed.
    always: HashMap<Vec<String>, Option<ToolSpec>>,
}

impl TerminalPrompt {
    /// Creates a prompt that writes to standard error and reads standard input, no further than each answer.
    ///
    /// A question waits while the program holds the lock on standard input, as a loop over `io::stdin().lines()` does.
    /// Such a program never gets an answer: read with `io::stdin().read_line(..)` instead, which holds the lock only
    /// while it reads.
    #[must_use]
    pub fn stdio() -> Self {
        // A larger buffer would take the lines after the answer away from the program.
        Self::new(io::BufReader::with_capacity(1, io::stdin()), io::stderr())
    }

    /// Creates a prompt with another input and output.
    #[must_use]
    pub fn new(input: impl BufRead + Send + 'static, output: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Terminal {
            input: Box::new(input),
            output: Box::new(output),
            always: HashMap::new(),
        })))
    }

    /// Returns true if a line answers a question of a prompt, for programs that read the lines themselves. Any other
    /// line denies the call, even an empty one or one that was not meant as an answer.
    ///
    /// ```
    /// use oa_terminal::TerminalPrompt;
    ///
    /// let question = "remove({})? [y]es, [n]o, [a]lways: ";
    /// assert!(TerminalPrompt::is_answer(question, "no, not that one"));
    /// assert!(!TerminalPrompt::is_answer(question, "a shorter answer, please"));
    /// ```
    #[must_use]
    pub fn is_answer(question: &str, line: &str) -> bool {
        match Answer::read(line) {
            // At the end: the call itself may contain these words.
            Some(Answer::Show) => question.ends_with(WORDS_OF_CUT),
            answer => answer.is_some(),
        }
    }

    /// Asks about a call. Waits on a thread of its own, which does not keep the program from ending; questions are asked
    /// one at a time.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, a question that is on the terminal stays there, and the line that answers it is read
    /// and discarded, `a` included. One that waits for its turn is not asked.
    pub fn ask(
        &self,
        request: PermissionRequest,
    ) -> impl Future<Output = Permission> + Send + use<> {
        let terminal = Arc::clone(&self.0);
        let (answer, answered) = oneshot::channel();
        // Not in the future below: the question is asked at once, even if the future is polled later. And not on a
        // thread of the runtime, whose end would wait for the line.
        let asked = thread::Builder::new().name("oa-terminal".to_owned()).spawn(move || {
            // Held until the line is read, so that a question and its answer are never separated by another
            // one.
            let mut terminal = terminal.lock().unwrap_or_else(PoisonError::into_inner);
            let permission = terminal.ask(&request, || !answer.is_closed());
            // Nobody waits for the answer of a dropped future.
            let _ = answer.send(permission);
        });
        let asked = asked.map(drop);
        async move {
            let panicked = || io::Error::other("reading the answer panicked");
            let answer = match asked {
                Ok(()) => answered.await.unwrap_or_else(|_| Err(panicked())),
                Err(error) => Err(error),
            };
            answer.unwrap_or_else(|error| {
                Permission::Deny(format!("the question could not be asked: {error}"))
            })
        }
    }
}

impl Terminal {
    /// Asks one question, unless nobody waits for its answer.
    fn ask(
        &mut self,
        request: &PermissionRequest,
        is_awaited: impl Fn() -> bool,
    ) -> io::Result<Permission> {
        if !is_awaited() {
            return Ok(Permission::Later);
        }
        let PermissionRequest { tool_name, tool_input, tool, agents, .. } = request;
        let mut path = agents.clone();
        path.push(tool_name.clone());
        let note = match self.always.get(&path) {
            Some(allowed) if allowed == tool => return Ok(Permission::Allow),
            Some(_) => CHANGED,
            None => "",
        };
        let call = format!("{}({tool_input})", path.join(" > "));
        // Escaped before it is cut, so that the limit counts what is shown.
        let call = visible(&call);
        let (mut shown, mut is_cut) = shortened(&call);
        loop {
            let words = if is_cut { WORDS_OF_CUT } else { WORDS };
            write!(self.output, "{note}{shown}{words}")?;
            self.output.flush()?;
            let mut line = String::new();
            // At the end of the input the line is empty, which denies the call. Nobody has ended the line of the question.
            if self.input.read_line(&mut line)? == 0 {
                writeln!(self.output)?;
                self.output.flush()?;
            }
            return Ok(match (Answer::read(&line), line.trim()) {
                (Some(Answer::Show), _) if is_cut => {
                    (shown, is_cut) = (Cow::Borrowed(&*call), false);
                    continue;
                }
                (Some(Answer::Always), _) => {
                    // The call of a late answer was decided without it.
                    if is_awaited() {
                        self.always.insert(path, tool.clone());
                    }
                    Permission::Allow
                }
                (Some(Answer::Yes), _) => Permission::Allow,
                (Some(Answer::No("") | Answer::Show), _) | (None, "") => {
                    Permission::deny("the user said no")
                }
                (Some(Answer::No(reason)), _) | (None, reason) => {
                    Permission::Deny(format!("the user said no: {reason}"))
                }
            });
        }
    }
}

/// Cuts a long text in the middle, because the end of a command matters as much as its beginning; also returns
/// whether it was cut.
fn shortened(text: &str) -> (Cow<'_, str>, bool) {
    let size = text.chars().count();
    let Some(left_out) = size.checked_sub(LONGEST).filter(|left_out| *left_out > 0) else {
        return (Cow::Borrowed(text), false);
    };
    let at = |n| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (&text[..at(LONGEST / 2)], &text[at(size - LONGEST / 2)..]);
    let note = format!("[.. {left_out} of {size} characters not shown ..]");
    (format!("{head} {note} {tail}").into(), true)
}

/// The beginning of a question about a tool that was always allowed, and is another one now.
const CHANGED: &str = "This tool has changed since you always allowed it: ";
/// The end of a question.
const WORDS: &str = "? [y]es, [n]o, [a]lways: ";
/// The end of a question about a call that was cut.
const WORDS_OF_CUT: &str = "? [y]es, [n]o, [a]lways, [s]how all: ";

/// The longest call that is shown in full, in characters: about a dozen lines, so that the question and the call
/// fit on one screen.
const LONGEST: usize = 1_000;

impl fmt::Debug for TerminalPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalPrompt").finish_non_exhaustive()
    }
}
