//! The connections of a server, with limits on their number and on the time to receive a request.

use std::io::ErrorKind;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::limits::ServeLimits;
use crate::lingering::Lingering;

/// The delay before accepting again if the system has no room for a connection.
const RETRY: Duration = Duration::from_millis(200);

/// A time that no limit has to exceed.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Serves connections until `closing` is true. Then waits for them to end, at most for the time limit of a request.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: &ServeLimits,
    mut closing: watch::Receiver<bool>,
) {
    let most = limits.connections.clamp(1, u16::MAX.into());
    let permits = Arc::new(Semaphore::new(most));
    loop {
        // Beyond the limit, new connections wait in the system's queue. Dropping this future loses neither a
        // connection nor a permit.
        let accept = async {
            let permit = Arc::clone(&permits).acquire_owned().await;
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            accepted = accept => accepted,
            _ = closing.wait_for(|closing| *closing) => break,
        };
        match (accepted, permit) {
            (Ok((stream, _)), Ok(permit)) => {
                // Send each piece of an answer immediately.
                let _ = stream.set_nodelay(true);
                let (router, closing) = (router.clone(), closing.clone());
                tokio::spawn(connection(stream, router, limits.request, closing, permit));
            }
            (Err(error), _) if is_of_the_peer(error.kind()) => {}
            // Probably too many open files: wait until some are closed.
            _ => sleep(RETRY).await,
        }
    }
    drop(listener);
    let all = u32::try_from(most).unwrap_or(u32::MAX);
    // Each connection holds a permit until it is closed.
    let _ = timeout(limits.request, permits.acquire_many(all)).await;
}

/// Serves one connection. When the server closes, the request in progress is the last one.
async fn connection(
    stream: TcpStream,
    router: Router,
    limit: Duration,
    mut closing: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
) {
    // It is added to the current time, which must not overflow.
    let limit = limit.min(YEAR);
    let connection =
        http1::Builder::new().timer(TokioTimer::new()).header_read_timeout(limit).serve_connection(
            TokioIo::new(Lingering::new(stream, limit)),
            TowerToHyperService::new(router),
        );
    let mut connection = pin!(connection);
    tokio::select! {
        // Connection errors are ignored: only the peer can act on them.
        _ = connection.as_mut() => return,
        _ = closing.wait_for(|closing| *closing) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

fn is_of_the_peer(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset
    )
}
