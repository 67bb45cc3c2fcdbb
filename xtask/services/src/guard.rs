use std::io;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::account::Account;

/// Stops a server and removes its files when standard input ends, which it does when the process at the other end dies.
const SCRIPT: &str = r#"
cat >/dev/null
pid=$(head -n 1 "$1/$2" 2>/dev/null)
if [ -n "$pid" ] && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$3" ]; then
  kill -INT "$pid"
  tries=0
  while kill -0 "$pid" 2>/dev/null && [ "$tries" -lt 200 ]; do sleep 0.05; tries=$((tries + 1)); done
fi
rm -rf "$1"
"#;

/// The properties by which a guard finds its server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// The name of its process.
    pub(crate) name: &'static str,
    /// The file in its folder whose first line is the id of its process.
    pub(crate) pid_file: &'static str,
}

/// A process that briefly outlives this one, to clean up after it.
#[derive(Debug)]
pub(crate) struct Guard(Child);

impl Guard {
    /// Starts the guard of a server with its files in `folder`.
    pub(crate) fn start(account: Account, folder: &Path, program: Program) -> io::Result<Self> {
        // In a process group of its own (see `command`), so that Ctrl-C ends the tests and not the guard.
        let mut command = account.command("/bin/sh");
        command.args(["-c", SCRIPT, "guard"]).arg(folder);
        command.args([program.pid_file, program.name]).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Self)
    }

    /// Stops the server, if it runs, removes its files, and waits for that.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        drop(self.0.stdin.take());
        self.0.wait().map(drop)
    }

    /// Ends without doing anything.
    pub(crate) fn dismiss(mut self) -> io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(drop)
    }
}
