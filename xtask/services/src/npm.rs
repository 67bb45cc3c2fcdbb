use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::Unavailable;
use crate::target::target;

/// Packages from npm that belong together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Npm<'a> {
    /// The name of their folder below `target/services`.
    pub(crate) folder: &'a str,
    /// With their versions.
    pub(crate) packages: &'a [&'a str],
    /// A file in their folder whose presence shows that they are installed.
    pub(crate) sign: &'a Path,
    /// The sentence for a machine without npm.
    pub(crate) missing: &'a str,
}

impl Npm<'_> {
    /// Returns the folder with `node_modules`, and installs the packages if they are not there.
    pub(crate) fn install(self) -> Result<PathBuf, Unavailable> {
        static INSTALLING: Mutex<()> = Mutex::new(());
        let _alone = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        let services = target().join("services");
        let folder = services.join(self.folder);
        if folder.join(self.sign).exists() {
            return Ok(folder);
        }
        // Other processes may install them at the same time: each into a separate folder, and the first one is kept.
        let ours = services.join(format!("{}.{}", self.folder, std::process::id()));
        let installed = self.fill(&ours).and_then(|()| match fs::rename(&ours, &folder) {
            Err(error) if !folder.join(self.sign).exists() => Err(Some(error)),
            _ => Ok(()),
        });
        let _ = fs::remove_dir_all(&ours);
        match installed {
            Ok(()) => Ok(folder),
            Err(None) => Err(Unavailable::Missing(self.missing.to_owned())),
            Err(Some(error)) => {
                let (packages, place) = (self.packages.join(", "), services.display());
                let message = format!("{packages} cannot be installed below {place}: {error}");
                Err(Unavailable::Missing(message))
            }
        }
    }

    /// Installs the packages into a folder. The error is `None` if there is no npm.
    fn fill(self, folder: &Path) -> Result<(), Option<io::Error>> {
        fs::create_dir_all(folder).map_err(Some)?;
        // Without it, npm would install into a folder above that has one.
        fs::write(folder.join("package.json"), "{\"name\":\"services\",\"private\":true}\n")
            .map_err(Some)?;
        let mut npm = Command::new("npm");
        npm.arg("install").arg("--prefix").arg(folder);
        npm.args(["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
        // Without the registry, npm would try for six minutes.
        npm.env("npm_config_fetch_retries", "1").env("npm_config_fetch_timeout", "20000");
        let output = npm.args(self.packages).stdin(Stdio::null()).output().map_err(|_| None)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let why = said.lines().find(|line| line.contains(" error ")).unwrap_or("no word of it");
        Err(Some(io::Error::other(why.to_owned())))
    }
}
