//! The files of a database: their types and permissions.
//!
//! This module never opens an existing database file. Closing a file that SQLite has open in the same process
//! would release SQLite's locks, because POSIX keeps one set of locks per process and file.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use oa_session::{Error, ErrorKind};

/// The suffixes of SQLite's additional files.
const BESIDE: [&str; 3] = ["-journal", "-shm", "-wal"];

/// SQLite's name for a database in memory.
const IN_MEMORY: &str = ":memory:";

/// Checks that the database and its additional files are regular files. Creates an empty database if there is none.
///
/// Returns the path for SQLite, with links in the folder resolved: SQLite rejects links anywhere in a path, but
/// links above the database are the caller's choice.
pub(crate) fn prepare(path: &Path) -> Result<PathBuf, Error> {
    if path == Path::new(IN_MEMORY) {
        return Ok(path.to_owned());
    }
    let path = resolved(path).map_err(|error| unusable(path, error))?;
    for file in BESIDE.map(|suffix| with_suffix(&path, suffix)) {
        check(&file)?;
    }
    if check(&path)? == Found::Nothing {
        create_empty(&path).map_err(|error| unusable(&path, error))?;
        // Someone else may have created it first, as something else.
        check(&path)?;
    }
    Ok(path)
}

/// The file of an open database.
///
/// After the file was removed or renamed, SQLite would go on in a file that nobody finds.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    /// `None` in memory, and on systems that neither remove nor rename open files.
    identity: Option<(u64, u64)>,
}

impl DatabaseFile {
    /// Remembers the file of a database that was just opened.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { identity: identity(&path), path }
    }

    /// Checks that the path still names the open file.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.identity.is_none() || self.identity == identity(&self.path) {
            return Ok(());
        }
        let path = self.path.display();
        let message = format!("{path} was removed or replaced: open the store again");
        Err(Error::new(ErrorKind::Io, message))
    }
}

/// Returns the device and the number of a file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;

        let metadata = fs::symlink_metadata(path).ok().filter(|_| path != Path::new(IN_MEMORY));
        metadata.map(|metadata| (metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

#[derive(Debug, Eq, PartialEq)]
enum Found {
    File,
    Nothing,
}

/// Removes the permissions of other users, on Unix. Call it only for a database that is known to be a store's: the path
/// may name any file.
pub(crate) fn close_to_others(path: &Path) {
    #[cfg(unix)]
    for file in BESIDE.map(|suffix| with_suffix(path, suffix)).iter().chain([&path.to_owned()]) {
        use std::os::unix::fs::PermissionsExt;

        let Ok(metadata) = fs::symlink_metadata(file) else { continue };
        let mode = metadata.permissions().mode();
        if metadata.is_file() && mode & 0o077 != 0 {
            // Fails if the file has another owner; such a database works as before.
            let _ = fs::set_permissions(file, fs::Permissions::from_mode(mode & 0o600));
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// Rejects anything but a regular file.
fn check(path: &Path) -> Result<Found, Error> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(unusable(path, error)),
    };
    if !metadata.is_file() {
        let message = format!("{} is not a regular file", path.display());
        return Err(Error::new(ErrorKind::Io, message));
    }
    Ok(Found::File)
}

/// Resolves links in the folder of a database, but not in its name.
#[cfg(unix)]
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"));
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok(fs::canonicalize(folder.unwrap_or_else(|| Path::new(".")))?.join(name))
}

#[cfg(not(unix))]
fn resolved(path: &Path) -> io::Result<PathBuf> {
    Ok(path.to_owned())
}

/// Creates an empty file readable only by its owner; SQLite gives its additional files the same permissions.
///
/// The file is created under a temporary name and linked to its final name after it is closed, because SQLite
/// may open that at any moment. An existing file is kept. File systems without hard links have no permissions
/// either, so SQLite may create the file there.
#[cfg(unix)]
fn create_empty(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;

    const ATTEMPTS: u32 = 64;

    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    for attempt in 0..ATTEMPTS {
        let draft = with_suffix(path, &format!(".{}-{attempt}.new", std::process::id()));
        match options.open(&draft) {
            Ok(file) => drop(file),
            // Another thread is creating it, or was interrupted.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
        let _ = fs::hard_link(&draft, path);
        return fs::remove_file(&draft);
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        "a temporary file of the database already exists",
    ))
}

#[cfg(not(unix))]
fn create_empty(_: &Path) -> io::Result<()> {
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = OsString::from(path);
    path.push(suffix);
    path.into()
}

fn unusable(path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot open {}: {error}", path.display())).with_source(error)
}
