//! The pipeline from bytes to deltas.

use bytes::Bytes;
use oa_chat::{Pipeline, PipelineOptions};

/// Returns the text of the answer whose body arrives in these pieces.
fn text_of(pieces: &[&[u8]]) -> String {
    let mut pipeline = Pipeline::new(PipelineOptions::default());
    for piece in pieces {
        pipeline.push(Bytes::copy_from_slice(piece)).expect("the body is small");
    }
    pipeline.finish().expect("the body is small");
    pipeline.into_answer().blocks.iter().filter_map(|block| block.as_text()).collect()
}

#[test]
fn mark_before_a_document_may_be_split() {
    let body = "\u{feff} \n{\"choices\":[{\"message\":{\"content\":\"Hi.\"}}]}";
    for body in [body, &body[3..], &format!("\n{body}")] {
        for cut in 0..=body.len() {
            let (first, second) = body.as_bytes().split_at(cut);
            assert_eq!(text_of(&[first, second]), "Hi.", "{cut}");
        }
        let bytes: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
        assert_eq!(text_of(&bytes), "Hi.");
    }
}

#[test]
fn chunks_are_released_once_they_are_read() {
    let mut pipeline = Pipeline::new(PipelineOptions::default());
    for chunk in ["data: {\"choices\":[]}\n\n", ": a comment\n", "data: {}\n\ndata: {}\n\n"] {
        let chunk = Bytes::copy_from_slice(chunk.as_bytes());
        pipeline.push(chunk.clone()).unwrap();
        assert!(chunk.is_unique(), "{chunk:?} is still held");
    }
}
