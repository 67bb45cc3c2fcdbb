//! Every form in which a text may contain a secret.

use oa_redact::{Secrets, base64, is_harmless};
use serde_json::{Map, Value, json};

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
    check("%252573k%25252D0123/456789+abc\"d&e<f", "****");
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
    check("a sk&#45;0123/4&#x", "a ****");
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
    // The longest sequences that a terminal does not show.
    let title = format!("\u{1b}]{}\u{7}", "\u{1f511}".repeat(255));
    for between in ["\u{200b}".repeat(5_000), format!("\u{1b}{}0", " ".repeat(256)), title] {
        check(&format!("wrong key {start}{between}{rest}!"), "wrong key ****!");
    }
    for between in ["\u{1b}\nX", "\u{1b}\u{200b}\n[31m", "\u{1b}\u{1b} \n 0"] {
        let excerpt = secrets().excerpt(&format!("wrong key {start}{between}{rest}!"), 200);
        assert!(!excerpt.contains(KEY), "{excerpt}");
    }
    let spaced: Vec<_> = KEY.chars().map(String::from).collect();
    check(&spaced.join("\u{200b}\u{1b}[0m"), "****");
    check(&KEY.replace('-', "&#00000000000000045;"), "****");
    assert_eq!(secrets().excerpt("10%\r20%", 20), "10% 20%");
}

/// If this took quadratic time, the test would take minutes.
#[test]
fn repeated_base64_is_masked_in_linear_time() {
    let encoded = base64::encode(KEY.as_bytes());
    check(&format!("a {} b", encoded.repeat(20_000)), "a **** b");
    check(&format!("a {}%2F{encoded} b", encoded.repeat(3)), "a **** b");
    let escaped = encoded.replace('M', "%25254D");
    check(&format!("a {encoded}{escaped}{encoded} b"), "a **** b");
}

#[test]
fn json_is_cleaned_with_names_and_numbers() {
    let mut secrets = secrets();
    secrets.add("1234567890");
    let mut value = json!({
        "text": format!("wrong key {KEY}"),
        "list": [KEY, {KEY: 1, "hidden\u{200b}": "a\u{202e}b"}],
        "number": 1_234_567_890,
        "others": [7, -1.5, true, null, "", "\n"],
    });
    secrets.clean_json(&mut value);
    let cleaned = json!({
        "text": "wrong key ****",
        "list": ["****", {"****": 1, "hidden": "ab"}],
        "number": "****",
        "others": [7, -1.5, true, null, "", "\n"],
    });
    assert_eq!(value, cleaned);
}

/// The count goes on within one object, so that many equal names take linear time.
#[test]
fn members_with_equal_masked_names_are_kept() {
    let mut value = json!({
        KEY: 1,
        "****": 2,
        "**** (2)": 3,
        format!("\u{200b}{KEY}"): 4,
        "a\u{200b}": 5,
        "a": 6,
        "b": 7,
    });
    secrets().clean_json(&mut value);
    let mut values: Vec<_> =
        value.as_object().expect("an object").values().filter_map(Value::as_u64).collect();
    values.sort_unstable();
    assert_eq!(values, [1, 2, 3, 4, 5, 6, 7], "{value}");
    assert_eq!(value["b"], 7);
    assert!(!value.to_string().contains(KEY), "{value}");

    let mark = |is_set| if is_set { '\u{200b}' } else { '\u{200c}' };
    let name = |n: u32| (0..15).map(|bit| mark(n & 1 << bit != 0)).chain(['a']).collect::<String>();
    let mut many: Value = (0..20_000).map(|n| (name(n), n)).collect();
    secrets().clean_json(&mut many);
    assert_eq!(many.as_object().map(Map::len), Some(20_000));
}

/// Placeholders of local servers are words, which texts may contain.
#[test]
fn short_keys_are_not_masked() {
    let masked = |key: &str| {
        let mut secrets = Secrets::new();
        secrets.add_key(key);
        secrets.mask(&format!("key {key}")).into_owned()
    };
    for key in ["", "none", "ollama", "1234567"] {
        assert_eq!(masked(key), format!("key {key}"));
    }
    assert_eq!(masked("12345678"), "key ****");
    let mut secrets = Secrets::new();
    secrets.add("");
    assert_eq!(secrets.mask("key"), "key");
    // What was added is masked, however short, but its base64 form is no longer than a word.
    secrets.add("12345");
    let encoded = base64::encode(b"12345");
    assert_eq!(secrets.mask(&format!("12345 {encoded}")), format!("**** {encoded}"));
    let basic = base64::encode(b"user:1234567");
    secrets.add_header("authorization", &format!("Basic {basic}"));
    assert_eq!(secrets.mask(&format!("1234567 {basic}")), "****67 ****");
}

/// A part of a key is masked from eight bytes on; those of a scheme do not count.
#[test]
fn cut_secrets_are_masked_from_eight_bytes() {
    let mut secrets = secrets();
    secrets.add("Bearer abcdefghijklmnop");
    for (text, masked) in [
        ("a sk-0123/...", "a ****..."),
        ("a sk-0123...", "a sk-0123..."),
        ("a Bearer abcdefgh", "a ****"),
        ("a Bearer abcdefg", "a Bearer abcdefg"),
    ] {
        assert_eq!(secrets.mask(text), masked);
    }
}

/// Keys of any characters, in the forms that JSON, HTML and URLs give them.
#[test]
fn keys_beyond_ascii_are_masked() {
    let mut secrets = Secrets::new();
    secrets.add("key é\u{1f511} 0123456789\r\n\t'");
    for text in [
        "key é\u{1f511} 0123456789\r\n\t'",
        "key%20%C3%A9%f0%9F%94%91 0123456789%0D%0A%09%27",
        r"key \u00e9\ud83d\udd11 0123456789\r\n\t\'",
        r"key \xe9\uD83D\uDD11 0123456789\x0d\x0a\x09\x27",
        "key &#233;&#x1F511; 0123456789&#13;&#10;&#9;&apos;",
        "key &#0233&#X1f511 0123456789\r\n\t&#39;",
    ] {
        assert_eq!(secrets.mask(&format!("<{text}>")), "<****>", "{text}");
    }
    // Half of a pair, a pair of two first halves and numbers beyond Unicode are no characters.
    for other in
        [r"\ud83d", r"\ud83d\ud83d", r"\udd11\ud83d", "&#x11F511;", "&#x1F511G;", "%F0%9F%94"]
    {
        let text = format!("key é{other} 0123456789\r\n\t'");
        assert_eq!(secrets.mask(&text), text);
    }
}

#[test]
fn harmless_headers_are_known_by_name() {
    for name in ["accept", "Content-Type", "USER-AGENT", "host"] {
        assert!(is_harmless(name), "{name}");
        let mut secrets = Secrets::new();
        secrets.add_header(name, KEY);
        assert_eq!(secrets.mask(KEY), KEY);
    }
    for name in ["authorization", "x-api-key", "accept-key", ""] {
        assert!(!is_harmless(name), "{name}");
    }
}
