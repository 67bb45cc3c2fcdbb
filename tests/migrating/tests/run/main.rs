//! The examples of `open-agent-sdk` 0.11, ported: each runs, and MIGRATING.md tells what was changed.

mod changes;
mod programs;
