//! A TCP proxy whose connections can be cut.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone)]
pub(crate) struct Proxy {
    address: SocketAddr,
    is_cut: Arc<watch::Sender<bool>>,
}

impl Proxy {
    /// Starts a proxy to this address.
    pub(crate) async fn start(to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let proxy =
            Self { address: listener.local_addr()?, is_cut: Arc::new(watch::Sender::new(false)) };
        let is_cut = Arc::clone(&proxy.is_cut);
        tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                let mut is_cut = is_cut.subscribe();
                tokio::spawn(async move {
                    let Ok(mut to) = TcpStream::connect(to).await else { return };
                    tokio::select! {
                        biased;
                        _ = is_cut.wait_for(|is_cut| *is_cut) => {}
                        _ = copy_bidirectional(&mut from, &mut to) => {}
                    }
                });
            }
        });
        Ok(proxy)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections, and each new one at once. Returns when the old ones are closed.
    pub(crate) async fn cut(&self) {
        self.is_cut.send_replace(true);
        self.is_cut.closed().await;
    }

    pub(crate) fn mend(&self) {
        self.is_cut.send_replace(false);
    }
}
