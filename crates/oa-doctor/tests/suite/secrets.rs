//! Nothing from the doctor contains a key, even if the server repeats it.

use oa_client::{AgentOptions, Error};
use oa_doctor::Doctor;
use oa_testkit::{MemoryServer, Reply, Request, Script};
use serde_json::json;

use crate::{MODEL, healthy};

const KEY: &str = "sk-doctor-0123456789";
const HEADER: &str = "header-secret-98765";

/// Repeats the request wherever text can appear.
fn echoes(place: usize) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    move |request| {
        let secrets = format!("{KEY} and {HEADER}");
        match place {
            0 => Reply::error(400, format!("Incorrect API key provided: {secrets}")),
            1 => Reply::text(secrets.clone()),
            2 => Reply::new().call(format!("tool {secrets}"), json!({ "city": secrets })),
            3 => Reply::new().call("get_weather", json!({ "city": secrets })),
            4 => Reply::new().call("get_weather", format!("{{{secrets}")),
            5 => Reply::body(500, "text/html", format!("<p>{secrets}</p>")),
            6 => Reply::new().event(json!({ "error": { "message": secrets } })),
            7 => Reply::sse(secrets.clone()),
            8 => {
                Reply::text("one").finish(secrets.clone()).call("get_weather", json!({"city": ""}))
            }
            _ => healthy(request),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn repeated_secrets_are_masked() -> Result<(), Error> {
    for place in 0..10 {
        let secrets = format!("{KEY} {HEADER}");
        let models = json!({ "data": [{ "id": secrets, "owned_by": secrets }] });
        let props =
            json!({ "default_generation_settings": { "n_ctx": secrets }, "build_info": secrets });
        let models = Reply::json(200, models).header("server", &secrets);
        let script = Script::new()
            .get("/v1/models", models)
            .get("/props", Reply::json(200, props))
            .otherwise(Reply::by(echoes(place)));
        let options = AgentOptions::builder()
            .model(MODEL)
            .api_key(KEY)
            .header("x-token", HEADER)
            .transport(MemoryServer::new(script))
            .build()?;
        let mut doctor = Doctor::new(&options)?;
        let mut shown = format!("{doctor:?}");
        while let Some(finding) = doctor.next_finding().await {
            shown += &format!("{finding}{finding:?}");
        }
        let report = doctor.into_report();
        shown += &format!("{report} {report:?} {report:#?}");
        shown += &report.profile.to_json();
        shown += &json!(report).to_string();
        for secret in [KEY, HEADER] {
            assert!(!shown.contains(secret), "place {place}: {report}");
        }
        assert!(shown.contains("****"), "it was repeated, and taken out: {report}");
    }
    Ok(())
}
