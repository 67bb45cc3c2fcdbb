use oa_transport::Watch;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::options::AgentOptions;
use crate::service::{collect, send};
use crate::structured::Asking;

/// Lists the models that the server offers, in its order.
///
/// The model that the options name is not looked at.
///
/// # Errors
///
/// `Connect`, `Timeout`, `Api`, `Config` for options with a
/// [`chat_service`](crate::AgentOptionsBuilder::chat_service), and `Stream` if the answer is no list of models.
///
/// # Panics
///
/// When it is polled outside of a tokio runtime, or in one without time or I/O.
///
/// # Cancel safety
///
/// Nothing is lost: the list can be asked for again.
pub async fn list_models(options: &AgentOptions) -> Result<Vec<String>> {
    let settings = options.settings();
    let Some(endpoint) = settings.endpoint() else {
        return Err(Error::config("a chat service of your own has no list of models"));
    };
    let request = settings.envelope(endpoint, settings.tool_mode.is_text(), Asking::default())?;
    let request = request.models();
    let mut watch = Watch::new(settings.timeouts);
    let response = send(endpoint, request, &mut watch).await?;
    let body = collect(response.into_body(), &mut watch).await;
    let body = body.map_err(|error| error.masked(&endpoint.0.secrets))?;
    let names = names(&body);
    names.ok_or_else(|| Error::stream("the answer is no list of models", body.len() as u64))
}

/// The names in a list of models, in whatever spelling it has.
pub(crate) fn names(body: &[u8]) -> Option<Vec<String>> {
    let list: Value = serde_json::from_slice(body).ok()?;
    let models = ["data", "models"].into_iter().find_map(|key| list[key].as_array())?;
    let name = |model: &Value| {
        ["id", "name"].into_iter().find_map(|key| model[key].as_str().map(str::to_owned))
    };
    Some(models.iter().filter_map(name).collect())
}
