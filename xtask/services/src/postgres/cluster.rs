use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::MISSING;
use crate::Unavailable;
use crate::account::Account;
use crate::guard::{Guard, Program};
use crate::place::{free_port, new_folder};

/// Where Debian keeps the servers of all versions.
const INSTALLED: &str = "/usr/lib/postgresql";

const PROGRAM: Program = Program { name: "postgres", pid_file: "data/postmaster.pid" };

const USER: &str = "open_agent";
const PASSWORD: &str = "open-agent-tests";

const START: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// Ports that somebody else takes between our choice and the server's start.
const ATTEMPTS: usize = 5;

/// The files of a server and, unless it was stopped, its process.
#[derive(Debug)]
pub(super) struct Cluster {
    programs: PathBuf,
    account: Account,
    /// The folder with the data, the socket and the log.
    folder: PathBuf,
    settings: Vec<String>,
    port: u16,
    server: Option<Child>,
    guard: Option<Guard>,
}

impl Cluster {
    pub(super) fn start(settings: &[&str], files: &[(&str, &[u8])]) -> Result<Self, Unavailable> {
        let programs = installed().ok_or_else(|| Unavailable::Missing(MISSING.to_owned()))?;
        let started = Self::create(programs, settings, files).map_err(|error| {
            Unavailable::Failed(format!("PostgreSQL's files cannot be created: {error}"))
        });
        let mut cluster = started?;
        for attempt in 1.. {
            cluster.port = free_port().map_err(|error| Unavailable::Failed(error.to_string()))?;
            match cluster.start_again() {
                Ok(()) => break,
                Err(error) if attempt == ATTEMPTS => return Err(error),
                Err(_) => {}
            }
        }
        Ok(cluster)
    }

    fn create(programs: PathBuf, settings: &[&str], files: &[(&str, &[u8])]) -> io::Result<Self> {
        let account = Account::find(&["postgres", "nobody"])?;
        let folder = new_folder("pg")?;
        account.own(&folder)?;
        let guard = Guard::start(account, &folder, PROGRAM)?;
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let cluster =
            Self { programs, account, folder, settings, port: 0, server: None, guard: Some(guard) };
        let password = cluster.folder.join("password");
        cluster.write(&password, PASSWORD.as_bytes())?;
        let mut initdb = account.command(cluster.programs.join("initdb"));
        initdb
            .args(["--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale"])
            .arg(format!("--username={USER}"))
            .arg(format!("--pwfile={}", password.display()))
            .arg(format!("--pgdata={}", cluster.data().display()))
            .current_dir(&cluster.folder);
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
        match self.server.take() {
            None => Ok(()),
            Some(mut server) => {
                server.kill()?;
                server.wait().map(drop)
            }
        }
    }

    pub(super) fn stop(&mut self) -> io::Result<()> {
        match self.server.take() {
            None => Ok(()),
            Some(mut server) => {
                // SIGINT is a fast shutdown. Without `unsafe`, another program sends it.
                let pid = server.id().to_string();
                Command::new("/bin/sh").args(["-c", "kill -INT \"$1\"", "kill", &pid]).status()?;
                server.wait().map(drop)
            }
        }
    }

    pub(super) fn start_again(&mut self) -> Result<(), Unavailable> {
        let since = Instant::now();
        loop {
            match self.try_start(since) {
                Ok(()) => return Ok(()),
                // Processes of a server that was killed take a moment to notice.
                Err(said) if said.contains("shared memory block") && since.elapsed() < START => {
                    thread::sleep(PAUSE);
                }
                Err(said) => {
                    let message = format!("PostgreSQL does not start: {}", said.trim_end());
                    return Err(Unavailable::Failed(message));
                }
            }
        }
    }

    /// Starts the server and waits until it is ready, or returns what it says.
    fn try_start(&mut self, since: Instant) -> Result<(), String> {
        let log = self.folder.join("log");
        let spawned = File::create(&log).and_then(|output| self.command().stderr(output).spawn());
        let mut server = spawned.map_err(|error| error.to_string())?;
        loop {
            let state = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
            let mut lines = state.lines();
            let is_ours = lines.next().is_some_and(|pid| pid == server.id().to_string());
            if is_ours && lines.nth(6).is_some_and(|status| status.trim_end() == "ready") {
                self.server = Some(server);
                return Ok(());
            }
            let has_ended = server.try_wait().map_err(|error| error.to_string())?.is_some();
            if has_ended || since.elapsed() > START {
                let _ = server.kill();
                let _ = server.wait();
                return Err(fs::read_to_string(&log).unwrap_or_default());
            }
            thread::sleep(PAUSE);
        }
    }

    fn command(&self) -> Command {
        let mut command = self.account.command(self.programs.join("postgres"));
        command
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string()])
            .args(["-c", "listen_addresses=127.0.0.1"])
            .args(["-c", &format!("unix_socket_directories={}", self.folder.display())])
            .args(self.settings.iter().flat_map(|setting| ["-c", setting]))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    pub(super) fn detach(mut self) -> io::Result<PathBuf> {
        // A child that nobody waits for goes to the system's first process when this one ends.
        drop(self.server.take());
        if let Some(guard) = self.guard.take() {
            guard.dismiss()?;
        }
        Ok(self.folder.clone())
    }

    pub(super) fn stop_detached(folder: &Path) -> io::Result<()> {
        if !folder.exists() {
            return Ok(());
        }
        let account = Account::find(&["postgres", "nobody"])?;
        Guard::start(account, folder, PROGRAM)?.finish()
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Writes a file that only the server's user can read.
    fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        fs::write(path, content)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        self.account.own(path)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            let _ = self.stop();
            let _ = guard.finish();
        }
    }
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
