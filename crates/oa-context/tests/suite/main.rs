//! Estimates, exact counters, truncation and the policy.

mod cache_miss;
mod texts;

mod accuracy;
mod calibration;
mod conversation;
mod counters;
mod estimates;
mod policy;
mod prompt_cut;
mod shorten;
mod truncation;
