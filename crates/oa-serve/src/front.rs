//! A turn requested by a front end that keeps the history itself and sends all of it.

use oa_client::Client;
use oa_event_log::CallAnswer;
use oa_redact::base64;
use oa_tools::{FnTool, tool};
use oa_types::{
    AudioBlock, ContentBlock, Message, TextBlock, ToolResultBlock, flattened, percent_decoded,
};
use serde_json::{Value, json};

use crate::encoder::approval_id;
use crate::error::Refusal;
use crate::seat::give;

/// The longest id of a chat, a message, a thread or a run, in bytes.
pub(crate) const LONGEST_ID: usize = 256;

/// A request for a turn, in the form that all protocols share.
#[derive(Debug, Default)]
pub(crate) struct FrontTurn {
    /// The messages before the prompt.
    pub(crate) history: Vec<Message>,
    /// The prompt; without one, the turn continues the history.
    pub(crate) prompt: Option<Message>,
    pub(crate) answers: Answers,
}

/// Answers of the user and of the front end's own tools to calls that waited.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) approvals: Vec<Approval>,
    pub(crate) results: Vec<ClientResult>,
}

/// The user's approval or denial of a call, as sent by the front end. Only the decision is trusted.
#[derive(Debug)]
pub(crate) struct Approval {
    /// The id that the server gave to the approval request.
    pub(crate) id: String,
    /// `false` for everything but an explicit approval.
    pub(crate) is_approved: bool,
    pub(crate) reason: Option<String>,
}

/// The result of a tool that runs in the front end.
#[derive(Debug)]
pub(crate) struct ClientResult {
    pub(crate) call_id: String,
    pub(crate) content: Value,
    pub(crate) is_error: bool,
}

/// Checks the number of parts and of calls of a message.
pub(crate) fn check_parts(content: &Value, calls: &[Value], most: usize) -> Result<(), Refusal> {
    if calls.len().max(content.as_array().map_or(0, Vec::len)) > most {
        return Err(Refusal::too_large(format!("a message can have at most {most} parts")));
    }
    Ok(())
}

/// Creates a tool that runs in the front end from its declaration; `None` without a name.
pub(crate) fn client_tool(declared: &Value) -> Option<FnTool> {
    let name = declared["name"].as_str()?;
    let description = declared["description"].as_str().unwrap_or_default();
    let parameters = Some(&declared["parameters"]).filter(|it| it.is_object());
    let schema = parameters.cloned().unwrap_or_else(|| json!({"type": "object"}));
    Some(tool(name, description).schema(schema).external())
}

/// Returns an attached file as content of a prompt: a recording, or the text that [`attached`] returns.
pub(crate) fn attachment(part: &Value) -> ContentBlock {
    audio(part).map_or_else(|| attached(part).into(), ContentBlock::from)
}

/// Reads a recording. Only inline data can be sent to a model.
fn audio(part: &Value) -> Option<AudioBlock> {
    let input = &part["input_audio"];
    let (data, kind) = match (input["data"].as_str(), input["format"].as_str()) {
        (Some(data), Some(format)) => (data, format!("audio/{format}")),
        _ => (data(part)?, kind(part).to_owned()),
    };
    AudioBlock::from_data_url(data).or_else(|_| AudioBlock::from_base64(data, kind)).ok()
}

/// Returns the URL or the base64 data of a file, as each protocol writes it.
fn data(part: &Value) -> Option<&str> {
    let source = &part["source"];
    let places = [&part["url"], &part["data"], &source["value"], &source["url"], &source["data"]];
    let inner = [&part["audio_url"]["url"], &part["file"]["file_data"]];
    places.into_iter().chain(inner).find_map(Value::as_str)
}

/// Returns the media type of a file, or else that of the part.
fn kind(part: &Value) -> &str {
    let kinds = [&part["source"]["mimeType"], &part["mimeType"], &part["mediaType"], &part["type"]];
    kinds.into_iter().filter_map(Value::as_str).find(|kind| !kind.is_empty()).unwrap_or_default()
}

/// Returns an attached file as the model reads it, on lines of its own: its text, or a note in place of a file that the
/// model cannot see. Browsers know the types of few files of text, so the bytes decide, except for media.
pub(crate) fn attached(part: &Value) -> TextBlock {
    let names = [&part["filename"], &part["file"]["filename"]];
    let name = names
        .into_iter()
        .filter_map(Value::as_str)
        .find(|name| !name.is_empty())
        .unwrap_or("a file");
    let kind = kind(part);
    let media = ["application/pdf", "audio", "font", "image", "video"];
    let is_media = media.iter().any(|media| kind.starts_with(media));
    let data = data(part).filter(|_| !is_media);
    let kind = if kind.is_empty() { String::new() } else { format!(" ({kind})") };
    let url = data.and_then(|data| data.strip_prefix("data:")?.split_once(','));
    let text = match url.map_or((";base64", data), |(head, data)| (head, Some(data))) {
        (head, Some(text)) if !head.ends_with(";base64") => percent_decoded(text),
        (_, data) => data.and_then(|data| String::from_utf8(base64::decode(data)?).ok()),
    };
    TextBlock::new(match text.filter(|text| !text.contains('\0')) {
        Some(text) => format!("[{name}{kind} was attached:]\n{text}\n[the end of {name}]\n"),
        None => format!("[{name}{kind} was attached, and cannot be shown]\n"),
    })
}

/// Returns true if a text is what the model reads of an [attached] file.
pub(crate) fn is_attached(text: &str) -> bool {
    text.starts_with('[') && text.lines().next().is_some_and(|line| line.contains(" was attached"))
}

/// Returns the parts of a tool's result as text: a model gets results as text.
pub(crate) fn result_text(parts: &[Value]) -> String {
    let file = |part: &Value| part.is_object().then(|| attached(part).text);
    let text = |part: &Value| part["text"].as_str().map(str::to_owned).or_else(|| file(part));
    parts.iter().filter_map(text).collect()
}

const NO: &str = "the user said no";
const UNKNOWN: &str =
    "the approval of this call is not known to the server, so it was not run; ask again";
const NO_RESULT: &str = "no result was given";

impl Answers {
    /// Returns the calls that the front end has answered.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &str> {
        let approvals = self.approvals.iter().filter_map(|answer| answer.id.split_once('-'));
        let results = self.results.iter().map(|result| &*result.call_id);
        approvals.map(|(_, call)| call).chain(results)
    }

    /// Returns the answered calls that have been waiting since the end of run `run`.
    pub(crate) fn concern(&self, client: &Client, run: u64) -> Vec<String> {
        let is_decided = |call: &str| {
            let id = approval_id(run, call);
            self.approvals.iter().any(|answer| answer.id == id)
        };
        let has_result = |call: &str| self.results.iter().any(|result| result.call_id == call);
        let approvals = client.pending_approvals().into_iter().map(|call| call.id);
        let results = client.pending_calls().into_iter().map(|call| call.id);
        let approvals = approvals.filter(|call| is_decided(call));
        approvals.chain(results.filter(|call| has_result(call))).collect()
    }

    /// Passes the agent the answers to calls that have been waiting since the end of run `run`; their stored inputs
    /// are used. Returns the calls that were answered.
    pub(crate) fn give(
        &self,
        client: &mut Client,
        run: u64,
    ) -> Result<Vec<(String, CallAnswer)>, Refusal> {
        let mut given = Vec::new();
        for call in client.pending_approvals() {
            // An answer to the question of an earlier run has another id, so it does not count for this call.
            let id = approval_id(run, &call.id);
            let Some(answer) = self.approvals.iter().find(|answer| answer.id == id) else {
                continue;
            };
            let answer = if answer.is_approved {
                CallAnswer::Approved { input: None }
            } else {
                CallAnswer::Denied { reason: answer.reason.clone() }
            };
            give(client, &call.id, &answer)?;
            given.push((call.id, answer));
        }
        given.extend(self.give_results(client)?);
        Ok(given)
    }

    /// Answers the open calls of a history that the front end has sent. None of them runs, because the server did not
    /// ask for their approval. Returns the ids of the calls that the user denied.
    pub(crate) fn give_to_rebuilt(
        &self,
        client: &mut Client,
        denied_calls: &[String],
    ) -> Result<Vec<String>, Refusal> {
        let mut denied = Vec::new();
        for call in client.pending_approvals() {
            let result = self.results.iter().find(|result| result.call_id == call.id);
            if denied_calls.contains(&call.id) {
                client.deny(&call.id, NO)?;
                denied.push(call.id);
            } else if result.is_some() {
                // A tool of the server: results from the front end are not accepted.
                client.deny(&call.id, NO_RESULT)?;
            } else {
                client.deny(&call.id, UNKNOWN)?;
            }
        }
        self.give_results(client)?;
        for call in client.pending_calls() {
            client.add_tool_error(&call.id, NO_RESULT)?;
        }
        Ok(denied)
    }

    /// Returns the results of the front end's own tools for calls in its history that wait for permission here. The
    /// front end has already handled permission for them and run them.
    pub(crate) fn results_of_own_tools(&self, client: &Client, denied: &[String]) -> Vec<Message> {
        let waiting = client.pending_approvals().into_iter().filter(|call| {
            let tool = client.get_tool(&call.name);
            tool.is_some_and(|tool| tool.is_external()) && !denied.contains(&call.id)
        });
        let results = waiting.filter_map(|call| {
            let result = self.results.iter().find(|result| result.call_id == call.id)?;
            let mut block = ToolResultBlock::new(call.id, flattened(result.content.clone()));
            block.is_error = result.is_error;
            Some(Message::tool(block))
        });
        results.collect()
    }

    fn give_results(&self, client: &mut Client) -> Result<Vec<(String, CallAnswer)>, Refusal> {
        let mut given = Vec::new();
        for call in client.pending_calls() {
            let Some(result) = self.results.iter().find(|result| result.call_id == call.id) else {
                continue;
            };
            let (content, is_error) = (result.content.clone(), result.is_error);
            let answer = CallAnswer::Result { content, is_error };
            give(client, &call.id, &answer)?;
            given.push((call.id, answer));
        }
        Ok(given)
    }
}

#[cfg(test)]
mod tests;
