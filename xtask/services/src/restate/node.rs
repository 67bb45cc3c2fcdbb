use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::MISSING;
use crate::Unavailable;
use crate::account::Account;
use crate::guard::{Guard, Program};
use crate::place::{free_port, new_folder};
use crate::target::target;

/// The version that tests run against.
const VERSION: &str = "1.7.12";

const PROGRAM: Program = Program { name: "restate-server", pid_file: "server.pid" };

const START: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// Ports that somebody else takes between our choice and the server's start.
const ATTEMPTS: usize = 5;

/// The files of a server and, unless it was killed, its process.
#[derive(Debug)]
pub(super) struct Node {
    program: PathBuf,
    folder: PathBuf,
    configuration: String,
    admin: u16,
    ingress: u16,
    fabric: u16,
    server: Option<Child>,
    guard: Option<Guard>,
}

impl Node {
    pub(super) fn start(configuration: &str) -> Result<Self, Unavailable> {
        let program = installed()?;
        let failed = |error: io::Error| {
            Unavailable::Failed(format!("Restate's files cannot be created: {error}"))
        };
        let account = Account::ours();
        let folder = new_folder("restate").map_err(failed)?;
        let guard = Guard::start(account, &folder, PROGRAM).map_err(failed)?;
        let configuration = configuration.to_owned();
        let (admin, ingress, fabric, server, guard) = (0, 0, 0, None, Some(guard));
        let mut node =
            Self { program, folder, configuration, admin, ingress, fabric, server, guard };
        for attempt in 1.. {
            for port in [&mut node.admin, &mut node.ingress, &mut node.fabric] {
                *port = free_port().map_err(failed)?;
            }
            match node.start_again() {
                Ok(()) => break,
                Err(error) if attempt == ATTEMPTS => return Err(error),
                Err(_) => drop(fs::remove_dir_all(node.folder.join("data"))),
            }
        }
        Ok(node)
    }

    pub(super) fn admin(&self) -> u16 {
        self.admin
    }

    pub(super) fn ingress(&self) -> u16 {
        self.ingress
    }

    pub(super) fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
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

    pub(super) fn start_again(&mut self) -> Result<(), Unavailable> {
        self.try_start().map_err(|error| {
            Unavailable::Failed(format!("Restate does not start: {error}\n{}", self.log()))
        })
    }

    /// Starts the server and waits until it answers.
    fn try_start(&mut self) -> io::Result<()> {
        let file = self.folder.join("restate.toml");
        fs::write(&file, self.toml())?;
        let log = File::options().create(true).append(true).open(self.folder.join("log"))?;
        let mut server = Account::ours()
            .command(&self.program)
            .arg("--config-file")
            .arg(&file)
            .arg("--no-logo")
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        fs::write(self.folder.join(PROGRAM.pid_file), server.id().to_string())?;
        let since = Instant::now();
        while !(answers(self.admin, "/health") && answers(self.ingress, "/restate/health")) {
            let ended = server.try_wait()?;
            if ended.is_some() || since.elapsed() > START {
                let _ = server.kill();
                let _ = server.wait();
                return Err(io::Error::other("it does not answer"));
            }
            thread::sleep(PAUSE);
        }
        self.server = Some(server);
        Ok(())
    }

    fn toml(&self) -> String {
        let Self { admin, ingress, fabric, configuration, folder, .. } = self;
        let data = folder.join("data");
        format!(
            r#"node-name = "test"
cluster-name = "test"
base-dir = "{}"
bind-ip = "127.0.0.1"
advertised-host = "127.0.0.1"
bind-port = {fabric}
listen-mode = "tcp"
auto-provision = true
default-num-partitions = 4
disable-telemetry = true
disable-prometheus = true
log-filter = "warn"
log-format = "compact"
log-disable-ansi-codes = true
rocksdb-total-memory-size = "128.0 MiB"
shutdown-timeout = "3s"
[admin]
bind-port = {admin}
disable-web-ui = true
[ingress]
bind-port = {ingress}
[default-retry-policy]
initial-interval = "50ms"
max-interval = "1s"
{configuration}
"#,
            data.display()
        )
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
        Guard::start(Account::ours(), folder, PROGRAM)?.finish()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            // Its data goes with it.
            let _ = self.kill();
            let _ = guard.finish();
        }
    }
}

/// Returns true if the server answers a request for this path with success.
fn answers(port: u16, path: &str) -> bool {
    let ask = || -> io::Result<bool> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        Ok(head.ends_with(b" 200"))
    };
    ask().unwrap_or(false)
}

/// Returns the program, and installs it if it is not there.
fn installed() -> Result<PathBuf, Unavailable> {
    let platform = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "linux-x64",
        ("linux", "aarch64") => "linux-arm64",
        ("macos", "aarch64") => "darwin-arm64",
        (system, machine) => {
            let message = format!("there is no Restate server for {system} on {machine}");
            return Err(Unavailable::Missing(message));
        }
    };
    let package = format!("@restatedev/restate-server-{platform}");
    let servers = target().join("services");
    let folder = servers.join(format!("restate-{VERSION}"));
    let program = folder.join("node_modules").join(&package).join("bin/restate-server");
    if program.exists() {
        return Ok(program);
    }
    let failed = |error: io::Error| {
        let message = format!("Restate cannot be installed below {}: {error}", servers.display());
        Unavailable::Missing(message)
    };
    // Others may install it at the same time: each into a folder of its own, of which the first is kept.
    let ours = servers.join(format!("restate-{VERSION}.{}", std::process::id()));
    fs::create_dir_all(&ours).map_err(failed)?;
    let mut npm = Command::new("npm");
    // The platform's package alone: one program, without a launcher and without scripts.
    npm.arg("install").arg("--prefix").arg(&ours);
    npm.args(["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
    let output = npm.arg(format!("{package}@{VERSION}")).stdin(Stdio::null()).output();
    let installed = match output {
        Ok(output) if output.status.success() => match fs::rename(&ours, &folder) {
            Err(error) if !program.exists() => Err(failed(error)),
            _ => Ok(()),
        },
        Ok(output) => Err(failed(io::Error::other(String::from_utf8_lossy(&output.stderr)))),
        Err(_) => Err(Unavailable::Missing(MISSING.to_owned())),
    };
    let _ = fs::remove_dir_all(&ours);
    installed.map(|()| program)
}
