//! The contract test for this store.

use oa_session::SessionStore;
use oa_session::contract::{block_on, check, conversation};
use proptest::prelude::*;

use crate::{Place, append, create, id};

#[test]
fn the_store_keeps_the_contract() {
    let place = Place::new();
    block_on(check(|| place.open().unwrap()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn stored_conversations_round_trip(seeds in prop::collection::vec(any::<u64>(), 1..4)) {
        let place = Place::new();
        let store = place.open().unwrap();
        let mut info = create(&store, "a");
        for seed in &seeds {
            info = append(&store, &info, conversation(*seed)).unwrap();
        }
        drop(store);
        let expected: Vec<_> = seeds.iter().copied().flat_map(conversation).collect();
        let loaded = block_on(place.open().unwrap().load(&id("a"))).unwrap();
        prop_assert_eq!(loaded.messages, expected);
    }
}
