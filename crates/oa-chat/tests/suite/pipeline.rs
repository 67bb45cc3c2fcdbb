//! The pipeline from bytes to deltas.

use bytes::Bytes;
use oa_chat::{Pipeline, PipelineOptions};

#[test]
fn chunks_are_released_once_they_are_read() {
    let mut pipeline = Pipeline::new(PipelineOptions::default());
    for chunk in ["data: {\"choices\":[]}\n\n", ": a comment\n", "data: {}\n\ndata: {}\n\n"] {
        let chunk = Bytes::copy_from_slice(chunk.as_bytes());
        pipeline.push(chunk.clone()).unwrap();
        assert!(chunk.is_unique(), "{chunk:?} is still held");
    }
}
