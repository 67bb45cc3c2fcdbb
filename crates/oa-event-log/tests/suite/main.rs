//! Events as front ends show them.

mod shown;
