//! Measuring the programs: instructions, time, memory, size, crates, and the time of a build.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::programs::Program;
use crate::Result;
use crate::workspace::Workspace;

// Forms of answers, as `crates/oa-client/benches/replay.rs` numbers them.
const BURSTS: usize = 0;
const LARGE: usize = 2;
const CALL: usize = 3;
const ROUNDS: usize = 5;
const HELD: usize = 6;
const ROUNDS_OF_12: usize = 8;

pub(super) const LENGTHS: [usize; 3] = [50, 100, 200];
pub(super) const STREAMS: usize = 5_000;
const PIECES: usize = 2_000;
const REQUESTS: usize = 200;
const TIMED_REQUESTS: usize = 2_000;
const TURNS: usize = 5;

/// The measurements of one program. Absent where this machine cannot tell.
pub(super) struct Row {
    pub(super) program: &'static Program,
    /// Instructions for each piece of text: an HTTP chunk each, and chunks of 16 KiB.
    pub(super) delta: Option<f64>,
    pub(super) delta_in_large_chunks: Option<f64>,
    /// Instructions for each fragment of a call's arguments.
    pub(super) fragment: Option<f64>,
    /// Instructions for each round, by length of the conversation: the server tells its usage, or always the same.
    pub(super) rounds: [[Option<f64>; LENGTHS.len()]; 2],
    /// Instructions and microseconds on a CPU for a request on a warm connection.
    pub(super) request: Option<f64>,
    pub(super) request_micros: Option<f64>,
    /// KiB for each of many open streams.
    pub(super) stream_kib: Option<f64>,
    pub(super) size_bytes: u64,
    pub(super) crates: usize,
    pub(super) build_seconds: Option<f64>,
}

impl Row {
    pub(super) fn new(program: &'static Program) -> Self {
        Self {
            program,
            delta: None,
            delta_in_large_chunks: None,
            fragment: None,
            rounds: [[None; LENGTHS.len()]; 2],
            request: None,
            request_micros: None,
            stream_kib: None,
            size_bytes: 0,
            crates: 0,
            build_seconds: None,
        }
    }
}

/// The server, and where the programs are.
pub(super) struct Lab {
    peers: PathBuf,
    target: PathBuf,
    server: Child,
    port: usize,
    has_valgrind: bool,
}

impl Lab {
    pub(super) fn new(workspace: &Workspace) -> Result<Self> {
        let peers = workspace.root.join("xtask/peers");
        let target = workspace.target.join("peers");
        build(&peers, &target, "bench-server")?;
        // Thousands of streams want as many files.
        let mut server = with_files(&target.join("bench-server/release/bench-server"), &[])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the server does not start: {error}"))?;
        let mut line = String::new();
        let output = server.stdout.take().ok_or("the server has no output")?;
        BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        let port = line.trim().parse().map_err(|_| format!("the server said {line:?}"))?;
        let version = Command::new("valgrind").arg("--version").output();
        let has_valgrind = version.is_ok_and(|output| output.status.success());
        Ok(Self { peers, target, server, port, has_valgrind })
    }

    /// Removes what was built of a program.
    pub(super) fn forget(&self, program: &Program) -> Result<()> {
        let folder = self.target.join(program.package);
        match fs::remove_dir_all(&folder) {
            Err(error) if folder.exists() => Err(format!("{}: {error}", folder.display())),
            _ => Ok(()),
        }
    }

    /// Builds a program. Returns the seconds of CPU that it took, if the shell tells.
    pub(super) fn build(&self, program: &Program) -> Result<Option<f64>> {
        build(&self.peers, &self.target, program.package)
    }

    /// Measures what does not depend on what else runs here.
    pub(super) fn count(&self, row: &mut Row) -> Result<()> {
        let program = row.program;
        row.size_bytes = fs::metadata(self.path(program)).map_err(|error| error.to_string())?.len();
        row.crates = self.crates(program)?;
        if !self.has_valgrind {
            return Ok(());
        }
        let pieces = |form| {
            let few =
                self.instructions(program, &["ask", &form_of(form), &PIECES.to_string(), "0"])?;
            let many = self
                .instructions(program, &["ask", &form_of(form), &(3 * PIECES).to_string(), "0"])?;
            Ok::<_, String>(Some((many - few) / (2 * PIECES) as f64))
        };
        row.delta = pieces(BURSTS)?;
        row.delta_in_large_chunks = pieces(LARGE)?;
        row.fragment = pieces(CALL)?;
        for (place, form) in [ROUNDS, ROUNDS_OF_12].into_iter().enumerate() {
            for (length, cell) in LENGTHS.into_iter().zip(&mut row.rounds[place]) {
                let count = |conversations: &str| {
                    self.instructions(
                        program,
                        &["rounds", &form_of(form), &length.to_string(), conversations],
                    )
                };
                *cell = Some((count("1")? - count("0")?) / length as f64);
            }
        }
        let requests = |number: usize| {
            self.instructions(program, &["ask", &form_of(BURSTS), "1", &number.to_string()])
        };
        row.request = Some((requests(3 * REQUESTS)? - requests(REQUESTS)?) / (2 * REQUESTS) as f64);
        Ok(())
    }

    /// Measures times and memory: the programs take turns, and the medians count.
    pub(super) fn take_turns(&self, rows: &mut [Row]) -> Result<()> {
        let mut times = vec![Vec::new(); rows.len()];
        let mut memories = vec![Vec::new(); rows.len()];
        for _ in 0..TURNS {
            for (place, row) in rows.iter().enumerate() {
                let asked = self.told(
                    row.program,
                    &["ask", &form_of(BURSTS), "1", &TIMED_REQUESTS.to_string()],
                )?;
                times[place].push(asked / 1e3 / TIMED_REQUESTS as f64);
            }
        }
        for _ in 0..3 {
            for (place, row) in rows.iter().enumerate() {
                let bytes =
                    self.told(row.program, &["streams", &form_of(HELD), &STREAMS.to_string()])?;
                memories[place].push(bytes / 1024.0);
            }
        }
        for ((row, times), memories) in rows.iter_mut().zip(times).zip(memories) {
            row.request_micros = median(times);
            row.stream_kib = median(memories);
        }
        Ok(())
    }

    fn path(&self, program: &Program) -> PathBuf {
        self.target.join(program.package).join("release").join(program.package)
    }

    /// Returns the arguments of a task: its name, the port, and its numbers.
    fn arguments(&self, task: &[&str]) -> Vec<String> {
        let mut arguments: Vec<String> = task.iter().map(|word| (*word).to_owned()).collect();
        arguments.insert(1, self.port.to_string());
        arguments
    }

    fn instructions(&self, program: &Program, task: &[&str]) -> Result<f64> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
        command.arg(self.path(program)).args(self.arguments(task));
        let output = command.output().map_err(|error| error.to_string())?;
        let report = String::from_utf8_lossy(&output.stderr);
        let failed = || format!("{} {task:?}: {report}", program.name);
        if !output.status.success() {
            return Err(failed());
        }
        let (_, number) = report.split_once("refs:").ok_or_else(failed)?;
        let digits: String = number.lines().next().unwrap_or_default().replace(',', "");
        digits.trim().parse().map_err(|_| failed())
    }

    /// Returns the number that a task prints.
    fn told(&self, program: &Program, task: &[&str]) -> Result<f64> {
        let output = with_files(&self.path(program), &self.arguments(task)).output();
        let output = output.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let failed =
            || format!("{} {task:?}: {}", program.name, String::from_utf8_lossy(&output.stderr));
        text.trim().parse().map_err(|_| failed())
    }

    /// Counts the crates of a program, without itself.
    fn crates(&self, program: &Program) -> Result<usize> {
        let mut command = Command::new("cargo");
        command.args([
            "tree",
            "--locked",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--package",
            program.package,
        ]);
        let output =
            command.current_dir(&self.peers).output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let names = text.lines().map(|line| line.trim_end_matches(" (*)"));
        let names: BTreeSet<&str> = names.filter(|line| !line.is_empty()).collect();
        Ok(names.len().saturating_sub(1))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Its input ends, and so does it.
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}

fn build(peers: &std::path::Path, target: &std::path::Path, package: &str) -> Result<Option<f64>> {
    let mut command = Command::new("bash");
    let script =
        "time -p cargo build --release --locked --quiet --package \"$0\" --target-dir \"$1\"";
    command.args(["-c", script, package]).arg(target.join(package)).current_dir(peers);
    let output = command.output().map_err(|error| format!("bash: {error}"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{package} does not build:\n{report}"));
    }
    let number = |name: &str| {
        let line = report.lines().rev().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<f64>().ok()
    };
    Ok(number("user").zip(number("sys")).map(|(user, sys)| user + sys))
}

/// Returns a command that may open as many files as allowed.
fn with_files(program: &std::path::Path, arguments: &[String]) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "ulimit -n \"$(ulimit -H -n)\"; exec \"$0\" \"$@\""])
        .arg(program)
        .args(arguments);
    shell
}

fn form_of(form: usize) -> String {
    form.to_string()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Returns the smallest value among the peers.
pub(super) fn best_peer(rows: &[Row], value: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    let peers = rows.iter().filter(|row| row.program.is_peer);
    peers.filter_map(value).min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::super::programs::PROGRAMS;
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn the_best_peer_is_neither_we_nor_the_loop() {
        let mut rows: Vec<Row> = PROGRAMS.iter().map(Row::new).collect();
        for (row, value) in rows.iter_mut().zip([1.0, 2.0, 9.0, 8.0, 7.0, 10.0]) {
            row.delta = Some(value);
        }
        assert_eq!(best_peer(&rows, |row| row.delta), Some(7.0));
        assert_eq!(best_peer(&rows, |row| row.fragment), None);
    }
}
