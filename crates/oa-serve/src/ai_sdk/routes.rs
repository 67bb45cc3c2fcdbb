//! Routes of a chat: run a turn, resume its stream, and stop it.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::ai_sdk::encoder::MessageWriter;
use crate::ai_sdk::request;
use crate::error::Refusal;
use crate::front_session::FrontProtocol::AiSdk;
use crate::fronts::{FrontRequest, FrontRun};
use crate::guard::STREAM_VERSION;
use crate::run::Policy;
use crate::run_stream::RunStream;
use crate::served::Served;
use crate::stream::event_stream;

pub(crate) fn routes() -> Router<Served> {
    Router::new()
        .route("/", post(chat))
        .route("/{id}/stream", get(resume))
        .route("/{id}/stop", post(stop))
}

/// A refusal. The client shows the text of its body to the user.
type ChatError = (StatusCode, String);

impl From<Refusal> for ChatError {
    fn from(refusal: Refusal) -> Self {
        (refusal.status, refusal.message)
    }
}

async fn chat(State(served): State<Served>, body: Bytes) -> Result<Response, ChatError> {
    let limits = served.conversations.limits();
    let chat = request::read(&body, limits)?;
    let policy = Policy { unread: limits.unread_run, denies_approvals: false };
    let request = FrontRequest {
        turn: chat.turn,
        denied: chat.denied,
        tools: None,
        agent: None,
        sampling: None,
        state: None,
        continues: chat.continues,
        policy,
    };
    let run = served.conversations.run_front(AiSdk, &chat.chat, request).await?;
    Ok(stream(&served, run))
}

async fn resume(
    State(served): State<Served>,
    Path(id): Path<String>,
) -> Result<Response, ChatError> {
    Ok(match served.conversations.view_front(AiSdk, &id)? {
        Some(run) => stream(&served, run),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

async fn stop(
    State(served): State<Served>,
    Path(id): Path<String>,
) -> Result<StatusCode, ChatError> {
    served.conversations.stop_front(AiSdk, &id).await?;
    Ok(StatusCode::OK)
}

fn stream(served: &Served, run: FrontRun) -> Response {
    let encoder = RunStream::new(MessageWriter::new(run.message_id, run.denied));
    let encoder = encoder.external(run.external);
    let mut response = event_stream(served, run.viewer, encoder);
    let version = HeaderValue::from_static("v1");
    response.headers_mut().insert(STREAM_VERSION, version);
    response
}
