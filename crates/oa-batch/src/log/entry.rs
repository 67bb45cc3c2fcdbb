use std::sync::{Arc, Mutex};

/// Lines to be written, as bytes.
pub(crate) type Lines = Arc<Mutex<Vec<u8>>>;

/// The place of a logged outcome.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) index: u64,
    pub(crate) offset: u64,
    pub(crate) is_reply: bool,
}
