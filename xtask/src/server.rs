//! A server process that never outlives this process.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::command::Run;

const START: Duration = Duration::from_secs(90);
const STOP: Duration = Duration::from_secs(3);

/// A running `serve.py`. It stops when its standard input ends: when this is dropped, and also when
/// this process dies without dropping anything.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    log: PathBuf,
}

impl Server {
    /// Starts the server; its output other than its address goes to `log`.
    pub(crate) fn start(run: &Run, log: PathBuf) -> Result<Self> {
        let stderr = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let mut child = run
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(|error| format!("`{run}` did not start: {error}"))?;
        let (sender, lines) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(|line| line.ok()) {
                    // No one reads lines after the first, but the pipe must be drained.
                    let _ = sender.send(line);
                }
            });
        }
        let stdin = child.stdin.take();
        Ok(Self { child, stdin, lines, log })
    }

    /// Waits until the server answers, and returns its address.
    pub(crate) fn base_url(&self) -> Result<String> {
        let deadline = Instant::now() + START;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                return Err(format!("the server gave no address; it said:\n{}", log.trim_end()));
            };
            if let Some(url) = line.strip_prefix("base_url=") {
                return Ok(url.to_owned());
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Asks the server to stop. Only one that does not is killed.
        drop(self.stdin.take());
        let deadline = Instant::now() + STOP;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, name: &str) -> Server {
        let log = std::env::temp_dir().join(format!("xtask-{}-{name}.log", std::process::id()));
        Server::start(&Run::new("sh").arg("-c").arg(script), log).unwrap()
    }

    #[test]
    fn reads_the_address_and_stops_with_stdin() {
        let server = shell("echo hello; echo base_url=http://a/v1; cat", "stops");
        assert_eq!(server.base_url().unwrap(), "http://a/v1");
        let log = server.log.clone();
        drop(server);
        fs::remove_file(log).unwrap();
    }

    #[test]
    fn an_early_end_tells_what_the_server_said() {
        let server = shell("echo why >&2; exit 1", "dies");
        assert!(server.base_url().unwrap_err().ends_with("\nwhy"));
        fs::remove_file(&server.log).unwrap();
    }
}
