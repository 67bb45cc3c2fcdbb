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

/// Returns a path whose first part, if it is `~`, is the home folder.
pub(crate) fn expanded(path: &str) -> PathBuf {
    let rest = path.strip_prefix('~').filter(|rest| {
        // `~name` is another user's folder for a shell, and a file for everyone else.
        rest.is_empty() || rest.starts_with(std::path::is_separator)
    });
    match (rest, choose_base_strategy()) {
        (Some(rest), Ok(base)) => {
            base.home_dir().join(rest.trim_start_matches(std::path::is_separator))
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_first_part_is_the_home_folder() {
        let home = choose_base_strategy().unwrap().home_dir().to_owned();
        assert_eq!(expanded("~"), home);
        assert_eq!(expanded("~/"), home.join(""));
        assert_eq!(expanded("~/notes/a"), home.join("notes/a"));
        assert_eq!(expanded("~//notes"), home.join("notes"));
        if cfg!(windows) {
            assert_eq!(expanded(r"~\notes"), home.join("notes"));
        }
        for path in ["~name", "notes/~", "~.txt", "/~", ""] {
            assert_eq!(expanded(path), PathBuf::from(path));
        }
    }
}
