//! Who looks at the page: the session in the cookie, whether a form is one of ours, and the limits of both.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use sluice_api::Problem;
use sluice_api::problem::ProblemStatus;
use sluice_home::ask::{Bearer, Requester};
use sluice_home::settings::tokens::PAGE_MARK;

use super::{login, reply};
use crate::app::App;
use crate::caller::RequestCaller;
use crate::limits::connections::ConnectionVisit;

/// The header by which a proxy, or this engine itself, says that the browser came over TLS.
pub(super) const OUTER_SCHEME: &str = "x-forwarded-proto";
/// The longest secret that is looked at, in bytes.
const LONGEST_SECRET: usize = 200;

/// A browser with a session.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub(crate) bearer: Bearer,
    secret: String,
    /// What each form carries.
    pub(crate) form_key: String,
}

impl Visitor {
    /// Whether there are buttons: a session for reading has none.
    pub(crate) fn may_act(&self) -> bool {
        self.bearer.who.is_person()
    }

    pub(crate) fn who(&self) -> &Requester {
        &self.bearer.who
    }

    pub(crate) fn caller(&self) -> RequestCaller {
        RequestCaller::Bearer(self.bearer.clone())
    }

    /// As the page names the visitor.
    pub(crate) fn name(&self) -> &str {
        match &self.bearer.who {
            Requester::Person { name } => name.trim_end_matches(PAGE_MARK),
            Requester::Reader { .. } => "read only",
            Requester::Session { .. } | Requester::Step { .. } | Requester::Worker { .. } | Requester::Nobody => "",
        }
    }

    /// Whether a form is one of ours: it comes from our origin and carries the key of this session.
    pub(crate) fn must_have_sent(&self, app: &App, headers: &HeaderMap, key: Option<&str>) -> Result<(), Problem> {
        must_be_same_origin(headers)?;
        let key = key.and_then(unmasked);
        if key.is_some_and(|key| app.service.is_form_key(&self.secret, &key)) {
            return Ok(());
        }
        let message = "this form belongs to another session of the browser";
        Err(Problem::new(ProblemStatus::Forbidden, "wrong_form", message)
            .hint("load the page again, then send the form"))
    }
}

#[cfg(test)]
impl Visitor {
    /// A visitor for the test of a page: a person, or a reader.
    pub(crate) fn sample(may_act: bool) -> Visitor {
        let who = match may_act {
            true => Requester::person("ada (page)"),
            false => Requester::Reader { token: "t1".to_owned() },
        };
        Visitor { bearer: Bearer { who, token: "t1".to_owned() }, secret: String::new(), form_key: "KEY".to_owned() }
    }
}

impl FromRequestParts<Arc<App>> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Visitor, Response> {
        let Some(secret) = cookie(&parts.headers) else { return Err(login::ask_for_login(None)) };
        let (asked, shown) = (app.clone(), secret.clone());
        let found = tokio::task::spawn_blocking(move || asked.service.page_bearer(&shown)).await;
        let bearer = match found {
            Ok(Ok(bearer)) => bearer,
            Ok(Err(problem)) => return Err(login::ask_for_login(Some(&problem))),
            Err(_) => return Err(reply::bare_problem(&Problem::fault("the session could not be looked at"))),
        };
        if let Err(denied) = limited(app, parts, &bearer) {
            return Err(*denied);
        }
        let form_key = masked(&app.service.form_key(&secret));
        Ok(Visitor { bearer, secret, form_key })
    }
}

/// How often a session may ask, and how many connections it may have: as a token may.
fn limited(app: &App, parts: &Parts, bearer: &Bearer) -> Result<(), Box<Response>> {
    if let Err(wait) = app.rates.take(&bearer.token, Instant::now()) {
        let problem = Problem::new(ProblemStatus::TooMany, "too_many_requests", "this session asks too often");
        let mut response = reply::bare_problem(&problem.hint("wait a moment, then load the page again"));
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1));
        return Err(Box::new(response));
    }
    let visit = parts.extensions.get::<Arc<ConnectionVisit>>();
    if visit.is_some_and(|visit| !app.network.admit(visit, &bearer.token)) {
        let problem = Problem::unavailable("there is no room for another connection of this session");
        return Err(Box::new(reply::bare_problem(&problem.hint("close a window of the page, and try again"))));
    }
    Ok(())
}

/// The key of a session under a mask of its own in every answer: pages are compressed and hold texts of others beside it,
/// and the length of the answer must not tell how much of the key such a text has guessed.
fn masked(key: &str) -> String {
    let mut mask = vec![0; key.len()];
    // Without random numbers the key goes as it is: the cookie stays at this site all the same.
    let _ = getrandom::fill(&mut mask);
    let hidden = mask.iter().zip(key.bytes()).map(|(mask, byte)| mask ^ byte);
    mask.iter().copied().chain(hidden).map(|byte| format!("{byte:02x}")).collect()
}

fn unmasked(text: &str) -> Option<String> {
    let digits = text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    let bytes = digits.collect::<Option<Vec<u8>>>()?;
    let (mask, hidden) = bytes.split_at(bytes.len() / 2);
    String::from_utf8(mask.iter().zip(hidden).map(|(mask, byte)| mask ^ byte).collect()).ok()
}

/// Refuses a form that another origin sends. A browser says of every form where it comes from, in one way or the other.
pub(crate) fn must_be_same_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text("host").unwrap_or_default();
    let site = text("sec-fetch-site").map(|site| site == "same-origin");
    let origin = text("origin").map(|origin| origin.split_once("://").is_some_and(|(_, from)| from == host));
    match (site, origin) {
        (Some(false), _) | (_, Some(false)) | (None, None) => {
            let message = "the form was sent by a page of another origin";
            Err(Problem::new(ProblemStatus::Forbidden, "wrong_origin", message)
                .hint("open the page itself, and try there"))
        }
        (Some(true), Some(true) | None) | (None, Some(true)) => Ok(()),
    }
}

/// The name of the cookie. Cookies know hosts and no ports, and several homes may be at one host.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let port =
        host.rsplit_once(':').map(|(_, port)| port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    format!("sluice_{}", port.unwrap_or_default())
}

/// The secret in the cookie of this engine.
fn cookie(headers: &HeaderMap) -> Option<String> {
    let name = cookie_name(headers);
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let found = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next_back()?;
    (!found.is_empty() && found.len() <= LONGEST_SECRET).then(|| found.to_owned())
}

/// The cookie that keeps a session for so many seconds; none left ends it. Over TLS, the browser never sends it without.
pub(crate) fn set_cookie(headers: &HeaderMap, secret: &str, seconds: u64) -> HeaderValue {
    let is_plain = secret.bytes().all(|byte| byte.is_ascii_graphic() && !b";,\"\\".contains(&byte));
    let secret = if is_plain { secret } else { "" };
    let proxied = headers.get(OUTER_SCHEME).and_then(|value| value.to_str().ok());
    let secure = if proxied == Some("https") { "; Secure" } else { "" };
    let name = cookie_name(headers);
    let text = format!("{name}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("sluice_=; Path=/; Max-Age=0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        all.iter()
            .map(|(name, value)| (header::HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn only_forms_of_our_own_origin_are_taken() {
        let host = ("host", "sluice-ab.localhost:7001");
        let is_taken = |all: &[(&'static str, &'static str)]| must_be_same_origin(&headers(all)).is_ok();
        assert!(is_taken(&[host, ("origin", "http://sluice-ab.localhost:7001")]));
        assert!(is_taken(&[host, ("origin", "http://sluice-ab.localhost:7001"), ("sec-fetch-site", "same-origin")]));
        assert!(is_taken(&[host, ("sec-fetch-site", "same-origin")]));
        assert!(!is_taken(&[host]));
        assert!(!is_taken(&[host, ("origin", "null")]));
        assert!(!is_taken(&[host, ("origin", "http://sluice-ab.localhost:7002")]));
        assert!(!is_taken(&[host, ("origin", "http://evil.example"), ("sec-fetch-site", "same-origin")]));
        for site in ["cross-site", "same-site", "none"] {
            assert!(!is_taken(&[host, ("origin", "http://sluice-ab.localhost:7001"), ("sec-fetch-site", site)]));
        }
    }

    #[test]
    fn the_key_of_a_form_is_under_another_mask_each_time() {
        let (one, other) = (masked("a key"), masked("a key"));
        assert_ne!(one, other);
        assert_eq!((unmasked(&one), unmasked(&other)), (Some("a key".to_owned()), Some("a key".to_owned())));
        assert_eq!((unmasked("zz"), unmasked("").as_deref()), (None, Some("")));
    }

    #[test]
    fn the_cookie_is_of_one_engine_and_no_script_can_read_it() {
        let at = headers(&[("host", "127.0.0.1:7433"), ("cookie", "a=b; sluice_80=no; sluice_7433=yes; c=d")]);
        assert_eq!(cookie(&at).as_deref(), Some("yes"));
        assert_eq!(cookie(&headers(&[("host", "127.0.0.1:7433"), ("cookie", "sluice_7433=")])), None);
        let set = set_cookie(&at, "sluice_x", 60);
        assert_eq!(set, "sluice_7433=sluice_x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict");
        assert_eq!(set_cookie(&at, "a;b", 60), "sluice_7433=; Path=/; Max-Age=60; HttpOnly; SameSite=Strict");
        let proxied = headers(&[("host", "sluice.example"), ("x-forwarded-proto", "https")]);
        assert_eq!(set_cookie(&proxied, "x", 1), "sluice_=x; Path=/; Max-Age=1; HttpOnly; SameSite=Strict; Secure");
    }
}
