use std::cell::RefCell;
use std::sync::Arc;

use oa_types::Message;

use crate::append::Append;
use crate::contract::expect;
use crate::contract::fixture::{at, create, id};
use crate::contract::random::Random;
use crate::contract::turns::turn;
use crate::contract::writers::join;
use crate::error::{Error, ErrorKind};
use crate::revision::Revision;
use crate::session::SessionInfo;
use crate::store::SessionStore;

const SEEDS: u64 = 12;
const TURNS: usize = 5;

pub(super) async fn check(open: &mut dyn FnMut() -> Arc<dyn SessionStore>) {
    let store = open();
    rules(&*store).await;
    at_once([&*store, &*open()]).await;
    for seed in 0..SEEDS {
        interleaved(&store, &open(), seed).await;
    }
}

async fn rules(store: &dyn SessionStore) {
    let created = create(store, "repeats/rules").await;
    let once = |known: &SessionInfo, append: Append| {
        let (id, count) = (known.id.clone(), known.message_count);
        async move { store.append_once(&id, count, append).await }
    };
    let new = |known: &SessionInfo, number| Append::new(known.revision, turn(number), at(2));
    let first = expect::ok("append_once", once(&created, new(&created, 0)).await);
    let again = expect::ok("a repeated append_once", once(&created, new(&created, 0)).await);
    assert_eq!(again, first, "a repeated append changes nothing");
    let other = once(&created, new(&created, 1)).await;
    expect::kind("append_once of others at an old revision", ErrorKind::Conflict, other);

    // A replacement is repeated like an append.
    let replaced = new(&first, 2).keeping(0);
    let second = expect::ok("append_once", once(&first, replaced.clone()).await);
    let again = expect::ok("a repeated append_once", once(&first, replaced.clone()).await);
    assert_eq!(again, second, "a repeated replacement changes nothing");
    assert_eq!(second.message_count, turn(2).len());

    // What followed must not be lost from sight.
    let third = expect::ok("append_once", once(&second, new(&second, 3)).await);
    let late = once(&first, replaced).await;
    expect::kind("append_once before the messages of others", ErrorKind::Conflict, late);
    let part = Append::new(second.revision, turn(3)[..1].to_vec(), at(2));
    expect::kind("append_once of a part", ErrorKind::Conflict, once(&second, part).await);
    let session = expect::ok("load", store.load(&third.id).await);
    assert_eq!(session.messages, [turn(2), turn(3)].concat());
    assert_eq!(session.info, third);
}

/// Runs two overlapping attempts of each append, as when a process is wrongly considered dead.
async fn at_once(stores: [&dyn SessionStore; 2]) {
    let mut info = create(stores[0], "repeats/at_once").await;
    for number in 0..TURNS {
        let (known, results) = (&info, RefCell::new(Vec::new()));
        let attempts = stores.map(|store| {
            let append = Append::new(known.revision, turn(number), at(1));
            let results = &results;
            async move {
                let result = store.append_once(&known.id, known.message_count, append).await;
                results.borrow_mut().push(expect::ok("one of two append_once", result));
            }
        });
        join(attempts.into_iter()).await;
        let results = results.into_inner();
        assert_eq!(results[0], results[1], "two attempts of an append are one append");
        info = results[0].clone();
        assert_eq!(info.message_count, (number + 1) * turn(0).len());
    }
}

/// A writer that may not learn whether its append succeeded.
struct Writer<'a> {
    store: &'a dyn SessionStore,
    number: usize,
    /// The number of turns that it knows to be stored.
    done: usize,
    /// The revision and message count that its next append is based on.
    base: (Revision, usize),
}

impl Writer<'_> {
    fn next(&self) -> Vec<Message> {
        turn(self.number * 1_000 + self.done)
    }

    async fn append(&self, to: &SessionInfo) -> Result<SessionInfo, Error> {
        let (revision, count) = self.base;
        let append = Append::new(revision, self.next(), at(1));
        self.store.append_once(&to.id, count, append).await
    }
}

/// Lets two writers append to one session, each repeating its appends several times.
async fn interleaved(one: &Arc<dyn SessionStore>, other: &Arc<dyn SessionStore>, seed: u64) {
    let created = create(&**one, &format!("repeats/{seed}")).await;
    let base = (created.revision, 0);
    let mut writers =
        [one, other].map(|store| Writer { store: &**store, number: 0, done: 0, base });
    writers[1].number = 1;
    let mut random = Random::new(seed);
    while writers.iter().any(|writer| writer.done < TURNS) {
        let writer = &mut writers[random.below(2)];
        if writer.done == TURNS {
            continue;
        }
        let result = writer.append(&created).await;
        if random.flip() {
            // The answer is lost, so the append is repeated: now, or after the other writer's.
            if random.flip()
                && let Ok(first) = result
            {
                let again = expect::ok("a repeated append_once", writer.append(&created).await);
                assert_eq!(again, first, "a repeated append changes nothing");
            }
            continue;
        }
        match result {
            Ok(info) => {
                writer.done += 1;
                writer.base = (info.revision, info.message_count);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
                let session = expect::ok("load", writer.store.load(&created.id).await);
                let is_stored =
                    session.messages.chunks(turn(0).len()).any(|stored| stored == writer.next());
                writer.done += usize::from(is_stored);
                writer.base = (session.info.revision, session.info.message_count);
            }
        }
    }
    let messages = expect::ok("load", one.load(&id(&format!("repeats/{seed}"))).await).messages;
    let mut next = [0; 2];
    for written in messages.chunks(turn(0).len()) {
        let writer = (0..2).find(|writer| *written == turn(writer * 1_000 + next[*writer]));
        let writer = writer.expect("repeated appends lose, double or mix turns");
        next[writer] += 1;
    }
    assert_eq!(next, [TURNS; 2]);
}
