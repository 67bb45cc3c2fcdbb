//! The promises of `oa-agents`, through its public surface alone.

mod budgets;
mod keys;
mod middleware;
mod nested;
mod progress;
mod services;
