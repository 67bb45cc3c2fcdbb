//! The whole system against recorded and written streams.

mod streams;
