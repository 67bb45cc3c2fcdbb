//! The store from outside, waited for without a runtime.

mod contract;
