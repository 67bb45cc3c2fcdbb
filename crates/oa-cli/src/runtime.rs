//! The runtime of a command that runs one task.

use std::io;

use tokio::runtime::{Builder, Runtime};

pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
