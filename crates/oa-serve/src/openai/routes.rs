//! Routes of models and completions.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use oa_client::AgentOptions;
use oa_event_log::FailureKind;
use serde_json::{Value, json};

use crate::conversations::{now, unguessable_id};
use crate::error::Refusal;
use crate::fronts::{FrontRequest, FrontRun};
use crate::guard::SHOULD_RETRY;
use crate::openai::encoder::{CallIds, Chunks, Failure, Head, Whole, error, failure};
use crate::openai::request;
use crate::run::Policy;
use crate::run_stream::RunStream;
use crate::served::Served;
use crate::stream::event_stream;

pub(crate) fn routes() -> Router<Served> {
    Router::new()
        .route("/models", get(models))
        .route("/models/{*id}", get(model))
        .route("/chat/completions", post(complete))
        .fallback(nothing_here)
}

/// An error in OpenAI's format.
enum CompletionError {
    Failed(Failure),
    Refused(Refusal),
    UnknownModel(String),
}

impl From<Refusal> for CompletionError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl IntoResponse for CompletionError {
    fn into_response(self) -> Response {
        let (status, body, may_be_retried) = match self {
            Self::Failed(failed) => {
                let status = match failed.kind {
                    FailureKind::Blocked | FailureKind::ContextOverflow => StatusCode::BAD_REQUEST,
                    // Any other 4xx from the model's server is not this client's fault.
                    FailureKind::Lasting | FailureKind::Passing => failed
                        .status
                        .and_then(|status| StatusCode::from_u16(status).ok())
                        .filter(|status| {
                            *status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
                        })
                        .unwrap_or(StatusCode::BAD_GATEWAY),
                };
                (status, failure(&failed.message, failed.kind), failed.may_be_retried)
            }
            Self::Refused(refusal) => {
                let is_ours = refusal.status.is_server_error();
                let kind = if is_ours { "server_error" } else { "invalid_request_error" };
                (refusal.status, error(&refusal.message, kind, refusal.param, None), true)
            }
            Self::UnknownModel(model) => {
                let message =
                    format!("unknown model {model:?}: GET /v1/models lists the available models");
                let (param, code) = (Some("model"), Some("model_not_found"));
                let body = error(&message, "invalid_request_error", param, code);
                (StatusCode::NOT_FOUND, body, true)
            }
        };
        let mut response = (status, Json(body)).into_response();
        if !may_be_retried {
            response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }
}

async fn nothing_here() -> CompletionError {
    Refusal::not_found("this path does not exist").into()
}

fn entry(served: &Served, id: &str) -> Value {
    json!({"id": id, "object": "model", "created": served.created, "owned_by": "open-agent"})
}

async fn models(State(served): State<Served>) -> Json<Value> {
    let mut data = vec![entry(&served, &served.name)];
    if let Some((id, _)) = &served.housekeeping {
        data.push(entry(&served, id));
    }
    Json(json!({"object": "list", "data": data}))
}

async fn model(
    State(served): State<Served>,
    Path(id): Path<String>,
) -> Result<Json<Value>, CompletionError> {
    find(&served, &id)?;
    Ok(Json(entry(&served, &id)))
}

/// Returns the agent for a model id; `None` for the served agent.
fn find(served: &Served, model: &str) -> Result<Option<AgentOptions>, CompletionError> {
    match &served.housekeeping {
        _ if *model == *served.name => Ok(None),
        Some((id, agent)) if *model == **id => Ok(Some(agent.clone())),
        _ => Err(CompletionError::UnknownModel(model.chars().take(100).collect())),
    }
}

async fn complete(State(served): State<Served>, body: Bytes) -> Result<Response, CompletionError> {
    let conversations = &served.conversations;
    let completion = request::read(&body, conversations.limits(), conversations.hasher())?;
    let agent = find(&served, &completion.model)?;
    let reviews_answers =
        agent.as_ref().unwrap_or_else(|| conversations.agent()).hooks().has_answer();
    // A closed connection stops the run, and there is no user to ask.
    let policy = Policy { unread: Duration::ZERO, denies_approvals: true };
    let request = FrontRequest {
        turn: completion.turn,
        denied: Vec::new(),
        tools: Some(completion.tools),
        agent,
        sampling: Some(completion.sampling),
        state: None,
        continues: None,
        policy,
    };
    let calls = CallIds::new();
    let (asked, answered) = (completion.asked, completion.answered);
    let run = conversations.run_completion(asked, answered, calls.clone(), request).await?;
    // Not the number of the run, which is a time: two completions may begin in the same millisecond.
    let id = format!("chatcmpl-{}", unguessable_id());
    let head = Head { id, model: completion.model, created: now() / 1_000, calls };
    if completion.is_stream {
        let encoder = RunStream::new(Chunks::new(head, completion.includes_usage, reviews_answers));
        return Ok(event_stream(&served, run.viewer, encoder));
    }
    let writer = Whole::new(head, run.goes_on);
    match whole(run, writer).await {
        Ok(completion) => Ok(Json(completion).into_response()),
        Err(failure) => Err(CompletionError::Failed(failure)),
    }
}

async fn whole(mut run: FrontRun, mut whole: Whole) -> Result<Value, Failure> {
    loop {
        while let Some(view) = run.viewer.read() {
            if let Some(completion) = whole.read(view) {
                return completion;
            }
        }
        // If the client hangs up, `run` is dropped here with its viewer, and the turn is stopped.
        run.viewer.changed().await;
    }
}
