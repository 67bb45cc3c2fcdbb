use std::fs::DirBuilder;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Creates a folder of our own in the temporary directory. Its path is short, because sockets are in it.
pub(crate) fn new_folder(kind: &str) -> io::Result<PathBuf> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);

    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("open-agent-{kind}-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            // Left by a process of the same number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1_000 => {}
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
