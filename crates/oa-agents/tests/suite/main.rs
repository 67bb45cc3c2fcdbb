//! The guarantees of `oa-agents`, through its public API only.

mod budgets;
mod keys;
mod middleware;
mod nested;
mod progress;
mod services;
