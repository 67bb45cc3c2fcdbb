//! The cost of events in allocations and copies.

use allocation_counter::measure;
use bytes::Bytes;
use oa_sse::Parser;

fn count(parser: &mut Parser) -> usize {
    let mut bytes = 0;
    while let Some(event) = parser.next_event().expect("no event is over the limit") {
        bytes += event.raw_data().len() + event.data().len();
    }
    bytes
}

#[test]
fn events_inside_a_chunk_allocate_nothing() {
    let one = format!("event: tick\nid: 1\ndata: {}\n\n", "x".repeat(250));
    let chunk = Bytes::from(one.repeat(64));
    let mut parser = Parser::new();
    parser.push(chunk.clone());
    count(&mut parser);
    // The id is kept from the first block; all others repeat it.
    let cost = measure(|| {
        parser.push(chunk.clone());
        assert_eq!(count(&mut parser), 64 * 500);
    });
    // Setting an id allocates once per block that has one.
    assert!(cost.count_total <= 64, "{} allocations", cost.count_total);

    let plain = Bytes::from(format!("event: tick\ndata: {}\n\n", "x".repeat(250)).repeat(64));
    let chunk = plain.clone();
    let cost = measure(|| {
        parser.push(chunk);
        assert_eq!(count(&mut parser), 64 * 500);
    });
    assert_eq!(cost.count_total, 0);
}

#[test]
fn straddling_events_reuse_buffers() {
    let stream = Bytes::from(format!("data: {}\ndata: b\n\n", "x".repeat(250)).repeat(200));
    let mut parser = Parser::new();
    let mut feed = |size: usize| {
        let mut start = 0;
        while start < stream.len() {
            let end = (start + size).min(stream.len());
            parser.push(stream.slice(start..end));
            count(&mut parser);
            start = end;
        }
    };
    feed(7);
    for size in [1, 7, 100, 1460] {
        let cost = measure(|| feed(size));
        assert_eq!(cost.count_total, 0, "reads of {size}");
    }
}

#[test]
fn second_large_event_reuses_the_buffer() {
    let stream = Bytes::from(format!("data: {}\n\n", "x".repeat(64 << 10)));
    let mut parser = Parser::new();
    let mut feed = || {
        let mut rest = stream.clone();
        while !rest.is_empty() {
            parser.push(rest.split_to(rest.len().min(16 << 10)));
            count(&mut parser);
        }
    };
    feed();
    assert_eq!(measure(feed).count_total, 0);
}

#[test]
fn owned_event_is_a_slice_of_its_chunk() {
    let chunk = Bytes::from(vec![b'z'; 1000]);
    let mut input = b"data: ".to_vec();
    input.extend_from_slice(&chunk);
    input.extend_from_slice(b"\n\n");
    let input = Bytes::from(input);
    let mut parser = Parser::new();
    parser.push(input.clone());
    let event = parser.next_event().unwrap().unwrap().into_owned();
    assert!(input.as_ptr_range().contains(&event.data_bytes().as_ptr()));
    assert!(!input.as_ptr_range().contains(&event.compact().data_bytes().as_ptr()));
}

/// A test cannot count instructions, but it can count bytes allocated while a buffer grows, which would reveal
/// quadratic copying.
#[test]
fn small_reads_copy_linearly() {
    let traffic = |size: usize| {
        let stream = Bytes::from(format!("data: {}\n\n", "x".repeat(size)));
        measure(|| {
            let mut parser = Parser::new();
            let mut start = 0;
            while start < stream.len() {
                let end = (start + 1460).min(stream.len());
                parser.push(stream.slice(start..end));
                count(&mut parser);
                start = end;
            }
        })
        .bytes_total
    };
    let (small, large) = (traffic(500_000), traffic(5_000_000));
    assert!(large <= 12 * small, "{small} bytes for 500 kB, {large} for 5 MB");
}
