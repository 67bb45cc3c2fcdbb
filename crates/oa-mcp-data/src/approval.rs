use crate::pins::{Pins, UnconfirmedTool};

/// The approvals of one server's tools, if pins are configured.
#[derive(Debug, Default)]
pub struct Approval {
    pins: Option<Pins>,
    /// The pins are empty, and no list has been read yet.
    is_first_use: bool,
    /// Tools that are waiting to be confirmed.
    waiting: Vec<UnconfirmedTool>,
}

impl Approval {
    /// Creates the approvals of a connection. Without pins, all tools are approved.
    #[must_use]
    pub fn new(pins: Option<Pins>) -> Self {
        let is_first_use = pins.as_ref().is_some_and(Pins::is_empty);
        Self { pins, is_first_use, waiting: Vec::new() }
    }

    /// Returns the pins of the approved tools.
    #[must_use]
    pub fn pins(&self) -> Option<&Pins> {
        self.pins.as_ref()
    }

    /// Returns the tools that are left out until they are confirmed.
    #[must_use]
    pub fn unconfirmed(&self) -> &[UnconfirmedTool] {
        &self.waiting
    }

    /// Pins a tool as it was shown.
    ///
    /// # Errors
    ///
    /// A message if the tool is not waiting, or is now another one than was shown.
    pub fn confirm(&mut self, shown: &UnconfirmedTool) -> Result<(), String> {
        let name = oa_redact::visible(&shown.tool);
        let place = self.waiting.iter().position(|waiting| waiting.tool == shown.tool);
        let (Some(place), Some(pins)) = (place, &mut self.pins) else {
            return Err(format!("no tool {name} is waiting to be confirmed"));
        };
        // A server may change the tool while a person reads what it was.
        if self.waiting[place].hash != shown.hash {
            return Err(format!("the tool {name} has changed since it was shown"));
        }
        let confirmed = self.waiting.swap_remove(place);
        pins.pin(&confirmed.tool, &confirmed.hash);
        Ok(())
    }

    /// Takes a new list of tools and returns the approved ones. `show` describes a tool for its confirmation.
    pub fn admit<T>(&mut self, tools: Vec<T>, show: impl Fn(&T) -> UnconfirmedTool) -> Vec<T> {
        let Some(pins) = &mut self.pins else { return tools };
        self.waiting.clear();
        let mut admitted = Vec::new();
        for tool in tools {
            let mut shown = show(&tool);
            if self.is_first_use {
                pins.pin(&shown.tool, &shown.hash);
            }
            let pinned = pins.hash(&shown.tool);
            if pinned == Some(&*shown.hash) {
                admitted.push(tool);
                continue;
            }
            shown.is_changed = pinned.is_some();
            self.waiting.push(shown);
        }
        self.is_first_use = false;
        admitted
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(approval: &mut Approval, hash: &str) -> usize {
        let show = |hash: &&str| UnconfirmedTool::new("do", *hash, "A tool", json!({}));
        approval.admit(vec![hash], show).len()
    }

    #[test]
    fn only_the_shown_tool_is_confirmed() {
        let mut approval = Approval::new(Some(Pins::new()));
        assert_eq!(list(&mut approval, "h1"), 1, "the first use");
        assert_eq!(list(&mut approval, "h2"), 0);
        let shown = approval.unconfirmed()[0].clone();
        assert!(shown.is_changed);
        assert_eq!(list(&mut approval, "h3"), 0, "it changes while a person reads");
        let refusal = Err("the tool do has changed since it was shown".to_owned());
        assert_eq!(approval.confirm(&shown), refusal);
        let pinned = |approval: &Approval| {
            approval.pins().and_then(|pins| pins.hash("do")).map(str::to_owned)
        };
        assert_eq!(pinned(&approval).as_deref(), Some("h1"));
        // Another look shows it as it is now.
        let shown = approval.unconfirmed()[0].clone();
        assert_eq!(approval.confirm(&shown), Ok(()));
        assert_eq!(pinned(&approval).as_deref(), Some("h3"));
        let refusal = Err("no tool do is waiting to be confirmed".to_owned());
        assert_eq!(approval.confirm(&shown), refusal);
        assert_eq!(list(&mut approval, "h3"), 1);
    }

    #[test]
    fn all_tools_are_approved_without_pins() {
        let mut approval = Approval::new(None);
        assert_eq!((list(&mut approval, "h1"), list(&mut approval, "h2")), (1, 1));
        assert_eq!(approval.unconfirmed(), []);
    }
}
