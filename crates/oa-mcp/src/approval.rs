use oa_mcp_data::{Pins, UnconfirmedTool};

use crate::description::Description;

/// The approvals of tools, if pins are configured.
pub(crate) struct Approval {
    pins: Option<Pins>,
    /// The pins are empty, and no list has been read yet.
    is_first_use: bool,
    /// Tools that are waiting to be confirmed, with their hashes.
    waiting: Vec<(UnconfirmedTool, String)>,
}

impl Approval {
    pub(crate) fn new(pins: Option<Pins>) -> Self {
        let is_first_use = pins.as_ref().is_some_and(Pins::is_empty);
        Self { pins, is_first_use, waiting: Vec::new() }
    }

    pub(crate) fn pins(&self) -> Option<&Pins> {
        self.pins.as_ref()
    }

    pub(crate) fn unconfirmed(&self) -> Vec<UnconfirmedTool> {
        self.waiting.iter().map(|(tool, _)| tool.clone()).collect()
    }

    /// Pins a waiting tool. Returns false if no tool of this name is waiting.
    pub(crate) fn confirm(&mut self, tool: &str) -> bool {
        let place = self.waiting.iter().position(|(waiting, _)| waiting.tool == tool);
        let (Some(place), Some(pins)) = (place, &mut self.pins) else { return false };
        let (tool, hash) = self.waiting.swap_remove(place);
        pins.pin(&tool.tool, &hash);
        true
    }

    /// Takes a new list of tools with their hashes, and returns the approved ones.
    pub(crate) fn admit(&mut self, tools: Vec<(Description, String)>) -> Vec<Description> {
        let Some(pins) = &mut self.pins else {
            return tools.into_iter().map(|(tool, _)| tool).collect();
        };
        self.waiting.clear();
        let mut admitted = Vec::new();
        for (tool, hash) in tools {
            if self.is_first_use {
                pins.pin(&tool.raw_name, &hash);
            }
            let pinned = pins.hash(&tool.raw_name);
            if pinned == Some(&*hash) {
                admitted.push(tool);
                continue;
            }
            let is_changed = pinned.is_some();
            let waiting =
                UnconfirmedTool::new(tool.raw_name, tool.description, tool.offered, is_changed);
            self.waiting.push((waiting, hash));
        }
        self.is_first_use = false;
        admitted
    }
}
