//! The probe of structured output.

use oa_tools::check_arguments;
use oa_types::Message;
use serde_json::json;

use crate::advice::Lack;
use crate::context::ProbeContext;
use crate::finding::{Finding, Probe, Verdict};
use crate::tap::ROOM;

/// It does not mention JSON: enforcing the schema is up to the server.
const PROMPT: &str = "Tell me about Paris in one short sentence.";

pub(crate) async fn schema(cx: &mut ProbeContext) -> Finding {
    const PROBE: Probe = Probe::Schema;
    let schema = json!({
        "type": "object",
        "properties": { "city": { "type": "string" }, "millions": { "type": "integer" } },
        "required": ["city", "millions"],
        "additionalProperties": false,
    });
    let format = json!({
        "type": "json_schema",
        "json_schema": { "name": "city", "strict": true, "schema": schema },
    });
    let prompt = [Message::user(PROMPT)];
    let answer = cx.target.chat(&prompt, |request| request.response_format = Some(format)).await;
    let advice = cx.advice(Lack::Schema);
    let observed = match answer {
        Ok(observed) => observed,
        Err(error) => {
            if cx.is_refusal(&error) {
                cx.learned.schema = Some(false);
            }
            return cx.refused(PROBE, &error, Lack::Schema);
        }
    };
    // Masked before the excerpt is cut, so that no part of a key is shown.
    let said = cx.target.quotes.secrets().mask(&observed.visible_text()).into_owned();
    let excerpt = cx.target.quotes.quote(&said);
    let (verdict, seen) = match oa_json::read_within(said.as_bytes(), ROOM) {
        Some(value) => match check_arguments(&schema, value) {
            Ok(_) => (Verdict::Ok, format!("kept: {excerpt}")),
            Err(error) => {
                let error = cx.target.quotes.quote(&error.to_string());
                (Verdict::Fail, format!("JSON, but not matching the schema: {error}"))
            }
        },
        None if observed.is_cut() => return cx.cut(PROBE, &observed),
        None if said.starts_with("```") => {
            (Verdict::Fail, "JSON in a Markdown code fence".to_owned())
        }
        None => (Verdict::Fail, format!("ignored: {excerpt}")),
    };
    cx.learned.schema = Some(verdict == Verdict::Ok);
    let finding = Finding::new(PROBE, verdict, seen);
    if verdict == Verdict::Ok { finding } else { finding.advise(advice) }
}
