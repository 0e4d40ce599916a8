//! How a browser gets a session: by a link that opens once, or by a token that a person types in; and how it ends.
//!
//! A link is opened by the address alone. It is answered with a page that leads on, and not with a redirect: a browser that
//! came from elsewhere would not send the new cookie to where a redirect leads.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Form, Query, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;
use sluice_api::Problem;
use sluice_api::event::AccessDenied;
use sluice_api::problem::ProblemStatus;
use sluice_home::ask::SESSION_LASTS;

use super::reply::{html, redirect};
use super::visitor::{Visitor, must_be_same_origin, set_cookie};
use super::{asked, assets, reply};
use crate::access;
use crate::app::App;
use crate::caller::NetworkPeer;

/// The address that opens the page once.
pub(crate) fn login_path(code: &str) -> String {
    format!("/page/login?code={code}")
}

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    problem: Option<&'a Problem>,
    style: String,
}

#[derive(Template)]
#[template(path = "welcome.html")]
struct WelcomePage {
    style: String,
}

#[derive(Deserialize)]
pub(crate) struct LinkQuery {
    #[serde(default)]
    code: String,
}

#[derive(Deserialize)]
pub(crate) struct TokenForm {
    #[serde(default)]
    token: String,
}

#[derive(Deserialize)]
pub(crate) struct KeyForm {
    #[serde(default)]
    key: String,
}

/// The page for a browser without a session.
pub(super) fn ask_for_login(problem: Option<&Problem>) -> Response {
    let page = LoginPage { problem, style: assets::style_address() };
    html(StatusCode::UNAUTHORIZED, page.render().unwrap_or_default())
}

/// `GET /page/login?code=…`: opens a link.
pub(super) async fn by_link(
    State(app): State<Arc<App>>,
    peer: Option<Extension<NetworkPeer>>,
    headers: HeaderMap,
    Query(LinkQuery { code }): Query<LinkQuery>,
) -> Response {
    if code.is_empty() {
        return ask_for_login(None);
    }
    if is_looked_at_ahead(&headers) {
        return reply::bare_problem(&Problem::bad_request("a link is opened by a person, and not ahead of time"));
    }
    app.touch();
    let asked = app.clone();
    let taken = tokio::task::spawn_blocking(move || asked.service.take_page_link(&code)).await;
    match taken.unwrap_or_else(|_| Err(Problem::fault("the link could not be looked at"))) {
        Ok(token) => {
            let welcome = WelcomePage { style: assets::style_address() };
            let mut response = html(StatusCode::OK, welcome.render().unwrap_or_default());
            let cookie = set_cookie(&headers, token.secret.as_deref().unwrap_or_default(), SESSION_LASTS.as_secs());
            response.headers_mut().insert(header::SET_COOKIE, cookie);
            response
        }
        Err(problem) => {
            denied(app, &Method::GET, &problem, peer).await;
            ask_for_login(Some(&problem))
        }
    }
}

/// `POST /page/login`: takes a token that a person has. The session has its scope, and ends with it; the token itself is
/// in no cookie, which a browser would send to every server of this host.
pub(super) async fn by_token(
    State(app): State<Arc<App>>,
    peer: Option<Extension<NetworkPeer>>,
    headers: HeaderMap,
    Form(TokenForm { token }): Form<TokenForm>,
) -> Response {
    if let Err(problem) = must_be_same_origin(&headers) {
        return ask_for_login(Some(&problem));
    }
    app.touch();
    let (asked, shown) = (app.clone(), token.trim().to_owned());
    let made = tokio::task::spawn_blocking(move || asked.service.page_session_of_token(&shown));
    match made.await.unwrap_or_else(|_| Err(Problem::fault("the token could not be looked at"))) {
        Ok(session) => {
            let mut response = redirect("/");
            let secret = session.secret.as_deref().unwrap_or_default();
            let cookie = set_cookie(&headers, secret, SESSION_LASTS.as_secs());
            response.headers_mut().insert(header::SET_COOKIE, cookie);
            response
        }
        Err(problem) => {
            denied(app, &Method::POST, &problem, peer).await;
            ask_for_login(Some(&problem))
        }
    }
}

/// `POST /page/logout`: ends the session.
pub(super) async fn out(
    State(app): State<Arc<App>>,
    visitor: Visitor,
    headers: HeaderMap,
    Form(KeyForm { key }): Form<KeyForm>,
) -> Response {
    if let Err(problem) = visitor.must_have_sent(&app, &headers, Some(&key)) {
        return reply::bare_problem(&problem);
    }
    let id = visitor.bearer.token.clone();
    let ended = asked(&app, visitor.who(), move |service, who| service.end_page_session(who, &id)).await;
    app.revoke();
    app.tend_page_door();
    let mut response = match ended {
        Ok(()) => redirect("/page/login"),
        Err(problem) => reply::bare_problem(&problem),
    };
    response.headers_mut().insert(header::SET_COOKIE, set_cookie(&headers, "", 0));
    response
}

/// Whether a browser or a program looks at a link before a person opens it.
fn is_looked_at_ahead(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mode = text("sec-fetch-mode");
    text("purpose") == "prefetch" || text("sec-purpose").contains("prefetch") || !["", "navigate"].contains(&mode)
}

/// Writes down that a link or a token did not open the page. Neither of them is written anywhere.
async fn denied(app: Arc<App>, method: &Method, problem: &Problem, peer: Option<Extension<NetworkPeer>>) {
    if !matches!(problem.status, ProblemStatus::Unauthorized | ProblemStatus::Forbidden) {
        return;
    }
    let peer = peer.map(|Extension(peer)| peer.0.to_string()).unwrap_or_default();
    let denied = AccessDenied {
        reason: problem.code.clone(),
        token: None,
        who: None,
        method: method.to_string(),
        path: "/page/login".to_owned(),
        peer,
        unrecorded: 0,
        at: None,
    };
    access::record(app, "", denied).await;
}
