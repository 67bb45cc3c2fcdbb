//! Runs a program that prints test results, and ends what hangs in it.
//!
//! Once the program has begun to print, some test must end within each `patience`. If none does, the descendants of the
//! program are killed, and the running tests are reported. `cargo test` then continues with its next binary.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::command::Run;
use crate::tally::Tally;

/// The longest time that a program may build before it prints.
const BUILD: Duration = Duration::from_secs(60 * 60);

/// The longest time that a program may take to end after what hung in it was killed.
const FAREWELL: Duration = Duration::from_secs(60);

/// Passes on what a program prints and counts the tests in it, to its end. Returns a sentence for each time it hung.
pub(crate) fn watch(
    child: &mut Child,
    patience: Duration,
    out: &mut impl Write,
    tally: &mut Tally,
) -> io::Result<Vec<String>> {
    let mut hangs = Vec::new();
    let Some(stdout) = child.stdout.take() else {
        return Ok(hangs);
    };
    let pieces = read(stdout);
    let mut progress = Progress::default();
    let (mut since, mut limit) = (Instant::now(), BUILD);
    loop {
        match pieces.recv_timeout(limit.saturating_sub(since.elapsed())) {
            Ok(piece) => {
                let piece = piece?;
                out.write_all(&piece)?;
                out.flush()?;
                if progress.read(&piece, tally) {
                    (since, limit) = (Instant::now(), patience);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(hangs),
            Err(RecvTimeoutError::Timeout) => {
                let names = progress.running();
                // The children and not the program itself: `cargo test` then goes on with its next binary.
                let killed = kill_below(child.id());
                let hang = sentence(limit, &names, &killed);
                writeln!(out, "\n{hang}")?;
                hangs.push(hang);
                if killed.is_empty() {
                    // It has no child processes, or they are not visible.
                    child.kill()?;
                    return Ok(hangs);
                }
                progress = Progress::default();
                (since, limit) = (Instant::now(), FAREWELL);
            }
        }
    }
}

/// Reads in a separate thread, which ends when the program and all other writers have closed the output.
fn read(mut stdout: ChildStdout) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut buffer = [0; 1 << 13];
        loop {
            let piece = match stdout.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => Ok(buffer[..length].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let failed = piece.is_err();
            if sender.send(piece).is_err() || failed {
                return;
            }
        }
    });
    receiver
}

fn sentence(wait: Duration, names: &BTreeSet<String>, killed: &[String]) -> String {
    let join =
        |names: Vec<&str>| if names.is_empty() { "unknown".into() } else { names.join(", ") };
    format!(
        "no test ended within {} s: killed {}; still running: {}",
        wait.as_secs(),
        join(killed.iter().map(String::as_str).collect()),
        join(names.iter().map(String::as_str).collect())
    )
}

/// The tests of the current binary, as far as its output shows.
#[derive(Debug, Default)]
struct Progress {
    /// The line that has not ended.
    line: Vec<u8>,
    /// Tests that libtest reported as slow and that have not ended.
    slow: BTreeSet<String>,
}

impl Progress {
    /// Returns true if a line has ended, other than a notice about a slow test.
    fn read(&mut self, piece: &[u8], tally: &mut Tally) -> bool {
        let mut is_alive = false;
        for byte in piece {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            let line = String::from_utf8_lossy(&self.line).trim_end().to_owned();
            self.line.clear();
            tally.read(&line);
            let test = line.strip_prefix("test ");
            if let Some(name) = test.and_then(|test| test.strip_suffix(SLOW)) {
                // Not a sign of life: libtest prints it because the test goes on and on.
                self.slow.insert(name.to_owned());
                continue;
            }
            is_alive = true;
            if line.starts_with("running ") || line.starts_with("test result: ") {
                self.slow.clear();
            } else if let Some((name, _)) = test.and_then(|test| test.split_once(" ... ")) {
                self.slow.remove(name);
            }
        }
        is_alive
    }

    /// Returns the tests that have begun and not ended: on one thread libtest prints the name first, on several it names
    /// those that take longer than a minute.
    fn running(&self) -> BTreeSet<String> {
        let mut names = self.slow.clone();
        let line = String::from_utf8_lossy(&self.line);
        let begun = line.strip_prefix("test ").and_then(|test| test.split_once(" ... "));
        names.extend(begun.map(|(name, _)| name.to_owned()));
        names
    }
}

/// The notice of libtest about a slow test.
const SLOW: &str = " has been running for over 60 seconds";

/// Kills all descendants of a process, and returns the commands of its children.
fn kill_below(id: u32) -> Vec<String> {
    let Ok(list) = Run::new("ps").args(["-A", "-o", "pid=,ppid=,args="]).output() else {
        return Vec::new();
    };
    let (near, all) = below(id, &list);
    let kill = Run::new("kill").args(["-KILL", "--"]).args(all.iter().map(u32::to_string));
    if all.is_empty() || kill.output().is_err() { Vec::new() } else { near }
}

/// The commands of the children of a process and the ids of all descendants, from lines of id, parent and command.
fn below(id: u32, list: &str) -> (Vec<String>, Vec<u32>) {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let ids = (words.next()?.parse::<u32>().ok()?, words.next()?.parse::<u32>().ok()?);
        Some((ids.0, ids.1, words.next().unwrap_or_default().to_owned()))
    };
    let rows: Vec<(u32, u32, String)> = list.lines().filter_map(row).collect();
    let mut all = vec![id];
    let mut next = 0;
    while next < all.len() {
        let parent = all[next];
        next += 1;
        let children = rows.iter().filter(|row| row.1 == parent).map(|row| row.0);
        let children: Vec<u32> = children.filter(|child| !all.contains(child)).collect();
        all.extend(children);
    }
    all.remove(0);
    let near = rows.into_iter().filter(|row| row.1 == id);
    (near.map(|row| row.2).collect(), all)
}

#[cfg(test)]
mod tests {
    use super::*;

    // By `ps` and `kill`, as systems other than Windows have them.
    #[cfg(unix)]
    #[test]
    fn hanging_programs_are_killed_and_named() {
        // As `cargo test` does it: the binary is a child, and another binary follows.
        let script = "sh -c 'echo running 3 tests; echo test a ... ok; \
                      echo test b::c has been running for over 60 seconds; \
                      printf \"test d ... \"; tail -f /dev/null'; \
                      echo; echo 'test result: ok. 5 passed; 0 failed'; exit 7";
        let mut command = Run::new("sh").arg("-c").arg(script).command();
        let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let (mut out, mut tally) = (Vec::new(), Tally::default());
        let hangs = watch(&mut child, Duration::from_millis(300), &mut out, &mut tally).unwrap();
        assert_eq!(hangs, ["no test ended within 0 s: killed sh; still running: b::c, d"]);
        assert_eq!(
            child.wait().unwrap().code(),
            Some(7),
            "what hung was killed, what follows was not"
        );
        assert_eq!(tally.passed, 5);
        assert!(String::from_utf8_lossy(&out).contains(&hangs[0]));
    }

    #[test]
    fn tests_that_have_ended_are_not_named() {
        let mut progress = Progress::default();
        let mut tally = Tally::default();
        let mut read = |text: &str| {
            let is_alive = progress.read(text.as_bytes(), &mut tally);
            (is_alive, progress.running().into_iter().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(read("test a has been running for over 60 seconds\n"), (false, "a".into()));
        assert_eq!(read("test b has been running for over 60 sec"), (false, "a".into()));
        assert_eq!(read("onds\n"), (false, "a b".into()));
        assert_eq!(read("test a ... ok\n"), (true, "b".into()));
        assert_eq!(read("test c ... "), (false, "b c".into()));
        assert_eq!(
            read("FAILED\n\ntest result: FAILED. 1 passed; 2 failed\n"),
            (true, String::new())
        );
        assert_eq!((tally.passed, tally.failed), (1, 2));
    }

    #[test]
    fn processes_below_are_found_at_any_depth() {
        let list = "  1     0 init\n 10     1 cargo test\n 20    10 /t/suite-1 --quiet\n 30    20 sh\n 40     1 other\n";
        let (near, all) = below(10, list);
        assert_eq!(near, ["/t/suite-1"]);
        assert_eq!(all, [20, 30]);
    }
}
