//! The contract test for this store.

use oa_session::SessionStore;
use oa_session::contract::{block_on, check, conversation};
use proptest::prelude::*;

use crate::{Place, append, create, id};

#[test]
fn the_store_keeps_the_contract() {
    let Some(place) = Place::new() else { return };
    block_on(check(|| place.open().unwrap()));
}

#[test]
fn one_connection_is_enough_for_the_contract() {
    let Some(place) = Place::new() else { return };
    let options = || place.options().connections(1);
    block_on(check(|| {
        block_on(oa_session_postgres::PostgresStore::connect_with(options())).unwrap()
    }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn stored_conversations_round_trip(seeds in prop::collection::vec(any::<u64>(), 1..4)) {
        let Some(place) = Place::new() else { return Ok(()) };
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
