use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::MISSING;
use crate::Unavailable;
use crate::account::Account;
use crate::daemon::{Daemon, START, on_free_ports};
use crate::guard::Program;
use crate::npm::Npm;
use crate::place::free_port;

/// The version that tests run against.
const VERSION: &str = "1.7.12";

const PROGRAM: Program = Program { name: "restate-server", pid_file: "server.pid" };

/// The files of a server and, unless it was killed, its process.
#[derive(Debug)]
pub(super) struct Node {
    program: PathBuf,
    daemon: Daemon,
    configuration: String,
    admin: u16,
    ingress: u16,
    fabric: u16,
}

impl Node {
    pub(super) fn start(configuration: &str) -> Result<Self, Unavailable> {
        let program = installed()?;
        let failed = |error: io::Error| {
            Unavailable::Failed(format!("Restate's files cannot be created: {error}"))
        };
        let daemon = Daemon::new(Account::ours(), "restate", PROGRAM).map_err(failed)?;
        let configuration = configuration.to_owned();
        let (admin, ingress, fabric) = (0, 0, 0);
        let mut node = Self { program, daemon, configuration, admin, ingress, fabric };
        on_free_ports(|| {
            for port in [&mut node.admin, &mut node.ingress, &mut node.fabric] {
                *port = free_port().map_err(failed)?;
            }
            // It knows its ports.
            let _ = fs::remove_dir_all(node.daemon.folder().join("data"));
            node.start_again()
        })?;
        Ok(node)
    }

    pub(super) fn admin(&self) -> u16 {
        self.admin
    }

    pub(super) fn ingress(&self) -> u16 {
        self.ingress
    }

    pub(super) fn log(&self) -> String {
        let log = self.daemon.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.daemon.kill()
    }

    /// Starts the server and waits until it answers.
    pub(super) fn start_again(&mut self) -> Result<(), Unavailable> {
        self.try_start().map_err(|error| {
            Unavailable::Failed(format!("Restate does not start: {error}\n{}", self.log()))
        })
    }

    fn try_start(&mut self) -> io::Result<()> {
        let folder = self.daemon.folder();
        let (file, pid_file) = (folder.join("restate.toml"), folder.join(PROGRAM.pid_file));
        fs::write(&file, self.toml())?;
        let mut command = self.daemon.account().command(&self.program);
        command.arg("--config-file").arg(&file).arg("--no-logo");
        // It leaves folders in the one for temporary files, which otherwise outlive it.
        command.env("TMPDIR", folder);
        let (admin, ingress) = (self.admin, self.ingress);
        self.daemon.start(command, Instant::now() + START, |pid| {
            // The guard looks for it there, also while it starts.
            fs::write(&pid_file, pid.to_string()).is_ok()
                && answers(admin, "/health")
                && answers(ingress, "/restate/health")
        })
    }

    fn toml(&self) -> String {
        let Self { admin, ingress, fabric, configuration, daemon, .. } = self;
        let data = daemon.folder().join("data");
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
        self.daemon.detach()
    }

    pub(super) fn stop_detached(folder: &Path) -> io::Result<()> {
        Daemon::stop_detached(Account::ours(), folder, PROGRAM)
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
    // The platform's package alone: one program, without a launcher and without scripts.
    let package = format!("@restatedev/restate-server-{platform}");
    let program = Path::new("node_modules").join(&package).join("bin/restate-server");
    let server = Npm {
        folder: &format!("restate-{VERSION}"),
        packages: &[&format!("{package}@{VERSION}")],
        sign: &program,
        missing: MISSING,
    };
    server.install().map(|folder| folder.join(program))
}
