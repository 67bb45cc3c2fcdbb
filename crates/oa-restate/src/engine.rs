use std::time::Duration;
use std::{error, fmt};

use http::HeaderValue;
use oa_transport::{ErrorKind, RequestBody, Transport};
use tower::Service;

/// The HTTP interfaces of the engine.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    url: String,
    transport: Transport,
}

/// The reason why the engine did not answer.
#[derive(Debug)]
pub(crate) struct NoAnswer {
    message: String,
    /// True if there is no such request: it was not sent, and never will be.
    pub(crate) is_invalid: bool,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl error::Error for NoAnswer {}

impl Engine {
    /// The maximum length of an answer, which is the engine's limit for a message.
    const MOST: usize = 32 << 20;

    pub(crate) fn new(url: &str) -> Self {
        // Only connecting has a limit: the answer to a prompt, or to a wait for an invocation, may take
        // hours.
        let transport = Transport::builder().connect_timeout(Duration::from_secs(5)).build();
        Self { url: url.trim_end_matches('/').to_owned(), transport }
    }

    /// Sends a request, and returns the status and the body.
    pub(crate) async fn send(
        &self,
        method: http::Method,
        path: &str,
        body: Option<String>,
    ) -> Result<(u16, Vec<u8>), NoAnswer> {
        self.send_with_key(method, path, body, None).await
    }

    /// Sends a request that the engine performs once per key, and returns the status and the body.
    pub(crate) async fn send_with_key(
        &self,
        method: http::Method,
        path: &str,
        body: Option<String>,
        key: Option<&str>,
    ) -> Result<(u16, Vec<u8>), NoAnswer> {
        let invalid = |message: String| NoAnswer { message, is_invalid: true };
        let failed = |error: oa_transport::Error| NoAnswer {
            message: error.to_string(),
            is_invalid: matches!(error.kind(), ErrorKind::InvalidUri | ErrorKind::TlsMissing),
        };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("accept", "application/json");
        // A handler without input rejects a content type.
        let request = match &body {
            Some(_) => request.header("content-type", "application/json"),
            None => request,
        };
        let request = match key {
            Some(key) => {
                let key = HeaderValue::from_str(key);
                let why = "an idempotency key has no control characters";
                request.header("idempotency-key", key.map_err(|_| invalid(why.to_owned()))?)
            }
            None => request,
        };
        let body = body.map_or_else(RequestBody::empty, RequestBody::new);
        let request = request.body(body).map_err(|error| invalid(error.to_string()))?;
        let mut transport = self.transport.clone();
        let response = transport.call(request).await.map_err(failed)?;
        let status = response.status().as_u16();
        let (mut body, mut said) = (response.into_body(), Vec::new());
        while let Some(chunk) = body.chunk().await.map_err(failed)? {
            if said.len() + chunk.len() > Self::MOST {
                let message = format!("the answer is longer than {} bytes", Self::MOST);
                return Err(NoAnswer { message, is_invalid: false });
            }
            said.extend_from_slice(&chunk);
        }
        Ok((status, said))
    }
}
