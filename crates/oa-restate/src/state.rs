//! The engine's state of a session.

use std::pin::Pin;

use oa_types::Message;
use restate_sdk::context::{ContextReadState, ContextWriteState};
use restate_sdk::prelude::*;
use serde::de::DeserializeOwned;

use crate::contract::{PendingCall, WaitsFor};
use crate::layout::{HEAD, Head, PENDING, Write};

/// A future of a handler.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A context that reads state. Its futures are boxed: the compiler cannot see that those of the engine's traits are
/// `Send` for all lifetimes.
#[derive(Clone, Copy)]
pub(crate) enum Reader<'a> {
    Object(&'a ObjectContext<'a>),
    Shared(&'a SharedObjectContext<'a>),
}

impl<'a> Reader<'a> {
    /// Returns the value of a key.
    pub(crate) fn get<T: DeserializeOwned + Send + 'static>(
        self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<T>, TerminalError>> {
        Box::pin(async move {
            let value = match self {
                Self::Object(ctx) => ctx.get::<Json<T>>(key).await?,
                Self::Shared(ctx) => ctx.get::<Json<T>>(key).await?,
            };
            Ok(value.map(|Json(value)| value))
        })
    }

    /// Reads the head of a session.
    pub(crate) async fn head(self) -> Result<Head, HandlerError> {
        let head = self.get::<Head>(HEAD).await?.unwrap_or_default();
        head.check().map_err(|error| TerminalError::new_with_code(409, error.to_string()))?;
        Ok(head)
    }

    /// Reads the messages of finished turns.
    pub(crate) async fn turns(self, keys: &'a [String]) -> Result<Vec<Message>, HandlerError> {
        let mut messages = Vec::new();
        for key in keys {
            let Some(turn) = self.get::<Vec<Message>>(key).await? else {
                // The session is being shortened: the engine retries.
                return Err(format!("the state has no {key}").into());
            };
            messages.extend(turn);
        }
        Ok(messages)
    }

    /// Returns the call that waits under this id.
    pub(crate) async fn waiting(
        self,
        id: &str,
        waits_for: WaitsFor,
    ) -> Result<PendingCall, HandlerError> {
        let pending = self.get::<Vec<PendingCall>>(PENDING).await?.unwrap_or_default();
        let is_it = |call: &PendingCall| call.id == id && call.waits_for == waits_for;
        let none = || TerminalError::new_with_code(404, format!("no call {id:?} waits for this"));
        Ok(pending.into_iter().find(is_it).ok_or_else(none)?)
    }
}

pub(crate) fn write(ctx: &ObjectContext<'_>, writes: Vec<Write>) {
    for write in writes {
        match write {
            Write::Clear(key) => ctx.clear(&key),
            Write::Head(head) => ctx.set(HEAD, Json(head)),
            Write::Turn(key, messages) => ctx.set(&key, Json(messages)),
        }
    }
}
