//! Compares our client with others, end to end: `cargo xtask bench`.
//!
//! The programs are in `xtask/peers`, a separate workspace. All send requests to one server, which replays prepared
//! answers over a loopback socket. Valgrind counts instructions outside of the kernel; a busy machine does not change
//! them. It does change times, so the programs take turns, and the median counts.

mod chart;
mod figures;
mod libraries;
mod measure;
mod programs;
mod report;

use std::fs;
use std::path::Path;

use crate::Result;
use crate::workspace::Workspace;
use figures::{Figure, Figures};
use measure::{Lab, Measured};

/// Where the results go, from the root of the repository.
const FOLDER: &str = "xtask/peers/results";
const FIGURES: &str = "figures.txt";
const MACHINE: &str = "machine.txt";

pub(crate) const USAGE: &str = "`bench` takes --builds, which also builds each program anew, to time it, and once more for size, and packages of \
     `xtask/peers`, which are then counted and built alone; or --page, which measures nothing and writes the page and the charts anew";

pub(crate) fn run(workspace: &Workspace, options: &[&str]) -> Result<()> {
    let folder = workspace.root.join(FOLDER);
    if options == ["--page"] {
        return write_all(&folder, &Figures::read(&folder.join(FIGURES))?);
    }
    let (builds, packages) = match options {
        ["--builds", packages @ ..] => (true, packages),
        packages => (false, packages),
    };
    let programs = programs::chosen(packages).ok_or(USAGE)?;
    let lab = Lab::new(workspace)?;
    let mut figures = Figures::read(&folder.join(FIGURES))?;
    let today = report::today();
    let mut keep = |measured: Vec<Measured>| {
        for Measured { program, what, value, note } in measured {
            figures.set(program, &what, Figure { value, date: today.clone(), note });
        }
        // Write immediately: the rest takes long and may run out of memory.
        write_all(&folder, &figures)
    };
    write(&folder, MACHINE, &format!("{}\n", report::machine()))?;
    for program in &programs {
        if builds {
            lab.forget(program)?;
        }
        if let Some(seconds) = lab.build(program)?
            && builds
        {
            let (what, note) = ("build".to_owned(), String::new());
            let build = Measured { program: program.name, what, value: seconds, note };
            keep(vec![build, lab.build_small(program)?])?;
        }
    }
    for program in &programs {
        let measured = lab.count(program)?;
        println!("{}", report::line(&measured));
        keep(measured)?;
    }
    // The time and memory of a program are meaningful only in comparison with others.
    if packages.is_empty() {
        keep(lab.take_turns()?)?;
    }
    println!("written to {FOLDER}");
    Ok(())
}

fn write_all(folder: &Path, figures: &Figures) -> Result<()> {
    let machine = fs::read_to_string(folder.join(MACHINE)).unwrap_or_default();
    write(folder, FIGURES, &figures.to_text())?;
    write(folder, "README.md", &report::page(figures, machine.trim()))?;
    for (name, svg) in chart::charts(figures) {
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
