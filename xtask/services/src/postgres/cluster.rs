use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use super::MISSING;
use crate::Unavailable;
use crate::account::Account;
use crate::daemon::{Daemon, PAUSE, START, on_free_ports};
use crate::guard::Program;
use crate::place::free_port;

/// Where Debian keeps the servers of all versions.
const INSTALLED: &str = "/usr/lib/postgresql";

const PROGRAM: Program = Program { name: "postgres", pid_file: "data/postmaster.pid" };

const USER: &str = "open_agent";
const PASSWORD: &str = "open-agent-tests";

/// The files of a server and, unless it was stopped, its process.
#[derive(Debug)]
pub(super) struct Cluster {
    programs: PathBuf,
    /// Its folder has the data, the socket and the log.
    daemon: Daemon,
    settings: Vec<String>,
    port: u16,
}

impl Cluster {
    pub(super) fn start(settings: &[&str], files: &[(&str, &[u8])]) -> Result<Self, Unavailable> {
        let programs = installed().ok_or_else(|| Unavailable::Missing(MISSING.to_owned()))?;
        let started = Self::create(programs, settings, files).map_err(|error| {
            Unavailable::Failed(format!("PostgreSQL's files cannot be created: {error}"))
        });
        let mut cluster = started?;
        on_free_ports(|| {
            cluster.port = free_port().map_err(|error| Unavailable::Failed(error.to_string()))?;
            cluster.start_again()
        })?;
        Ok(cluster)
    }

    fn create(programs: PathBuf, settings: &[&str], files: &[(&str, &[u8])]) -> io::Result<Self> {
        let daemon = Daemon::new(account()?, "pg", PROGRAM)?;
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let cluster = Self { programs, daemon, settings, port: 0 };
        let password = cluster.daemon.folder().join("password");
        cluster.write(&password, PASSWORD.as_bytes())?;
        let mut initdb = cluster.daemon.account().command(cluster.programs.join("initdb"));
        initdb
            .args(["--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale"])
            .arg(format!("--username={USER}"))
            .arg(format!("--pwfile={}", password.display()))
            .arg(format!("--pgdata={}", cluster.data().display()))
            .current_dir(cluster.daemon.folder());
        let output = initdb.output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(io::Error::other(format!("initdb: {}", said.trim_end())));
        }
        for (name, content) in files {
            cluster.write(&cluster.data().join(name), content)?;
        }
        Ok(cluster)
    }

    pub(super) fn url(&self) -> String {
        format!("postgresql://{USER}:{PASSWORD}@127.0.0.1:{}/postgres", self.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.daemon.kill()
    }

    pub(super) fn stop(&mut self) -> io::Result<()> {
        // A fast shutdown.
        self.daemon.interrupt()
    }

    /// Starts the server and waits until it is ready.
    pub(super) fn start_again(&mut self) -> Result<(), Unavailable> {
        let until = Instant::now() + START;
        loop {
            let (command, state) = (self.command(), self.data().join("postmaster.pid"));
            let started = self.daemon.start(command, until, |pid| is_ready(&state, pid));
            let Err(error) = started else { return Ok(()) };
            let said = self.daemon.log();
            // Processes of a server that was killed take a moment to notice.
            if said.contains("shared memory block") && Instant::now() < until {
                thread::sleep(PAUSE);
                continue;
            }
            let message = format!("PostgreSQL does not start: {error}\n{}", said.trim_end());
            return Err(Unavailable::Failed(message));
        }
    }

    fn command(&self) -> Command {
        let mut command = self.daemon.account().command(self.programs.join("postgres"));
        command
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string()])
            .args(["-c", "listen_addresses=127.0.0.1"])
            .args(["-c", &format!("unix_socket_directories={}", self.daemon.folder().display())])
            .args(self.settings.iter().flat_map(|setting| ["-c", setting]));
        command
    }

    pub(super) fn detach(mut self) -> io::Result<PathBuf> {
        self.daemon.detach()
    }

    pub(super) fn stop_detached(folder: &Path) -> io::Result<()> {
        Daemon::stop_detached(account()?, folder, PROGRAM)
    }

    fn data(&self) -> PathBuf {
        self.daemon.folder().join("data")
    }

    /// Writes a file that only the server's user can read.
    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        fs::write(path, content)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        self.daemon.account().own(path)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A server that is killed leaves shared memory behind.
        let _ = self.stop();
    }
}

/// Returns the user that the server runs as.
fn account() -> io::Result<Account> {
    Account::find(&["postgres", "nobody"])
}

/// Returns true if the server with this process id says that it is ready.
fn is_ready(state: &Path, pid: u32) -> bool {
    let state = fs::read_to_string(state).unwrap_or_default();
    // The first line is the process id, the eighth the status. The file of a server that was killed stays, so
    // the id is compared.
    let mut lines = state.lines();
    let is_ours = lines.next().is_some_and(|ours| ours == pid.to_string());
    is_ours && lines.nth(6).is_some_and(|status| status.trim_end() == "ready")
}

/// Returns the programs of the newest version.
fn installed() -> Option<PathBuf> {
    let versions = fs::read_dir(INSTALLED).ok()?.filter_map(Result::ok);
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    versions
        .map(|entry| entry.path())
        .filter(|path| path.join("bin/postgres").exists() && path.join("bin/initdb").exists())
        .max_by_key(|path| version(path))
        .map(|path| path.join("bin"))
}
