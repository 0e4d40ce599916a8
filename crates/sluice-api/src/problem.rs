//! Why something that was asked for was not done: a code for programs, words for people, and the way out.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error: the engine refused or failed, or cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Always false: the request was not carried out.
    #[serde(default)]
    pub ok: bool,
    /// What happened, to what.
    #[serde(rename = "error")]
    pub message: String,
    /// The kind of the error, as a word that programs can rely on.
    pub code: String,
    /// What to do about the error; absent where there is no advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The id that the task or run will have, where the request is queued (`accepted`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<str>>,
    /// The status of the HTTP answer.
    #[serde(skip, default)]
    pub status: ProblemStatus,
}

/// The code of an answer that says that the request is queued, and not carried out yet.
pub const ACCEPTED: &str = "accepted";

/// The kind of an error, each with a status code of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProblemStatus {
    /// The request is queued: it is not carried out yet, and cannot be taken back.
    Accepted,
    /// The request cannot be understood.
    BadRequest,
    /// The request has no valid token.
    Unauthorized,
    /// The caller may not do this.
    Forbidden,
    /// What the request names does not exist.
    NotFound,
    /// The route exists, and does not have this method.
    WrongMethod,
    /// Another request has changed the same thing first.
    Conflict,
    /// The body is larger than the engine reads.
    TooLarge,
    /// The body has a content type that the engine does not read.
    WrongForm,
    /// A rule of the task, the run or the definition forbids it.
    Refused,
    /// The caller has sent too many requests.
    TooMany,
    /// An internal error of the engine.
    #[default]
    Fault,
    /// The engine or its store cannot be reached at the moment; the same request may succeed later.
    Unavailable,
}

impl ProblemStatus {
    /// Every kind that is an error of HTTP's.
    pub const ALL: [ProblemStatus; 12] = [
        ProblemStatus::BadRequest,
        ProblemStatus::Unauthorized,
        ProblemStatus::Forbidden,
        ProblemStatus::NotFound,
        ProblemStatus::WrongMethod,
        ProblemStatus::Conflict,
        ProblemStatus::TooLarge,
        ProblemStatus::WrongForm,
        ProblemStatus::Refused,
        ProblemStatus::TooMany,
        ProblemStatus::Fault,
        ProblemStatus::Unavailable,
    ];

    /// The status code of HTTP.
    pub fn number(self) -> u16 {
        match self {
            ProblemStatus::Accepted => 202,
            ProblemStatus::BadRequest => 400,
            ProblemStatus::Unauthorized => 401,
            ProblemStatus::Forbidden => 403,
            ProblemStatus::NotFound => 404,
            ProblemStatus::WrongMethod => 405,
            ProblemStatus::Conflict => 409,
            ProblemStatus::TooLarge => 413,
            ProblemStatus::WrongForm => 415,
            ProblemStatus::Refused => 422,
            ProblemStatus::TooMany => 429,
            ProblemStatus::Fault => 500,
            ProblemStatus::Unavailable => 503,
        }
    }

    /// The kind with this status code; a code of none of them is a fault.
    pub fn of(number: u16) -> ProblemStatus {
        ProblemStatus::ALL.into_iter().find(|status| status.number() == number).unwrap_or_default()
    }
}

impl Problem {
    /// The code of what is stored and cannot be read as it was written.
    pub const DAMAGED: &'static str = "damaged";

    /// A problem without a hint.
    pub fn new(status: ProblemStatus, code: impl Into<String>, message: impl Into<String>) -> Self {
        Problem { ok: false, message: message.into(), code: code.into(), hint: None, id: None, status }
    }

    /// Adds what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The engine cannot be reached.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Problem::new(ProblemStatus::Unavailable, "unavailable", message)
    }

    /// What was asked is on its way to the store, and is done when that answers: it will have this id. An engine that ends
    /// before that takes it along.
    pub fn accepted(id: &str, why: &str) -> Self {
        let message = format!("{why}; `{id}` is on its way to the store, and is there once that has answered");
        let problem = Problem { id: Some(id.into()), ..Problem::new(ProblemStatus::Accepted, ACCEPTED, message) };
        problem.hint(format!(
            "look whether `{id}` is there before you ask again: an engine that ends meanwhile may never have stored it; asked \
             again with the same `Idempotency-Key`, nothing is made twice"
        ))
    }

    /// Whether what was asked is on its way to the store.
    pub fn is_coming(&self) -> bool {
        self.status == ProblemStatus::Accepted
    }

    /// Whether the problem passes by itself, so that the same request may succeed later.
    pub fn is_passing(&self) -> bool {
        matches!(self.status, ProblemStatus::Unavailable | ProblemStatus::Accepted)
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Problem::new(ProblemStatus::NotFound, "not_found", message)
    }

    /// What was asked makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Problem::new(ProblemStatus::BadRequest, "bad_request", message)
    }

    /// What is stored is not what was written.
    pub fn damaged(message: impl Into<String>) -> Self {
        Problem::new(ProblemStatus::Fault, Problem::DAMAGED, message)
            .hint("what is stored of it stays as it is; `sluice doctor --deep` names all that is damaged")
    }

    /// A fault of ours.
    pub fn fault(message: impl Into<String>) -> Self {
        Problem::new(ProblemStatus::Fault, "fault", message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}
