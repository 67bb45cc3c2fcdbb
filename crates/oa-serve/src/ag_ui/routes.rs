//! The route of a run.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;

use crate::ag_ui::encoder::RunEvents;
use crate::ag_ui::request;
use crate::error::Refusal;
use crate::front_session::FrontProtocol;
use crate::fronts::FrontRequest;
use crate::run::Policy;
use crate::run_stream::RunStream;
use crate::served::Served;
use crate::stream::event_stream;

pub(crate) fn routes() -> Router<Served> {
    // Users write the address with and without a slash at the end, and the client follows no redirect.
    Router::new().route("/ag-ui", post(run)).route("/ag-ui/", post(run))
}

async fn run(State(served): State<Served>, body: Bytes) -> Result<Response, Refusal> {
    let input = request::read(&body, served.conversations.limits())?;
    // A closed connection stops the run, because the protocol has no other way to stop it.
    let policy = Policy { unread: Duration::ZERO, denies_approvals: false };
    let request = FrontRequest {
        turn: input.turn,
        denied: Vec::new(),
        tools: Some(input.tools),
        agent: None,
        sampling: None,
        state: Some(input.state.clone()),
        continues: None,
        policy,
    };
    let conversations = &served.conversations;
    let run = conversations.run_front(FrontProtocol::AgUi, &input.thread, request).await?;
    let encoder = RunEvents::new(input.thread, input.run, input.is_version_1, input.state);
    let encoder = RunStream::new(encoder);
    let encoder = encoder.external(run.external);
    Ok(event_stream(&served, run.viewer, encoder))
}
