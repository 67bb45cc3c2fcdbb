//! The web page.

use axum::Router;

/// Returns the routes of the page, which need no token: they hold nothing but the page itself.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
}
