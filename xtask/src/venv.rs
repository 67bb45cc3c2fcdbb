//! The Python environment of the real server, made once and kept under the target folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::command::Run;

/// The version line of `python3`, where it is installed and can make environments.
pub(crate) fn python() -> Option<String> {
    let works = Run::new("python3").args(["-c", "import ensurepip, venv"]).works();
    works.then(|| Run::new("python3").arg("--version").output().ok()).flatten()
}

/// The interpreter of an environment in `folder` that has what `requirements` lists.
pub(crate) fn ready(folder: &Path, requirements: &Path, version: &str) -> Result<PathBuf> {
    let python = folder.join("bin/python");
    let stamp = folder.join("stamp.txt");
    let wanted = fs::read_to_string(requirements)
        .map_err(|error| format!("{}: {error}", requirements.display()))?;
    let wanted = format!("{version}{wanted}");
    if fs::read_to_string(&stamp).is_ok_and(|stamp| stamp == wanted) && python.exists() {
        return Ok(python);
    }

    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let make = Run::new("python3").args(["-m", "venv"]).arg(folder.display().to_string());
    println!("{make}");
    make.status()?;
    let install = Run::new(python.display().to_string())
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
        .arg(requirements.display().to_string());
    println!("{install}");
    install.status()?;
    // Last, so that an interrupted install is begun again.
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(python)
}
