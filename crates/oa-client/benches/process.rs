//! A process as the kernel reports it: CPU time, memory, and its limit of open files.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::instructions::again;

/// True if the kernel reports it: other systems have no `/proc`.
pub(crate) const TELLS: bool = cfg!(target_os = "linux");

/// Returns how long the main thread was on a CPU, in the kernel too.
pub(crate) fn cpu_time() -> Duration {
    // The count of a thread that runs is brought up to date when it lets others go first.
    thread::yield_now();
    let text = fs::read_to_string("/proc/self/schedstat").expect("Linux counts the time");
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.expect("the first number is the time"))
}

/// Returns the resident memory of the process, in bytes.
pub(crate) fn resident() -> usize {
    let kibibytes = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_whitespace().next()?.parse::<usize>().ok()
    };
    let text = fs::read_to_string("/proc/self/status").expect("Linux tells the memory");
    kibibytes(text).expect("it is given in KiB") << 10
}

/// Returns how many files a child may have open at most.
pub(crate) fn files() -> usize {
    let hard = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    // "unlimited" is no number.
    fs::read_to_string("/proc/self/limits").ok().and_then(hard).unwrap_or(usize::MAX)
}

/// Returns a command that runs this program again, with as many open files as allowed.
pub(crate) fn with_files(arguments: &[impl std::fmt::Display]) -> Command {
    let child = again(arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n \"$(ulimit -H -n)\"; exec \"$0\" \"$@\""]);
    shell.arg(child.get_program()).args(child.get_args());
    shell
}

/// Returns the processors that this program may run on; empty if unknown.
pub(crate) fn processors() -> Vec<usize> {
    if !TELLS {
        return Vec::new();
    }
    let text = fs::read_to_string("/proc/self/status").expect("Linux tells the processors");
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    };
    list.unwrap_or_default().trim().split(',').filter_map(range).flatten().collect()
}

/// Returns a command pinned to one processor, by a program that each Linux has.
pub(crate) fn on_processor(processor: usize, command: &Command) -> Command {
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", &processor.to_string()]);
    pinned.arg(command.get_program()).args(command.get_args());
    pinned
}

/// Returns the numbers that a child prints.
pub(crate) fn measured(mut child: Command) -> Vec<f64> {
    let output = child.output().expect("a bench can start itself");
    let text = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "a child failed: {told}");
    text.split_whitespace().map(|text| text.parse().expect("a child prints numbers")).collect()
}
