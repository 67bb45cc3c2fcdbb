//! The collector: installed once, with a separate process for each test.

use std::fs;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use services::Unavailable;
use tempfile::TempDir;

const REQUIREMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/collector/requirements.txt");
const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/rotel");

/// A collector that passes metrics on. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Rotel {
    process: Child,
    address: SocketAddr,
    _files: TempDir,
}

impl Rotel {
    /// Starts one that passes everything on to an address, over HTTP.
    pub(crate) fn start(onward: SocketAddr) -> Result<Self, Unavailable> {
        let program = install().map_err(Unavailable::Missing)?;
        let failed = |error: io::Error| Unavailable::Failed(format!("rotel: {error}"));
        let files = tempfile::tempdir().map_err(failed)?;
        let (address, grpc) = (free().map_err(failed)?, free().map_err(failed)?);
        let mut command = Command::new(program);
        command
            .arg("start")
            .args(["--otlp-http-endpoint", &address.to_string()])
            .args(["--otlp-grpc-endpoint", &grpc.to_string()])
            .args(["--exporter", "otlp", "--otlp-exporter-protocol", "http"])
            .args(["--otlp-exporter-endpoint", &format!("http://{onward}")])
            .arg("--pid-file")
            .arg(files.path().join("pid"))
            .arg("--log-file")
            .arg(files.path().join("log"));
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let rotel = Self { process: process.spawn().map_err(failed)?, address, _files: files };
        rotel.wait()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Unpacks what it passes on, which it compresses whatever it is told. Its Python knows how.
    pub(crate) fn unpack(&self, body: &[u8]) -> io::Result<Vec<u8>> {
        let script =
            "import gzip, sys; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))";
        let mut python = Command::new(Path::new(FOLDER).join("bin/python"));
        let mut python =
            python.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        if let Some(mut input) = python.stdin.take() {
            input.write_all(body)?;
        }
        Ok(python.wait_with_output()?.stdout)
    }

    fn wait(mut self) -> Result<Self, Unavailable> {
        let until = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(self.address).is_err() {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(Unavailable::Failed(format!("rotel has ended: {status}")));
            }
            if Instant::now() > until {
                return Err(Unavailable::Failed("rotel does not listen".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(self)
    }
}

impl Drop for Rotel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// Returns the program, which is installed if it is not there.
fn install() -> Result<PathBuf, String> {
    let (folder, stamp) = (Path::new(FOLDER), Path::new(FOLDER).join("stamp.txt"));
    let wanted = fs::read_to_string(REQUIREMENTS).map_err(|error| error.to_string())?;
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return program(folder);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    let pip =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS];
    run(Command::new(folder.join("bin/python")).args(pip))?;
    // Last, so that an interrupted install is begun again.
    fs::write(&stamp, wanted).map_err(|error| error.to_string())?;
    program(folder)
}

/// The program is inside of the package, which offers no way to start it with the arguments of a server.
fn program(folder: &Path) -> Result<PathBuf, String> {
    let versions = fs::read_dir(folder.join("lib")).map_err(|error| error.to_string())?;
    let programs =
        versions.flatten().map(|version| version.path().join("site-packages/rotel/rotel-agent"));
    let found = programs.into_iter().find(|program| program.is_file());
    found.ok_or_else(|| "the package rotel has no program for this machine".to_owned())
}

fn run(command: &mut Command) -> Result<(), String> {
    let failed = |said: &str| format!("the collector Rotel cannot be installed from PyPI: {said}");
    let output = command.output().map_err(|error| failed(&error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&output.stderr).trim()))
}
