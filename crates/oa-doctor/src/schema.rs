//! Whether an answer keeps to a JSON Schema.

use oa_tools::check_arguments;
use oa_types::Message;
use serde_json::{Value, json};

use super::chart::Chart;
use super::finding::{Finding, Probe, Verdict};
use crate::provider::Lack;

/// Nothing in it speaks of JSON: that is the server's part.
const PROMPT: &str = "Tell me about Paris in one short sentence.";

pub(super) async fn schema(chart: &mut Chart) -> Finding {
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
    let answer =
        chart.patient.chat(&prompt, |request| request.response_format = Some(format)).await;
    let advice = chart.advice(Lack::Schema);
    let observed = match answer {
        Ok(observed) => observed,
        Err(error) => {
            if chart.is_refusal(&error) {
                chart.learned.schema = Some(false);
            }
            return chart.refused(PROBE, &error, Lack::Schema);
        }
    };
    // What does not fit is quoted in part, which must be no part of a key.
    let said = chart.patient.quotes.secrets().mask(&observed.said()).into_owned();
    let excerpt = chart.patient.quotes.quote(&said);
    let (verdict, seen) = match serde_json::from_str::<Value>(&said) {
        Ok(value) => match check_arguments(&schema, value) {
            Ok(_) => (Verdict::Ok, format!("kept: {excerpt}")),
            Err(error) => {
                let error = chart.patient.quotes.quote(&error.to_string());
                (Verdict::Fail, format!("JSON, but not to the schema: {error}"))
            }
        },
        Err(_) if observed.is_cut() => return chart.cut(PROBE, &observed),
        Err(_) if said.starts_with("```") => {
            (Verdict::Fail, "JSON in a fence of Markdown".to_owned())
        }
        Err(_) => (Verdict::Fail, format!("ignored: {excerpt}")),
    };
    chart.learned.schema = Some(verdict == Verdict::Ok);
    let finding = Finding::new(PROBE, verdict, seen);
    if verdict == Verdict::Ok { finding } else { finding.advise(advice) }
}
