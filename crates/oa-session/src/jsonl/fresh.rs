use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::jsonl::end::End;
use crate::jsonl::name::draft_name;
use crate::jsonl::private::open_file;
use crate::record::Draft;
use crate::revision::Revision;

/// A file written under a temporary name and renamed when complete.
#[derive(Debug)]
pub(crate) struct Fresh {
    path: PathBuf,
    /// Leftovers of a crash are removed by the next writer of this name, and with the session.
    draft: PathBuf,
    file: BufWriter<File>,
    end: End,
}

impl Fresh {
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let draft = draft_path(path);
        let file = create(&draft).map_err(|error| Error::unwritable(&draft, error))?;
        let (path, file) = (path.to_owned(), BufWriter::new(file));
        Ok(Self { path, draft, file, end: End::default() })
    }

    pub(crate) fn write(&mut self, draft: &Draft) -> Result<Revision, Error> {
        let (line, sum) = self.end.seal(draft);
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|error| Error::unwritable(&self.draft, error))?;
        Ok(Revision::from_bits(sum))
    }

    /// Renames the file into place. It is durable when this returns.
    pub(crate) fn finish(mut self) -> Result<End, Error> {
        let placed = self.place();
        placed.map_err(|error| Error::unwritable(&self.path, error))?;
        Ok(self.end)
    }

    fn place(&mut self) -> io::Result<()> {
        // In this order, a crash leaves the old file or the whole new one: the content is on disk before the
        // name refers to it. Syncing the folder then makes the name durable.
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.draft, &self.path)?;
        sync_parent(&self.path)
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // Already gone after `finish`.
        let _ = fs::remove_file(&self.draft);
    }
}

/// Creates a new file and never follows an existing link.
fn create(draft: &Path) -> io::Result<File> {
    remove_leftover(draft)?;
    open_file(draft, OpenOptions::new().write(true).create_new(true))
}

/// Returns the temporary path under which a session's file is written.
pub(crate) fn draft_path(path: &Path) -> PathBuf {
    PathBuf::from(draft_name(path.as_os_str()))
}

/// Removes a temporary file, if there is one. The folder is locked, so it is left from a crash.
pub(crate) fn remove_leftover(draft: &Path) -> io::Result<()> {
    match fs::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Syncs the folder of a file or folder that was added.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    sync_folder(folder.unwrap_or_else(|| Path::new(".")))
}

/// Syncs a folder after files were added or removed.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    // Other systems cannot open folders and do not need to.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
