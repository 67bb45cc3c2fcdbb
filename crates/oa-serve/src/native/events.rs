//! Events of a conversation as frames of an event stream.

use oa_event_log::{CallAnswer, ConversationEvent};
use oa_sse::Frame;
use serde::Serialize;
use serde_json::json;

use crate::conversation::View;
use crate::encoder::Encoder;

/// The native encoding: each event has its id, and its type determines the form of its data. The stream continues
/// across runs.
#[derive(Debug)]
pub(crate) struct EventFrames;

impl Encoder for EventFrames {
    fn write(&mut self, view: View, out: &mut Vec<u8>) {
        let (id, event) = match view {
            View::Gap => return frame("gap", None, &json!({}), out),
            View::Event(id, event) => (id.to_string(), event),
        };
        let id = Some(&*id);
        match event {
            ConversationEvent::Agent(event) => frame("agent", id, &event, out),
            ConversationEvent::Answered { call_id, answer } => {
                frame("answered", id, &AnsweredCall { call_id, answer }, out);
            }
            ConversationEvent::Prompt { text, images } => {
                let (audio, images): (Vec<_>, Vec<_>) =
                    images.into_iter().partition(|url| url.starts_with("data:audio/"));
                let mut data = json!({ "text": text, "images": images });
                if !audio.is_empty() {
                    data["audio"] = audio.into();
                }
                frame("prompt", id, &data, out);
            }
            ConversationEvent::Run(event) => frame("run", id, &event, out),
        }
    }

    fn is_over(&self) -> bool {
        false
    }
}

/// The data of an `answered` event.
#[derive(Serialize)]
struct AnsweredCall {
    call_id: String,
    #[serde(flatten)]
    answer: CallAnswer,
}

fn frame(event: &str, id: Option<&str>, data: &impl Serialize, out: &mut Vec<u8>) {
    // JSON has no line breaks outside of strings, where they are escaped.
    let Ok(data) = serde_json::to_string(data) else { return };
    let mut frame = Frame::new(&data).event(event);
    if let Some(id) = id {
        frame = frame.id(id);
    }
    let written = frame.write_to(out);
    debug_assert!(written.is_ok(), "neither types nor ids have line breaks");
}

#[cfg(test)]
mod tests;
