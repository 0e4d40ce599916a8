//! What holds for every answer: an error is JSON of one shape, a fault of ours ends one request and no more, and over the
//! network nothing takes for ever.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt;
use http_body_util::{BodyExt, Limited};
use sluice_api::Problem;
use sluice_api::client::{CONFIG_HEADER, DAMAGE_HEADER, PAUSED_HEADER, escape};
use sluice_api::problem::ProblemStatus;

use crate::answer::refuse;
use crate::app::App;

/// The last word of a path that asks for more than one thing.
const MANY: [&str; 9] =
    ["tasks", "runs", "processes", "missions", "workflows", "inbox", "events", "status", "workspaces"];
/// So many things that are damaged are named beside an answer.
const MOST_TOLD: usize = 20;
/// The most of another's words that is told on.
const LONGEST_WORDS: usize = 4096;

#[derive(Clone)]
pub(crate) struct RequestBounds {
    pub(crate) app: Arc<App>,
    pub(crate) largest: usize,
    /// How long a request may take in all.
    pub(crate) within: Option<Duration>,
}

/// Answers a request, whatever becomes of it, in the one shape.
pub(crate) async fn answer(State(bounds): State<RequestBounds>, request: Request, next: Next) -> Response {
    let RequestBounds { app, largest, within } = bounds;
    if let Err(problem) = readable(&request, largest) {
        return refuse(&problem);
    }
    let asked = (request.method() == Method::GET).then(|| request.uri().path().to_owned());
    let answering = AssertUnwindSafe(next.run(request)).catch_unwind();
    let answered = match within {
        None => Ok(answering.await),
        Some(within) => tokio::time::timeout(within, answering).await,
    };
    match answered {
        Ok(Ok(response)) => {
            let response = while_present(&app, response).await;
            with_damage(&app, asked.as_deref(), shaped(response).await)
        }
        Ok(Err(panic)) => {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            app.broke(words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked"))
        }
        Err(_) => refuse(
            &Problem::unavailable("the request timed out")
                .hint("it may be done all the same: look before you ask again, or ask with the same `Idempotency-Key`"),
        ),
    }
}

/// Nothing is answered of a store that is not in its place any more, and nothing that was stored there is called so.
async fn while_present(app: &Arc<App>, response: Response) -> Response {
    if !response.status().is_success() || app.service.is_present() {
        return response;
    }
    let asked = app.clone();
    let gone = tokio::task::spawn_blocking(move || asked.service.gone()).await;
    refuse(&gone.unwrap_or_else(|_| Problem::unavailable("the store is not in its place any more")))
}

/// Says beside an answer that agents are paused, that the settings in the file do not count, and what of the store is
/// damaged: the rest is answered, and whoever asks must not take it for all.
/// One who asks for one thing is told only if that is hit, or the store as a whole.
fn with_damage(app: &App, path: Option<&str>, mut response: Response) -> Response {
    for (header, words) in [(PAUSED_HEADER, app.service.paused()), (CONFIG_HEADER, app.service.config_trouble())] {
        if let Some(Ok(value)) = words.map(|words| HeaderValue::from_str(&escape(&words))) {
            response.headers_mut().insert(header, value);
        }
    }
    let Some(path) = path.filter(|_| response.status().is_success()) else { return response };
    let known = app.service.damage();
    if known.is_empty() || path == "/healthz" {
        return response;
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    let is_of_many = MANY.contains(&last);
    let hits = |what: &str| what.split_once('/').is_none_or(|(_, id)| is_of_many || path.contains(id));
    let told = known.iter().filter(|(what, _)| hits(what)).take(MOST_TOLD);
    let words: Vec<String> = told.map(|(what, why)| format!("{what}: {why}")).collect();
    if let (false, Ok(value)) = (words.is_empty(), HeaderValue::from_str(&escape(&words.join("; ")))) {
        response.headers_mut().insert(DAMAGE_HEADER, value);
    }
    response
}

/// Refuses a body before it is read, where its head says enough.
fn readable(request: &Request, largest: usize) -> Result<(), Problem> {
    let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let length = text(header::CONTENT_LENGTH).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    if length > largest as u64 {
        return Err(too_large(largest));
    }
    let is_read = |form: &str| {
        let form = form.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        // What curl says unless it is told better.
        form == "application/json" || form.ends_with("+json") || form == "application/x-www-form-urlencoded"
    };
    let has_body = length > 0 || text(header::TRANSFER_ENCODING).is_some();
    match text(header::CONTENT_TYPE).filter(|form| has_body && !is_read(form)) {
        None => Ok(()),
        Some(form) => {
            let message = format!("`{}` is not read here", form.escape_debug());
            Err(Problem::new(ProblemStatus::WrongForm, "not_json", message).hint("send application/json"))
        }
    }
}

fn too_large(largest: usize) -> Problem {
    let message = format!("a request has at most {largest} bytes");
    Problem::new(ProblemStatus::TooLarge, "too_large", message)
        .hint("pass less, or put it into a file in the repository")
}

/// An error that is not in our shape yet: it comes from axum, as a line of text.
async fn shaped(response: Response) -> Response {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if !is_error || is_json(response.headers()) {
        return response;
    }
    let (head, body) = response.into_parts();
    let words = Limited::new(body, LONGEST_WORDS).collect().await.map(|all| all.to_bytes()).unwrap_or_default();
    let words = String::from_utf8_lossy(&words).into_owned();
    let mut shaped = refuse(&problem(status, words));
    if let Some(allow) = head.headers.get(header::ALLOW) {
        shaped.headers_mut().insert(header::ALLOW, allow.clone());
    }
    *shaped.status_mut() = status;
    shaped
}

fn is_json(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|form| form.as_bytes().starts_with(b"application/json"))
}

fn problem(status: StatusCode, words: String) -> Problem {
    let kind = ProblemStatus::of(status.as_u16());
    match kind {
        ProblemStatus::WrongMethod => Problem::new(kind, "wrong_method", "method not allowed")
            .hint("the `Allow` header lists the methods of this route"),
        ProblemStatus::TooLarge => {
            Problem::new(kind, "too_large", "the request is larger than anything that is read here")
        }
        ProblemStatus::BadRequest => Problem::bad_request(words),
        ProblemStatus::NotFound => Problem::not_found(words),
        ProblemStatus::Accepted
        | ProblemStatus::Unauthorized
        | ProblemStatus::Forbidden
        | ProblemStatus::Conflict
        | ProblemStatus::WrongForm
        | ProblemStatus::Refused
        | ProblemStatus::TooMany
        | ProblemStatus::Fault
        | ProblemStatus::Unavailable => Problem::new(kind, "refused", words),
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use sluice_home::ask::Service;
    use sluice_home::settings::places::HomePaths;
    use tower_service::Service as _;

    use super::*;

    async fn asked(router: &Router, path: &str) -> (u16, String) {
        let request = Request::builder().uri(path).body(Body::empty()).expect("a request");
        let response = router.clone().call(request).await.expect("it always answers");
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.expect("a body").to_bytes();
        let said: Problem = serde_json::from_slice(&bytes).expect("the one shape");
        (status, said.code)
    }

    #[test]
    fn a_fault_of_ours_ends_one_request_and_what_takes_for_ever_is_given_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let places = HomePaths::new(folder.path());
        let _log = sluice_home::settings::log::begin_here(&places.log());
        let program = std::env::current_exe().expect("this test");
        let service = Service::open(places.clone(), Some("memory:".into()), program).expect("a home");
        let app = Arc::new(App::new(service, None));
        let within = Some(Duration::from_millis(20));
        let bounds = RequestBounds { app: app.clone(), largest: 1000, within };
        let router = Router::new()
            .route("/breaks", get(async || -> &'static str { panic!("out of coffee") }))
            .route("/never", get(std::future::pending::<&'static str>))
            .route("/words", get(async || (StatusCode::BAD_REQUEST, "said by somebody else")))
            .layer(from_fn_with_state(bounds, answer));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            assert_eq!(asked(&router, "/breaks").await, (500, "fault".into()));
            assert_eq!(asked(&router, "/never").await, (503, "unavailable".into()));
            assert_eq!(asked(&router, "/words").await, (400, "bad_request".into()));
            assert_eq!(asked(&router, "/nowhere").await, (404, "not_found".into()));
        });
        app.service.close().expect("closed");
        let written = std::fs::read_to_string(places.log()).expect("a log");
        assert!(written.contains("out of coffee"), "{written}");
    }
}
