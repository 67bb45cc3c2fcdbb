use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::jsonl::fresh::sync_parent;
use crate::jsonl::lock::{Access, lock};
use crate::jsonl::private::{close_to_others, open_regular, to_lock};

/// A regular file that only one writer at a time can open; for your own log files.
///
/// The lock is released when the value is dropped or the process ends. All methods block: in async code, use a
/// [`Worker`](crate::Worker).
///
/// ```
/// use std::io::Write;
/// use std::time::Duration;
///
/// use oa_session::LockedFile;
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("log.jsonl");
/// let file = LockedFile::open(&path, Duration::from_secs(1))?;
/// file.get_ref().write_all(b"{}\n")?;
/// assert!(LockedFile::open(&path, Duration::ZERO).is_err()); // in use
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LockedFile {
    file: File,
    path: PathBuf,
    /// False if the file system does not count names.
    has_name: bool,
}

impl LockedFile {
    /// Opens the file for reading and writing, or creates an empty one, and waits for its lock. On Unix, a new file
    /// has mode 0600. An existing one keeps its permissions, because the path may name another program's file: see
    /// [`close_to_others`](Self::close_to_others).
    ///
    /// # Errors
    ///
    /// `Busy` if another holder keeps the lock for longer than `timeout`. `Io` for anything but a regular file, such
    /// as a link or a FIFO, and for failures of the file system.
    pub fn open(path: &Path, timeout: Duration) -> Result<Self, Error> {
        let unwritable = |error| Error::unwritable(path, error);
        let mut is_new = false;
        let mut open = || {
            // Two openers may both see it as new; then both sync, which is harmless.
            is_new |= !path.exists();
            open_regular(path, &mut to_lock())
        };
        let mut file = open().map_err(unwritable)?;
        lock(&mut file, path, &path.display().to_string(), Access::Change, timeout, open)?;
        if is_new {
            sync_parent(path).map_err(unwritable)?;
        }
        Ok(Self { has_name: has_name(&file), file, path: path.to_owned() })
    }

    /// Checks that the file has not been removed since: what is written to a file without a name is gone when it is
    /// closed. A file that was renamed is fine. Windows refuses to remove or rename the file while it is open.
    ///
    /// # Errors
    ///
    /// `Io` if it was removed.
    pub fn check(&self) -> Result<(), Error> {
        if !self.has_name || has_name(&self.file) {
            return Ok(());
        }
        let message = format!("{} was removed or replaced", self.path.display());
        Err(Error::new(ErrorKind::Io, message))
    }

    /// Removes the permissions of other users, on Unix. Call it once the content shows that the file is yours. Without
    /// effect if the file has another owner, or the file system has no permissions.
    pub fn close_to_others(&self) {
        close_to_others(&self.file);
    }

    /// Returns the file. All users of the value share its position.
    #[must_use]
    pub fn get_ref(&self) -> &File {
        &self.file
    }
}

/// Returns true if an open file has a name. On other systems, `to_lock` makes sure of it.
fn has_name(file: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;

        // If it cannot be examined, nothing is known against it.
        file.metadata().map_or(true, |metadata| metadata.nlink() > 0)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        true
    }
}
