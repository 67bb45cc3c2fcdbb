use std::io;

use serde::Serialize;

/// Returns the size of a value as JSON, in bytes, without writing it. A value that JSON cannot represent has size 0.
///
/// ```
/// use oa_types::json_size;
///
/// assert_eq!(json_size(&["a", "\""]), r#"["a","\""]"#.len());
/// ```
pub fn json_size<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => 0,
    }
}

/// Counts bytes.
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
