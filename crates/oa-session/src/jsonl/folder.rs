use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::append::Append;
use crate::error::Error;
use crate::id::SessionId;
use crate::jsonl::end::End;
use crate::jsonl::fresh::{Fresh, draft_path, remove_leftover, sync_folder, sync_parent};
use crate::jsonl::lock::{Access, Lock};
use crate::jsonl::log::{Contents, Log};
use crate::jsonl::name::{LOCK, file_name, is_session, session_id};
use crate::jsonl::private::{create_folder, open_file};
use crate::ledger::{Entry, Ledger};
use crate::limits::Limits;
use crate::list::{List, SessionPage, UnreadableSession};
use crate::pending::Pending;
use crate::record::Draft;
use crate::revision::Revision;
use crate::rules::{check_messages, check_pending, merge_metadata};
use crate::session::{NewSession, Session, SessionInfo};
use crate::timestamp::Timestamp;

/// The maximum memory for cached file contents, in bytes.
const REMEMBERED: usize = 64 << 20;

/// The slack before compaction: a file may exceed twice the size of its current content by this many bytes.
const SLACK: u64 = 1 << 20;

/// The folder of a store. Everything here blocks.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    limits: Limits,
    lock: Lock,
    logs: Logs,
}

impl Folder {
    pub(crate) fn open(path: PathBuf, limits: Limits) -> Result<Self, Error> {
        let broken = |error| Error::unwritable(&path, error);
        create_folder(&path, sync_parent).map_err(broken)?;
        let lock = Lock::open(path.join(LOCK), limits.timeout).map_err(broken)?;
        Ok(Self { path, limits, lock, logs: Logs::default() })
    }

    pub(crate) fn create(&mut self, session: NewSession) -> Result<SessionInfo, Error> {
        let metadata = merge_metadata(Map::new(), session.metadata, &self.limits)?;
        let session = NewSession { metadata, ..session };
        let Self { path: folder, lock, logs, .. } = self;
        let _held = lock.hold(Access::Change)?;
        let path = free_path(folder, &session.id)?;
        let mut fresh = Fresh::create(&path)?;
        let revision = fresh.write(&Draft::create(&session.id, session.at, &session.metadata))?;
        let ledger = Ledger::new(SessionInfo::new(session, revision));
        Ok(logs.put(Log::written(ledger, fresh.finish()?))?.info.clone())
    }

    pub(crate) fn append(&mut self, id: &SessionId, append: Append) -> Result<SessionInfo, Error> {
        let Append { revision, messages, at, keep } = append;
        let json = check_messages(&messages, &self.limits)?;
        self.change(id, |log, limits| {
            // The caller's revision is checked before anything else about the conversation: for an outdated
            // writer, `keep` refers to messages that may be gone.
            let ledger = log.ledger()?;
            ledger.check_revision(revision)?;
            let kept = keep.unwrap_or(ledger.info.message_count);
            ledger.check_keep(kept)?;
            let bytes = json.iter().map(|json| json.len() as u64).sum();
            ledger.check_room(kept, json.len(), bytes, limits)?;
            let draft = Draft::append(at, keep, json.iter().map(String::as_str));
            let entries: Vec<Entry> =
                messages.iter().zip(&json).map(|(m, json)| Entry::new(m, json)).collect();
            Ok((draft, move |ledger: &mut Ledger, revision| {
                ledger.append(kept, entries, at, revision);
            }))
        })
    }

    pub(crate) fn set_metadata(
        &mut self,
        id: &SessionId,
        members: Map<String, Value>,
        at: Timestamp,
    ) -> Result<SessionInfo, Error> {
        self.change(id, |log, limits| {
            let metadata = merge_metadata(log.ledger()?.info.metadata.clone(), members, limits)?;
            let draft = Draft::set_metadata(at, &metadata);
            Ok((draft, move |ledger: &mut Ledger, _| {
                ledger.info.metadata = metadata;
                ledger.info.updated_at = at;
            }))
        })
    }

    pub(crate) fn set_pending(
        &mut self,
        id: &SessionId,
        revision: Revision,
        pending: Option<&Pending>,
        at: Timestamp,
    ) -> Result<SessionInfo, Error> {
        let json = pending.map(|pending| check_pending(pending, &self.limits)).transpose()?;
        self.change(id, |log, _| {
            log.ledger()?.check_revision(revision)?;
            let draft = Draft::pending(at, json.as_deref());
            let bytes = json.as_ref().map(|json| json.len() as u64);
            Ok((draft, move |ledger: &mut Ledger, revision| {
                ledger.set_pending(bytes, at, revision);
            }))
        })
    }

    pub(crate) fn load(&mut self, id: &SessionId) -> Result<Session, Error> {
        let _held = self.lock.hold(Access::Read)?;
        let path = self.path.join(file_name(id));
        let (log, contents) = read_whole(&path, id, &self.limits)?;
        let session = log.session(&contents, &path)?;
        self.logs.put(log)?;
        Ok(session)
    }

    pub(crate) fn list(&mut self, list: &List) -> Result<SessionPage, Error> {
        list.check(&self.limits)?;
        let Self { path: folder, limits, lock, logs } = self;
        let _held = lock.hold(Access::Read)?;
        let broken = |error| Error::unreadable(folder, error);
        let mut sessions = Vec::new();
        let mut unreadable = Vec::new();
        for entry in fs::read_dir(&*folder).map_err(broken)? {
            let name = entry.map_err(broken)?.file_name();
            let Some(name) = name.to_str().filter(|name| is_session(name)) else {
                continue;
            };
            match info_of(folder, name, limits, logs) {
                Ok(info) => sessions.push(info),
                Err(error) if unreadable.len() < limits.page => {
                    unreadable.push(UnreadableSession::new(name, error));
                }
                Err(_) => {}
            }
        }
        let mut page = SessionPage::of(list, sessions);
        // These have no time to be ordered by, so all of them are on the first page.
        if list.after.is_none() {
            unreadable.sort_by(|a, b| a.name.cmp(&b.name));
            page.unreadable = unreadable;
        }
        Ok(page)
    }

    pub(crate) fn delete(&mut self, id: &SessionId) -> Result<(), Error> {
        let _held = self.lock.hold(Access::Change)?;
        self.logs.remove(id);
        let path = self.path.join(file_name(id));
        // A crash during compaction leaves a copy of the session. It goes first: once the session is gone, nobody would
        // remove it.
        let draft = draft_path(&path);
        let leftover = remove_leftover(&draft);
        fs::remove_file(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::not_found(id),
            _ => Error::unwritable(&path, error),
        })?;
        sync_folder(&self.path).map_err(|error| Error::unwritable(&self.path, error))?;
        leftover.map_err(|error| Error::unwritable(&draft, error))
    }

    pub(crate) fn fork(
        &mut self,
        id: &SessionId,
        keep: usize,
        fork: NewSession,
    ) -> Result<SessionInfo, Error> {
        let Self { path: folder, limits, lock, logs } = self;
        let _held = lock.hold(Access::Change)?;
        let (log, contents) = read_whole(&folder.join(file_name(id)), id, limits)?;
        let source = log.ledger()?;
        source.check_keep(keep)?;
        let metadata = merge_metadata(source.info.metadata.clone(), fork.metadata, limits)?;
        let fork = NewSession { metadata, ..fork };
        let path = free_path(folder, &fork.id)?;
        let mut fresh = Fresh::create(&path)?;
        let at = fork.at;
        // The revision is that of the last line, as a reader of the file computes it.
        let mut revision = fresh.write(&Draft::create(&fork.id, at, &fork.metadata))?;
        for batch in contents.batches(source, keep, limits)? {
            revision = fresh.write(&Draft::append(at, None, batch))?;
        }
        let mut ledger = Ledger::new(SessionInfo::new(fork, revision));
        ledger.append(0, source.entries().iter().take(keep).copied(), at, revision);
        Ok(logs.put(Log::written(ledger, fresh.finish()?))?.info.clone())
    }

    /// Appends a record to a session's file and applies it to the cached log.
    fn change<F: FnOnce(&mut Ledger, Revision)>(
        &mut self,
        id: &SessionId,
        draft: impl FnOnce(&Log, &Limits) -> Result<(Draft, F), Error>,
    ) -> Result<SessionInfo, Error> {
        let Self { path: folder, limits, lock, logs } = self;
        let _held = lock.hold(Access::Change)?;
        let path = folder.join(file_name(id));
        let mut file = open(&path, id, Access::Change)?;
        // From here on, the log is in nobody's cache. Only a refused draft puts it back: after a failed
        // write, the end of the file is unknown, and the next operation reads the file from its beginning.
        let mut log = logs.take(&mut file, &path, id, limits)?;
        let (draft, apply) = match draft(&log, limits) {
            Ok(draft) => draft,
            Err(error) => {
                logs.put(log)?;
                return Err(error);
            }
        };
        let sum =
            log.end_mut().write(&mut file, &draft).map_err(|e| Error::unwritable(&path, e))?;
        // Not every version of Windows replaces a file that is open.
        drop(file);
        let ledger = log.ledger_mut()?;
        apply(ledger, Revision::from_bits(sum));
        let most = ledger.bytes().saturating_mul(2).saturating_add(SLACK);
        if log.end_mut().len > most
            && let Ok(end) = write_anew(&path, id, limits)
        {
            // If compaction fails, the file is longer than needed, but the change is stored.
            *log.end_mut() = end;
        }
        Ok(logs.put(log)?.info.clone())
    }
}

/// The parts of files already read, so that only new lines need to be.
#[derive(Debug, Default)]
struct Logs {
    /// Logs are only put in and taken out: a change in place would make `size` wrong.
    logs: HashMap<SessionId, Log>,
    /// The sum of their sizes in memory.
    size: usize,
}

impl Logs {
    /// Takes a session's log out of the cache; put it back unless a change failed halfway.
    fn take(
        &mut self,
        file: &mut File,
        path: &Path,
        id: &SessionId,
        limits: &Limits,
    ) -> Result<Log, Error> {
        let mut log = self.remove(id).unwrap_or_default();
        if !log.is_start_of(file).map_err(|error| Error::unreadable(path, error))? {
            log = Log::default();
        }
        log.read_on(file, path, id, limits)?;
        Ok(log)
    }

    fn put(&mut self, log: Log) -> Result<&Ledger, Error> {
        let id = log.ledger()?.info.id.clone();
        self.remove(&id);
        // Counted before there is room, so a log that is larger than the whole cache leaves only itself.
        self.size += log.size();
        // Evicts arbitrary sessions. With the oldest first, a list of more sessions than fit would evict each of them
        // before the next list needs it.
        while self.size > REMEMBERED
            && let Some(other) = self.logs.keys().next().cloned()
        {
            self.remove(&other);
        }
        self.logs.entry(id).insert_entry(log).into_mut().ledger()
    }

    fn remove(&mut self, id: &SessionId) -> Option<Log> {
        let log = self.logs.remove(id)?;
        self.size -= log.size();
        Some(log)
    }
}

fn info_of(
    folder: &Path,
    name: &str,
    limits: &Limits,
    logs: &mut Logs,
) -> Result<SessionInfo, Error> {
    let id =
        session_id(name).ok_or_else(|| Error::corrupt("this is not the file name of a session"))?;
    let path = folder.join(name);
    let log = logs.take(&mut open(&path, &id, Access::Read)?, &path, &id, limits)?;
    Ok(logs.put(log)?.info.clone())
}

fn open(path: &Path, id: &SessionId, access: Access) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(matches!(access, Access::Change));
    open_file(path, &mut options).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::not_found(id),
        _ => Error::unreadable(path, error),
    })
}

fn read_whole(path: &Path, id: &SessionId, limits: &Limits) -> Result<(Log, Contents), Error> {
    let mut log = Log::with_contents();
    log.read_on(&mut open(path, id, Access::Read)?, path, id, limits)?;
    let contents = log.take_contents();
    Ok((log, contents))
}

/// Returns the path for a new session's file.
fn free_path(folder: &Path, id: &SessionId) -> Result<PathBuf, Error> {
    let path = folder.join(file_name(id));
    // A dangling link also occupies the name.
    match fs::symlink_metadata(&path) {
        Ok(_) => Err(Error::already_exists(id)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path),
        Err(error) => Err(Error::unreadable(&path, error)),
    }
}

/// Compacts a file: replaces it with one that has only the current content.
fn write_anew(path: &Path, id: &SessionId, limits: &Limits) -> Result<End, Error> {
    let (log, contents) = read_whole(path, id, limits)?;
    let ledger = log.ledger()?;
    // The new lines have other checksums than the old ones, and a revision is a checksum. The `state` record
    // at the end restores the current revision; otherwise compaction would be a conflict for every writer.
    // For example, five lines become three:
    //
    //     create, append A, append B keep 0, pending, append C keep 0
    //     create, append C, state (revision, no pending call)
    let SessionInfo { created_at, updated_at, metadata, revision, .. } = &ledger.info;
    let pending = contents.pending.as_deref();
    let pending = pending.map(|pending| check_pending(pending, limits)).transpose()?;
    let mut fresh = Fresh::create(path)?;
    fresh.write(&Draft::create(id, *created_at, metadata))?;
    for batch in contents.batches(ledger, ledger.entries().len(), limits)? {
        fresh.write(&Draft::append(*updated_at, None, batch))?;
    }
    fresh.write(&Draft::state(*updated_at, *revision, pending.as_deref()))?;
    fresh.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(number: usize, title: &str) -> Log {
        let id = SessionId::new(number.to_string()).unwrap();
        let session = NewSession::new(id, Timestamp::default()).with_title(title);
        let info = SessionInfo::new(session, Revision::from_bits(1));
        Log::written(Ledger::new(info), End::default())
    }

    #[test]
    fn the_cache_is_bounded_by_its_memory() {
        let mut logs = Logs::default();
        for number in (0..10_000).chain(0..10_000) {
            logs.put(log(number, "rain")).unwrap();
        }
        assert_eq!(logs.logs.len(), 10_000);
        let title = "rain ".repeat(12_000);
        for number in 0..1_200 {
            logs.put(log(number, &title)).unwrap();
        }
        assert!(logs.logs.len() > 100 && logs.size <= REMEMBERED, "{}", logs.size);
        assert_eq!(logs.size, logs.logs.values().map(Log::size).sum::<usize>());
    }
}
