use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{io, thread};

use fs4::{FileExt, TryLockError};

use crate::error::{Error, ErrorKind};
use crate::jsonl::private::{open_file, to_lock};

/// The lock file of a folder. It is always empty, and a store never removes it.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    file: File,
    timeout: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    Change,
    Read,
}

/// A guard for the locked folder.
#[derive(Debug)]
#[must_use = "dropping the guard releases the lock"]
pub(crate) struct LockGuard<'a> {
    file: &'a File,
}

/// The maximum number of times a file is opened again. Some file systems change the number of a file at any time.
const REOPENED: usize = 8;

impl Lock {
    pub(crate) fn open(path: PathBuf, timeout: Duration) -> io::Result<Self> {
        let file = open(&path)?;
        Ok(Self { path, file, timeout })
    }

    /// Waits for the lock.
    pub(crate) fn hold(&mut self, access: Access) -> Result<LockGuard<'_>, Error> {
        let Self { path, file, timeout } = self;
        lock(file, path, "the folder", access, *timeout, || open(path))?;
        Ok(LockGuard { file })
    }
}

fn open(path: &Path) -> io::Result<File> {
    open_file(path, &mut to_lock())
}

/// Returns true if an open file still has this path. On other systems, `to_lock` makes sure of it.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;

        let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let (open, named) =
            (file.metadata().map(identity), std::fs::symlink_metadata(path).map(identity));
        // If the open file cannot be examined, nothing is known against it.
        open.map_or(true, |open| named.is_ok_and(|named| named == open))
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        true
    }
}

/// Waits for the lock of an open file, which is replaced by `open` if it no longer has its path. `what` names it in
/// errors.
pub(crate) fn lock(
    file: &mut File,
    path: &Path,
    what: &str,
    access: Access,
    timeout: Duration,
    mut open: impl FnMut() -> io::Result<File>,
) -> Result<(), Error> {
    // A lock belongs to the file, not to its name. Two processes with different files at this path would both hold
    // "the" lock, so whoever gets it checks that the file is still the one that others find.
    lock_open(file, what, access, timeout)?;
    for _ in 0..REOPENED {
        if is_at(file, path) {
            break;
        }
        // The file or its folder was removed or renamed, so other processes lock a new one.
        *file = open().map_err(|error| Error::unwritable(path, error))?;
        lock_open(file, what, access, timeout)?;
    }
    Ok(())
}

fn lock_open(file: &File, what: &str, access: Access, timeout: Duration) -> Result<(), Error> {
    const LONGEST: Duration = Duration::from_millis(4);

    let mut pause = Duration::from_micros(50);
    // The sum of the pauses: no store reads a clock, and the wait only has to end.
    let mut waited = Duration::ZERO;
    loop {
        // Tried again and again, because a blocking lock has no timeout.
        let tried = match access {
            Access::Change => FileExt::try_lock(file),
            Access::Read => FileExt::try_lock_shared(file),
        };
        match tried {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if waited < timeout => {
                thread::sleep(pause);
                waited += pause;
                pause = (pause * 2).min(LONGEST);
            }
            Err(TryLockError::WouldBlock) => {
                let message = format!("{what} is in use: timed out after {timeout:?}");
                return Err(Error::new(ErrorKind::Busy, message));
            }
            Err(TryLockError::Error(error)) => {
                return Err(Error::failed(format_args!("cannot lock {what}"), error));
            }
        }
    }
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        // The lock is released with the process at the latest.
        let _ = FileExt::unlock(self.file);
    }
}
