//! A load that keeps the processors awake and takes nothing from anybody: it runs where nothing else does.

use std::hint;
use std::io::{self, Read};
use std::process::{self, Child, Command, Stdio};
use std::thread;

use crate::instructions::again;

/// With this argument the program is a part of the load.
pub(crate) const ARGUMENT: &str = "load";

/// One process for each processor, for as long as this lasts.
pub(crate) struct Load(Vec<Child>);

impl Load {
    /// None where processes cannot be told to run only when nothing else does.
    pub(crate) fn start() -> Option<Self> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let children: io::Result<Vec<Child>> = (0..processors).map(|_| idle()).collect();
        children.ok().map(Self)
    }
}

fn idle() -> io::Result<Child> {
    let child = again(&[ARGUMENT]);
    let mut command = Command::new("chrt");
    command.args(["--idle", "0"]).arg(child.get_program()).args(child.get_args());
    command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Turns round until whoever started it has gone.
pub(crate) fn turn() -> ! {
    thread::spawn(|| {
        let _ = io::stdin().read(&mut [0]);
        process::exit(0);
    });
    loop {
        hint::spin_loop();
    }
}
