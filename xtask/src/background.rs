//! A command of this program that runs beside another step of the gate, at the lowest priority.

use std::env;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use crate::Result;
use crate::command::Run;
use crate::workspace::Workspace;

/// A command in progress. Its output is in a file, so that it does not mix with that of the other step.
pub(crate) struct Background {
    run: Run,
    child: Child,
    log: PathBuf,
}

impl Background {
    /// Starts `cargo xtask NAME`.
    pub(crate) fn start(workspace: &Workspace, name: &str) -> Result<Self> {
        let program = env::current_exe().map_err(|error| format!("this program: {error}"))?;
        let program = program.display().to_string();
        // Of the other step, every process goes first.
        let run = match Run::new("nice").arg("true").works() {
            true => Run::new("nice").args(["-n", "19"]).arg(program),
            false => Run::new(program),
        };
        let run = run.arg(name);
        let log = workspace.target.join(format!("{name}.log"));
        let at_log = |error: std::io::Error| format!("{}: {error}", log.display());
        let out = File::create(&log).map_err(at_log)?;
        let both = out.try_clone().map_err(at_log)?;
        let mut command = run.command();
        let child = command.stdin(Stdio::null()).stdout(out).stderr(both).spawn();
        let child = child.map_err(|error| format!("`{run}` did not start: {error}"))?;
        Ok(Self { run, child, log })
    }

    /// Waits for its end, and prints its output.
    pub(crate) fn finish(mut self) -> Result<()> {
        let status = self.child.wait().map_err(|error| format!("`{}`: {error}", self.run))?;
        print!("{}", fs::read_to_string(&self.log).unwrap_or_default());
        if status.success() { Ok(()) } else { Err(format!("`{}` failed: {status}", self.run)) }
    }
}

/// A gate that ends early leaves nothing running.
impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
