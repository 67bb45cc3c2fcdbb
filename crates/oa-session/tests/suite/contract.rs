//! The contract test for our own stores.

use std::sync::Arc;

use oa_session::contract::{block_on, check, conversation};
use oa_session::{JsonlStore, MemoryStore, SessionStore};
use proptest::prelude::*;

use crate::{append, create, load};

#[test]
fn memory_store_keeps_the_contract() {
    let store = Arc::new(MemoryStore::new());
    block_on(check(|| Arc::clone(&store)));
}

#[test]
fn jsonl_store_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    block_on(check(|| JsonlStore::open(folder.path()).unwrap()));
}

#[test]
fn contract_covers_every_kind_of_message() {
    let all: Vec<_> = (0..200).flat_map(conversation).collect();
    let text = serde_json::to_string(&all).unwrap();
    for kind in ["text", "thinking", "image", "tool_use", "tool_use_error", "tool_result"] {
        assert!(text.contains(&format!("{{\"type\":\"{kind}\"")), "{kind}");
    }
    for member in ["extra", "interrupted", "is_error", "detail"] {
        assert!(text.contains(&format!("\"{member}\":")), "{member}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn stored_conversations_round_trip(seeds in prop::collection::vec(any::<u64>(), 1..4)) {
        let folder = tempfile::tempdir().unwrap();
        let open = || JsonlStore::open(folder.path()).unwrap();
        let memory = MemoryStore::new();
        let stores: [&dyn SessionStore; 2] = [&memory, &open()];
        for store in stores {
            let mut info = create(store, "a");
            for seed in &seeds {
                info = append(store, &info, conversation(*seed)).unwrap();
            }
        }
        let expected: Vec<_> = seeds.iter().copied().flat_map(conversation).collect();
        prop_assert_eq!(&load(&memory, "a").unwrap(), &expected);
        prop_assert_eq!(&load(&open(), "a").unwrap(), &expected);
    }
}
