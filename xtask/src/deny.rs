//! Checks licenses, duplicate versions and sources of dependencies against `deny.toml`.

use crate::Result;
use crate::command::Run;
use crate::step::{Need, Outcome};
use crate::tally::Tally;
use crate::workspace::Workspace;

pub(crate) fn run(_: &Workspace, _: &mut Tally) -> Result<Outcome> {
    if !Run::cargo("deny --version").works() {
        let message = "no cargo-deny here: cargo install cargo-deny --locked".to_owned();
        return Ok(Outcome::Missing { message, need: Need::InCi });
    }
    let run = Run::cargo("deny check bans licenses sources");
    println!("{run}");
    run.status().map(|()| Outcome::Ok)
}
