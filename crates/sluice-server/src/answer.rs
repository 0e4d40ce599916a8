//! From questions to answers: what a request says, and what is sent back.

use std::marker::PhantomData;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sluice_api::Problem;
use sluice_api::client::VERSION_HEADER;
use sluice_api::problem::ProblemStatus;

use crate::limits::LONGEST_FIELD;

/// The body of a request. It is read when it is known who asks: a caller that may not ask hears that first.
pub(crate) struct Said<T>(Bytes, PhantomData<fn() -> T>);

impl<T, S: Send + Sync> FromRequest<S> for Said<T> {
    type Rejection = BytesRejection;

    async fn from_request(request: Request, state: &S) -> Result<Self, BytesRejection> {
        Ok(Said(Bytes::from_request(request, state).await?, PhantomData))
    }
}

impl<T: DeserializeOwned> Said<T> {
    /// What the body says; a body that says something else is named.
    pub(crate) fn read(&self) -> Result<T, Problem> {
        let body: &[u8] = if self.0.is_empty() { b"{}" } else { &self.0 };
        bounded(body)?;
        // A list of the right length would be taken for the fields in their order.
        if body.trim_ascii_start().first() != Some(&b'{') {
            serde_json::from_slice::<Value>(body).map_err(|error| unreadable(&error))?;
            return Err(Problem::bad_request("the request cannot be read: it is no object").hint("send an object: {…}"));
        }
        serde_json::from_slice(body).map_err(|error| unreadable(&error))
    }
}

impl<T> Said<T> {
    pub(crate) fn document(&self) -> Result<Value, Problem> {
        bounded(&self.0)?;
        serde_json::from_slice(&self.0).map_err(|error| unreadable(&error))
    }
}

/// Refuses a body in which one text is longer than anything is that somebody says.
fn bounded(body: &[u8]) -> Result<(), Problem> {
    if body.len() <= LONGEST_FIELD {
        return Ok(());
    }
    let document: Value = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    match longest(&document) {
        Some((field, length)) if length > LONGEST_FIELD => {
            let message = format!("`{field}` has {length} bytes, and a text has at most {LONGEST_FIELD}");
            Err(Problem::new(ProblemStatus::TooLarge, "too_large", message)
                .hint("put it into a file in the repository"))
        }
        Some(_) | None => Ok(()),
    }
}

/// The longest text of a document, and the field of the document that it is in.
fn longest(document: &Value) -> Option<(&str, usize)> {
    fn length(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(length).max().unwrap_or(0),
            Value::Object(fields) => fields.iter().map(|(key, value)| key.len().max(length(value))).max().unwrap_or(0),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }
    let fields = document.as_object()?.iter().map(|(key, value)| (key.as_str(), length(value)));
    fields.max_by_key(|(_, length)| *length)
}

fn unreadable(error: &serde_json::Error) -> Problem {
    Problem::bad_request(format!("the request cannot be read: {error}"))
}

pub(crate) fn json(status: StatusCode, document: &impl Serialize) -> Response {
    written(status, serde_json::to_vec(document).unwrap_or_default())
}

/// A JSON document that is written already.
pub(crate) fn written(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(VERSION_HEADER, HeaderValue::from_static(env!("CARGO_PKG_VERSION")));
    response
}

/// Why a caller was refused, for the layer that writes that down.
#[derive(Clone, Debug)]
pub(crate) struct RefusalReason(pub(crate) String);

pub(crate) fn refuse(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status.number()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, problem);
    response.extensions_mut().insert(RefusalReason(problem.code.clone()));
    response
}
