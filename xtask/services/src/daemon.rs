use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Unavailable;
use crate::account::Account;
use crate::guard::{Guard, Program};
use crate::place::new_folder;

/// The longest time until a server must be ready.
pub(crate) const START: Duration = Duration::from_secs(60);
/// The polling interval while a server starts.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);
/// Ports that somebody else takes between our choice and the server's start.
const ATTEMPTS: usize = 5;

/// The folder of a server, its process unless it was stopped, and the guard that removes both when we die.
#[derive(Debug)]
pub(crate) struct Daemon {
    account: Account,
    folder: PathBuf,
    server: Option<Child>,
    guard: Option<Guard>,
}

impl Daemon {
    /// Creates the folder and starts its guard.
    pub(crate) fn new(account: Account, kind: &str, program: Program) -> io::Result<Self> {
        let folder = new_folder(kind)?;
        account.own(&folder)?;
        let guard = Guard::start(account, &folder, program)?;
        Ok(Self { account, folder, server: None, guard: Some(guard) })
    }

    pub(crate) fn account(&self) -> Account {
        self.account
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns what the server has written to its log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Starts the server, with its output in a new log, and waits until it is ready. One that ends before, or is not ready
    /// at this time, is gone afterwards.
    pub(crate) fn start(
        &mut self,
        mut command: Command,
        until: Instant,
        is_ready: impl Fn(u32) -> bool,
    ) -> io::Result<()> {
        let log = File::create(self.log_file())?;
        command.current_dir(&self.folder).stdin(Stdio::null());
        let mut server = command.stdout(log.try_clone()?).stderr(log).spawn()?;
        while !is_ready(server.id()) {
            let has_ended = server.try_wait()?.is_some();
            if has_ended || Instant::now() > until {
                let _ = server.kill();
                let _ = server.wait();
                let why = if has_ended { "it has ended" } else { "it does not get ready" };
                return Err(io::Error::other(why));
            }
            thread::sleep(PAUSE);
        }
        self.server = Some(server);
        Ok(())
    }

    /// Kills the server as `kill -9` does.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        match self.server.take() {
            None => Ok(()),
            Some(mut server) => {
                server.kill()?;
                server.wait().map(drop)
            }
        }
    }

    /// Stops the server with SIGINT, and waits for its end.
    pub(crate) fn interrupt(&mut self) -> io::Result<()> {
        match self.server.take() {
            None => Ok(()),
            Some(mut server) => {
                // Without `unsafe`, another program sends the signal.
                let pid = server.id().to_string();
                Command::new("/bin/sh").args(["-c", "kill -INT \"$1\"", "kill", &pid]).status()?;
                server.wait().map(drop)
            }
        }
    }

    /// Keeps the server running when this process ends, and returns its folder.
    pub(crate) fn detach(&mut self) -> io::Result<PathBuf> {
        // A child without a waiting parent is adopted by process 1 when this process ends.
        drop(self.server.take());
        if let Some(guard) = self.guard.take() {
            guard.dismiss()?;
        }
        Ok(self.folder.clone())
    }

    /// Stops a server that was detached, and removes its files.
    pub(crate) fn stop_detached(
        account: Account,
        folder: &Path,
        program: Program,
    ) -> io::Result<()> {
        if !folder.exists() {
            return Ok(());
        }
        Guard::start(account, folder, program)?.finish()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            // Its data is removed, too.
            let _ = self.kill();
            let _ = guard.finish();
        }
    }
}

/// Starts a server on ports that are free, once more on others if that fails.
pub(crate) fn on_free_ports(
    mut start: impl FnMut() -> Result<(), Unavailable>,
) -> Result<(), Unavailable> {
    for _ in 1..ATTEMPTS {
        if start().is_ok() {
            return Ok(());
        }
    }
    start()
}
