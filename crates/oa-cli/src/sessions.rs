//! `oa sessions`.

use std::io::{IsTerminal, stdout};
use std::time::Duration;

use oa_markdown::{Line, Style};
use open_agent::redact::visible;
use open_agent::session::{
    List, SessionId, SessionInfo, SessionStore, Timestamp, UnreadableSession,
};

use crate::args::SessionsArgs;
use crate::failure::{Failure, Result, with_causes};
use crate::figure::{ago, counted};
use crate::output::{tell, write_line};
use crate::places;
use crate::runtime::runtime;
use crate::settings::Settings;

/// The number of sessions that are read at once.
const PAGE: usize = 100;
/// The columns of names in the list.
const NAME: usize = 24;

/// Runs the command: lists the sessions, or deletes those that are named.
pub(crate) fn run(args: &SessionsArgs, settings: &Settings) -> Result<()> {
    let store = places::sessions(settings)?;
    runtime()?.block_on(async {
        match &args.delete[..] {
            [] => list(&*store).await,
            names => delete(&*store, names).await,
        }
    })
}

/// Writes a line for each session, the last used first; in a pipe, only its name.
async fn list(store: &dyn SessionStore) -> Result<()> {
    let sessions = Sessions::of(store).await?;
    sessions.unreadable.iter().for_each(|why| tell(why));
    if !stdout().is_terminal() {
        let mut names = sessions.readable.iter().map(|session| session.id.as_str());
        return names.try_for_each(write_line).map_err(Failure::from);
    }
    if sessions.readable.is_empty() {
        tell("There are no sessions. `oa chat --session NAME` saves a conversation.");
    }
    sessions.rows().try_for_each(|row| write_line(&row)).map_err(Failure::from)
}

/// Deletes sessions. All names are checked before the first is deleted.
async fn delete(store: &dyn SessionStore, names: &[String]) -> Result<()> {
    let id = |name| SessionId::new(name).map_err(|error| Failure::usage(error.to_string()));
    let ids = names.iter().map(id).collect::<Result<Vec<_>>>()?;
    for id in ids {
        store.delete(&id).await?;
        tell(&format!("deleted {id}"));
    }
    Ok(())
}

/// All sessions of a store.
pub(crate) struct Sessions {
    /// The last used first.
    pub(crate) readable: Vec<SessionInfo>,
    /// The names of others, each with the reason why it cannot be read.
    pub(crate) unreadable: Vec<String>,
}

impl Sessions {
    pub(crate) async fn of(store: &dyn SessionStore) -> Result<Self> {
        let mut all = Self { readable: Vec::new(), unreadable: Vec::new() };
        let mut query = Some(List::new(PAGE));
        while let Some(list) = query.take() {
            let page = store.list(list).await?;
            all.readable.extend(page.sessions);
            let told = |session: &UnreadableSession| {
                format!("{}: {}", visible(&session.name), with_causes(&session.error))
            };
            all.unreadable.extend(page.unreadable.iter().map(told));
            query = page.next.map(|next| List::new(PAGE).after(next));
        }
        Ok(all)
    }

    /// Returns a row for each readable session.
    pub(crate) fn rows(&self) -> impl Iterator<Item = String> {
        let now = Timestamp::now();
        self.readable.iter().map(move |session| row(session, now))
    }
}

fn row(session: &SessionInfo, now: Timestamp) -> String {
    let age = now.as_millis().saturating_sub(session.updated_at.as_millis());
    let age = Duration::from_millis(u64::try_from(age).unwrap_or_default());
    let messages = counted(session.message_count as u64, "message");
    let name = Line::new(session.id.as_str(), Style::PLAIN);
    // In columns: a character may take two, or none.
    let fill = " ".repeat(NAME.saturating_sub(name.width()));
    let mut row = format!("{}{fill} {messages:<14} {:<16}", name.plain(), ago(age));
    if session.is_pending {
        row.push_str(" waits for permission");
    }
    if let Some(title) = session.title() {
        row.push(' ');
        row.push_str(&visible(title));
    }
    row.trim_end().to_owned()
}
