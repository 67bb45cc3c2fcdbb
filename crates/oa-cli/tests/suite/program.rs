//! The program, with a separate home folder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A home folder for the program, in which nothing is.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for a test"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The variables that the program gets, and no others.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let path = |name: &str| self.0.path().join(name).to_string_lossy().into_owned();
        vec![
            ("HOME", path("")),
            ("XDG_CONFIG_HOME", path("config")),
            ("XDG_DATA_HOME", path("data")),
            // The same on Windows, where sockets need the system's folder.
            ("USERPROFILE", path("")),
            ("APPDATA", path("roaming")),
            ("SYSTEMROOT", std::env::var("SYSTEMROOT").unwrap_or_default()),
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("TERM", "xterm-256color".to_owned()),
        ]
    }

    /// The program's folder for its configuration.
    pub(crate) fn config(&self) -> PathBuf {
        self.path().join(if cfg!(windows) { "roaming" } else { "config" }).join("oa")
    }

    /// The program's folder for sessions and history.
    pub(crate) fn data(&self) -> PathBuf {
        self.path().join(if cfg!(windows) { "roaming" } else { "data" }).join("oa")
    }

    /// A command that runs the program here, with nothing of this process.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).env_clear().envs(self.variables()).current_dir(self.path());
        command
    }

    /// Runs the program in a pipe.
    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> Output {
        self.run_with(arguments, input, &[])
    }

    pub(crate) fn run_with(
        &self,
        arguments: &[&str],
        input: &str,
        variables: &[(&str, &str)],
    ) -> Output {
        let mut child = self
            .command(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // A program that reads nothing may have ended.
        let _ = child.stdin.take().expect("its input is ours").write_all(input.as_bytes());
        child.wait_with_output().expect("the program ends")
    }
}

/// The path of the program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_oa");

/// The platform's words for a missing file, with its code.
pub(crate) fn not_found() -> String {
    std::fs::metadata("missing file of a test").expect_err("nothing has this name").to_string()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program writes UTF-8")
}
