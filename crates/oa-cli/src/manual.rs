//! `oa man`.

use std::io::{Write, stdout};

use clap_mangen::Man;

use crate::args;
use crate::failure::{Failure, Result};
use crate::likeness::closest;
use crate::settings::{SETTINGS, Setting};

/// Writes the page of a command, or of the program.
pub(crate) fn run(command: Option<&str>) -> Result<()> {
    let mut page = Vec::new();
    let program = args::command();
    match command {
        None => {
            Man::new(program).render(&mut page)?;
            page.extend(settings().into_bytes());
        }
        Some(name) => {
            let found = program.find_subcommand(name).cloned().ok_or_else(|| {
                let names = program.get_subcommands().map(clap::Command::get_name);
                let meant = closest(name, names);
                let meant = meant.map_or_else(String::new, |it| format!("; did you mean {it}?"));
                Failure::usage(format!("unknown command {name}{meant}"))
            })?;
            let title = format!("oa-{name}");
            let usage = format!("oa {name}");
            Man::new(found.display_name(title).bin_name(usage)).render(&mut page)?;
        }
    }
    Ok(stdout().write_all(&page)?)
}

/// Returns the sections on settings.
fn settings() -> String {
    let mut page = String::from(".SH ENVIRONMENT\n");
    for setting in SETTINGS {
        page.push_str(&item(setting.variable, setting));
    }
    page.push_str(
        ".TP\n\\fBOPEN_AGENT_CONFIG\\fR\nThe configuration file.\n\
         .TP\n\\fBNO_COLOR\\fR\nIf it is not empty, output has no colors.\n\
         .TP\n\\fBTERM\\fR\nIf it is \"dumb\", output has no colors.\n\
         .SH FILES\n.TP\n\\fB~/.config/oa/config.toml\\fR\n\
         The configuration file, in TOML; \\fBoa config \\-\\-path\\fR prints its path. Its settings:\n",
    );
    for setting in SETTINGS {
        page.push_str(&item(setting.key, setting));
    }
    page
}

fn item(name: &str, setting: &Setting) -> String {
    let text = format!("{}. Default: {}.", setting.about, setting.default);
    format!(".TP\n\\fB{name}\\fR\n{}\n", roff(&text))
}

/// Escapes a text of one line.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('`', "\"");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
