//! Generated ids.

use std::collections::HashSet;

use oa_aggregate::{ContentBlock, Options};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{finish, fragment, run};

fn ids(seed: u64, given: &[Option<String>]) -> Vec<String> {
    let mut options = Options::default();
    options.id_seed = seed;
    let call = |(number, id): (usize, &Option<String>)| {
        let id = id.as_ref().map(|id| format!(r#""id":"{id}","#)).unwrap_or_default();
        fragment(&format!(r#""index":{number},{id}"function":{{"name":"f","arguments":"{{}}"}}"#))
    };
    let mut payloads: Vec<String> = given.iter().enumerate().map(call).collect();
    payloads.push(finish("stop"));
    let blocks = run(options, payloads).answer.blocks;
    let id = |block: &ContentBlock| match block {
        ContentBlock::ToolUse(call) => call.id.clone(),
        other => panic!("{other:?}"),
    };
    blocks.iter().map(id).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn made_up_ids_are_distinct_and_nine_long(
        seed in any::<u64>(),
        given in vec(prop::option::of("[ab0]{1,2}"), 0..12),
    ) {
        let seen = ids(seed, &given);
        prop_assert_eq!(seen.len(), given.len());
        prop_assert_eq!(seen.iter().collect::<HashSet<_>>().len(), given.len());
        for (number, (id, given)) in seen.iter().zip(&given).enumerate() {
            match given {
                // The first of those with the same id keeps it.
                Some(given) if seen[..number].iter().all(|id| id != given) => {
                    prop_assert_eq!(id, given);
                }
                _ => {
                    prop_assert_eq!(id.len(), 9);
                    prop_assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
                }
            }
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_ids(seed in any::<u64>(), count in 1..128_usize) {
        let given = vec![None; count];
        prop_assert_eq!(ids(seed, &given), ids(seed, &given));
        prop_assert_ne!(ids(seed, &given), ids(seed.wrapping_add(1), &given));
    }

    #[test]
    fn server_ids_are_not_made_up_again(seed in any::<u64>(), late in any::<bool>()) {
        let first = ids(seed, &[None, None]);
        // The server happens to use the very id, before or after the call that lacks one.
        let mut given = vec![None, Some(first[0].clone())];
        if late {
            given.reverse();
        }
        let seen = ids(seed, &given);
        prop_assert_ne!(&seen[0], &seen[1]);
        prop_assert!(seen.contains(&first[0]));
    }
}
