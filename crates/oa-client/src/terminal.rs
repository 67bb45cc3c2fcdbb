use std::collections::HashSet;
use std::fmt;
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};

use oa_hooks::{Permission, PermissionRequest};
use tokio::task::spawn_blocking;

/// Asks a person at a terminal whether a call may run.
///
/// ```no_run
/// use oa_client::{AgentOptions, PermissionMode, TerminalPrompt};
///
/// # fn main() -> oa_client::Result<()> {
/// let person = TerminalPrompt::stdio();
/// let options = AgentOptions::builder()
///     .model("qwen3:8b")
///     .auto_execute_tools(true)
///     .permission_mode(PermissionMode::AllowReads)
///     .can_use_tool(move |request| person.ask(request))
///     .build()?;
/// # Ok(())
/// # }
/// ```
///
/// All of a call's arguments is shown, however long, with a mark in place of what a terminal would act upon or
/// not show. A line is read for each call: `y` runs it, `a` runs it and from then on every call of this tool
/// without asking, whatever its arguments are, anything else is a no, and words behind `n` are the reason that
/// the model reads. At the end of the input the answer is no.
#[derive(Clone)]
pub struct TerminalPrompt(Arc<Mutex<Terminal>>);

struct Terminal {
    input: Box<dyn BufRead + Send>,
    output: Box<dyn Write + Send>,
    always: HashSet<String>,
}

impl TerminalPrompt {
    /// Asks on standard error and reads from standard input.
    #[must_use]
    pub fn stdio() -> Self {
        Self::new(io::BufReader::new(io::stdin()), io::stderr())
    }

    /// Asks and reads elsewhere.
    #[must_use]
    pub fn new(input: impl BufRead + Send + 'static, output: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Terminal {
            input: Box::new(input),
            output: Box::new(output),
            always: HashSet::new(),
        })))
    }

    /// Asks about a call. The waiting is done on a thread of its own; questions are asked one after the
    /// other.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped the question stays on the terminal, and the line that answers it is
    /// read and thrown away.
    pub fn ask(
        &self,
        request: PermissionRequest,
    ) -> impl Future<Output = Permission> + Send + use<> {
        let terminal = Arc::clone(&self.0);
        let asked = spawn_blocking(move || {
            let mut terminal = terminal.lock().unwrap_or_else(PoisonError::into_inner);
            terminal.ask(&request)
        });
        async move {
            let answer = asked.await.unwrap_or_else(|error| Err(io::Error::other(error)));
            answer
                .unwrap_or_else(|error| Permission::Deny(format!("nobody could be asked: {error}")))
        }
    }
}

impl Terminal {
    fn ask(&mut self, request: &PermissionRequest) -> io::Result<Permission> {
        let PermissionRequest { tool_name, tool_input, .. } = request;
        if self.always.contains(tool_name) {
            return Ok(Permission::Allow);
        }
        // Nothing is permitted that was not shown.
        let call: String = format!("{tool_name}({tool_input})").chars().map(visible).collect();
        write!(self.output, "{call}? [y]es, [n]o, [a]lways: ")?;
        self.output.flush()?;
        let mut line = String::new();
        self.input.read_line(&mut line)?;
        let line = line.trim();
        let (word, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        Ok(match word.to_ascii_lowercase().as_str() {
            "a" | "always" => {
                self.always.insert(tool_name.clone());
                Permission::Allow
            }
            "y" | "yes" => Permission::Allow,
            _ if reason.is_empty() => Permission::deny("the user said no"),
            _ => Permission::Deny(format!("the user said no: {reason}")),
        })
    }
}

/// What a terminal shows, and does not act upon: neither control characters, nor marks that break lines or turn
/// text around, nor characters without any width.
fn visible(c: char) -> char {
    match c {
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}' => char::REPLACEMENT_CHARACTER,
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

impl fmt::Debug for TerminalPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TerminalPrompt").finish_non_exhaustive()
    }
}
