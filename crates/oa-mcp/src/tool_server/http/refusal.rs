use std::borrow::Cow;

use http::StatusCode;
use serde_json::Value;

use oa_mcp_data::client::{INVALID_REQUEST, error};

/// The answer to a request that is not taken.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    body: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, why: impl Into<Cow<'static, str>>) -> Self {
        Self { status, body: error(&Value::Null, INVALID_REQUEST, &why.into()) }
    }

    /// A refusal with a message of the protocol.
    pub(crate) fn with_message(message: String) -> Self {
        Self { status: StatusCode::BAD_REQUEST, body: message }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn into_body(self) -> String {
        self.body
    }
}
