//! The folders of the program's files, by the conventions of the platform.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use etcetera::{BaseStrategy, choose_base_strategy};
use open_agent::session::{JsonlStore, SessionStore};

use crate::failure::{Failure, Result};
use crate::settings::Settings;

/// The name of the program's folder within the platform's folders.
const NAME: &str = "oa";

/// Returns the path of the configuration file; `None` without a home folder.
pub(crate) fn config_file() -> Option<PathBuf> {
    Some(choose_base_strategy().ok()?.config_dir().join(NAME).join("config.toml"))
}

/// Returns the folder of sessions and history.
pub(crate) fn data_folder() -> Option<PathBuf> {
    Some(choose_base_strategy().ok()?.data_dir().join(NAME))
}

/// Returns a path with a leading `~/` expanded.
pub(crate) fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), choose_base_strategy()) {
        (Some(rest), Ok(base)) => base.home_dir().join(rest),
        _ => PathBuf::from(path),
    }
}

/// Opens the store of sessions.
pub(crate) fn sessions(settings: &Settings) -> Result<Arc<dyn SessionStore>> {
    let path = match settings.text("sessions") {
        Some(path) => expanded(path),
        None => match data_folder() {
            Some(folder) => folder.join("sessions"),
            None => return Err(Failure::usage("no home folder was found: set `sessions`")),
        },
    };
    if path.extension().is_some_and(|extension| extension == "sqlite") {
        return database(&path);
    }
    let store = JsonlStore::open(&path).map_err(|error| Failure::from(error).at(path.display()))?;
    Ok(Arc::new(store))
}

#[cfg(feature = "sqlite")]
fn database(path: &Path) -> Result<Arc<dyn SessionStore>> {
    let store = open_agent::session_sqlite::SqliteStore::open(path);
    Ok(Arc::new(store.map_err(|error| Failure::from(error).at(path.display()))?))
}

#[cfg(not(feature = "sqlite"))]
fn database(path: &Path) -> Result<Arc<dyn SessionStore>> {
    Err(Failure::usage(format!("{}: this program was built without SQLite", path.display()))
        .advise("Install it with `--features sqlite`, or use a folder."))
}
