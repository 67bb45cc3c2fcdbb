use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use oa_mcp_data::Tail;
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

/// Starts a program in its own process group, with the configured environment.
pub(crate) fn spawn(spec: &StdioSpec) -> Result<Child, Error> {
    #[cfg(unix)]
    let mut command = Command::new(&spec.program);
    #[cfg(windows)]
    let mut command = Command::new(found(spec));
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

/// Finds a program as a shell does: `npx` may be `npx.cmd`, but the system itself looks only for `npx.exe`.
#[cfg(windows)]
fn found(spec: &StdioSpec) -> std::path::PathBuf {
    let configured = spec.variables().filter(|(name, _)| name.eq_ignore_ascii_case("PATH")).last();
    let path = configured.map(|(_, path)| path.into()).or_else(|| std::env::var_os("PATH"));
    let dir = spec.dir.clone().unwrap_or_else(|| ".".into());
    // A program that is not found makes the start fail, with the system's error.
    which::which_in(&spec.program, path, dir).unwrap_or_else(|_| (&spec.program).into())
}

impl StdioSpec {
    pub(crate) fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let inherited = self.inherited.iter();
        let inherited =
            inherited.filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)));
        inherited.chain(self.env.iter().cloned())
    }
}

/// The process group of a child, on Windows its job. Dropping it kills the remaining processes.
pub(crate) struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
    #[cfg(windows)]
    job: Option<win32job::Job>,
}

impl Group {
    pub(crate) fn of(child: &Child) -> Self {
        #[cfg(unix)]
        {
            let id = child.id().and_then(|id| i32::try_from(id).ok());
            Self { leader: id.and_then(rustix::process::Pid::from_raw) }
        }
        #[cfg(windows)]
        {
            let mut limits = win32job::ExtendedLimitInfo::new();
            limits.limit_kill_on_job_close();
            // The program has only begun to load, so whatever it starts will be in the job too. If it is in one that
            // allows no other, as in old versions of Windows, only the program itself is killed.
            let job = child.raw_handle().and_then(|handle| {
                let job = win32job::Job::create_with_limit_info(&limits).ok()?;
                job.assign_process(handle as isize).ok().map(|()| job)
            });
            Self { job }
        }
    }

    /// Asks the processes to end. Windows has no such signal.
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
        #[cfg(windows)]
        drop(self.job.take());
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
    tail: Mutex<Tail>,
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
            self.tail().push(read, link.limits.stderr_bytes);
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

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the end of the error output, masked and on one line, to a message.
    pub(crate) fn add_to(&self, message: String, link: &Link) -> String {
        match self.tail().excerpt(&link.secrets.get(), link.limits.stderr_bytes) {
            Some(words) => format!("{message}; its last error output: {words}"),
            None => message,
        }
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
