//! The page at `/`: what a person sees in a browser. It is rendered here, works without script, and asks the same
//! questions of the home as the routes of the API; it decides nothing.
//!
//! Which requests are the page's is one rule ([`is_for_page`]): what is below `/page/`, and a browser's look at one of the
//! page's addresses, which has no `Authorization` and accepts HTML. `/workflows` and `/events` are also routes of the API,
//! and a caller of the API notices nothing. At the socket there is no page: no browser comes there.

mod act;
mod assets;
mod board;
mod changes;
mod form;
mod frame;
mod hints;
mod host;
mod lists;
mod login;
mod markdown;
mod orders;
mod reply;
mod run;
mod task;
mod views;
mod visitor;
mod wording;
mod workflow;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::{get, post};
use sluice_api::Problem;
use sluice_home::ask::{Requester, Service};
use sluice_telemetry::caused_by;
use tower_http::compression::CompressionLayer;
use tower_service::Service as _;

pub(crate) use login::login_path;

use crate::app::App;
use crate::app::request_span::request_span;
use crate::caller::{NetworkPeer, ReachedAddress, only_looks};
use crate::limits::ANSWER_WITHIN;
use crate::limits::connections::ConnectionVisit;

/// The largest form that is read, in bytes.
const LARGEST_FORM: usize = 2 << 20;
/// What is the page's alone: assets, login, forms and hints.
const OWN: &str = "/page/";
/// The addresses of the page beside `/`: each of them, and what is below it.
const ADDRESSES: [&str; 8] =
    ["/tasks", "/runs", "/workflows", "/workers", "/workspaces", "/costs", "/events", "/settings"];

#[derive(Clone)]
pub(crate) struct PageLayer {
    router: Router,
    app: Arc<App>,
    /// The scheme of this door: a cookie that came over TLS is never sent without.
    scheme: &'static str,
    /// What `--listen` says, at the door of the network.
    listened: Option<Arc<str>>,
}

impl PageLayer {
    pub(crate) fn new(app: &Arc<App>, scheme: &'static str, listened: Option<Arc<str>>) -> PageLayer {
        let router = Router::new()
            .route("/", get(board::show))
            .route("/tasks/{id}", get(task::show))
            .route("/runs/{id}", get(run::show))
            .route("/workflows", get(workflow::list))
            .route("/workflows/{name}", get(workflow::show))
            .route("/workers", get(lists::workers))
            .route("/workspaces", get(lists::workspaces))
            .route("/costs", get(lists::costs))
            .route("/events", get(lists::events))
            .route("/settings", get(lists::settings))
            .route("/page/login", get(login::by_link).post(login::by_token))
            .route("/page/logout", post(login::out))
            .route("/page/act", post(act::act))
            .route("/page/start", post(act::start))
            .route("/page/review", post(act::review))
            .route("/page/views", post(views::change))
            .route("/page/hints", get(hints::hints))
            .route("/page/page.css", get(assets::style))
            .route("/page/page.js", get(assets::script))
            .route("/page/icon.svg", get(assets::icon))
            .fallback(reply::nothing_here)
            .layer(DefaultBodyLimit::max(LARGEST_FORM))
            // What is secret on a page (the key of its forms) is masked anew each time, so lengths tell nothing of it. Hints
            // are not compressed: the layer leaves event streams alone, which would wait in its buffer.
            .layer(CompressionLayer::new().gzip(true))
            .with_state(app.clone());
        PageLayer { router, app: app.clone(), scheme, listened }
    }
}

/// Answers what is for the page, and leaves all else to the API.
pub(crate) async fn page_or_api(State(page): State<PageLayer>, mut request: Request, next: Next) -> Response {
    if !is_for_page(&request) {
        return next.run(request).await;
    }
    let PageLayer { mut router, app, scheme, listened } = page;
    let reached = request.extensions().get::<ReachedAddress>().map(|reached| reached.0);
    let config = app.service.home().context.config();
    if let Err(problem) = host::must_be_ours(request.headers(), reached, listened.as_deref(), &config) {
        return reply::bare_problem(&problem);
    }
    drop(config);
    // What the routing of the API has found out about the address is not what the page's would.
    let known = std::mem::take(request.extensions_mut());
    if let Some(visit) = known.get::<Arc<ConnectionVisit>>() {
        request.extensions_mut().insert(visit.clone());
    }
    if let Some(peer) = known.get::<NetworkPeer>() {
        request.extensions_mut().insert(*peer);
    }
    if scheme == "https" {
        request.headers_mut().insert(visitor::OUTER_SCHEME, HeaderValue::from_static("https"));
    }
    match tokio::time::timeout(ANSWER_WITHIN, router.call(request)).await {
        Ok(answered) => answered.unwrap_or_else(|never| match never {}),
        Err(_) => reply::bare_problem(&Problem::unavailable("the request timed out").hint("load the page again")),
    }
}

/// Whether a request is a browser's at the page.
fn is_for_page(request: &Request) -> bool {
    let path = request.uri().path();
    if path.starts_with(OWN) {
        return true;
    }
    let is_address = path == "/"
        || ADDRESSES
            .iter()
            .any(|one| path.strip_prefix(one).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    let headers = request.headers();
    is_address && only_looks(request.method()) && !headers.contains_key(header::AUTHORIZATION) && accepts_html(headers)
}

fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|form| {
        let form = form.split(';').next().unwrap_or_default().trim();
        form.eq_ignore_ascii_case("text/html")
    })
}

/// Asks on a thread that may wait, in the name of the visitor.
async fn asked<T: Send + 'static>(
    app: &Arc<App>,
    who: &Requester,
    question: impl FnOnce(&Service, &Requester) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    app.touch();
    let (asked, who, span) = (app.clone(), who.clone(), request_span());
    let done = tokio::task::spawn_blocking(move || {
        let answer = caused_by(span, || who.asking(|| question(&asked.service, &who)))?;
        // Nothing is shown of a store that is not in its place any more.
        if asked.service.is_present() { Ok(answer) } else { Err(asked.service.gone()) }
    });
    done.await.unwrap_or_else(|broken| {
        tracing::error!("a request of the page broke: {broken}");
        Err(Problem::fault("something of Sluice's own broke while it answered").hint("the engine's log says what"))
    })
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(path: &str, headers: &[(&str, &str)]) -> Request {
        let mut builder = Request::builder().uri(path);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.body(Body::empty()).expect("a request")
    }

    #[test]
    fn a_browser_gets_the_page_and_a_program_the_api() {
        let browser = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
        for path in ["/", "/workflows", "/workflows/review", "/events", "/tasks/k3f9", "/settings"] {
            assert!(is_for_page(&request(path, &[browser])), "{path}");
            assert!(!is_for_page(&request(path, &[("accept", "*/*")])), "{path}");
            assert!(!is_for_page(&request(path, &[])), "{path}");
            assert!(!is_for_page(&request(path, &[("accept", "text/event-stream")])), "{path}");
            assert!(!is_for_page(&request(path, &[browser, ("authorization", "Bearer x")])), "{path}");
        }
        for path in ["/v1/board", "/grimoires", "/healthz", "/eventsx", "/metrics"] {
            assert!(!is_for_page(&request(path, &[browser])), "{path}");
        }
        assert!(is_for_page(&request("/page/page.css", &[])));
        let mut posted = request("/workflows", &[browser]);
        *posted.method_mut() = axum::http::Method::POST;
        assert!(!is_for_page(&posted));
    }
}
