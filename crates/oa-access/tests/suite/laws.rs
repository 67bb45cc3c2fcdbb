//! Laws of origins.

use oa_access::{Access, Denial, is_loopback, origin_as_sent, without_port};
use proptest::prelude::*;

use crate::request;

proptest! {
    /// The written form is stable, and is the one that a browser sends.
    #[test]
    fn origins_are_written_in_one_way(origin in "[a-zA-Z]{1,6}://[a-zA-Z0-9.]{1,9}(:[1-9][0-9]{0,3})?/?") {
        let sent = origin_as_sent(&origin).expect("it is an origin");
        let again = origin_as_sent(&sent);
        prop_assert_eq!(again.as_ref(), Some(&sent));
        let mut access = Access::new();
        prop_assert!(access.allow_origin(&origin));
        let from = request("POST", &[("host", "localhost"), ("origin", &sent)]);
        prop_assert_eq!(access.check(&from), Ok(()));
    }

    /// No text is an origin by accident: what is not allowed stays out.
    #[test]
    fn foreign_text_is_never_allowed(text in "[ -~]{0,20}") {
        let mut access = Access::new();
        let was_origin = access.allow_origin(&text);
        prop_assert_eq!(was_origin, text == "*" || origin_as_sent(&text).is_some());
        if !access.allows_any_origin() {
            let from = request("POST", &[("host", "localhost"), ("origin", "https://attacker.example")]);
            prop_assert_eq!(access.check(&from), Err(Denial::Origin));
        }
    }

    #[test]
    fn ports_do_not_make_a_host_local(host in "[a-z0-9.:\\[\\]]{0,20}", port in any::<u16>()) {
        let with_port = format!("{host}:{port}");
        prop_assert_eq!(without_port(&with_port), &host);
        prop_assert_eq!(is_loopback(&with_port), is_loopback(&host) || is_loopback(without_port(&with_port)));
    }
}
