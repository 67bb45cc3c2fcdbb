//! Routes of the native interface.

use std::borrow::Cow;
use std::iter;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use oa_event_log::CallAnswer;
use oa_session::{Cursor, List, SessionId, Timestamp};
use oa_types::{AudioBlock, ContentBlock, ImageBlock, Message, TextBlock};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::events::EventFrames;
use crate::body;
use crate::conversation::From;
use crate::error::Refusal;
use crate::served::Served;
use crate::stream::event_stream;

pub(crate) fn routes() -> Router<Served> {
    Router::new()
        .route("/agent", get(agent))
        .route("/conversations", get(list).post(create))
        .route("/conversations/{id}", get(load).delete(delete).patch(rename))
        .route("/conversations/{id}/prompt", post(prompt))
        .route("/conversations/{id}/events", get(view))
        .route("/conversations/{id}/steer", post(steer).delete(take_steered))
        .route("/conversations/{id}/stop", post(stop))
        .route("/conversations/{id}/calls/{call_id}/approve", post(approve))
        .route("/conversations/{id}/calls/{call_id}/deny", post(deny))
        .route("/conversations/{id}/calls/{call_id}/result", post(result))
        .fallback(nothing_here)
}

type Answer<T = Response> = Result<T, Refusal>;
type App = State<Served>;
type Call = Path<(String, String)>;

fn parse<T: DeserializeOwned>(body: &Bytes) -> Answer<T> {
    // Some clients send null for no body.
    let body = if matches!(body.trim_ascii(), b"" | b"null") { b"{}" } else { &**body };
    body::read(body)
        .map_err(|error| Refusal::bad_request(format!("the request body is invalid: {error}")))
}

fn session(id: String) -> Answer<SessionId> {
    Ok(SessionId::new(id)?)
}

async fn nothing_here() -> Refusal {
    Refusal::not_found("this path does not exist")
}

async fn agent(State(served): App) -> Json<Value> {
    let agent = served.conversations.agent();
    let tools = agent.next_tools();
    let tools = tools.iter().map(|tool| {
        json!({
            "name": tool.name(),
            "description": tool.description(),
            "category": tool.category(),
            "external": tool.is_external(),
        })
    });
    Json(json!({
        "name": served.name,
        "model": agent.model(),
        "tools": tools.collect::<Vec<_>>(),
        "context_window": served.context_window,
        "version": env!("CARGO_PKG_VERSION"),
    }))
}

#[derive(Deserialize)]
struct Page {
    after: Option<String>,
    limit: Option<usize>,
}

async fn list(State(served): App, Query(page): Query<Page>) -> Answer<Json<Value>> {
    let mut list = List::new(page.limit.unwrap_or(50));
    if let Some(after) = page.after.filter(|after| !after.is_empty()) {
        list = list.after(cursor(&after)?);
    }
    let page = served.conversations.list(list).await?;
    let conversations = page.sessions.iter().map(|info| {
        json!({
            "id": info.id,
            "title": info.title(),
            "updated_at": info.updated_at,
            "message_count": info.message_count,
            "running": served.conversations.is_running(&info.id),
        })
    });
    Ok(Json(json!({
        "conversations": conversations.collect::<Vec<_>>(),
        "next": page.next.map(|next| format!("{}:{}", next.updated_at().as_millis(), next.id())),
    })))
}

fn cursor(text: &str) -> Answer<Cursor> {
    let wrong = || Refusal::bad_request("`after` must be the `next` value of another page");
    let (at, id) = text.split_once(':').ok_or_else(wrong)?;
    let at = Timestamp::from_millis(at.parse().map_err(|_| wrong())?);
    Ok(Cursor::new(at, session(id.to_owned())?))
}

/// A body without members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

async fn create(State(served): App, body: Bytes) -> Answer {
    let Nothing {} = parse(&body)?;
    let id = served.conversations.create().await?;
    Ok((StatusCode::CREATED, Json(json!({ "id": id }))).into_response())
}

async fn load(State(served): App, Path(id): Path<String>) -> Answer<Json<Value>> {
    let id = session(id)?;
    let (session, status) = served.conversations.load(&id).await?;
    Ok(Json(json!({
        "id": id,
        "title": session.info.title(),
        "updated_at": session.info.updated_at,
        "messages": session.conversation(),
        "running": status.is_running,
        "waiting": status.waiting,
        "agents": status.agents,
        "steering": status.steering,
        "last_event": status.stored.map(|id| id.to_string()),
        "usage": status.usage,
    })))
}

async fn delete(State(served): App, Path(id): Path<String>) -> Answer<StatusCode> {
    served.conversations.delete(&session(id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The longest title that a client can set, in characters: it shares the metadata's limit with what runs store.
const LONGEST_TITLE: usize = 400;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Title {
    title: String,
}

async fn rename(State(served): App, Path(id): Path<String>, body: Bytes) -> Answer<Json<Value>> {
    let Title { title } = parse(&body)?;
    if title.chars().count() > LONGEST_TITLE {
        let message = format!("a title can have at most {LONGEST_TITLE} characters");
        return Err(Refusal::bad_request(message));
    }
    let info = served.conversations.set_title(&session(id)?, &title).await?;
    Ok(Json(json!({ "id": info.id, "title": info.title() })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prompt {
    text: String,
    images: Option<Vec<String>>,
    audio: Option<Vec<String>>,
}

async fn prompt(State(served): App, Path(id): Path<String>, body: Bytes) -> Answer {
    let Prompt { text, images, audio } = parse(&body)?;
    let (images, audio) = (images.unwrap_or_default(), audio.unwrap_or_default());
    let (files, most) = (images.len() + audio.len(), served.conversations.limits().parts);
    if text.trim().is_empty() && files == 0 {
        return Err(Refusal::bad_request("the prompt is empty"));
    }
    if files > most {
        let message = format!("a prompt can have at most {most} images and recordings");
        return Err(Refusal::bad_request(message));
    }
    let images = images.into_iter().map(|url| ImageBlock::from_url(url).map(ContentBlock::from));
    let audio = audio.into_iter().map(|url| AudioBlock::from_data_url(url).map(Into::into));
    let content = iter::once(Ok(TextBlock::new(text).into())).chain(images).chain(audio);
    let content: Result<Vec<_>, oa_types::Error> = content.collect();
    let invalid = |error: oa_types::Error| Refusal::bad_request(error.to_string());
    let message = Message::user_with_blocks(content.map_err(invalid)?);
    let run = served.conversations.prompt(&session(id)?, message).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "run": run }))).into_response())
}

#[derive(Deserialize)]
struct After {
    after: Option<String>,
}

async fn view(
    State(served): App,
    Path(id): Path<String>,
    Query(After { after }): Query<After>,
    headers: HeaderMap,
) -> Answer {
    // The header comes first: a browser that reconnects sends it with the old query. Empty, it names no event.
    let header = headers.get("last-event-id").map(|id| String::from_utf8_lossy(id.as_bytes()));
    let seen = header.filter(|seen| !seen.is_empty()).or_else(|| after.map(Cow::Owned));
    let from = match seen.filter(|seen| !seen.is_empty()) {
        None => From::First,
        Some(seen) => From::Event(seen.parse().map_err(|()| {
            Refusal::bad_request(
                "the last event id is invalid: expected an id from an event of this server",
            )
        })?),
    };
    let conversation = served.conversations.open(&session(id)?).await?;
    let viewer = conversation.view(from)?;
    Ok(event_stream(&served, viewer, EventFrames))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Steer {
    text: String,
}

async fn steer(State(served): App, Path(id): Path<String>, body: Bytes) -> Answer<StatusCode> {
    let Steer { text } = parse(&body)?;
    served.conversations.open(&session(id)?).await?.steer(text)?;
    Ok(StatusCode::ACCEPTED)
}

async fn take_steered(State(served): App, Path(id): Path<String>) -> Answer<Json<Value>> {
    let messages = served.conversations.take_steered(&session(id)?).await?;
    Ok(Json(json!({ "messages": messages })))
}

async fn stop(State(served): App, Path(id): Path<String>, body: Bytes) -> Answer<StatusCode> {
    let Nothing {} = parse(&body)?;
    served.conversations.open(&session(id)?).await?.stop();
    Ok(StatusCode::ACCEPTED)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Approve {
    input: Option<Value>,
}

async fn approve(State(served): App, Path((id, call_id)): Call, body: Bytes) -> Answer<StatusCode> {
    let Approve { input } = parse(&body)?;
    served.conversations.answer(&session(id)?, &call_id, CallAnswer::Approved { input }).await?;
    Ok(StatusCode::ACCEPTED)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deny {
    reason: Option<String>,
}

async fn deny(State(served): App, Path((id, call_id)): Call, body: Bytes) -> Answer<StatusCode> {
    let Deny { reason } = parse(&body)?;
    served.conversations.answer(&session(id)?, &call_id, CallAnswer::Denied { reason }).await?;
    Ok(StatusCode::ACCEPTED)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolAnswer {
    content: Value,
    is_error: Option<bool>,
}

async fn result(State(served): App, Path((id, call_id)): Call, body: Bytes) -> Answer<StatusCode> {
    let ToolAnswer { content, is_error } = parse(&body)?;
    let answer = CallAnswer::Result { content, is_error: is_error.unwrap_or_default() };
    served.conversations.answer(&session(id)?, &call_id, answer).await?;
    Ok(StatusCode::ACCEPTED)
}
