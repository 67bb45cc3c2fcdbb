//! Measuring the programs: instructions, time, memory, size, crates, and the time of a build.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::libraries::size_of_libraries;
use super::programs::{Program, running};
use crate::Result;
use crate::workspace::Workspace;

// Forms of answers, as `crates/oa-client/benches/replay.rs` numbers them.
const BURSTS: usize = 0;
const LARGE: usize = 2;
const CALL: usize = 3;
const ROUNDS: usize = 5;
const HELD: usize = 6;
const ROUNDS_OF_12: usize = 8;

const LENGTHS: [usize; 3] = [50, 100, 200];
const STREAMS: usize = 5_000;
/// The number of streams of a program for which so many are too many here.
const FEWER_STREAMS: usize = STREAMS / 10;
/// The memory that a program may map, in KiB: of two at once, neither may end the other.
const MOST_KIB: usize = 4 << 20;
const PIECES: usize = 2_000;
const REQUESTS: usize = 200;
const TIMED_REQUESTS: usize = 2_000;
const TURNS: usize = 5;

/// The profiles of `xtask/peers`.
const RELEASE: &str = "release";
const SMALL: &str = "small";

/// A measurement: its program, its column, its value, and a note if it was made in another way than others.
pub(super) struct Measured {
    pub(super) program: &'static str,
    pub(super) what: String,
    pub(super) value: f64,
    pub(super) note: String,
}

impl Measured {
    fn new(program: &Program, what: impl Into<String>, value: f64) -> Self {
        Self { program: program.name, what: what.into(), value, note: String::new() }
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
        build(&peers, &target, "bench-server", RELEASE)?;
        // Thousands of streams need as many open files.
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

    /// Removes the build output of a program.
    pub(super) fn forget(&self, program: &Program) -> Result<()> {
        let folder = self.target.join(program.package);
        match fs::remove_dir_all(&folder) {
            Err(error) if folder.exists() => Err(format!("{}: {error}", folder.display())),
            _ => Ok(()),
        }
    }

    /// Builds a program. Returns the CPU seconds that it took, if the shell reports them.
    pub(super) fn build(&self, program: &Program) -> Result<Option<f64>> {
        build(&self.peers, &self.target, program.package, RELEASE)
    }

    /// Builds a program with the profile for small ones, and returns its size.
    pub(super) fn build_small(&self, program: &'static Program) -> Result<Measured> {
        build(&self.peers, &self.target, program.package, SMALL)?;
        let size =
            fs::metadata(self.path(program, SMALL)).map_err(|error| error.to_string())?.len();
        Ok(Measured::new(program, "small size", (size / 1024) as f64))
    }

    /// Takes the measurements that do not depend on other load.
    pub(super) fn count(&self, program: &'static Program) -> Result<Vec<Measured>> {
        let measured = |what: &str, value| Measured::new(program, what, value);
        let path = self.path(program, RELEASE);
        let size = fs::metadata(&path).map_err(|error| error.to_string())?.len();
        let mut all = vec![
            measured("size", (size / 1024) as f64),
            measured("crates", self.crates(program)? as f64),
        ];
        let libraries = size_of_libraries(&path);
        all.extend(
            libraries.map(|more| measured("size with libraries", ((size + more) / 1024) as f64)),
        );
        if !self.has_valgrind || !program.runs {
            return Ok(all);
        }
        for (what, form) in
            [("delta", BURSTS), ("delta in large chunks", LARGE), ("fragment", CALL)]
        {
            let count = |pieces: usize| {
                self.instructions(program, &["ask", &form_of(form), &pieces.to_string(), "0"])
            };
            // The difference of two runs, in which everything but the pieces cancels out.
            let value = (count(3 * PIECES)? - count(PIECES)?) / (2 * PIECES) as f64;
            all.push(measured(what, value));
        }
        for (what, form) in [("round of", ROUNDS), ("round with wrong usage of", ROUNDS_OF_12)] {
            for length in LENGTHS {
                let count = |conversations: &str| {
                    let task = ["rounds", &form_of(form), &length.to_string(), conversations];
                    self.instructions(program, &task)
                };
                let value = (count("1")? - count("0")?) / length as f64;
                all.push(measured(&format!("{what} {length}"), value));
            }
        }
        let requests = |number: usize| {
            self.instructions(program, &["ask", &form_of(BURSTS), "1", &number.to_string()])
        };
        let value = (requests(3 * REQUESTS)? - requests(REQUESTS)?) / (2 * REQUESTS) as f64;
        all.push(measured("request", value));
        Ok(all)
    }

    /// Measures times and memory: the programs take turns, and the medians count.
    pub(super) fn take_turns(&self) -> Result<Vec<Measured>> {
        let number = running().count();
        let mut times = vec![Vec::new(); number];
        let mut memories = vec![Vec::new(); number];
        let mut streams = vec![STREAMS; number];
        for _ in 0..TURNS {
            for (place, program) in running().enumerate() {
                let task = ["ask", &form_of(BURSTS), "1", &TIMED_REQUESTS.to_string()];
                times[place].push(self.told(program, &task)? / 1e3 / TIMED_REQUESTS as f64);
            }
        }
        for _ in 0..3 {
            for (place, program) in running().enumerate() {
                let held = |streams: usize| {
                    self.told(program, &["streams", &form_of(HELD), &streams.to_string()])
                };
                let bytes = match held(streams[place]) {
                    Err(_) if streams[place] == STREAMS => {
                        // Too many streams for the memory limit.
                        streams[place] = FEWER_STREAMS;
                        // The median must not mix values of different numbers of streams.
                        memories[place].clear();
                        held(FEWER_STREAMS)
                    }
                    bytes => bytes,
                };
                memories[place].push(bytes? / 1024.0);
            }
        }
        let mut all = Vec::new();
        for (place, program) in running().enumerate() {
            let time = median(std::mem::take(&mut times[place]));
            all.extend(time.map(|time| Measured::new(program, "request time", time)));
            let memory = median(std::mem::take(&mut memories[place]));
            all.extend(memory.map(|memory| Measured {
                note: note_of(streams[place]),
                ..Measured::new(program, "stream", memory)
            }));
        }
        Ok(all)
    }

    fn path(&self, program: &Program, profile: &str) -> PathBuf {
        self.target.join(program.package).join(profile).join(program.package)
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
        command.arg(self.path(program, RELEASE)).args(self.arguments(task));
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
        let output = with_files(&self.path(program, RELEASE), &self.arguments(task)).output();
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
        // The server exits when its input ends.
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}

fn build(peers: &Path, target: &Path, package: &str, profile: &str) -> Result<Option<f64>> {
    let mut command = Command::new("bash");
    let script = "time -p cargo build --profile \"$2\" --locked --quiet --package \"$0\" --target-dir \"$1\"";
    command.args(["-c", script, package]).arg(target.join(package)).arg(profile).current_dir(peers);
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

/// Returns a command that may open as many files as allowed, and map no more memory than it may have.
fn with_files(program: &Path, arguments: &[String]) -> Command {
    let mut shell = Command::new("sh");
    let script = "ulimit -n \"$(ulimit -H -n)\"; ulimit -v \"$0\"; exec \"$@\"";
    shell.args(["-c", script, &MOST_KIB.to_string()]).arg(program).args(arguments);
    shell
}

/// Returns the note that a program had fewer streams than others.
fn note_of(streams: usize) -> String {
    if streams == STREAMS {
        return String::new();
    }
    format!("with {streams} streams: {STREAMS} take more than {} GiB", MOST_KIB >> 20)
}

fn form_of(form: usize) -> String {
    form.to_string()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn fewer_streams_are_told() {
        assert_eq!(note_of(STREAMS), "");
        assert_eq!(note_of(FEWER_STREAMS), "with 500 streams: 5000 take more than 4 GiB");
    }
}
