//! Combines the programs of the READMEs into one.
//!
//! They are shown on pages that hide no lines, so their doctests only compile them. Here each becomes a module, whose
//! server is that of a test.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// The pages, and how their programs are called.
const PAGES: [(&str, &str); 2] =
    [("../../README.md", "readme"), ("../../crates/open-agent/README.md", "facade")];

const BEGIN: &str = "```rust,no_run\n";
const END: &str = "\n```\n";

fn main() -> Result<(), Box<dyn Error>> {
    let mut modules = String::new();
    let mut arms = String::new();
    for (page, name) in PAGES {
        println!("cargo:rerun-if-changed={page}");
        let text = fs::read_to_string(page)?;
        for (number, part) in text.split(BEGIN).skip(1).enumerate() {
            let (program, _) = part.split_once(END).ok_or("a program without an end")?;
            let program = program
                .replace("async fn main()", "pub(crate) async fn main()")
                .replace("\"http://localhost:11434/v1\"", "crate::server()");
            writeln!(modules, "mod {name}_{number} {{\n{program}\n}}")?;
            writeln!(arms, "        \"{name}_{number}\" => {name}_{number}::main(),")?;
        }
    }
    writeln!(
        modules,
        "fn run(name: &str) -> open_agent::Result<()> {{\n    match name {{\n{arms}"
    )?;
    writeln!(modules, "        _ => panic!(\"no program {{name}}\"),\n    }}\n}}")?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("programs.rs"), modules)?;
    Ok(())
}
