//! How a browser becomes a caller: a link that opens once makes a session, and so does a token that a person types in.
//!
//! Links are in memory only, by their digest, for two minutes. Sessions are records among the tokens of the home, so an
//! engine that is started again still knows them, `sluice token list` shows them, and `sluice token revoke` ends them.
//!
//! A session is for the page alone, and a token for the API alone: [`Service::bearer`] takes no session, and
//! [`Service::page_bearer`] no token. Cookies know hosts and no ports, so a browser may send its cookie to other servers of
//! this machine. What these then have ends by itself, makes no token and no link, and so nothing that outlives it.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::token::{Scope, Token};
use sluice_core::event_name::EventName;
use sluice_worker::names::{digest, is_same, secret};

use super::access::shown;
use super::{Bearer, Requester, Service};
use crate::background::locked;
use crate::settings::tokens::is_expired;

/// How long a link opens the page.
pub const LINK_LASTS: Duration = Duration::from_secs(120);
/// How long the session of a browser lasts.
pub const SESSION_LASTS: Duration = Duration::from_secs(12 * 3600);
/// The most links that wait to be opened; a further one pushes the oldest out.
const MOST_LINKS: usize = 32;

/// The links that have not been opened yet.
#[derive(Default)]
pub(crate) struct PageLinks(Mutex<Vec<PageLink>>);

struct PageLink {
    digest: String,
    /// Who asked for it: what the session does is done in their name.
    name: String,
    scope: Scope,
    made: Instant,
}

impl Service {
    /// Makes the secret of a link that opens the page once, for a person or only for reading.
    pub fn make_page_link(&self, who: &Requester, scope: Scope) -> Result<String, Problem> {
        who.must_be_person("a link to the page")?;
        let scope = page_scope(scope)?;
        let code = secret("").map_err(Problem::fault)?;
        let name = match who {
            Requester::Person { name } => name.clone(),
            Requester::Session { .. }
            | Requester::Step { .. }
            | Requester::Worker { .. }
            | Requester::Reader { .. }
            | Requester::Nobody => String::new(),
        };
        let mut links = locked(&self.links.0);
        links.retain(PageLink::is_good);
        if links.len() >= MOST_LINKS {
            links.remove(0);
        }
        links.push(PageLink { digest: digest(code.as_bytes()), name, scope, made: Instant::now() });
        Ok(code)
    }

    /// Opens a link: it makes a session, and never opens again. The session's secret is in this answer alone.
    pub fn take_page_link(&self, code: &str) -> Result<Token, Problem> {
        let known = digest(code.as_bytes());
        let mut links = locked(&self.links.0);
        links.retain(PageLink::is_good);
        let place = links.iter().position(|link| is_same(&link.digest, &known)).ok_or_else(|| {
            let message = "this link was used before, or is older than two minutes";
            Problem::new(ProblemStatus::Unauthorized, "unknown_link", message).hint("`sluice open` makes another")
        })?;
        let PageLink { name, scope, .. } = links.remove(place);
        drop(links);
        self.begin_page_session(scope, &name, None)
    }

    /// Makes a session for a browser that shows a token: of the same scope, and at its end when the token is.
    pub fn page_session_of_token(&self, secret: &str) -> Result<Token, Problem> {
        self.bearer(secret).map_err(|denied| denied.problem)?;
        let token = self.tokens.find(secret).filter(|token| page_scope(token.scope).is_ok()).ok_or_else(|| {
            let message = "a token of this scope does not open the page";
            Problem::new(ProblemStatus::Forbidden, "not_enough", message)
                .hint("the page takes tokens of scope `person` and `read`")
        })?;
        self.begin_page_session(token.scope, token.name.as_deref().unwrap_or(&token.id), Some(&token))
    }

    fn begin_page_session(&self, scope: Scope, name: &str, from: Option<&Token>) -> Result<Token, Problem> {
        let session = self.tokens.create_page_session(scope, name, SESSION_LASTS, from)?;
        self.access_changed(EventName::TokenCreated, "engine", &session.id, &shown(&session));
        Ok(session)
    }

    /// Who looks at the page, by the secret of their session.
    pub fn page_bearer(&self, secret: &str) -> Result<Bearer, Problem> {
        let no = |code: &str, message: &str| {
            Err(Problem::new(ProblemStatus::Unauthorized, code, message).hint("`sluice open` makes a new link"))
        };
        let Some(session) = self.tokens.find(secret).filter(|token| self.tokens.is_page_session(&token.id)) else {
            return no("unknown_session", "the engine does not know the session of this browser");
        };
        if session.revoked_at.is_some() {
            return no("token_revoked", "the session of this browser has been ended");
        }
        if is_expired(&session) {
            return no("token_expired", "the session of this browser is over");
        }
        let who = match session.scope {
            Scope::Person => Requester::Person { name: session.name.unwrap_or_else(|| session.id.clone()) },
            Scope::Read | Scope::Worker | Scope::Agent => Requester::Reader { token: session.id.clone() },
        };
        Ok(Bearer { who, token: session.id })
    }

    /// Ends the session of a browser. The token that it may have come from stays as it is.
    pub fn end_page_session(&self, who: &Requester, id: &str) -> Result<(), Problem> {
        if !self.tokens.is_page_session(id) {
            return Ok(());
        }
        self.revoked(who, id).map(drop)
    }

    /// Whether a link waits to be opened, or a session is in force.
    pub fn wants_page(&self) -> bool {
        locked(&self.links.0).iter().any(PageLink::is_good) || self.tokens.has_page_sessions()
    }

    /// What the forms of a session carry, so that no other page can send them. It says nothing about the secret.
    pub fn form_key(&self, secret: &str) -> String {
        digest(format!("form\0{secret}").as_bytes())
    }

    /// Whether that is what the forms of a session carry, in a time that does not say where it differs.
    pub fn is_form_key(&self, secret: &str, key: &str) -> bool {
        is_same(&self.form_key(secret), key)
    }
}

impl PageLink {
    fn is_good(&self) -> bool {
        self.made.elapsed() < LINK_LASTS
    }
}

fn page_scope(scope: Scope) -> Result<Scope, Problem> {
    match scope {
        Scope::Person | Scope::Read => Ok(scope),
        Scope::Worker | Scope::Agent => {
            let message = format!("a link of scope `{}` cannot be made", scope.word());
            Err(Problem::bad_request(message).hint("the page is for `person` and for `read`"))
        }
    }
}
