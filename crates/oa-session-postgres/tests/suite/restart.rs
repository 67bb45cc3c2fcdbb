//! A server that is stopped, killed and started again.

use oa_session::contract::block_on;
use oa_session::{ErrorKind, SessionStore};
use services::{Postgres, or_skip};

use crate::{Place, append, create, id, kind, turn};

#[test]
fn idle_store_survives_a_server_restart() {
    let Some(mut server) = or_skip(Postgres::start()) else { return };
    let place = Place::on(server.url());
    let store = place.open().unwrap();
    let mut info = create(&store, "a");
    for round in 0..2 {
        match round {
            0 => server.stop().unwrap(),
            _ => server.kill().unwrap(),
        }
        server.start_again().unwrap();
        info = append(&store, &info, turn(round)).unwrap();
    }
    let expected: Vec<_> = (0..2).flat_map(turn).collect();
    assert_eq!(block_on(store.load(&info.id)).unwrap().messages, expected);
}

#[test]
fn stopped_server_is_an_error_until_restart() {
    let Some(mut server) = or_skip(Postgres::start()) else { return };
    let place = Place::on(server.url());
    let store = place.open().unwrap();
    let info = create(&store, "a");
    server.stop().unwrap();
    for _ in 0..3 {
        assert_eq!(kind(append(&store, &info, turn(0))), ErrorKind::Io);
        let error = block_on(store.load(&id("a"))).unwrap_err();
        let said = format!("cannot connect to PostgreSQL at 127.0.0.1:{}", server.port());
        assert!(error.to_string().starts_with(&said), "{error}");
    }
    server.start_again().unwrap();
    append(&store, &info, turn(0)).unwrap();
}

#[test]
fn killed_server_loses_no_acknowledged_write() {
    let Some(mut server) = or_skip(Postgres::start()) else { return };
    let place = Place::on(server.url());
    let store = place.open().unwrap();
    let mut info = create(&store, "a");
    for number in 0..5 {
        info = append(&store, &info, turn(number)).unwrap();
        server.kill().unwrap();
        server.start_again().unwrap();
        assert_eq!(block_on(store.load(&info.id)).unwrap().info, info);
    }
}
