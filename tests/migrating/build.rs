//! Makes one program of the ported examples.
//!
//! Each becomes a module, whose `main` can be called by its name. Only the address of the server is replaced: a user has
//! a model there, a test has a scripted server elsewhere.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=ported");
    let mut paths = Vec::new();
    for entry in fs::read_dir("ported")? {
        paths.push(entry?.path());
    }
    paths.sort();

    let mut programs = String::new();
    let mut names = Vec::new();
    for path in &paths {
        let name = path.file_stem().and_then(|name| name.to_str()).ok_or("a file without name")?;
        let text = with_other_address(&fs::read_to_string(path)?);
        let (main, asynchronous) = match text.contains("\nasync fn main()") {
            true => (text.replacen("\nasync fn main()", "\npub async fn main()", 1), true),
            false => (text.replacen("\nfn main()", "\npub fn main()", 1), false),
        };
        // A test within an example is run, too: its modules are below this one.
        writeln!(programs, "#[allow(clippy::all)]\npub mod {name} {{\n{main}\n}}")?;
        names.push((name, asynchronous));
    }
    writeln!(programs, "pub fn run(name: &str) -> Result<(), Box<dyn std::error::Error>> {{")?;
    writeln!(programs, "    match name {{")?;
    for (name, asynchronous) in names {
        // `#[tokio::main]` has made an ordinary function of either.
        let call = match asynchronous {
            true => format!("{name}::main()"),
            false => format!("{{ {name}::main(); Ok(()) }}"),
        };
        writeln!(programs, "        {name:?} => {call},")?;
    }
    writeln!(programs, "        _ => Err(format!(\"no example {{name}}\").into()),\n    }}\n}}")?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("programs.rs"), programs)?;
    Ok(())
}

/// Replaces the arguments of `.base_url("..")`.
fn with_other_address(text: &str) -> String {
    let mut parts = text.split(".base_url(\"");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let after = part.split_once("\")").map_or("", |(_, after)| after);
        out.push_str(".base_url(crate::server())");
        out.push_str(after);
    }
    out
}
