//! No excerpt of a server's text reveals a key, wherever it is shown, however the key is encoded, and wherever
//! it is relative to the limits of the excerpt.

use oa_testkit::{MemoryServer, Reply, Script};
use open_agent::{
    AgentOptions, AgentOptionsBuilder, Client, Doctor, Error, RetryConfig, json, list_models, query,
};
use proptest::prelude::*;
use tokio::runtime::Builder;

const KEY: &str = "sk-0123456789/ABCDEFGHIJ+klmnopqrst&uvwxyz1";
const COOKIE: &str = "c00k1e-0123456789-zyxwvutsrq";

/// The length of excerpts, and the length kept of their source.
const LIMITS: [usize; 6] = [100, 200, 240, 1024, 2000, 4096];

#[derive(Clone, Copy, Debug)]
enum Form {
    Base64(&'static str),
    Cookie,
    Decimal,
    Hex,
    Json,
    Named,
    Percent,
    Plain,
}

const FORMS: [Form; 10] = [
    Form::Base64(""),
    Form::Base64("me:"),
    Form::Base64("user:"),
    Form::Cookie,
    Form::Decimal,
    Form::Hex,
    Form::Json,
    Form::Named,
    Form::Percent,
    Form::Plain,
];

impl Form {
    fn key(self) -> &'static str {
        if let Self::Cookie = self { COOKIE } else { KEY }
    }

    fn written(self) -> String {
        let each = |write: fn(u32) -> String| -> String {
            KEY.chars()
                .map(|c| if c.is_alphanumeric() { c.into() } else { write(c.into()) })
                .collect()
        };
        match self {
            Self::Base64(user) => oa_redact::base64::encode(format!("{user}{KEY}").as_bytes()),
            Self::Cookie => COOKIE.to_owned(),
            Self::Decimal => each(|c| format!("&#{c};")),
            Self::Hex => each(|c| format!("&#x{c:x};")),
            Self::Json => each(|c| format!("\\u{c:04X}")),
            Self::Named => KEY.replace('&', "&amp;").replace('/', "&sol;").replace('+', "&plus;"),
            Self::Percent => each(|c| format!("%{c:02x}")),
            Self::Plain => KEY.to_owned(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Code,
    ContentType,
    Doctor,
    Document,
    Html,
    Json(u16),
    JsonWithoutWords,
    Models(u16),
    Redirect,
    RequestId,
    Stream,
    StreamAfterText,
    Text(u16),
    Unreadable,
    UnreadableAfterText,
}

const PLACES: [Place; 18] = [
    Place::Code,
    Place::ContentType,
    Place::Doctor,
    Place::Document,
    Place::Html,
    Place::Json(401),
    Place::JsonWithoutWords,
    Place::Models(401),
    Place::Models(404),
    Place::Redirect,
    Place::RequestId,
    Place::Stream,
    Place::StreamAfterText,
    Place::Text(404),
    Place::Text(405),
    Place::Text(500),
    Place::Unreadable,
    Place::UnreadableAfterText,
];

impl Place {
    fn reply(self, words: &str) -> Reply {
        let error = json!({ "error": { "message": words } });
        match self {
            Self::Code => Reply::error(400, json!({ "message": "no", "code": words })),
            Self::ContentType => Reply::body(200, words, "<p>Hello</p>"),
            Self::Doctor | Self::Document => {
                Reply::body(200, "application/json", error.to_string())
            }
            Self::Html => Reply::body(200, "text/html", format!("<p>{words}</p>")),
            Self::Json(status) => Reply::json(status, error),
            Self::JsonWithoutWords => Reply::json(500, json!({ "oops": [words] })),
            Self::Models(status) | Self::Text(status) => {
                Reply::body(status, "text/plain", words.to_owned())
            }
            Self::Redirect => Reply::body(302, "text/html", format!("<p>{words}</p>")),
            Self::RequestId => Reply::error(500, "no").header("x-request-id", words),
            Self::Stream => Reply::sse(format!("data: {error}\n\n")),
            Self::StreamAfterText => Reply::text("Some words.").event(error),
            Self::Unreadable => Reply::sse(format!("data: {words}\n\ndata: [DONE]\n\n")),
            Self::UnreadableAfterText => Reply::sse(format!(
                "data: {{\"choices\":[{{\"delta\":{{\"content\":\"Hi\"}}}}]}}\n\ndata: {words}\n\n\
                     data: [DONE]\n\n"
            )),
        }
    }

    /// Returns everything shown when a server sends this text here.
    async fn shown(self, words: &str) -> String {
        let reply = self.reply(words);
        let script = Script::new().get("/v1/models", reply.clone()).otherwise(reply);
        let options = options().transport(MemoryServer::new(script)).build().expect("options");
        match self {
            Self::Doctor => {
                let mut doctor = Doctor::new(&options).expect("options");
                while doctor.next_finding().await.is_some() {}
                let report = doctor.into_report();
                return format!("{report} {report:?}");
            }
            Self::Models(_) => {
                return error(&list_models(&options).await.expect_err("no list"));
            }
            _ => {}
        }
        let mut shown = match query("Hi.", &options).await {
            Err(refused) => error(&refused),
            Ok(mut answer) => match answer.text().await {
                Err(broken) => error(&broken),
                Ok(_) => String::new(),
            },
        };
        let mut client = Client::new(options).expect("options");
        if let Err(refused) = client.send("Hi.").await {
            return shown + &error(&refused);
        }
        loop {
            match client.next_event().await {
                Ok(Some(event)) => shown += &format!("{event:?}"),
                Ok(None) => return shown,
                Err(broken) => return shown + &error(&broken),
            }
        }
    }
}

fn options() -> AgentOptionsBuilder {
    let options = AgentOptions::builder().model("any").api_key(KEY).retry(RetryConfig::none());
    options.header("Cookie", format!("theme=dark; session={COOKIE}"))
}

fn error(error: &Error) -> String {
    let code = error.api_code().unwrap_or_default();
    let id = error.request_id().unwrap_or_default();
    format!("{error} {error:?} {error:#?} {code} {id}")
}

/// Finds a part of the key in the shown text: eight bytes of it, or in this form enough to contain eight of
/// them.
fn given_away(shown: &str, form: Form) -> Option<String> {
    let part = |text: &str, length: usize| {
        let starts = 0..=text.len().saturating_sub(length);
        starts.map(|at| text[at..at + length].to_owned()).find(|part| shown.contains(part))
    };
    let written = form.written();
    let escapes = written.len() - form.key().len();
    let length = if let Form::Base64(_) = form { 20 } else { 8 + escapes };
    part(form.key(), 8).or_else(|| part(&written, length.min(written.len())))
}

fn check(place: Place, form: Form, before: usize, behind: &str) -> Result<(), TestCaseError> {
    let words = format!("{} {}{behind}", "x".repeat(before), form.written());
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
    let shown = runtime.expect("a runtime").block_on(place.shown(&words));
    let part = given_away(&shown, form);
    prop_assert!(
        part.is_none(),
        "{:?} of {:?} at {}: {} in {}",
        form,
        place,
        before,
        part.unwrap_or_default(),
        shown
    );
    let is_short = before < 50;
    prop_assert!(!is_short || shown.contains("****"), "{:?} is not shown at all: {}", place, shown);
    Ok(())
}

#[test]
fn keys_are_masked_in_every_encoding() {
    for place in PLACES {
        for form in FORMS {
            check(place, form, 3, " is wrong").unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The class "masked before it is cut": the key starts before a limit and ends after it.
    #[test]
    fn keys_are_masked_before_excerpts_are_cut(
        place in prop::sample::select(PLACES.to_vec()),
        form in prop::sample::select(FORMS.to_vec()),
        limit in prop::sample::select(LIMITS.to_vec()),
        ahead in 0..110_usize,
        behind in prop::sample::select(vec!["", " and more", "\"}"]),
    ) {
        // The text of a head is at most as long as a header.
        check(place, form, limit.saturating_sub(ahead), behind)?;
    }
}

#[tokio::test]
async fn escape_sequences_are_removed() {
    let words = "\u{1b}[2Jred\u{1b}]0;title\u{7} \u{9b}31m\u{202e}alert\r\nnext\u{8}";
    let error = json!({ "message": words, "code": words, "type": words });
    for reply in [
        Reply::error(400, error.clone()),
        Reply::body(502, "text/html", format!("<p>{words}</p>")),
        Reply::body(200, "text/html", format!("<p>{words}</p>")),
        Reply::new().event(json!({ "error": error })),
        Reply::sse(format!("data: {}\n\ndata: [DONE]\n\n", words.replace("\r\n", " "))),
    ] {
        let server = MemoryServer::new(Script::new().otherwise(reply));
        let options = options().transport(server).build().unwrap();
        let refused = match query("Hi.", &options).await {
            Err(error) => error,
            Ok(mut answer) => answer.text().await.unwrap_err(),
        };
        let shown = format!("{refused}{}", refused.api_code().unwrap_or_default());
        assert!(shown.contains("red alert next"), "{shown:?}");
        assert!(!shown.contains(|c: char| c.is_control() || c == '\u{202e}'), "{shown:?}");
    }
}
