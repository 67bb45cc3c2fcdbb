use std::{error, fmt};

use http::Method;
use serde_json::{Value, json};

use crate::engine::Engine;

/// A worker that the engine knows.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Registered {
    /// The id of the deployment.
    pub deployment: String,
    /// The digest of the workers that were at this address before, if it differs. Turns that they began may fail with
    /// the engine's error 570: start the old version again until they have ended, and the new one at a new address.
    pub replaced: Option<String>,
}

/// The reason why a worker was not registered.
#[derive(Debug)]
pub struct RegisterError(String);

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the engine did not register the worker: {}", self.0)
    }
}

impl error::Error for RegisterError {}

/// The key of the agents' digest in a service's metadata.
pub(crate) const DIGEST: &str = "open-agent.digest";

/// Registers the workers at an address, and returns the deployment with the digest that it replaced.
pub(crate) async fn register(
    admin: &str,
    worker: &str,
    digest: &str,
) -> Result<Registered, RegisterError> {
    let engine = Engine::new(admin);
    // Before the registration, which replaces the metadata.
    let known = get(&engine, "/services/Agent").await?;
    let at = match known["deployment_id"].as_str() {
        Some(id) => get(&engine, &format!("/deployments/{id}")).await?,
        None => Value::Null,
    };
    let replaced = replaced(&known, &at, worker, digest);
    let body = json!({ "uri": worker, "force": true }).to_string();
    let (status, said) = send(&engine, Method::POST, "/deployments", Some(body)).await?;
    if !(200..300).contains(&status) {
        let why = said["message"].as_str().unwrap_or("no reason given");
        return Err(RegisterError(format!("{status}: {why}")));
    }
    let deployment = said["id"].as_str().unwrap_or_default().to_owned();
    Ok(Registered { deployment, replaced })
}

/// Returns the digest registered at an address, if it differs.
fn replaced(service: &Value, deployment: &Value, worker: &str, digest: &str) -> Option<String> {
    let at = deployment["uri"].as_str()?.trim_end_matches('/');
    let known = service["metadata"][DIGEST].as_str()?;
    (at == worker.trim_end_matches('/') && known != digest).then(|| known.to_owned())
}

/// Returns a JSON answer; null if the engine does not have the resource.
async fn get(engine: &Engine, path: &str) -> Result<Value, RegisterError> {
    let (status, said) = send(engine, Method::GET, path, None).await?;
    Ok(if status == 200 { said } else { Value::Null })
}

async fn send(
    engine: &Engine,
    method: Method,
    path: &str,
    body: Option<String>,
) -> Result<(u16, Value), RegisterError> {
    let answer = engine.send(method, path, body).await;
    let (status, said) = answer.map_err(|error| RegisterError(error.to_string()))?;
    Ok((status, serde_json::from_slice(&said).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_digest_is_reported() {
        let service = json!({ "deployment_id": "dp_1", "metadata": { DIGEST: "old" } });
        let deployment = json!({ "uri": "http://127.0.0.1:9080/" });
        let check = |worker, digest| replaced(&service, &deployment, worker, digest);
        assert_eq!(check("http://127.0.0.1:9080", "new"), Some("old".to_owned()));
        assert_eq!(check("http://127.0.0.1:9080", "old"), None);
        assert_eq!(check("http://127.0.0.1:9081", "new"), None, "another address is safe");
        assert_eq!(replaced(&Value::Null, &Value::Null, "http://127.0.0.1:9080", "new"), None);
    }
}
