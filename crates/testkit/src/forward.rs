//! A TCP port on loopback that leads into a network namespace.
//!
//! A socket belongs to the namespace of the thread that made it. The listener is made outside, then the
//! thread moves inside and connects from there. No link between the two networks is needed.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use nix::sched::{CloneFlags, setns};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub struct Forward {
    address: SocketAddr,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Forward {
    pub(crate) fn into_namespace(namespace: &Path, to: SocketAddr) -> Result<Self> {
        Self::listen_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?, namespace, to)
    }

    fn listen_on(listener: TcpListener, namespace: &Path, to: SocketAddr) -> Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let namespace = File::open(namespace).with_context(|| format!("open {}", namespace.display()))?;
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let (ready, started) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name(format!("forward-{to}")).spawn(move || {
            let runtime = setns(&namespace, CloneFlags::CLONE_NEWNET)
                .map_err(anyhow::Error::from)
                .and_then(|()| Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?));
            match runtime {
                Ok(runtime) => {
                    let _ = ready.send(Ok(()));
                    runtime.block_on(serve(listener, to, stopped));
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            }
        })?;
        started.recv().context("the forwarding thread ended")??;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Where to connect, on this machine.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, to: SocketAddr, stop: CancellationToken) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((mut outside, _)) = accepted else { continue };
        tokio::spawn(async move {
            // A refused connection inside shows outside as one that closes at once.
            if let Ok(mut inside) = TcpStream::connect(to).await {
                let _ = outside.set_nodelay(true);
                let _ = inside.set_nodelay(true);
                let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
            }
        });
    }
}
