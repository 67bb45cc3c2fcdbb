//! The list of a server's tools: its bounds, names and approvals.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use oa_mcp_data::{Pages, Patience, ToolDescription, ToolRules, UnconfirmedTool, tool_hash};

use crate::connection::Connection;
use crate::error::Error;
use crate::session::{Session, Timer};

/// The longest wait for tools that a server has not announced.
const UNANNOUNCED: Duration = Duration::from_secs(5);

impl Connection {
    /// Reads the list of tools and returns the approved ones.
    pub(crate) async fn list(
        &self,
        session: &Session,
    ) -> Result<Arc<[Arc<ToolDescription>]>, Error> {
        let server = self.server();
        let limits = &server.limits;
        let mut tools: Vec<(ToolDescription, String)> = Vec::new();
        let rules = ToolRules {
            prefix: server.name_prefix(),
            selection: &server.selection,
            schemas: server.schemas,
            limits,
            trusts_annotations: server.trusts_annotations,
            mirrors: self.mirrors(session),
        };
        // The tools' names on the server, by our names.
        let mut names: HashMap<String, String> = HashMap::new();
        let mut unmatched = server.selection.unmatched();
        // One that announces nothing at all may only have forgotten it.
        let is_announced = session.hello.has_tools;
        if is_announced || session.hello.has_nothing() {
            let patience = match is_announced {
                true => self.patience(),
                false => Patience::new(UNANNOUNCED, server.connect_timeout / 2),
            };
            let mut pages = Pages::new("tools", limits.pages);
            'pages: while let Some(params) = pages.params() {
                let mut timer = Timer::new(patience);
                let asked =
                    session.request("tools/list", params, Vec::new(), None, &mut timer).await;
                let page = asked.and_then(|page| {
                    let page = page.complete().and_then(|page| pages.take(page, &self.secrets()));
                    page.map_err(Error::protocol)
                });
                if page.is_err() && !is_announced {
                    let why = "the server announces no tools, resources or prompts: nothing of it is used";
                    session.link.warn(why.to_owned());
                    break;
                }
                for tool in page? {
                    tool["name"].as_str().into_iter().for_each(|name| unmatched.see(name));
                    match ToolDescription::read(&tool, &rules) {
                        Ok(Some(read)) if tools.len() == limits.tools => {
                            let most = limits.tools;
                            session.link.warn(format!(
                                "more than {most} tools; {} and later ones are left out",
                                read.name
                            ));
                            break 'pages;
                        }
                        Ok(Some(mut read)) => match names.get(&read.name) {
                            None => {
                                read.repair.take().into_iter().for_each(|it| session.link.warn(it));
                                names.insert(read.name.clone(), read.raw_name.clone());
                                tools.push((read, tool_hash(&tool)));
                            }
                            Some(other) if *other != read.raw_name => {
                                let names = format!("{}: {other} and {}", read.name, read.raw_name);
                                let message = format!("two tools have the name {names}");
                                return Err(Error::config(self.secrets().excerpt(&message, 300)));
                            }
                            Some(_) => session.link.warn(format!(
                                "two tools have the name {}; the first is offered",
                                read.name
                            )),
                        },
                        Ok(None) => {}
                        Err(warning) => session.link.warn(self.secrets().excerpt(&warning, 300)),
                    }
                }
            }
            let rest = pages.rest();
            let is_whole = rest.is_none() && tools.len() < limits.tools;
            let unmatched = unmatched.warnings().filter(|_| is_whole);
            rest.into_iter().chain(unmatched).for_each(|warning| session.link.warn(warning));
        }
        let show = |(tool, hash): &(ToolDescription, String)| {
            let (name, description) = (tool.raw_name.clone(), tool.description.clone());
            UnconfirmedTool::new(name, hash.clone(), description, tool.offered.clone())
        };
        let tools = self.approval().admit(tools, show).into_iter();
        let mut tools: Vec<_> = tools.map(|(tool, _)| tool).collect();
        for tool in self.unconfirmed() {
            let name = oa_redact::visible(&tool.tool);
            let why = if tool.is_changed { "differs from its pin" } else { "is new" };
            let warning = format!("the tool {name} is left out until it is confirmed: it {why}");
            session.link.warn(self.secrets().excerpt(&warning, 300));
        }
        if session.hello.has_resources && server.offers_resources {
            let ours = ToolDescription::of_resources(&server.name, server.name_prefix());
            tools.extend(ours.into_iter().filter(|tool| !names.contains_key(&tool.name)));
        }
        // Sorted, so that requests are identical in whichever order a server lists its tools.
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(tools.into_iter().map(Arc::new).collect())
    }
}
