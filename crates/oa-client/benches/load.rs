//! A load that keeps the processors awake at idle priority: it runs where nothing else does.

use std::hint;
use std::io::{self, Read};
use std::process::{self, Child, Command, Stdio};
use std::thread;

use crate::instructions::again;

/// The argument that makes the program a part of the load.
pub(crate) const ARGUMENT: &str = "load";

/// One process for each processor, until this is dropped.
pub(crate) struct Load(Vec<Child>);

impl Load {
    /// Starts the load; `None` where idle priority is not available.
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

/// Spins until the parent process has gone.
pub(crate) fn turn() -> ! {
    thread::spawn(|| {
        let _ = io::stdin().read(&mut [0]);
        process::exit(0);
    });
    loop {
        hint::spin_loop();
    }
}
