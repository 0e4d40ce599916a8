//! The route that makes a link to the page. It stands in the table, because `sluice open` and other programs ask for it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use sluice_api::page_link::{MakePageLink, PageLinkAnswer};
use sluice_api::token::Scope;
use sluice_home::ask::LINK_LASTS;

use crate::answer::Said;
use crate::app::{App, ask};
use crate::caller::RequestCaller;
use crate::page::login_path;
use crate::table::{RouteTable, post};

pub(crate) fn table() -> RouteTable {
    let link = post("/v1/page/links", "Make a link that opens the page in a browser, once")
        .takes::<MakePageLink>()
        .answers::<PageLinkAnswer>()
        .with(StatusCode::OK);
    RouteTable::new("page").add(link, make)
}

async fn make(State(app): State<Arc<App>>, caller: RequestCaller, said: Said<MakePageLink>) -> Response {
    let asked = app.clone();
    ask(app, caller, move |service, who| {
        who.must_be_person("a link to the page")?;
        let scope = said.read()?.scope.unwrap_or(Scope::Person);
        let code = service.make_page_link(who, scope)?;
        let path = login_path(&code);
        let ends = jiff::Timestamp::now() + LINK_LASTS;
        Ok(PageLinkAnswer { url: format!("{}{path}", asked.page_url()?), path, expires_at: format!("{ends:.3}") })
    })
    .await
}
