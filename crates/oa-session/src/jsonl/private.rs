//! Opening files and folders that only the store may access.
//!
//! On Unix, files are created with mode 0600 and folders with 0700, and looser permissions are tightened.
//! Elsewhere, permissions are inherited from the folder.

use std::error::Error;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::path::Path;
use std::{fmt, io};

use crate::jsonl::name::is_own;

/// Creates a folder and its parents if needed, and closes it to other users.
///
/// A folder that contains anything else is left alone, because others may need access to it. `sync_parent` is called for
/// each new folder: it is lost in a power failure until the folder around it is on disk.
pub(crate) fn create_folder(
    path: &Path,
    sync_parent: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let new: Vec<_> = path.ancestors().take_while(is_missing).collect();
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    new.into_iter().try_for_each(sync_parent)?;
    let metadata = fs::metadata(path)?;
    if is_loose(&metadata) && holds_nothing_else(path)? {
        tighten(&metadata, 0o700, |permissions| fs::set_permissions(path, permissions));
    }
    Ok(())
}

/// Opens a regular file of the store, or creates it if the options say so, and closes it to other users.
///
/// Fails like [`open_regular`].
pub(crate) fn open_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = open_regular(path, options)?;
    close_to_others(&file);
    Ok(file)
}

/// Options to open a file that is locked, or to create it empty.
///
/// Windows then refuses to remove or rename the file. Unix cannot: there, the holder of the lock checks the name.
pub(crate) fn to_lock() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).read(true);
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt;

        // Others may read and write the file, but not delete it.
        const FILE_SHARE_READ: u32 = 1;
        const FILE_SHARE_WRITE: u32 = 2;
        options.share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE);
    }
    options
}

/// Closes an open file to other users. It must be known to be the store's.
pub(crate) fn close_to_others(file: &File) {
    if let Ok(metadata) = file.metadata() {
        tighten(&metadata, 0o600, |permissions| file.set_permissions(permissions));
    }
}

/// Opens a regular file, or creates it if the options say so. An existing file keeps its permissions.
///
/// Fails immediately for anything else: links are not followed, and FIFOs are not waited for.
pub(crate) fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;

        use rustix::fs::OFlags;

        // `NONBLOCK` has no effect on regular files. It lets the opening of a FIFO return at once, and
        // `NOCTTY` keeps a terminal device from becoming the terminal of this process.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    // For systems whose `open` cannot reject links.
    #[cfg(not(unix))]
    if is_irregular(path) {
        return Err(io::Error::other(NotRegular));
    }
    let file = match options.open(path) {
        Ok(file) => file,
        // Systems report different errors for links, FIFOs without a reader, and sockets.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && is_irregular(path) => {
            return Err(io::Error::other(NotRegular));
        }
        Err(error) => return Err(error),
    };
    // Of the open file, not of its path, which may name something else by now.
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other(NotRegular));
    }
    Ok(file)
}

/// A link, FIFO, device, socket or folder in place of a file.
#[derive(Debug)]
struct NotRegular;

impl fmt::Display for NotRegular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a regular file")
    }
}

impl Error for NotRegular {}

fn is_irregular(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

fn holds_nothing_else(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        if !entry?.file_name().to_str().is_some_and(is_own) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(unix)]
fn is_loose(metadata: &Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0
}

#[cfg(not(unix))]
fn is_loose(_: &Metadata) -> bool {
    false
}

/// Removes permissions beyond `most`. May fail if the file has another owner or the file system has no
/// permissions; such stores work as before.
fn tighten(metadata: &Metadata, most: u32, set: impl FnOnce(fs::Permissions) -> io::Result<()>) {
    #[cfg(unix)]
    if is_loose(metadata) {
        use std::os::unix::fs::PermissionsExt;

        // Only takes permissions away: a file that its owner made read-only stays so.
        let mode = metadata.permissions().mode() & most;
        let _ = set(fs::Permissions::from_mode(mode));
    }
    #[cfg(not(unix))]
    let _ = (metadata, most, set);
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn each_new_folder_is_synced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b");
        for expected in [vec![path.clone(), place.path().join("a")], Vec::new()] {
            let synced = RefCell::<Vec<PathBuf>>::default();
            let sync = |folder: &Path| {
                assert!(folder.is_dir());
                synced.borrow_mut().push(folder.to_owned());
                Ok(())
            };
            create_folder(&path, sync).unwrap();
            assert_eq!(synced.into_inner(), expected);
        }
    }
}
