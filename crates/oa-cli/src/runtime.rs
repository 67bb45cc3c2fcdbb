//! The runtime of a command that runs one task, and the signal that stops it.

use std::io;

use tokio::runtime::{Builder, Runtime};

pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Every press of Ctrl-C since it was created. (`tokio::signal::ctrl_c` misses those between two calls.)
pub(crate) struct Interrupts(
    #[cfg(unix)] tokio::signal::unix::Signal,
    #[cfg(windows)] tokio::signal::windows::CtrlC,
);

impl Interrupts {
    pub(crate) fn new() -> io::Result<Self> {
        #[cfg(unix)]
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
        #[cfg(windows)]
        let signal = tokio::signal::windows::ctrl_c()?;
        Ok(Self(signal))
    }

    /// Waits for the next one. Presses in quick succession may count as one.
    pub(crate) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // The runtime is ending.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    #[test]
    fn interrupts_between_two_waits_count() {
        runtime().unwrap().block_on(async {
            let mut interrupts = Interrupts::new().unwrap();
            for _ in 0..2 {
                kill_process(getpid(), Signal::INT).unwrap();
                interrupts.next().await;
            }
        });
    }
}
