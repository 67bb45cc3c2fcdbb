//! Our client beside others, end to end: `cargo xtask bench`.
//!
//! The programs are in `xtask/peers`, a workspace apart. All ask one server, which replays prepared answers over a loopback
//! socket. Instructions are counted by valgrind, outside of the kernel; they are the same on a busy machine. Times are not:
//! the programs take turns, and the median counts.

mod chart;
mod measure;
mod programs;
mod report;

use std::fs;
use std::path::Path;

use crate::Result;
use crate::workspace::Workspace;
use measure::{Lab, Row};
use programs::PROGRAMS;

/// Where the results go, from the root of the repository.
const FOLDER: &str = "xtask/peers/results";

pub(crate) const USAGE: &str =
    "`bench` takes --builds, which also builds each program anew to time it";

pub(crate) fn run(workspace: &Workspace, options: &[&str]) -> Result<()> {
    let builds = match options {
        [] => false,
        ["--builds"] => true,
        _ => return Err(USAGE.to_owned()),
    };
    let lab = Lab::new(workspace)?;
    let folder = workspace.root.join(FOLDER);
    let known = folder.join("builds.txt");
    for program in &PROGRAMS {
        if builds {
            lab.forget(program)?;
        }
        if let Some(seconds) = lab.build(program)?
            && builds
        {
            programs::remember(&known, program.name, seconds)?;
        }
    }
    let mut rows: Vec<Row> = PROGRAMS.iter().map(Row::new).collect();
    for row in &mut rows {
        row.build_seconds = programs::recall(&known, row.program.name);
        lab.count(row)?;
        println!("{}", report::line(row));
    }
    // What was counted is written at once: the rest takes long, and may fail for want of memory.
    write_all(&folder, &rows)?;
    lab.take_turns(&mut rows)?;
    write_all(&folder, &rows)?;
    println!("written to {FOLDER}");
    Ok(())
}

fn write_all(folder: &Path, rows: &[Row]) -> Result<()> {
    write(folder, "README.md", &report::page(rows))?;
    for (name, svg) in chart::charts(rows) {
        write(folder, &name, &svg)?;
    }
    Ok(())
}

fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    let failed = |error| format!("{}: {error}", path.display());
    fs::create_dir_all(folder).map_err(failed)?;
    fs::write(&path, text).map_err(failed)
}
