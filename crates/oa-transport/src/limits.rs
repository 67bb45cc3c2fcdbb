//! Limits on what a server sends besides the body.

/// The largest response head, in bytes. It also bounds a single read: reads start at 8 KiB and grow while they are
/// filled.
pub(crate) const MAX_BUFFER: usize = 64 * 1024;

/// The largest number of headers in a response head: hyper's default, with which it needs no allocation for them.
pub(crate) const MAX_HEADERS: usize = 100;

/// hyper's limit on the extensions of all chunks of a body, and on its trailers, in bytes.
pub(crate) const CHUNK_EXTRAS: usize = 16 * 1024;
