use std::sync::Arc;

use oa_sse::Frame;
use oa_types::Error;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::event::{CUSTOM, ToolCustom, ToolEvent};

impl ToolEvent {
    /// Returns the event as JSON: `{"type": "tool_progress", "call_id": "...", ...}`.
    ///
    /// [Full results](crate::ExecutionResult::full_result) of truncated calls are not included.
    // These are inlined so that only crates that call them compile the code of all these types.
    #[inline]
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("values with text keys always serialize")
    }

    /// Parses JSON written by [`to_json`](Self::to_json).
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it is not a tool event.
    #[inline]
    pub fn from_json(json: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(json).map_err(|error| Error::unreadable("not a tool event", error))
    }

    /// Appends the event to an SSE stream: `event: tool_progress\ndata: {...}\n\n`.
    ///
    /// ```
    /// use oa_executor::{ToolCustom, ToolEvent};
    /// use serde_json::json;
    ///
    /// let event = ToolEvent::Custom(ToolCustom::new("c1", "draw", "preview", json!(3)).into());
    /// let mut stream = Vec::new();
    /// event.write_sse(&mut stream);
    ///
    /// let mut parser = oa_sse::Parser::new();
    /// parser.push(stream.into());
    /// let frame = parser.next_event()?.expect("one event was written");
    /// assert_eq!(frame.event(), "tool_preview");
    /// assert_eq!(ToolEvent::from_sse(&frame).unwrap(), event);
    /// # Ok::<(), oa_sse::Error>(())
    /// ```
    #[inline]
    pub fn write_sse(&self, out: &mut Vec<u8>) {
        let json = self.to_json();
        let frame = Frame::new(&json).event(self.event_type());
        frame.write_to(out).expect("types of events hold no line breaks");
    }

    /// Parses a server-sent event.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if its data is not a tool event.
    #[inline]
    pub fn from_sse(event: &oa_sse::Event<'_>) -> Result<Self, Error> {
        Self::from_json(event.raw_data())
    }
}

/// The members of an event, with its type.
#[derive(Serialize)]
struct Tagged<'a, T> {
    #[serde(rename = "type")]
    event_type: &'a str,
    #[serde(flatten)]
    event: T,
}

#[derive(Deserialize, Serialize)]
struct Custom<S, V> {
    call_id: S,
    tool_name: S,
    data: V,
}

impl Serialize for ToolEvent {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let event_type = self.event_type();
        match self {
            Self::CallStart(event) => Tagged { event_type, event }.serialize(to),
            Self::Progress(event) => Tagged { event_type, event }.serialize(to),
            Self::Status(event) => Tagged { event_type, event }.serialize(to),
            Self::Log(event) => Tagged { event_type, event }.serialize(to),
            Self::Custom(event) => {
                let ToolCustom { call_id, tool_name, data, .. } = &**event;
                let event = Custom { call_id, tool_name, data };
                Tagged { event_type, event }.serialize(to)
            }
            Self::Retry(event) => Tagged { event_type, event }.serialize(to),
            Self::CallComplete(event) => Tagged { event_type, event }.serialize(to),
            Self::Metrics(event) => Tagged { event_type, event }.serialize(to),
            Self::End(event) => Tagged { event_type, event }.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for ToolEvent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        fn read<T: DeserializeOwned, E: serde::de::Error>(
            members: Map<String, Value>,
        ) -> Result<T, E> {
            serde_json::from_value(Value::Object(members)).map_err(E::custom)
        }

        let mut members = Map::deserialize(from)?;
        let Some(Value::String(event_type)) = members.remove("type") else {
            return Err(D::Error::custom("a tool event must have a string `type`"));
        };
        Ok(match &*event_type {
            "tool_call_complete" => Self::CallComplete(Arc::new(read(members)?)),
            "tool_call_start" => Self::CallStart(read(members)?),
            "tool_log" => Self::Log(read(members)?),
            "tool_metrics" => Self::Metrics(read(members)?),
            "tool_progress" => Self::Progress(read(members)?),
            "tool_retry" => Self::Retry(read(members)?),
            "tool_status" => Self::Status(read(members)?),
            "tools_end" => Self::End(read(members)?),
            other => {
                let Some(name) = other.strip_prefix(CUSTOM) else {
                    return Err(D::Error::custom(format_args!("unknown event type: {other}")));
                };
                let Custom::<String, Value> { call_id, tool_name, data } = read(members)?;
                Self::Custom(ToolCustom::new(call_id, tool_name, name, data).into())
            }
        })
    }
}
