//! Reads the file of a cassette up to a limit, and writes it atomically.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::error::{CassetteError, CassetteErrorKind};
use super::interaction::Interaction;
use super::text;

/// The largest file, in bytes.
pub(super) const MAX_FILE: u64 = 128 * 1024 * 1024;

/// Reads a cassette.
pub(super) fn read(path: &Path) -> Result<Vec<Interaction>, CassetteError> {
    let mut content = String::new();
    let read =
        File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut content));
    match read {
        Ok(length) if length as u64 > MAX_FILE => {
            let message = format!("{} is larger than {MAX_FILE} bytes", path.display());
            return Err(CassetteError::new(CassetteErrorKind::Limit, message));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let path = path.display();
            let message =
                format!("there is no cassette {path}: record it first, with a server running");
            return Err(CassetteError::new(CassetteErrorKind::Missing, message));
        }
        Err(error) => return Err(CassetteError::io("read", path, error)),
    }
    text::read(&content).map_err(|what| {
        let message = format!("{} is not a cassette: {what}", path.display());
        CassetteError::new(CassetteErrorKind::Format, message)
    })
}

/// Writes a cassette to a temporary file and renames it, so that readers see the old or the new one. Creates
/// missing folders.
pub(super) fn write(path: &Path, interactions: &[Interaction]) -> Result<(), CassetteError> {
    let content = text::write(interactions);
    if content.len() as u64 > MAX_FILE {
        let message = format!("{} would be larger than {MAX_FILE} bytes", path.display());
        return Err(CassetteError::new(CassetteErrorKind::Limit, message));
    }
    replace(path, content.as_bytes()).map_err(|error| CassetteError::io("write", path, error))
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let beside = beside(path)?;
    let written = File::create_new(&beside).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&beside, path)).inspect_err(|_| {
        // Report the original error.
        let _ = fs::remove_file(&beside);
    })
}

/// Returns a unique temporary name on the same file system.
fn beside(path: &Path) -> io::Result<PathBuf> {
    static WRITERS: AtomicUsize = AtomicUsize::new(0);
    let name =
        path.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "no name"))?;
    let writer = WRITERS.fetch_add(1, Ordering::Relaxed);
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}-{writer}", process::id()));
    Ok(path.with_file_name(beside))
}
