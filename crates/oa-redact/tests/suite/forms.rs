//! Every form in which a text may contain a secret.

use oa_redact::{Secrets, base64};

const KEY: &str = "sk-0123/456789+abc\"d&e<f";

fn secrets() -> Secrets {
    let mut secrets = Secrets::new();
    secrets.add(KEY);
    secrets
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(secrets().mask(text), expected, "{text}");
    assert_eq!(secrets().mask(expected), expected, "masking is done once");
}

#[test]
fn plain_and_escaped_secrets_are_masked() {
    check(&format!("a {KEY}{KEY} b"), "a **** b");
    check("?q=sk-0123%2F456789%2Babc%22d%26e%3cf&x", "?q=****&x");
    check(r#"{"key":"sk-0123\/456789\u002Babc\"d&e\u003cf"}"#, r#"{"key":"****"}"#);
    check(
        r#"{"key":"{\"key\":\"sk-0123/456789+abc\\\"d&e<f\"}"}"#,
        r#"{"key":"{\"key\":\"****\"}"}"#,
    );
    check("<p>sk&#45;0123/456789&#x2b;abc&quot;d&amp;e&lt;f</p>", "<p>****</p>");
    check("sk%252D0123/456789+abc\"d&e<f", "****");
    check("sk-01\u{1b}[0m23/456789+\u{200b}abc\"d&e<f", "****");
}

#[test]
fn base64_is_masked_at_every_alignment() {
    for user in ["", "u", "us", "use", "user:", "someone@example.com:"] {
        let encoded = base64::encode(format!("{user}{KEY}").as_bytes());
        check(&format!("Basic {encoded}, {encoded}."), "Basic ****, ****.");
        let url = encoded.replace('+', "-").replace('/', "_");
        check(&format!("Basic {}", url.trim_end_matches('=')), "Basic ****");
        check(&format!("Basic {}", encoded.replace('/', "%2F").replace('=', "%3D")), "Basic ****");
        check(&format!("Basic {}...", &encoded[..encoded.len() - 6]), "Basic ****...");
    }
}

/// Where the text was cut within a secret, the beginning of the secret is masked.
#[test]
fn cut_off_secrets_are_masked() {
    for mark in [
        "",
        "...",
        "\u{2026}",
        "***",
        " ...",
        "... (use another)",
        " [truncated]",
        "\n",
        "\u{fffd}",
    ] {
        check(&format!("a sk-0123/4{mark}"), &format!("a ****{mark}"));
    }
    check("a sk-0123/4%2", "a ****");
    check("a sk&#45;0123/4&#5...", "a ****...");
    check(r"a sk-01\u00323/4\u003", "a ****");
    check(r"a sk-01\x323/4\x3", "a ****");
    check(r"a sk-01\x323/4\x...", "a ****...");
    check("a sk-0123/4 b, a sk-0123", "a sk-0123/4 b, a sk-0123");
}

#[test]
fn parts_of_header_values_are_masked() {
    let masked = |name: &str, value: &str, text: &str| {
        let mut secrets = Secrets::new();
        secrets.add_header(name, value);
        secrets.mask(text).into_owned()
    };
    let session = "theme=dark; session=0123456789abcdef; id=\"fedcba98\"";
    let text = "theme dark, session 0123456789abcdef, id fedcba98";
    assert_eq!(masked("Cookie", session, text), "theme dark, session ****, id ****");
    assert_eq!(masked("x-proxy", "Id client-0123456789", "client-0123456789 Id"), "**** Id");
    assert_eq!(masked("authorization", "Bearer 01234567", "Bearer 01234567"), "****");
    assert_eq!(masked("authorization", "Bearer 01234567", "Bearer 0123456"), "Bearer 0123456");
    let basic = "Basic dXNlcjpvcGVuIHNlc2FtZQ==";
    assert_eq!(masked("authorization", basic, "user says: open sesame"), "user says: ****");
    // A list has no scheme.
    let keys = "fedcba98, 01234567";
    assert_eq!(masked("x-api-key", keys, "fedcba98 or 01234567"), "**** or ****");
    assert_eq!(masked("cookie", "fedcba98; b=01234567", "fedcba98 or 01234567"), "**** or ****");
    assert_eq!(masked("x-proxy", "otherwise", "otherwise"), "otherwise");
    assert_eq!(
        masked("content-type", "application/json; charset", "application/json"),
        "application/json"
    );
}

#[test]
fn excerpts_are_masked_before_the_cut() {
    let secrets = secrets();
    let text = format!("\u{1b}[1mwrong\r\n key\u{1b}[0m {KEY}");
    assert_eq!(secrets.excerpt(&text, 100), "wrong key ****");
    for characters in 0..text.chars().count() {
        assert!(!secrets.excerpt(&text, characters).contains("sk-"), "{characters}");
    }
    assert_eq!(secrets.excerpt("\u{e4}\u{e4}\u{e4}", 2), "\u{e4}\u{e4}...");
}

#[test]
fn debug_does_not_show_secrets() {
    assert_eq!(format!("{:?}", secrets()), "Secrets { forms: 4, .. }");
}

/// The backslash of the cut escape is also the next byte of the key.
#[test]
fn ambiguous_cut_escapes_are_masked() {
    for (key, text) in [
        (r"abcdefghij\klmnop", r"the key abcdefghij\u"),
        (r"abcdefghij\klmnop", r"the key abcdefghij\u00"),
        (r"abcdefghij%klmnop", "the key abcdefghij%2"),
        (r"abcdefghij&klmnop", "the key abcdefghij&#3"),
        (r"abcdefghij\unmnop", r"the key abcdefghij\u..."),
    ] {
        let mut secrets = Secrets::new();
        secrets.add(key);
        let masked = secrets.mask(text);
        assert!(masked.starts_with("the key ****") && !masked.contains("abc"), "{text}: {masked}");
    }
}

/// Text that an excerpt removes must not keep a key apart from its own mask.
#[test]
fn keys_split_by_invisible_text_are_masked() {
    let (start, rest) = KEY.split_at(5);
    for between in ["\u{200b}".repeat(5_000), format!("\u{1b}{}0", " ".repeat(250))] {
        check(&format!("wrong key {start}{between}{rest}!"), "wrong key ****!");
    }
    for between in ["\u{1b}\nX", "\u{1b}\u{200b}\n[31m", "\u{1b}\u{1b} \n 0"] {
        let excerpt = secrets().excerpt(&format!("wrong key {start}{between}{rest}!"), 200);
        assert!(!excerpt.contains(KEY), "{excerpt}");
    }
    check(&KEY.replace('-', "&#00000000000000045;"), "****");
    assert_eq!(secrets().excerpt("10%\r20%", 20), "10% 20%");
}

/// If this took quadratic time, the test would take minutes.
#[test]
fn repeated_base64_is_masked_in_linear_time() {
    let encoded = base64::encode(KEY.as_bytes());
    check(&format!("a {} b", encoded.repeat(20_000)), "a **** b");
    check(&format!("a {}%2F{encoded} b", encoded.repeat(3)), "a **** b");
}
