//! The routes of tokens. They are for persons only; the home says so.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::Response;
use sluice_api::token::{CreateToken, TokenAnswer, TokenList};

use crate::answer::said;
use crate::app::App;
use crate::app::ask;
use crate::caller::RequestCaller;
use crate::table::{RouteAudience, RouteTable, delete, get, post};

type TokensCall = (State<Arc<App>>, RequestCaller);

pub(crate) fn table() -> RouteTable {
    RouteTable::new("tokens")
        .add(
            get("/v1/tokens", "List tokens, without their secrets").answers::<TokenList>().for_(RouteAudience::Persons),
            list,
        )
        .add(
            post("/v1/tokens", "Create a token; the answer is the only one that has its secret")
                .takes::<CreateToken>()
                .answers::<TokenAnswer>()
                .creates(),
            create,
        )
        .add(delete("/v1/tokens/{id}", "Revoke a token").answers::<TokenAnswer>(), revoke)
}

async fn list((State(app), caller): TokensCall) -> Response {
    ask(app, caller, |service, who| service.tokens(who)).await
}

async fn create((State(app), caller): TokensCall, body: Bytes) -> Response {
    ask(app, caller, move |service, who| service.create_token(who, said(&body)?)).await
}

async fn revoke((State(app), caller): TokensCall, Path(id): Path<String>) -> Response {
    let answer = ask(app.clone(), caller, move |service, who| service.revoke_token(who, &id)).await;
    app.revoke();
    answer
}
