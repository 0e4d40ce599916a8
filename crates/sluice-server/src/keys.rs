//! `Idempotency-Key`: whoever asks for something new may name their request, and ask again after an answer that did not
//! come. It is made once, and answered the same; other words under the same name are refused.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, PoisonError};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;
use sluice_api::Problem;
use sluice_api::problem::ProblemStatus;
use sluice_home::ask::{IdempotencyKey, KeyStatus, KeyedId, Requester, Service};

use crate::answer::{self, RefusalReason, refuse};
use crate::app::App;
use crate::caller::RequestCaller;
use crate::table::{RouteInput, RouteOperation};

pub(crate) const HEADER: &str = "idempotency-key";
/// The header of an answer that was given before.
const REPLAYED: &str = "idempotency-replayed";
/// Whose keys those are that the owner of the home shows at the socket.
const AT_SOCKET: &str = "socket";
/// The most bytes of an `Idempotency-Key`.
const LONGEST_KEY: usize = 255;

pub(crate) struct RequestKeyedId(pub(crate) KeyedId);

impl<S: Send + Sync> FromRequestParts<S> for RequestKeyedId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(RequestKeyedId(parts.extensions.get::<KeyedId>().cloned().unwrap_or_default()))
    }
}

impl RouteInput for RequestKeyedId {
    fn describe(operation: RouteOperation) -> RouteOperation {
        operation.creates()
    }
}

struct KeyHold {
    app: Arc<App>,
    key: String,
}

impl KeyHold {
    fn take(app: &Arc<App>, key: &IdempotencyKey) -> Option<KeyHold> {
        let key = format!("{key:?}");
        let is_free = app.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        is_free.then(|| KeyHold { app: app.clone(), key })
    }
}

impl Drop for KeyHold {
    fn drop(&mut self) {
        self.app.keys.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

#[derive(Clone)]
pub(crate) struct KeyLayer {
    pub(crate) app: Arc<App>,
    /// The routes that make something new.
    creating: Arc<BTreeSet<&'static str>>,
    largest: usize,
}

impl KeyLayer {
    pub(crate) fn new(app: Arc<App>, operations: &[RouteOperation], largest: usize) -> Self {
        let creating = operations.iter().filter(|it| it.creates).map(|it| it.path).collect();
        KeyLayer { app, creating: Arc::new(creating), largest }
    }
}

/// Makes something once, however often it is asked for under one key.
pub(crate) async fn keyed(State(keyed): State<KeyLayer>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned()).unwrap_or_default();
    let creates = request.method() == Method::POST && keyed.creating.contains(route.as_str());
    let Some(shown) = request.headers().get(HEADER).filter(|_| creates) else { return next.run(request).await };
    let who = match asker(&keyed.app, request.extensions().get::<RequestCaller>().cloned()).await {
        Ok(who) => who,
        Err(problem) => return refuse(&problem),
    };
    let Some(key) = key(shown, &who, &route) else {
        let problem = Problem::bad_request(format!("`Idempotency-Key` has 1 to {LONGEST_KEY} plain letters"));
        return refuse(&problem);
    };
    let Some(_held) = KeyHold::take(&keyed.app, &key) else {
        let problem = Problem::new(ProblemStatus::Conflict, "in_progress", "this is being done under the same key");
        let mut response = refuse(&problem.hint("ask again in a moment"));
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        return response;
    };
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, keyed.largest).await else {
        let message = format!("a request has at most {} bytes, and comes whole", keyed.largest);
        return refuse(&Problem::new(ProblemStatus::TooLarge, "too_large", message));
    };
    let chosen = match begin(&keyed.app, &key, body.clone()).await {
        Ok(KeyDecision::Make(chosen)) => chosen,
        Ok(KeyDecision::Answer(response)) => return response,
        Err(problem) => return refuse(&problem),
    };
    let mut request = Request::from_parts(parts, Body::from(body));
    request.extensions_mut().insert(chosen);
    let response = next.run(request).await;
    end(&keyed.app, key, response, route == "/v1/tokens").await
}

fn key(shown: &HeaderValue, who: &str, route: &str) -> Option<IdempotencyKey> {
    let text = shown.to_str().ok()?;
    let is_plain = (1..=LONGEST_KEY).contains(&text.len());
    is_plain.then(|| IdempotencyKey::new(who, route, text))
}

/// Whose keys these are: those of a token, at the socket those of its owner, and there of each session.
async fn asker(app: &Arc<App>, caller: Option<RequestCaller>) -> Result<String, Problem> {
    match caller {
        Some(RequestCaller::Bearer(bearer)) => Ok(bearer.token),
        Some(process @ RequestCaller::Process(_)) => {
            let label = |who: Requester| if who.is_person() { AT_SOCKET.to_owned() } else { who.label() };
            asked(app, move |service| process.who(service).map(label)).await
        }
        None => Ok(AT_SOCKET.to_owned()),
    }
}

enum KeyDecision {
    Make(KeyedId),
    Answer(Response),
}

/// Asks the home on a thread that may wait.
async fn asked<T: Send + 'static>(
    app: &Arc<App>,
    question: impl FnOnce(&Service) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let app = app.clone();
    let done = tokio::task::spawn_blocking(move || question(&app.service)).await;
    done.unwrap_or_else(|_| Err(Problem::fault("the key could not be looked up")))
}

async fn begin(app: &Arc<App>, key: &IdempotencyKey, body: Bytes) -> Result<KeyDecision, Problem> {
    let key = key.clone();
    asked(app, move |service| {
        Ok(match service.key(&key, &body)? {
            KeyStatus::New => KeyDecision::Make(KeyedId { id: Some(service.begin_key(&key, &body)?), again: false }),
            KeyStatus::Begun { id } => KeyDecision::Make(KeyedId { id: Some(id), again: true }),
            KeyStatus::Answered { status, body } => KeyDecision::Answer(replayed(status, body)),
            KeyStatus::Other => {
                let message = "this `Idempotency-Key` was used for another request";
                return Err(Problem::new(ProblemStatus::Refused, "key_reused", message).hint("choose another key"));
            }
        })
    })
    .await
}

fn replayed(status: u16, body: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let mut response = answer::written(status, body.into_bytes());
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

/// Keeps what was answered. A "no" is not kept: nothing was made, and the key can be used again.
async fn end(app: &Arc<App>, key: IdempotencyKey, response: Response, is_secret: bool) -> Response {
    let status = response.status();
    if response.extensions().get::<RefusalReason>().is_some() || !status.is_success() {
        // What is on its way, or broke, may have been made all the same.
        if status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE {
            let dropped = move |service: &Service| {
                service.drop_key(&key);
                Ok(())
            };
            let _ = asked(app, dropped).await;
        }
        return response;
    }
    let (parts, body) = response.into_parts();
    let Ok(body) = body.collect().await.map(|all| all.to_bytes()) else {
        return refuse(&Problem::fault("the answer could not be written"));
    };
    let (kept_status, kept) = match is_secret {
        false => (status.as_u16(), String::from_utf8_lossy(&body).into_owned()),
        // A secret is kept nowhere.
        true => {
            let problem =
                Problem::new(ProblemStatus::Conflict, "secret_told", "the secret of this token has been told before");
            let problem = problem.hint("revoke it, and make another under another key");
            (problem.status.number(), serde_json::to_string(&problem).unwrap_or_default())
        }
    };
    // If it cannot be kept, whoever asks again gets what is there under its name.
    let _ = asked(app, move |service| service.answer_key(&key, kept_status, &kept)).await;
    Response::from_parts(parts, Body::from(body))
}
