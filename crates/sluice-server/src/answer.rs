//! From questions to answers: what a request says, who says it, and what is sent back.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::connect_info::Connected;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::serve::IncomingStream;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sluice_api::Problem;
use sluice_api::client::VERSION_HEADER;
use sluice_api::problem::Status;
use sluice_home::service::{Service, Who};
use tokio::net::UnixListener;

use crate::run::App;

/// The process at the other end of the socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pid: Option<i32>,
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        Peer { pid: stream.io().peer_cred().ok().and_then(|credentials| credentials.pid()) }
    }
}

impl Peer {
    fn who(self, service: &Service) -> Result<Who, Problem> {
        let unknown = || Problem::new(Status::Forbidden, "unknown_asker", "the system does not say who asks");
        service.who(self.pid.ok_or_else(unknown)?)
    }
}

/// Asks on a thread that may wait, and answers with what came of it.
pub(crate) async fn ask<T: Serialize + Send + 'static>(
    app: Arc<App>,
    peer: Peer,
    question: impl FnOnce(&Service, &Who) -> Result<T, Problem> + Send + 'static,
) -> Response {
    app.touch();
    let done = tokio::task::spawn_blocking(move || {
        let who = peer.who(&app.service)?;
        question(&app.service, &who)
    });
    match done.await {
        Ok(Ok(answer)) => json(StatusCode::OK, &answer),
        Ok(Err(problem)) => refuse(&problem),
        Err(_) => refuse(&Problem::fault("something of Sluice's own broke while it answered; see the log")),
    }
}

/// What a request's body says; a body that says something else is named.
pub(crate) fn said<T: DeserializeOwned>(body: &Bytes) -> Result<T, Problem> {
    let body: &[u8] = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| Problem::bad_request(format!("the request cannot be read: {error}")))
}

/// A JSON document.
pub(crate) fn json(status: StatusCode, document: &impl Serialize) -> Response {
    let body = serde_json::to_vec(document).unwrap_or_default();
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(VERSION_HEADER, HeaderValue::from_static(env!("CARGO_PKG_VERSION")));
    response
}

/// A "no".
pub(crate) fn refuse(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status.number()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json(status, problem)
}
