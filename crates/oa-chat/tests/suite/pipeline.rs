//! The pipeline from bytes to deltas.

use bytes::Bytes;
use oa_aggregate::Problem;
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

/// Servers that fail before their stream begins may still end it.
#[test]
fn events_may_follow_a_document() {
    let error = r#"{"error": {"message": "no luck", "code": 500}}"#;
    let spaced = error.replace(": ", ":\n  ");
    let ends = ["data: [DONE]", "\ndata: [DONE]\n\n", "\r\n\r\ndata: {}\r\n\r\n: bye\r\n", "\n\n"];
    for end in ends {
        let bodies = [
            vec![format!("{error}{end}")],
            vec![format!("{spaced}{end}")],
            // Blanks before the document are in front of no event.
            vec![" ".to_owned(), format!("{error}{end}")],
            vec!["\u{feff}".to_owned(), error.to_owned(), end.to_owned()],
        ];
        for body in bodies {
            let mut pipeline = Pipeline::new(PipelineOptions::default());
            for piece in &body {
                pipeline.push(Bytes::from(piece.clone())).unwrap();
            }
            pipeline.finish().unwrap();
            let done = end.contains("[DONE]");
            let problems: Vec<_> = pipeline.problems().iter().map(ToString::to_string).collect();
            let [problem] = &problems[..] else { panic!("{body:?}: {problems:?}") };
            assert!(problem.contains("no luck"), "{body:?}: {problem}");
            assert_eq!(pipeline.into_answer().done, done, "{body:?}");
        }
    }
    let chunk = |text: &str| format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
    let body = format!("{}\n{}\ndata: {}\n\n", chunk("a"), chunk("b"), chunk("c"));
    assert_eq!(text_of(&[body.as_bytes()]), "abc");
    // Without a value at its beginning, nothing is split off.
    let mut pipeline = Pipeline::new(PipelineOptions::default());
    pipeline.push(Bytes::from_static(b"{\"choices\": oops}\n\ndata: [DONE]\n\n")).unwrap();
    pipeline.finish().unwrap();
    let is_unreadable = |problem: &Problem| matches!(problem, Problem::Unreadable(_));
    let problems = pipeline.problems();
    assert!(!problems.is_empty() && problems.iter().all(is_unreadable), "{problems:?}");
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
