use std::sync::Arc;

use oa_hooks::Permissions;
use oa_turn::OuterBudget;

use crate::client::Client;
use crate::error::Result;
use crate::nested::ParentAgent;

impl ParentAgent {
    /// Makes a client a sub-agent of this agent, with its tool's name.
    ///
    /// The client's turns count toward the budgets of this agent and end by its limits. Its calls need permission as
    /// described at [`Permissions::within`](oa_hooks::Permissions::within), with the settings that this agent had when
    /// the call began.
    ///
    /// # Errors
    ///
    /// As [`Client::set_tools`], for the tools that remain.
    pub fn adopt(&self, client: &mut Client, name: &str) -> Result<()> {
        client.change(|settings| {
            settings.config.outer = Some(Arc::new(OuterBudget::new(Arc::clone(&self.budget))));
            settings.set_within(&self.permissions, name)
        })
    }

    /// Returns the permissions that this agent had when the call began, for a question that its call raises.
    pub fn permissions_for(&self, name: &str) -> Permissions {
        self.permissions.clone().nested(name)
    }
}
