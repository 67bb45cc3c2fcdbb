use proptest::prelude::*;

use super::*;

fn fails(text: &str) -> String {
    let file = Some((Path::new("config.toml"), text));
    Settings::merge(&[], |_| None, file).unwrap_err().to_string()
}

#[test]
fn errors_name_line_and_closest_setting() {
    assert_eq!(
        fails("model = 'a'\nmax_token = 5"),
        "config.toml, line 2: unknown setting \"max_token\"; did you mean \"max_tokens\"?"
    );
    assert_eq!(
        fails("\n[chat]\nmodel = 'a'"),
        "config.toml, line 2: unknown setting \"chat\"; `oa config` lists all settings"
    );
    assert_eq!(fails("model = 7"), "config.toml, line 1: model: must be a string");
    assert_eq!(
        fails("mode = 'maybe'"),
        "config.toml, line 1: mode: \"maybe\" is not one of ask, reads, all, plan"
    );
    assert_eq!(fails("tools = 'files:.'"), "config.toml, line 1: tools: must be a list of strings");
    assert_eq!(
        fails("max_tokens = 0"),
        "config.toml, line 1: max_tokens: \"0\" is not a whole number above 0"
    );
    assert!(fails("model = 'a'\nmodel = 'b'").starts_with("config.toml, line 2: "));
}

/// Also those that only the client knows to be wrong.
#[test]
fn errors_of_the_client_name_the_line() {
    let wrong = fails("\nprovider = 'Olama'");
    assert!(
        wrong.starts_with("config.toml, line 2: provider: unknown provider \"Olama\": use one of")
    );
    assert_eq!(
        fails("temperature = 2.1"),
        "config.toml, line 1: temperature: 2.1 is not a number from 0 to 2"
    );
    assert_eq!(
        fails("max_tokens = 4294967296"),
        "config.toml, line 1: max_tokens: 4294967296 is too large"
    );
    let flags = [("temperature", vec!["3".to_owned()])];
    let error = Settings::merge(&flags, |_| None, None).unwrap_err().to_string();
    assert_eq!(error, "the flag --temperature: 3 is not a number from 0 to 2");
}

#[test]
fn extra_members_are_checked() {
    let flag = |json: &str| {
        let flags = [("extra_body", vec![json.to_owned()])];
        let merged = Settings::merge(&flags, |_| None, None);
        merged.map(|settings| settings.report()).map_err(|error| error.to_string())
    };
    let begin = r#"the flag --extra-body: expected JSON like {"min_p": 0.05}: "#;
    for (json, why) in [
        (r#"{"min_p": }"#, "expected value at column 11"),
        ("{\"a\": 1,\n b}", "key must be a string at line 2 column 2"),
        ("[1]", "invalid type: sequence, expected a map at column 0"),
        ("min_p=0.05", "expected value at column 1"),
    ] {
        assert_eq!(flag(json), Err(format!("{begin}{why}")), "{json}");
    }
    let report = flag(r#"{"min_p": 0.05, "seed": -1, "stream": false}"#).unwrap();
    let shown = r#"extra_body   {"min_p":0.05,"seed":-1,"stream":false}  [flag --extra-body]"#;
    assert!(report.contains(shown), "{report}");

    let key = "sk-canary-0123456789";
    let told = fails(&format!("[extra_body]\nmin_p = 0.05\napi_key = '{key}'"));
    let why = "api_key is a setting, and not a member of a request: set it outside";
    assert_eq!(told, format!("config.toml, line 1: extra_body: {why}"));
    for (text, why) in [
        ("extra_body = 5", "must be a table"),
        ("extra_body = {stream = true}", "stream is not to be set"),
        ("extra_body.messages = []", "messages is not to be set"),
        ("extra_body = {a = [{b = inf}]}", "a: b: must be a finite number"),
        ("extra_body = {a = 9223372036854775808}", "a: the number is too large"),
        ("extra_body = {a = 2026-01-01}", "a: a date must be a string"),
    ] {
        assert_eq!(fails(text), format!("config.toml, line 1: extra_body: {why}"));
    }
    let file =
        "[extra_body]\nmask = 0x1F\nlarge = 1_000\nlow = -0.5\n[extra_body.more]\nmodels = ['a']";
    let settings = Settings::merge(&[], |_| None, Some((Path::new("c"), file))).unwrap();
    let wanted =
        open_agent::json!({"mask": 31, "large": 1000, "low": -0.5, "more": {"models": ["a"]}});
    assert_eq!(settings.object("extra_body"), wanted.as_object());
}

#[test]
fn sampling_settings_have_bounds() {
    for wrong in ["0", "1.01", "1e-60"] {
        let why = format!("{wrong} is not a number above 0 and up to 1");
        assert_eq!(
            fails(&format!("top_p = {wrong}")),
            format!("config.toml, line 1: top_p: {why}")
        );
    }
    assert_eq!(fails("seed = -1"), "config.toml, line 1: seed: \"-1\" is not a whole number");
}

#[test]
fn secrets_are_masked() {
    let key = "sk-canary-0123456789";
    let text = format!("api_key = '{key}'");
    let file = Some((Path::new("config.toml"), text.as_str()));
    let settings = Settings::merge(&[], |_| None, file).unwrap();
    assert!(!settings.report().contains(key));
    assert!(!format!("{settings:?}").contains(key));
    assert!(!fails(&format!("api_key = '{key}")).contains(key));
    assert!(!fails(&format!("api_key = ['{key}']")).contains(key));
}

#[test]
fn secrets_in_addresses_are_masked() {
    let shown = |base_url: &str, server: &str| {
        let file = format!("base_url = '{base_url}'\nservers = ['{server}']");
        let settings = Settings::merge(&[], |_| None, Some((Path::new("c"), &file))).unwrap();
        settings.report()
    };
    for secret in ["http://me:sesame@gpu/v1", "http://gpu/v1?key=sesame", "http://x?@sesame#sesame"]
    {
        let report = shown(secret, "http://gpu/v1") + &shown("http://gpu/v1", secret);
        assert!(!report.contains("sesame") && report.contains("****"), "{report}");
    }
    assert!(shown("http://gpu/v1", "vLLM=http://b/v1").contains("vLLM=http://b/v1  [c, line 2]"));
}

/// Where a key and a server are set, and which servers get the key.
#[test]
fn a_key_is_for_the_server_of_its_place() {
    const KEY: &str = "sk-canary-0123456789";
    let check = |file: &str, variables: &[(&str, &str)], asked: &str| {
        let file = file.replace("KEY", KEY);
        let found = |name: &str| variables.iter().find(|(known, _)| *known == name);
        let environment = |name: &str| found(name).map(|(_, value)| (*value).to_owned());
        let file = Some((Path::new("c"), &*file));
        let settings = Settings::merge(&[], environment, file).unwrap();
        let told = settings.key_for(asked).map(|key| key == Some(KEY));
        assert!(!told.as_ref().is_err_and(|why| why.contains(KEY) || why.contains('\n')));
        told
    };
    let both = "base_url = 'https://host/v1'\napi_key = 'KEY'";
    for same in ["https://host/v1", "https://HOST:443/other", "HTTPS://host"] {
        assert_eq!(check(both, &[], same), Ok(true), "{same}");
    }
    for other in ["http://host/v1", "https://host:8443/v1", "https://host.evil/v1", "https://ahost"]
    {
        assert!(check(both, &[], other).is_err(), "{other}");
        assert!(check(both, &[("OPEN_AGENT_BASE_URL", other)], other).is_err(), "{other}");
    }
    let why = check(both, &[], "http://gpu:80/v1").unwrap_err();
    let told = "the API key (c, line 2) is for https://host and is not sent to http://gpu: to send one there, set both OPEN_AGENT_BASE_URL and OPEN_AGENT_API_KEY";
    assert_eq!(why, told);

    let v6 = "base_url = 'http://[::1]:8000/v1'\napi_key = 'KEY'";
    assert_eq!(check(v6, &[], "http://[::1]:8000"), Ok(true));
    assert!(check(v6, &[], "http://[::1]").is_err());
    // The address of a provider, unless it has none.
    let provider = "provider = 'OpenRouter'\napi_key = 'KEY'";
    assert_eq!(check(provider, &[], "https://openrouter.ai/api/v1"), Ok(true));
    assert!(check(provider, &[], "https://host/v1").is_err());
    assert_eq!(check("provider = 'Azure OpenAI'\napi_key = 'KEY'", &[], "https://host"), Ok(true));
    // A variable takes the key along, a server does not.
    let key = ("OPEN_AGENT_API_KEY", KEY);
    assert_eq!(check("", &[key], "https://host/v1"), Ok(true));
    assert_eq!(check("api_key = 'KEY'", &[], "https://host/v1"), Ok(true));
    assert_eq!(check("base_url = 'https://host/v1'", &[key], "https://host"), Ok(true));
    assert!(check("base_url = 'https://host/v1'", &[key], "https://other").is_err());
    let pair = [key, ("OPEN_AGENT_BASE_URL", "https://other/v1")];
    assert_eq!(check(both, &pair, "https://other/v1"), Ok(true));
    assert_eq!(check("base_url = 'https://host/v1'", &[], "https://other"), Ok(false));
}

#[test]
fn every_value_is_read_from_each_place() {
    let file = "model='m'\nbase_url='u'\ntemperature=1\nmax_tokens=1_000\nthinking='low'\ntools=['files:a','files:b']\nstand_in=true";
    let settings = Settings::merge(&[], |_| None, Some((Path::new("c"), file))).unwrap();
    assert_eq!(settings.number("temperature"), Some(1.0));
    assert_eq!(settings.integer("max_tokens"), Some(1000));
    assert_eq!(settings.list("tools"), ["files:a", "files:b"]);
    assert!(settings.is_on("stand_in"));
    let environment = |name: &str| match name {
        "OPEN_AGENT_TOOLS" => Some("files:a, files:b".to_owned()),
        "OPEN_AGENT_STAND_IN" => Some("1".to_owned()),
        "OPEN_AGENT_MODEL" => Some("  ".to_owned()),
        _ => None,
    };
    let settings = Settings::merge(&[], environment, None).unwrap();
    assert_eq!(settings.list("tools"), ["files:a", "files:b"]);
    assert!(settings.is_on("stand_in"));
    assert_eq!(settings.text("model"), None);
}

#[test]
fn names_are_unique_and_consistent() {
    for (place, setting) in SETTINGS.iter().enumerate() {
        assert!(SETTINGS[..place].iter().all(|other| other.key != setting.key));
        assert_eq!(setting.variable, format!("OPEN_AGENT_{}", setting.key.to_uppercase()));
        match setting.flag {
            Some(flag) => assert_eq!(flag, setting.key.replace('_', "-")),
            None => assert_eq!(setting.kind, Kind::Secret),
        }
    }
}

proptest! {
    /// For each setting the first place that has it decides: flag, environment, file.
    #[test]
    fn flags_override_environment_and_file(places in prop::collection::vec(0_u8..8, SETTINGS.len())) {
        let texts: Vec<_> = SETTINGS.iter().zip(&places).filter(|(setting, _)| setting.kind == Kind::Text && setting.key != "provider").collect();
        let has = |place: u8, bit: u8| place & bit != 0;
        let flags: Vec<_> = texts.iter().filter(|(_, place)| has(**place, 1))
            .map(|(setting, _)| (setting.key, vec!["flag".to_owned()])).collect();
        let environment = |name: &str| texts.iter()
            .find(|(setting, place)| setting.variable == name && has(**place, 2)).map(|_| "environment".to_owned());
        let file: String = texts.iter().filter(|(_, place)| has(**place, 4))
            .map(|(setting, _)| format!("{} = 'file'\n", setting.key)).collect();
        let settings = Settings::merge(&flags, environment, Some((Path::new("c"), &file))).unwrap();
        for (setting, place) in &texts {
            let wanted = match **place {
                place if has(place, 1) => Some("flag"),
                place if has(place, 2) => Some("environment"),
                place if has(place, 4) => Some("file"),
                _ => None,
            };
            prop_assert_eq!(settings.text(setting.key), wanted);
            prop_assert_eq!(settings.source(setting.key).is_some(), wanted.is_some());
        }
    }

    #[test]
    fn arbitrary_files_do_not_panic(text in "[a-z_=\\[\\]'\" \n0-9.]{0,80}") {
        let _ = Settings::merge(&[], |_| None, Some((Path::new("c"), &text)));
    }
}
