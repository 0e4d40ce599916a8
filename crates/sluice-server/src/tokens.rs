//! The routes of tokens. They are for persons only; the home says so.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{delete, get};

use crate::answer::{ask, said};
use crate::caller::Caller;
use crate::run::App;

type Asked = (State<Arc<App>>, Caller);

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route("/v1/tokens", get(list).post(create)).route("/v1/tokens/{id}", delete(revoke))
}

async fn list((State(app), caller): Asked) -> Response {
    ask(app, caller, |service, who| service.tokens(who)).await
}

async fn create((State(app), caller): Asked, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.create_token(who, said(&body)?)).await
}

async fn revoke((State(app), caller): Asked, Path(id): Path<String>) -> Response {
    ask(app, caller, move |service, who| service.revoke_token(who, &id)).await
}
