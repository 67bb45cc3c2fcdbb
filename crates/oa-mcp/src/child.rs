use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use oa_redact::Secrets;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use crate::error::{Error, ErrorKind};
use crate::link::Link;
use crate::listener::OnStderr;
use crate::stdio_spec::StdioSpec;

/// The environment variables that every child inherits.
const INHERITED: [&str; 11] = [
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ",
    "USER",
];
/// The variables that programs on Windows need to start.
#[cfg(windows)]
const INHERITED_ON_WINDOWS: [&str; 13] = [
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
];
/// The longest line of error output that is passed to the callback. The rest of a longer one is left out: a secret at
/// the place where it is cut would be recognized on neither side.
const STDERR_LINE: usize = 64 * 1024;
/// The maximum characters of recent error output in an error.
const LAST_WORDS: usize = 1_000;

/// Starts a program in its own process group, with the configured environment.
pub(crate) fn spawn(spec: &StdioSpec) -> Result<Child, Error> {
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).env_clear().kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let pass_on = |command: &mut Command, names: &[&str]| {
        for name in names {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
    };
    pass_on(&mut command, &INHERITED);
    #[cfg(windows)]
    pass_on(&mut command, &INHERITED_ON_WINDOWS);
    command.envs(spec.variables());
    if let Some(dir) = &spec.dir {
        command.current_dir(dir);
    }
    #[cfg(unix)]
    command.process_group(0);
    command.spawn().map_err(|error| {
        let program = &spec.program;
        Error::new(ErrorKind::Connect, format!("cannot start {program}: {error}"))
    })
}

impl StdioSpec {
    pub(crate) fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let inherited = self.inherited.iter();
        let inherited =
            inherited.filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)));
        inherited.chain(self.env.iter().cloned())
    }
}

/// The process group of a child. Dropping it kills the remaining processes.
pub(crate) struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl Group {
    pub(crate) fn of(child: &Child) -> Self {
        #[cfg(unix)]
        {
            let id = child.id().and_then(|id| i32::try_from(id).ok());
            Self { leader: id.and_then(rustix::process::Pid::from_raw) }
        }
        #[cfg(not(unix))]
        {
            let _ = child;
            Self {}
        }
    }

    pub(crate) fn terminate(&self) {
        #[cfg(unix)]
        if let Some(leader) = self.leader {
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::TERM);
        }
    }

    /// Kills the group, at most once: the system may reuse the process group's id.
    pub(crate) fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(leader) = self.leader.take() {
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ends a child whose input is closed, with everything that it started: waits, sends SIGTERM, then SIGKILL.
pub(crate) async fn end(child: &mut Child, group: &mut Group, patience: Duration) {
    if tokio::time::timeout(patience, child.wait()).await.is_err() {
        group.terminate();
        if tokio::time::timeout(patience, child.wait()).await.is_err() {
            group.kill();
            let _ = child.start_kill();
            let _ = child.wait().await;
        }
    }
    // The leader has ended, but its children may still run.
    group.kill();
}

#[derive(Default)]
pub(crate) struct LastWords {
    bytes: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    tail: Vec<u8>,
    is_cut: bool,
}

impl LastWords {
    /// Reads error output until its end, so that the program never waits for a reader.
    pub(crate) async fn read(
        &self,
        mut from: impl AsyncRead + Unpin,
        link: &Link,
        on_stderr: Option<OnStderr>,
    ) {
        let secrets = link.secrets.get();
        let mut chunk = vec![0; 8 * 1024];
        let mut line = Vec::new();
        let tell = |line: &mut Vec<u8>| {
            if let Some(on_stderr) = &on_stderr {
                let text = String::from_utf8_lossy(line);
                let text = secrets.mask(text.trim_end());
                link.check(on_stderr.call(&oa_redact::printable(&text)));
            }
            line.clear();
        };
        while let Ok(read @ 1..) = from.read(&mut chunk).await {
            let read = &chunk[..read];
            self.keep(read, link.limits.stderr_bytes);
            if on_stderr.is_some() {
                for part in read.split_inclusive(|byte| *byte == b'\n') {
                    let room = STDERR_LINE - line.len();
                    line.extend_from_slice(&part[..part.len().min(room)]);
                    if part.ends_with(b"\n") {
                        tell(&mut line);
                    }
                }
            }
        }
        if !line.is_empty() {
            tell(&mut line);
        }
    }

    fn keep(&self, read: &[u8], limit: usize) {
        let mut kept = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        kept.tail.extend_from_slice(read);
        // Trimmed in large steps, so that the cost per byte stays constant.
        if kept.tail.len() > limit.saturating_mul(2).max(limit.saturating_add(read.len())) {
            let from = kept.tail.len() - limit;
            kept.tail.drain(..from);
            kept.is_cut = true;
        }
    }

    /// Returns the end of the error output, masked and on one line; `None` if there was none.
    pub(crate) fn excerpt(&self, secrets: &Secrets, limit: usize) -> Option<String> {
        let kept = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = &kept.tail[kept.tail.len().saturating_sub(limit)..];
        let mut text = String::from_utf8_lossy(tail);
        if kept.is_cut || tail.len() < kept.tail.len() {
            // Start after a line break: a secret that was cut in half would not be masked, but each of its lines is.
            let start = text.find('\n')?;
            text = text[start..].to_owned().into();
        }
        let masked = secrets.mask(&text);
        let from = masked.char_indices().rev().nth(LAST_WORDS - 1).map_or(0, |(at, _)| at);
        let excerpt = Secrets::new().excerpt(&masked[from..], LAST_WORDS);
        Some(excerpt).filter(|excerpt| !excerpt.is_empty())
    }
}

pub(crate) fn describe(status: Option<ExitStatus>) -> String {
    match status {
        Some(status) => match status.code() {
            Some(code) => format!("the server exited with status {code}"),
            None => format!("the server was killed by a signal ({status})"),
        },
        None => "the server closed its output".to_owned(),
    }
}
