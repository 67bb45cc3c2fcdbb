//! The models of a server.

use http::{Method, Request};
use oa_transport::{RequestBody, Timeouts, Watch};
use serde_json::Value;

use crate::destination::Destination;
use crate::endpoint::Endpoint;
use crate::error::Result;
use crate::fetch::{ROOM, collect, send};

impl Endpoint {
    /// Lists the models that the server offers, in its order.
    ///
    /// # Errors
    ///
    /// `Connect`, `Timeout`, `Api`; `Stream` if the response breaks off (retryable) or is no list of at most 4 MiB.
    ///
    /// # Panics
    ///
    /// When polled outside of a tokio runtime, or in one without time or I/O.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: you can request the list again.
    pub async fn list_models(&self, timeouts: Timeouts) -> Result<Vec<String>> {
        let mut watch = Watch::new(timeouts);
        let response = send(&self.0, request(&self.0)?, &mut watch).await?;
        let body = collect(&self.0, response.into_body(), &mut watch).await?;
        body.read(model_names, "the answer is not a list of models, or is longer than 4 MiB")
    }
}

/// Creates the request for a list of models.
pub(crate) fn request(destination: &Destination) -> Result<Request<RequestBody>> {
    let mut request = Request::new(RequestBody::empty());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = destination.at("/models")?;
    *request.headers_mut() = destination.all_headers();
    Ok(request)
}

/// Returns the names in a list of models, in any known format.
#[must_use]
pub fn model_names(body: &[u8]) -> Option<Vec<String>> {
    let list = oa_json::read_within(body, ROOM)?;
    // Without a member around it, from Together.
    let listed = ["data", "models"].into_iter().find_map(|key| list[key].as_array());
    let models = match listed.or(list.as_array()) {
        Some(models) => &models[..],
        // An empty list, as programs in Go write it.
        None if list.get("data") == Some(&Value::Null) => &[],
        None => return None,
    };
    let name = |model: &Value| {
        let names = ["id", "name"].into_iter().filter_map(|key| model[key].as_str());
        model.as_str().into_iter().chain(names).find(|name| !name.is_empty()).map(str::to_owned)
    };
    Some(models.iter().filter_map(name).collect())
}
