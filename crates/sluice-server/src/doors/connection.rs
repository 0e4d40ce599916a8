//! The doors: whoever comes is let in one connection at a time, within the limits, until the engine ends. Over the network
//! everybody gets as far as showing a token; only who has shown one takes up room.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Extensions, HeaderValue, Request, header};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sluice_api::Problem;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

use super::cors;
use crate::access;
use crate::answer::refuse;
use crate::app::App;
use crate::caller::{EnginePresence, NetworkPeer, ReachedAddress, RequestCaller, SocketPeer};
use crate::doors::error_shape::{self, RequestBounds};
use crate::doors::home_socket::HomeSocket;
use crate::doors::network::NetworkDoor;
use crate::doors::write_timeout::PatientStream;
use crate::limits::connections::ConnectionVisit;
use crate::limits::{
    ANSWER_WITHIN, BYTES_OF_REQUEST, GREETING_WITHIN, HEAD_WITHIN, LARGEST_AT_SOCKET, LARGEST_OVER_TCP,
};
use crate::page::{PageLayer, page_or_api};
use crate::routes::metrics::{self, CountedDoor};
use crate::routes::routes;

/// How long it is waited when the system gives no connection: it has run out of something.
const PAUSE: Duration = Duration::from_millis(100);

/// What a connection needs, whichever door it came through.
#[derive(Clone)]
struct DoorContext {
    app: Arc<App>,
    router: Router,
    present: EnginePresence,
}

impl DoorContext {
    fn new(app: &Arc<App>, router: Router, present: &mpsc::Sender<()>) -> Self {
        DoorContext { app: app.clone(), router, present: EnginePresence(present.clone()) }
    }

    /// The next connection; `None` when the engine ends.
    async fn next<T>(&self, accept: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased; // refuse connections once shutdown has begun
            () = self.app.ends() => None,
            accepted = accept => Some(accepted),
        }
    }
}

/// Serves both doors until the engine ends, and then finishes what is being answered, within `farewell`.
pub(crate) async fn serve(
    app: &Arc<App>,
    socket: HomeSocket,
    network: Option<NetworkDoor>,
    farewell: Duration,
) -> Result<(), Problem> {
    let (present, mut gone) = mpsc::channel::<()>(1);
    let at_socket = DoorContext::new(app, at_socket(app), &present);
    let at_page = DoorContext::new(app, over_network(app, None, "http", None), &present);
    let over_network = match network {
        None => None,
        Some(NetworkDoor { listener, tls, cors, listened, .. }) => {
            let listener = TcpListener::from_std(listener)
                .map_err(|error| Problem::unavailable(format!("the network cannot be used: {error}")))?;
            let scheme = if tls.is_some() { "https" } else { "http" };
            let router = over_network(app, cors, scheme, Some(listened));
            Some((DoorContext::new(app, router, &present), listener, tls.map(TlsAcceptor::from)))
        }
    };
    drop(present);
    let network = async move {
        if let Some((inside, listener, tls)) = over_network {
            accept_network(inside, listener, tls).await;
        }
    };
    // All return when the engine ends, and with them their listeners: no further connection is accepted.
    tokio::join!(accept_socket(at_socket, socket), network, accept_page(at_page));
    let _ = tokio::time::timeout(farewell, gone.recv()).await;
    Ok(())
}

/// The routes as they are at the socket, where the owner of the home comes.
fn at_socket(app: &Arc<App>) -> Router {
    let bounds = RequestBounds { app: app.clone(), largest: LARGEST_AT_SOCKET, within: None };
    routes(app.clone(), LARGEST_AT_SOCKET)
        .layer(from_fn_with_state(bounds, error_shape::answer))
        .layer(from_fn_with_state(app.clone(), access::record_refused))
        .layer(from_fn_with_state(CountedDoor { app: app.clone(), scheme: "http" }, metrics::count))
}

fn over_network(
    app: &Arc<App>,
    origin: Option<HeaderValue>,
    scheme: &'static str,
    listened: Option<Arc<str>>,
) -> Router {
    let bounds = RequestBounds { app: app.clone(), largest: LARGEST_OVER_TCP, within: Some(ANSWER_WITHIN) };
    let guarded = routes(app.clone(), LARGEST_OVER_TCP)
        .layer(from_fn_with_state(bounds, error_shape::answer))
        .layer(from_fn_with_state(app.clone(), admit))
        .layer(from_fn_with_state(app.clone(), access::guard))
        .layer(from_fn_with_state(PageLayer::new(app, scheme, listened), page_or_api))
        .layer(from_fn_with_state(CountedDoor { app: app.clone(), scheme }, metrics::count));
    let guarded = match origin {
        None => guarded,
        Some(origin) => guarded.layer(from_fn_with_state(origin, cors::cors)),
    };
    // Around all of it: axum adds what a route allows to whatever a layer of its own answers.
    Router::new().fallback_service(guarded).layer(map_response(access::tell_strangers_nothing))
}

/// A caller that has shown a token gets room for the connection.
async fn admit(State(app): State<Arc<App>>, request: Request<Body>, next: Next) -> Response {
    let shown = request.extensions().get::<RequestCaller>().and_then(RequestCaller::token);
    if let (Some(token), Some(visit)) = (shown, request.extensions().get::<Arc<ConnectionVisit>>())
        && !app.network.admit(visit, token)
    {
        let problem = Problem::unavailable("there is no room for another connection, of this token or of all");
        let mut response = refuse(&problem.hint("use a connection again, or end one, and ask again"));
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    if let Some(token) = shown {
        let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        let largest = || text(header::TRANSFER_ENCODING).map(|_| LARGEST_OVER_TCP as u64);
        let length = text(header::CONTENT_LENGTH).and_then(|text| text.parse::<u64>().ok()).or_else(largest);
        // What is larger than that is refused before it is read.
        let count = length.filter(|length| *length <= LARGEST_OVER_TCP as u64).unwrap_or(0) / BYTES_OF_REQUEST;
        app.rates.owe(token, u32::try_from(count).unwrap_or(u32::MAX), Instant::now());
    }
    next.run(request).await
}

async fn accept_socket(inside: DoorContext, mut socket: HomeSocket) {
    let room = inside.app.socket.connections.clone();
    loop {
        let admitted = async { (socket.accept().await, room.clone().acquire_owned().await) };
        let Some((accepted, place)) = inside.next(admitted).await else { return };
        let (Ok(stream), Ok(place)) = (accepted, place) else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let mut known = Extensions::new();
        known.insert(RequestCaller::Process(SocketPeer::of(&stream)));
        let inside = inside.clone();
        tokio::spawn(async move {
            converse(inside, stream, known).await;
            drop(place);
        });
    }
}

async fn accept_network(inside: DoorContext, listener: TcpListener, tls: Option<TlsAcceptor>) {
    while let Some(accepted) = inside.next(listener.accept()).await {
        let Ok((stream, address)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let visit = Arc::new(inside.app.network.enter(address.ip()));
        let (inside, tls) = (inside.clone(), tls.clone());
        let _ = stream.set_nodelay(true);
        let mut known = Extensions::new();
        known.insert(NetworkPeer(address));
        if let Ok(reached) = stream.local_addr() {
            known.insert(ReachedAddress(reached.ip()));
        }
        known.insert(visit.clone());
        let conversation = async move {
            let stream = PatientStream::new(stream);
            match tls {
                None => converse(inside, stream, known).await,
                Some(tls) => {
                    if let Ok(Ok(stream)) = tokio::time::timeout(GREETING_WITHIN, tls.accept(stream)).await {
                        converse(inside, stream, known).await;
                    }
                }
            }
        };
        tokio::spawn(async move {
            tokio::select! {
                () = conversation => {}
                () = visit.must_leave() => {}
            }
        });
    }
}

/// The page's own door: it opens and closes while the engine runs.
async fn accept_page(inside: DoorContext) {
    let mut door = inside.app.page_door.watch();
    loop {
        let Some(Ok(open)) = inside.next(door.wait_for(Option::is_some)).await.map(|open| open.map(|it| it.clone()))
        else {
            return;
        };
        let listener = open.and_then(|open| open.listener.try_clone().ok()).map(TcpListener::from_std);
        let Some(Ok(listener)) = listener else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let accepting = accept_network(inside.clone(), listener, None);
        tokio::select! {
            () = accepting => return,
            closed = door.wait_for(Option::is_none) => if closed.is_err() { return },
        }
    }
}

/// One connection, to its end. What is known of it goes with every request that comes over it.
async fn converse(
    inside: DoorContext,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut known: Extensions,
) {
    known.insert(inside.present.clone());
    let router = inside.router.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().extend(known.clone());
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
