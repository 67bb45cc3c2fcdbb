//! `oa models`.

use std::io::{IsTerminal, stdout};

use open_agent::redact::visible;

use crate::failure::Result;
use crate::output::write_line;
use crate::runtime::runtime;
use crate::settings::Settings;
use crate::{find, stand_in};

/// Runs the command: lists the models of each server; in a pipe, one name per line.
pub(crate) fn run(settings: &Settings) -> Result<()> {
    if settings.is_on("stand_in") {
        return Ok(write_line(stand_in::NAME)?);
    }
    let servers = runtime()?.block_on(find::servers(settings, find::ANSWER))?;
    let is_terminal = stdout().is_terminal();
    let mut lines = Vec::new();
    for server in servers {
        if is_terminal {
            lines.push(server.name());
        }
        let indent = if is_terminal { "  " } else { "" };
        lines.extend(server.models.iter().map(|model| format!("{indent}{}", visible(model))));
        if is_terminal && server.models.is_empty() {
            lines.push("  (no models)".to_owned());
        }
    }
    // Without models, a pipe gets no line: an empty one would be a name.
    for line in lines {
        write_line(&open_agent::redact::printable(&line))?;
    }
    Ok(())
}
