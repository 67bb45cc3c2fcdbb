//! `oa config`, and the configuration file.

use std::io::ErrorKind;
use std::path::PathBuf;

use crate::args::{ConfigArgs, SettingArgs};
use crate::environment;
use crate::failure::{Failure, Result};
use crate::output::{tell, write_line};
use crate::settings::{SETTINGS, Settings, reference};
use crate::{find, places};

/// The largest configuration file, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// Runs the command.
pub(crate) fn run(args: &ConfigArgs) -> Result<()> {
    if args.example {
        return Ok(write_line(reference::example().trim_end())?);
    }
    let path = named(&args.settings).or_else(places::config_file);
    if args.path {
        let path = path.ok_or_else(|| Failure::usage("no home folder was found"))?;
        return Ok(write_line(&path.display().to_string())?);
    }
    let settings = settings(&args.settings)?;
    let path = path.map_or_else(
        || "none: no home folder was found".to_owned(),
        |path| format!("{}{}", path.display(), if path.exists() { "" } else { " (not found)" }),
    );
    let report = format!("configuration file: {path}\n\n{}", settings.report());
    write_line(&open_agent::redact::printable(report.trim_end()))?;
    if let Ok(Some(base_url)) = find::address(&settings)
        && let Err(why) = settings.key_for(base_url)
    {
        tell(&why);
    }
    Ok(())
}

/// Returns the path of the flag or the variable.
fn named(args: &SettingArgs) -> Option<PathBuf> {
    let path = args.config.clone().or_else(|| environment::path("OPEN_AGENT_CONFIG"))?;
    // Shells do not expand the `~` of `--config=~/oa.toml`, and unit files not that of a variable.
    Some(path.to_str().map(places::expanded).unwrap_or(path))
}

/// Returns the settings in effect.
pub(crate) fn settings(args: &SettingArgs) -> Result<Settings> {
    let file = read_file(args)?;
    let file = file.as_ref().map(|(path, text)| (path.as_path(), text.as_str()));
    if let Some(setting) = SETTINGS.iter().find(|it| environment::is_unreadable(it.variable)) {
        let place = format!("the variable {}", setting.variable);
        return Err(Failure::usage("not valid UTF-8").at(place));
    }
    Ok(Settings::merge(&args.told(), environment::variable, file)?)
}

/// Reads the configuration file; `None` if there is none at the default path.
fn read_file(args: &SettingArgs) -> Result<Option<(PathBuf, String)>> {
    let named = named(args);
    let is_named = named.is_some();
    let Some(path) = named.or_else(places::config_file) else { return Ok(None) };
    let fail = |why: String| Failure::usage(why).at(path.display());
    let is_missing = |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory);
    match std::fs::metadata(&path) {
        Ok(file) if file.len() > LARGEST => return Err(fail("larger than 1 MiB".to_owned())),
        Ok(_) => {}
        // The home folder of a service may be `/dev/null`.
        Err(error) if is_missing(error.kind()) && !is_named => return Ok(None),
        Err(error) => return Err(fail(error.to_string())),
    }
    let bytes = std::fs::read(&path).map_err(|error| fail(error.to_string()))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            let place = format!("{}, line {line}", path.display());
            Err(Failure::usage("not valid UTF-8").at(place))
        }
    }
}
