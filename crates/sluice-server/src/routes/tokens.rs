//! The routes of tokens. They are for persons only; the home says so.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use sluice_api::token::{CreateToken, TokenAnswer};

use crate::answer::Said;
use crate::app::{App, ask};
use crate::caller::RequestCaller;
use crate::table::{RouteAudience, RouteTable, delete, get, post};

pub(crate) fn table() -> RouteTable {
    RouteTable::new("tokens")
        .ask(
            get("/v1/tokens", "List tokens, without their secrets").for_(RouteAudience::Persons),
            |service, who, ()| service.tokens(who),
        )
        .ask(
            post("/v1/tokens", "Create a token; the answer is the only one that has its secret").creates(),
            |service, who, said: Said<CreateToken>| service.create_token(who, said.read()?),
        )
        .add(delete("/v1/tokens/{id}", "Revoke a token").answers::<TokenAnswer>(), revoke)
}

async fn revoke(State(app): State<Arc<App>>, caller: RequestCaller, Path(id): Path<String>) -> Response {
    let answer = ask(app.clone(), caller, move |service, who| service.revoke_token(who, &id)).await;
    app.revoke();
    answer
}
