//! Why something that was asked for was not done: a code for programs, words for people, and the way out.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A "no" of the engine, or of the way to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Always false, for those who look at nothing else.
    #[serde(default)]
    pub ok: bool,
    /// What happened, to what.
    #[serde(rename = "error")]
    pub message: String,
    /// For programs.
    pub code: String,
    /// The way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What it will be called, where it is not done yet and cannot be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<str>>,
    /// The status of the answer.
    #[serde(skip, default)]
    pub status: ProblemStatus,
}

/// The code of what is on its way.
pub const ACCEPTED: &str = "accepted";

/// What kind of "no" it is. The numbers are HTTP's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProblemStatus {
    /// Not yet: it is on its way and cannot be taken back.
    Accepted,
    /// The question makes no sense.
    BadRequest,
    /// Nobody knows who asks.
    Unauthorized,
    /// The caller may not do this.
    Forbidden,
    /// There is no such thing.
    NotFound,
    /// There is, and it cannot be asked for in this way.
    WrongMethod,
    /// Another request changed it first.
    Conflict,
    /// It is larger than anything that is read.
    TooLarge,
    /// It is written in a form that is not read.
    WrongForm,
    /// A rule says no.
    Refused,
    /// Too much is asked at once.
    TooMany,
    /// A fault of ours.
    #[default]
    Fault,
    /// Not now.
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

    /// As HTTP says it.
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

    /// The kind with this number; what nobody knows is a fault.
    pub fn of(number: u16) -> ProblemStatus {
        ProblemStatus::ALL.into_iter().find(|status| status.number() == number).unwrap_or_default()
    }
}

impl Problem {
    /// The code of what is stored and cannot be read as it was written.
    pub const DAMAGED: &'static str = "damaged";

    /// A problem without a way out to tell.
    pub fn new(status: ProblemStatus, code: impl Into<String>, message: impl Into<String>) -> Self {
        Problem { ok: false, message: message.into(), code: code.into(), hint: None, id: None, status }
    }

    /// With the way out.
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

    /// Whether it is over by itself: whoever must, asks again, for the same thing.
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
