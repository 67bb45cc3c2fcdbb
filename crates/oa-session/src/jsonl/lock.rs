use std::fs::{File, OpenOptions};
use std::path::Path;
use std::thread;
use std::time::Duration;

use fs4::{FileExt, TryLockError};

use crate::error::{Error, ErrorKind};
use crate::jsonl::private::open_file;

/// A file that is locked while a folder is read or changed. It says nothing and is never removed.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    wait: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    Change,
    Read,
}

/// The folder is ours until this is dropped.
#[derive(Debug)]
#[must_use = "the lock is given back when this is dropped"]
pub(crate) struct Held<'a> {
    file: &'a File,
}

impl Lock {
    pub(crate) fn open(path: &Path, wait: Duration) -> std::io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).read(true);
        let file = open_file(path, &mut options)?;
        Ok(Self { file, wait })
    }

    /// Waits until nobody else is there who must not be.
    pub(crate) fn hold(&self, access: Access) -> Result<Held<'_>, Error> {
        const LONGEST: Duration = Duration::from_millis(4);

        let mut pause = Duration::from_micros(50);
        let mut waited = Duration::ZERO;
        loop {
            let tried = match access {
                Access::Change => FileExt::try_lock(&self.file),
                Access::Read => FileExt::try_lock_shared(&self.file),
            };
            match tried {
                Ok(()) => return Ok(Held { file: &self.file }),
                Err(TryLockError::WouldBlock) if waited < self.wait => {
                    thread::sleep(pause);
                    waited += pause;
                    pause = (pause * 2).min(LONGEST);
                }
                Err(TryLockError::WouldBlock) => {
                    let message = format!("the folder was in use for {:?}", self.wait);
                    return Err(Error::new(ErrorKind::Busy, message));
                }
                Err(TryLockError::Error(error)) => {
                    let message = "cannot lock the folder";
                    return Err(Error::new(ErrorKind::Io, message).with_source(error));
                }
            }
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // It goes with the process at the latest.
        let _ = FileExt::unlock(self.file);
    }
}
