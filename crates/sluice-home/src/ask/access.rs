//! Who asks over the network: the tokens, what each allows, and the record of those who were turned away.

use std::time::{Duration, Instant};

use serde::Serialize;
use sluice_api::control::Register;
use sluice_api::event::{AccessDenied, TokenChanged};
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::token::{CreateToken, Scope, Token, TokenAnswer, TokenList};
use sluice_core::event_name::EventName;
use sluice_core::task::session::SessionRole;
use sluice_engine::host::PendingAnswer;
use sluice_engine::reactor::ReactorAnswer;
use sluice_os::redact::redacted;
use sluice_os::session::SessionId;
use sluice_worker::names::PREFIX;

use super::who::whose;
use super::{Requester, Service};
use crate::ask::denied::DeniedBacklog;
use crate::home::registry::{note, note_as};
use crate::perform::is_secret_of;
use crate::settings::ids::LOCAL;
use crate::settings::tokens::{RevokedToken, TokenRequest, is_expired, period};

/// How long a caller who is turned away waits for that to be written down.
const STORED_WITHIN: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct Bearer {
    pub who: Requester,
    /// By what the token is known: its id, or the name of the session. Never its secret.
    pub token: String,
}

#[derive(Clone, Debug)]
pub struct DeniedBearer {
    pub problem: Problem,
    /// By what the token is known, if it is.
    pub token: Option<String>,
}

impl Service {
    pub fn bearer(&self, secret: &str) -> Result<Bearer, DeniedBearer> {
        if let Some((session, _)) = secret.strip_prefix(PREFIX).and_then(|rest| rest.split_once('~')) {
            return self.session_bearer(session, secret);
        }
        let Some(token) = self.tokens.find(secret) else { return Err(unknown()) };
        if self.tokens.is_page_session(&token.id) {
            let message = "this is the session of a browser, which opens the page and nothing else";
            let problem = Problem::new(ProblemStatus::Unauthorized, "page_session", message)
                .hint("`sluice token create` on the engine's machine makes a token");
            return Err(DeniedBearer { problem, token: Some(token.id) });
        }
        let denied = |problem| DeniedBearer { problem, token: Some(token.id.clone()) };
        let over = [
            (token.revoked_at.is_some(), "token_revoked", "this token has been revoked"),
            (is_expired(&token), "token_expired", "this token has expired"),
        ];
        if let Some((_, code, message)) = over.into_iter().find(|(is_so, ..)| *is_so) {
            let problem = Problem::new(ProblemStatus::Unauthorized, code, message);
            return Err(denied(problem.hint("`sluice token create` makes another")));
        }
        let who = match token.scope {
            Scope::Person => Requester::Person { name: token.name.clone().unwrap_or_else(|| token.id.clone()) },
            Scope::Worker => Requester::Worker { token: token.id.clone() },
            Scope::Read => Requester::Reader { token: token.id.clone() },
            Scope::Agent => match &token.task {
                Some(task) => self.agent_of(task).map_err(denied)?,
                // It speaks for no task, so all it can do is look.
                None => Requester::Reader { token: token.id.clone() },
            },
        };
        Ok(Bearer { who, token: token.id })
    }

    /// Whether a token that let a caller in still would, by what it is known by.
    pub fn still_lets_in(&self, token: &str) -> bool {
        self.tokens.is_in_force(token).unwrap_or_else(|| self.home.roster.is_at(token))
    }

    /// A session shows the secret that it was started with. With the session the secret ends. On this machine every process
    /// of the user can read it from the session's environment: there the process says who asks, at the socket, and the
    /// secret nothing.
    fn session_bearer(&self, session: &str, secret: &str) -> Result<Bearer, DeniedBearer> {
        let id = SessionId::new(session).map_err(|_| unknown())?;
        if !is_secret_of(&self.home.context.places.attempt(id.as_str()), secret) {
            return Err(unknown());
        }
        let denied = |problem| DeniedBearer { problem, token: Some(id.to_string()) };
        if !self.home.roster.is_at(id.as_str()) {
            return Err(denied(match self.home.context.sessions.is_living(&id) {
                true => Problem::new(
                    ProblemStatus::Forbidden,
                    "wrong_door",
                    "the session of this token runs on the engine's own machine, and its token opens nothing here",
                )
                .hint("ask at the engine's socket: `sluice` does that where SLUICE_URL is not set"),
                false => Problem::new(ProblemStatus::Unauthorized, "session_over", "the session of this token is over"),
            }));
        }
        // Over the network a step is never more than itself: its worker sees the secret before the step does.
        let who = whose(&id).ok_or_else(|| denied(Problem::fault(format!("a session called {id}"))))?;
        Ok(Bearer { who, token: id.to_string() })
    }

    /// Whoever speaks for a task speaks as its living worker. What a reviewer says is said by the reviewer's own session.
    fn agent_of(&self, task: &str) -> Result<Requester, Problem> {
        let no = |why: &str, hint: String| {
            let message = format!("task {task} {why}, so no token can speak for it");
            Problem::new(ProblemStatus::Forbidden, "no_session", message).hint(hint)
        };
        let again = || format!("`sluice task respawn {task}` starts its agent again");
        let seen = self.home.tasks.named(task)?.ok_or_else(|| no("is gone", again()))?;
        let agent = Some(&seen.state.main).filter(|main| main.is_living()).and_then(|main| main.agent());
        let agent = agent.ok_or_else(|| no("has no living session", again()))?;
        match agent.role {
            SessionRole::Worker => Ok(Requester::Session { task: seen.id, number: agent.id }),
            SessionRole::Reviewer => Err(no(
                "is being reviewed, and an agent's token speaks for its worker",
                "wait for the review".to_owned(),
            )),
        }
    }

    /// Makes a token; its secret is told this once.
    pub fn create_token(&self, who: &Requester, wanted: CreateToken) -> Result<TokenAnswer, Problem> {
        who.must_be_person("making a token")?;
        let is_worker = wanted.scope == Scope::Worker;
        if !is_worker && (wanted.colony.is_some() || wanted.role.is_some()) {
            let message = "only a worker's token belongs to a project, a colony or a role";
            return Err(Problem::bad_request(message).hint("`scope=worker`, or no project, colony and role"));
        }
        let group = match &wanted.colony {
            None => None,
            Some(id) if id == LOCAL => {
                let message = format!("the work of the colony `{LOCAL}` is done by the engine's own machine alone");
                return Err(Problem::bad_request(message).hint("POST /v1/colonies founds a colony for workers"));
            }
            Some(id) => Some(crate::roster::groups::find(&self.home, id)?.colony_id),
        };
        if let Some(role) = &wanted.role {
            crate::roster::groups::must_be_a_name("role", role)?;
        }
        let expires = wanted.expires.as_deref().map(period).transpose()?;
        let task = match (wanted.scope, wanted.task) {
            (Scope::Agent, Some(task)) => Some(self.home.tasks.find(&task)?.id.into()),
            (Scope::Agent | Scope::Person | Scope::Worker | Scope::Read, None) => None,
            (Scope::Person | Scope::Worker | Scope::Read, Some(_)) => {
                let message = "only an agent's token belongs to a task";
                return Err(Problem::bad_request(message).hint("`scope=agent`, or no task"));
            }
        };
        let (scope, name, role) = (wanted.scope, wanted.name, wanted.role);
        let token = self.tokens.create(TokenRequest { scope, name, task, colony: group, role, expires })?;
        self.access_changed(EventName::TokenCreated, &who.label(), &token.id, &shown(&token));
        Ok(TokenAnswer { token })
    }

    /// Whether a worker may register with a group, as something. A person may.
    pub(crate) fn may_register(&self, who: &Requester, wanted: &Register) -> Result<(), Problem> {
        let Requester::Worker { token } = who else { return Ok(()) };
        let group = match (crate::roster::groups::find(&self.home, &wanted.colony_id), self.tokens.group_of(token)) {
            (Ok(group), _) => group.colony_id,
            // Whether there is another group is not for its ears.
            (Err(_), Some(_)) => wanted.colony_id.clone(),
            (Err(problem), None) => return Err(problem),
        };
        self.tokens.bind(token, &group, &wanted.role)
    }

    /// Tells of the tokens that have ended by themselves; whether there were any.
    pub fn expire_tokens(&self) -> bool {
        // What cannot be written down now is told the next time.
        let expired = self.tokens.newly_expired().unwrap_or_default();
        expired
            .iter()
            .for_each(|token| self.access_changed(EventName::TokenExpired, "engine", &token.id, &shown(token)));
        !expired.is_empty()
    }

    /// Writes down that a caller may do more or less than before, or was turned away.
    pub(super) fn access_changed(&self, name: EventName, actor: &str, about: &str, data: &impl Serialize) {
        let stored = note(&self.home, name, actor, about, data);
        // It is stored when the store is back.
        let _ = stored.map(|stored| stored.recv_timeout(STORED_WITHIN));
    }

    /// All tokens, without their secrets.
    pub fn tokens(&self, who: &Requester) -> Result<TokenList, Problem> {
        who.must_be_person("looking at the tokens")?;
        Ok(TokenList { tokens: self.tokens.list() })
    }

    pub fn revoke_token(&self, who: &Requester, id: &str) -> Result<TokenAnswer, Problem> {
        who.must_be_person("revoking a token")?;
        self.revoked(who, id).map(|token| TokenAnswer { token })
    }

    /// Revokes a token with the sessions that came from it, and tells of each.
    pub(super) fn revoked(&self, who: &Requester, id: &str) -> Result<Token, Problem> {
        let RevokedToken { token, sessions } = self.tokens.revoke(id)?;
        for ended in [&token].into_iter().chain(&sessions) {
            self.access_changed(EventName::TokenRevoked, &who.label(), &ended.id, &shown(ended));
        }
        Ok(token)
    }

    /// Writes down who was turned away since an engine last ran, all of them at once. A store that is away is not waited for
    /// long: the next engine tells of those that are not stored then, once.
    pub fn turned_away_meanwhile(&self) {
        let deadline = Instant::now() + STORED_WITHIN;
        while let Some(meanwhile) = DeniedBacklog::take(&self.home.context.places) {
            let note = |(id, turned): &(String, AccessDenied)| {
                note_as(&self.home, id, EventName::AccessDenied, "engine", "", &described(turned))
            };
            let noted: Vec<PendingAnswer> = meanwhile.turned.iter().map(note).collect();
            let is_stored = |asked: &PendingAnswer| {
                let within = deadline.saturating_duration_since(Instant::now());
                asked.recv_timeout(within).is_ok_and(|answer| !matches!(answer, ReactorAnswer::Fault(_)))
            };
            if !noted.iter().all(is_stored) || !meanwhile.remove() || Instant::now() >= deadline {
                return;
            }
        }
    }

    /// Writes down that a caller was turned away, and waits until that is durable, but not for a store that is away.
    pub fn turned_away(&self, turned: &AccessDenied) {
        let of_token = turned.token.as_deref().unwrap_or_default();
        self.access_changed(EventName::AccessDenied, "engine", of_token, &described(turned));
    }
}

fn described(turned: &AccessDenied) -> AccessDenied {
    AccessDenied { path: redacted(&turned.path), ..turned.clone() }
}

/// What an event says about a token: never its secret.
pub(super) fn shown(token: &Token) -> TokenChanged {
    TokenChanged {
        token: token.id.clone(),
        scope: token.scope,
        name: token.name.clone(),
        task: token.task.clone(),
        colony: token.colony.clone(),
        role: token.role.clone(),
        expires_at: token.expires_at.clone(),
    }
}

fn unknown() -> DeniedBearer {
    let problem = Problem::new(ProblemStatus::Unauthorized, "unknown_token", "the engine does not know this token")
        .hint("`sluice token list` shows the tokens of a home, `sluice token create` makes one");
    DeniedBearer { problem, token: None }
}
