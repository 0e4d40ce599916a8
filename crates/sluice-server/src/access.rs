//! The guard at the network's door: who shows which token, whether that is enough for what they ask, and the record of
//! those who were turned away. The secret itself is never written anywhere.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use sluice_api::Problem;
use sluice_api::client::VERSION_HEADER;
use sluice_api::event::AccessDenied;
use sluice_api::problem::ProblemStatus;
use sluice_home::ask::{Bearer, DeniedBearer, Requester};

use crate::answer::{RefusalReason, refuse};
use crate::app::App;
use crate::caller::{NetworkPeer, RequestCaller, only_looks};
use crate::table::RouteOperation;

/// What is there for everybody.
const OPEN: [&str; 1] = ["/healthz"];
const FOR_WORKERS: [&str; 7] = [
    "/v1/crabs",
    "/v1/runs/start",
    "/v1/runs/update",
    "/v1/runs/merge-turn",
    "/v1/runs/complete",
    "/v1/ws/crab",
    "/v1/scheduler",
];
/// The only paths at which workers may look.
const SEEN_BY_WORKERS: [&str; 8] = [
    "/v1/colonies",
    "/v1/crabs",
    "/v1/missions",
    "/v1/tasks",
    "/v1/workflows",
    "/v1/status",
    "/v1/ws/crab",
    "/v1/openapi.json",
];
/// What belongs to no task and no run, and a session may look at.
const SEEN_BY_SESSIONS: [&str; 3] = ["/v1/lifecycle/tasks/here", "/v1/workflows", "/v1/openapi.json"];
/// Where a task is looked at, and where a run is.
const TASKS: [&str; 1] = ["/v1/lifecycle/tasks"];
const RUNS: [&str; 3] = ["/v1/recipe/runs", "/v1/processes", "/workflows"];
/// The longest path that is written down.
const LONGEST_PATH: usize = 200;

pub(crate) async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    if is_open(request.method(), request.uri().path()) {
        return next.run(request).await;
    }
    let method = request.method().clone();
    let path = shown(request.uri().path());
    let peer = request.extensions().get::<NetworkPeer>().map(|peer| peer.0.to_string()).unwrap_or_default();
    let (response, token, who) = match identify(&app, request.headers()).await {
        Err(DeniedBearer { problem, token }) => (turn_away(&problem), token, None),
        Ok(bearer) => {
            let (token, who) = (bearer.token.clone(), bearer.who.label());
            let response = match hindrance(&app, &bearer, &method, &path) {
                Some(response) => response,
                None => {
                    request.extensions_mut().insert(RequestCaller::Bearer(bearer));
                    next.run(request).await
                }
            };
            (response, Some(token), Some(who))
        }
    };
    if matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        let (reason, whose, method) = (reason(&response), token.clone().unwrap_or_default(), method.to_string());
        let denied = AccessDenied { reason, token, who, method, path, peer, unrecorded: 0, at: None };
        record(app, &whose, denied).await;
    }
    response
}

/// At the socket everybody of this machine is let in; who is refused there is written down all the same.
pub(crate) async fn record_refused(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().to_string(), shown(request.uri().path()));
    let caller = request.extensions().get::<RequestCaller>().cloned();
    let response = next.run(request).await;
    if let (StatusCode::FORBIDDEN, Some(RequestCaller::Process(peer))) = (response.status(), caller) {
        let peer = peer.as_ref().map_or("a process".to_owned(), |peer| format!("process {}", peer.process.pid));
        let who = response.extensions().get::<Requester>().map(Requester::label);
        // What is nobody's may come from many, and is told apart by what they asked.
        let whose = match who.as_deref() {
            Some(who) if who != Requester::Nobody.label() => who.to_owned(),
            Some(_) | None => format!("{method} {}", route(&path)),
        };
        let reason = reason(&response);
        let denied = AccessDenied { reason, token: None, who, method, path, peer, unrecorded: 0, at: None };
        record(app, &whose, denied).await;
    }
    response
}

fn reason(response: &Response) -> String {
    response.extensions().get::<RefusalReason>().map_or("refused", |refused| refused.0.as_str()).to_owned()
}

/// A path without what it is about: its first words.
fn route(path: &str) -> String {
    path.split('/').take(3).collect::<Vec<_>>().join("/")
}

fn shown(path: &str) -> String {
    path.chars().take(LONGEST_PATH).collect()
}

/// Whether this is there for everybody. The page's assets will be too.
fn is_open(method: &Method, path: &str) -> bool {
    only_looks(method) && OPEN.contains(&path)
}

async fn identify(app: &Arc<App>, headers: &HeaderMap) -> Result<Bearer, DeniedBearer> {
    let none = || {
        let problem = Problem::new(ProblemStatus::Unauthorized, "no_token", "a token is needed here")
            .hint("send `Authorization: Bearer …`; `sluice token create` makes a token");
        DeniedBearer { problem, token: None }
    };
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).ok_or_else(none)?;
    let (scheme, secret) = shown.split_once(' ').ok_or_else(none)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(none());
    }
    let (asked, secret) = (app.clone(), secret.trim().to_owned());
    let found = tokio::task::spawn_blocking(move || asked.service.bearer(&secret)).await;
    found.unwrap_or_else(|_| {
        Err(DeniedBearer { problem: Problem::fault("the token could not be looked at"), token: None })
    })
}

/// The answer to a token that is not enough for this, or used too often.
fn hindrance(app: &App, bearer: &Bearer, method: &Method, path: &str) -> Option<Response> {
    let Bearer { who, token } = bearer;
    if let Err(wait) = app.rates.take(token, Instant::now()) {
        let problem = Problem::new(ProblemStatus::TooMany, "too_many_requests", "this token is used too often");
        let mut response = refuse(&problem.hint("wait as long as `retry-after` says"));
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
        return Some(response);
    }
    let looks = only_looks(method);
    let may = match who {
        Requester::Person { .. } => true,
        // What a session may do is decided by the task or run that it asks; it sees no other.
        Requester::Session { task, .. } => {
            !looks || is_in(path, &SEEN_BY_SESSIONS) || is_of(path, &TASKS, task.as_str())
        }
        Requester::Step { run, .. } => !looks || is_in(path, &SEEN_BY_SESSIONS) || is_of(path, &RUNS, run.as_str()),
        Requester::Worker { .. } => is_in(path, if looks { &SEEN_BY_WORKERS } else { &FOR_WORKERS }),
        Requester::Reader { .. } | Requester::Nobody => looks,
    };
    match may {
        true => None,
        false => {
            let own = match who {
                Requester::Person { .. } => "of scope person",
                Requester::Session { .. } | Requester::Step { .. } => "of scope agent",
                Requester::Worker { .. } => "of scope worker",
                // Of scope read, or of scope agent without a task.
                Requester::Reader { .. } | Requester::Nobody => "for reading",
            };
            let message = format!("a token {own} does not allow this request");
            let problem = Problem::new(ProblemStatus::Forbidden, "not_enough", message);
            let scope = match looks {
                true if is_in(path, &["/v1/tokens"]) => "person",
                true => "read` or `person",
                false if is_in(path, &FOR_WORKERS) => "worker` or `person",
                false => "person",
            };
            Some(refuse(&problem.hint(format!("use a token of scope `{scope}`; `sluice token create` makes one"))))
        }
    }
}

/// Whether a path is one of these, or below one.
fn is_in(path: &str, all: &[&str]) -> bool {
    let below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    all.iter().any(|one| path.strip_prefix(one).is_some_and(below))
}

pub(crate) fn readers(path: &str) -> Vec<&'static str> {
    let below = |all: &[&str]| all.iter().any(|one| path.strip_prefix(one).is_some_and(|rest| rest.starts_with('/')));
    let mut scopes = vec!["read"];
    if is_in(path, &SEEN_BY_WORKERS) {
        scopes.push("worker");
    }
    if is_in(path, &SEEN_BY_SESSIONS) || below(&TASKS) || below(&RUNS) {
        scopes.push("agent");
    }
    scopes.push("person");
    scopes
}

/// Whether a path, below one of these, is about this. It has the whole id: what an id begins with may be another's, too.
fn is_of(path: &str, all: &[&str], id: &str) -> bool {
    let named = |rest: &str| rest.strip_prefix('/')?.split('/').next().map(str::to_owned);
    let meant = all.iter().find_map(|one| named(path.strip_prefix(one)?));
    meant.is_some_and(|meant| meant == id)
}

fn turn_away(problem: &Problem) -> Response {
    let mut response = refuse(problem);
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// A caller without a good token hears that, and neither what is here nor which routes there are.
pub(crate) async fn tell_strangers_nothing(mut response: Response) -> Response {
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().remove(header::ALLOW);
        response.headers_mut().remove(VERSION_HEADER);
    }
    response
}

/// A caller who may not ask for something hears that, and neither what is wrong with their words nor what is there.
pub(crate) async fn right_first(
    State(operations): State<Arc<[RouteOperation]>>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = request.method().clone();
    let response = next.run(request).await;
    if !hides_a_right(response.status()) {
        return response;
    }
    let asked = |it: &&RouteOperation| Some(it.path) == route.as_deref() && it.method == method;
    let (Some(operation), Some(who)) = (operations.iter().find(asked), response.extensions().get::<Requester>()) else {
        return response;
    };
    match operation.who.allows(who) {
        true => response,
        false => {
            let message = format!("Not allowed: {method} {} is not for you to ask", operation.path);
            let mut refused = refuse(&Problem::new(ProblemStatus::Forbidden, "not_yours", message));
            refused.extensions_mut().insert(who.clone());
            refused
        }
    }
}

/// Whether an answer of this kind may stand before "that is not for you to ask".
fn hides_a_right(status: StatusCode) -> bool {
    let said_already = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS];
    status.is_client_error() && !said_already.contains(&status)
}

/// Writes down who was turned away, unless that has happened to them too often.
pub(crate) async fn record(app: Arc<App>, whose: &str, turned: AccessDenied) {
    let Some(unrecorded) = app.records.take(whose, Instant::now()) else { return };
    let turned = AccessDenied { unrecorded, ..turned };
    // Whether it could be written down or not, they are turned away.
    let _ = tokio::task::spawn_blocking(move || app.service.turned_away(&turned)).await;
}
