//! Pages of another origin: nobody's, unless `--cors` names one, or `*` for every one.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

const METHODS: &str = "GET, POST, PUT, PATCH, DELETE";
const HEADERS: &str = "authorization, content-type, last-event-id";
/// For how many seconds a browser remembers that.
const REMEMBERED: &str = "600";

/// Answers a browser's question whether a page of this origin may ask, and marks the answers for it.
pub(crate) async fn cors(State(origin): State<HeaderValue>, request: Request, next: Next) -> Response {
    let asks = request.headers().get(header::ORIGIN);
    let is_it = asks.is_some_and(|asks| *asks == origin || origin == "*");
    let asks_before =
        request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match is_it && asks_before {
        false => next.run(request).await,
        true => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            let headers = response.headers_mut();
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(HEADERS));
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(REMEMBERED));
            response
        }
    };
    if is_it {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}
