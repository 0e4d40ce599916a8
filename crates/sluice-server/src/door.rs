//! The doors: whoever comes is let in one connection at a time, within the limits, until the engine ends.

use std::fmt;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::middleware::from_fn_with_state;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sluice_api::Problem;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

use crate::caller::Caller;
use crate::limits::{ANSWER_WITHIN, GREETING_WITHIN, HEAD_WITHIN, LARGEST_AT_SOCKET, LARGEST_OVER_TCP, Room};
use crate::network::Network;
use crate::patient::Patient;
use crate::routes::routes;
use crate::run::App;
use crate::whole::{self, Bounds};
use crate::{access, cors, metrics};

/// How long it is waited when the system gives no connection: it has run out of something.
const PAUSE: Duration = Duration::from_millis(100);

/// Where somebody comes from over the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(SocketAddr);

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// While one of these lives the engine waits with its end. What outlives its request takes it along.
#[derive(Clone)]
pub(crate) struct Present(#[expect(dead_code, reason = "it is held, not read")] mpsc::Sender<()>);

/// What a connection needs, whichever door it came through.
#[derive(Clone)]
struct Inside {
    app: Arc<App>,
    router: Router,
    room: Arc<Semaphore>,
    present: Present,
}

impl Inside {
    fn new(app: &Arc<App>, router: Router, room: &Room, present: &mpsc::Sender<()>) -> Self {
        Inside { app: app.clone(), router, room: room.connections.clone(), present: Present(present.clone()) }
    }

    /// The next connection, once there is room for it; `None` when the engine ends.
    async fn next<T>(&self, accept: impl Future<Output = T>) -> Option<(T, OwnedSemaphorePermit)> {
        let admitted = async {
            let accepted = accept.await;
            Some((accepted, self.room.clone().acquire_owned().await.ok()?))
        };
        tokio::select! {
            biased; // the end first: whoever comes in the same moment is not let in
            () = self.app.ends() => None,
            admitted = admitted => admitted,
        }
    }
}

/// Serves both doors until the engine ends, and then finishes what is being answered, within `farewell`.
pub(crate) async fn serve(
    app: &Arc<App>,
    socket: UnixListener,
    network: Option<Network>,
    farewell: Duration,
) -> Result<(), Problem> {
    let (present, mut gone) = mpsc::channel::<()>(1);
    let at_socket = Inside::new(app, at_socket(app), &app.socket, &present);
    let over_network = match network {
        None => None,
        Some(Network { listener, tls, cors, .. }) => {
            let listener = TcpListener::from_std(listener)
                .map_err(|error| Problem::unavailable(format!("the network cannot be used: {error}")))?;
            Some((
                Inside::new(app, over_network(app, cors), &app.network, &present),
                listener,
                tls.map(TlsAcceptor::from),
            ))
        }
    };
    drop(present);
    let network = async move {
        if let Some((inside, listener, tls)) = over_network {
            accept_network(inside, listener, tls).await;
        }
    };
    // Both return when the engine ends, and with them their listeners: nobody new is let in.
    tokio::join!(accept_socket(at_socket, socket), network);
    let _ = tokio::time::timeout(farewell, gone.recv()).await;
    Ok(())
}

/// The routes as they are at the socket, where the owner of the home comes.
fn at_socket(app: &Arc<App>) -> Router {
    let bounds = Bounds { app: app.clone(), largest: LARGEST_AT_SOCKET, within: None };
    routes(app.clone(), LARGEST_AT_SOCKET)
        .layer(from_fn_with_state(bounds, whole::answer))
        .layer(from_fn_with_state(app.clone(), metrics::count))
}

/// The routes as they are over the network, behind the guard.
fn over_network(app: &Arc<App>, origin: Option<axum::http::HeaderValue>) -> Router {
    let bounds = Bounds { app: app.clone(), largest: LARGEST_OVER_TCP, within: Some(ANSWER_WITHIN) };
    let guarded = routes(app.clone(), LARGEST_OVER_TCP)
        .layer(from_fn_with_state(bounds, whole::answer))
        .layer(from_fn_with_state(app.clone(), access::guard))
        .layer(from_fn_with_state(app.clone(), metrics::count));
    match origin {
        None => guarded,
        Some(origin) => guarded.layer(from_fn_with_state(origin, cors::cors)),
    }
}

async fn accept_socket(inside: Inside, listener: UnixListener) {
    while let Some((accepted, room)) = inside.next(listener.accept()).await {
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let caller = Caller::Process(stream.peer_cred().ok().and_then(|credentials| credentials.pid()));
        tokio::spawn(converse(inside.clone(), stream, caller, room));
    }
}

async fn accept_network(inside: Inside, listener: TcpListener, tls: Option<TlsAcceptor>) {
    while let Some((accepted, room)) = inside.next(listener.accept()).await {
        let Ok((stream, address)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (inside, tls) = (inside.clone(), tls.clone());
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            let (stream, peer) = (Patient::new(stream), Peer(address));
            match tls {
                None => converse(inside, stream, peer, room).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(GREETING_WITHIN, tls.accept(stream)).await {
                        converse(inside, stream, peer, room).await;
                    }
                }
            }
        });
    }
}

/// One connection, to its end. `about` is put into every request that comes over it.
async fn converse<T: Clone + Send + Sync + 'static>(
    inside: Inside,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    about: T,
    _room: OwnedSemaphorePermit,
) {
    let (router, present) = (inside.router.clone(), inside.present.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(about.clone());
        request.extensions_mut().insert(present.clone());
        router.clone().call(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    // Whatever went wrong was the other end's; what it was told before is kept.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = inside.app.ends() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
