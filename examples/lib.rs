//! Runnable examples; see the `*.rs` files beside this one.
