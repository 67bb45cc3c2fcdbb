//! A payload that matches a template says what it says when it is read in full.
//!
//! The input is a list of payloads, one per line. They are read twice: by a decoder that knows nothing,
//! and by one that knows what that one has learned.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oa_aggregate::{Decoder, TemplateCache, Payload};

fuzz_target!(|data: &[u8]| {
    let mut templates = TemplateCache::default();
    for _ in 0..2 {
        let mut decoder = Decoder::with_templates(templates);
        for payload in data.split(|&byte| byte == b'\n') {
            let (_, before) = decoder.hits_and_misses();
            let seen = show(&mut decoder, payload);
            let (_, after) = decoder.hits_and_misses();
            let matched = after == before;
            let read = show(&mut Decoder::new(), payload);
            assert_eq!(seen.0, read.0, "matched a template: {matched}");
            if !matched {
                assert_eq!(seen.1, read.1);
            }
        }
        templates = decoder.take_templates();
    }
});

/// Returns what a payload says; apart, what a payload that matched a template leaves out.
fn show(decoder: &mut Decoder, payload: &[u8]) -> (String, Option<String>) {
    match decoder.decode(payload) {
        Ok(Payload::Chunk(chunk)) => {
            let choices: Vec<_> = chunk.choices().collect();
            let says = format!("{choices:?} {:?} {:?}", chunk.error, chunk.usage);
            (says, Some(format!("{:?} {:?}", chunk.id, chunk.model)))
        }
        other => (format!("{other:?}"), None),
    }
}
