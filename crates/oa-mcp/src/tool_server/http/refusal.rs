use std::borrow::Cow;

use http::StatusCode;
use serde_json::Value;

use oa_mcp_data::client::{INVALID_REQUEST, error};

/// The answer to a refused request.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    body: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, why: impl Into<Cow<'static, str>>) -> Self {
        Self { status, body: error(&Value::Null, INVALID_REQUEST, &why.into()) }
    }

    /// Creates a refusal whose body is a protocol message.
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
