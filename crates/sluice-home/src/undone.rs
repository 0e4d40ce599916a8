//! Why something that the engine asked for is not done. Two things that are never mixed up: it failed, which is its
//! outcome; or it cannot be known or begun now, which is none, and it is asked for again.
//!
//! There is no way from [`Unavailable`] to an outcome: a store that could not be asked once must not end a step.

use std::fmt;
use std::path::Path;

use sluice_api::Problem;
use sluice_api::problem::Status;
use sluice_core::recipe::FailureKind;
use sluice_core::run::Outcome;
use sluice_worker::passing::Passing;

use crate::projects::described;

/// It cannot be known or begun now.
#[derive(Debug)]
pub(crate) struct Unavailable(pub(crate) String);

/// It failed.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) kind: FailureKind,
    pub(crate) error: String,
    pub(crate) outcome: Box<Outcome>,
}

impl Failed {
    /// Something kept it from being done.
    pub(crate) fn because(error: impl Into<String>) -> Failed {
        Failed { kind: FailureKind::Failed, error: error.into(), outcome: Box::default() }
    }
}

impl From<String> for Failed {
    fn from(error: String) -> Failed {
        Failed::because(error)
    }
}

/// Why it is not done.
#[derive(Debug)]
pub(crate) enum Undone {
    /// That is its outcome.
    Failed(Failed),
    /// That is none.
    Unavailable(Unavailable),
}

impl From<Failed> for Undone {
    fn from(failed: Failed) -> Undone {
        Undone::Failed(failed)
    }
}

impl From<Unavailable> for Undone {
    fn from(unavailable: Unavailable) -> Undone {
        Undone::Unavailable(unavailable)
    }
}

impl From<String> for Undone {
    fn from(error: String) -> Undone {
        Undone::Failed(Failed::because(error))
    }
}

impl From<&str> for Undone {
    fn from(error: &str) -> Undone {
        Undone::Failed(Failed::because(error))
    }
}

impl From<Problem> for Undone {
    fn from(problem: Problem) -> Undone {
        match problem.status {
            // Somebody was faster, or what was asked for before is still on its way: what is there now is found then.
            Status::Accepted | Status::Unavailable | Status::TooMany | Status::Conflict => {
                Undone::Unavailable(Unavailable(problem.message))
            }
            Status::BadRequest
            | Status::Unauthorized
            | Status::Forbidden
            | Status::NotFound
            | Status::WrongMethod
            | Status::TooLarge
            | Status::WrongForm
            | Status::Refused
            | Status::Fault => Undone::Failed(Failed::because(problem.message)),
        }
    }
}

impl Undone {
    /// What the machine, git or a program said. What passes is no outcome: the machine has too little of something, or
    /// somebody else is at it.
    pub(crate) fn by(error: impl Passing) -> Undone {
        match error.is_passing() {
            true => Undone::Unavailable(Unavailable(described(&error))),
            false => Undone::Failed(Failed::because(described(&error))),
        }
    }

    /// The same about a file or folder.
    pub(crate) fn at(doing: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Undone {
        let what = format!("{doing} {}", path.display());
        move |error| match error.is_passing() {
            true => Undone::Unavailable(Unavailable(format!("{what}: {error}"))),
            false => Undone::Failed(Failed::because(format!("{what}: {error}"))),
        }
    }

    /// What somebody is answered who asked for it: a refusal with this code, or to ask again.
    pub(crate) fn refusal(self, code: &str) -> Problem {
        match self {
            Undone::Failed(failed) => Problem::new(Status::Refused, code, failed.error),
            Undone::Unavailable(Unavailable(why)) => Problem::unavailable(why),
        }
    }

    /// The same, and it is not asked for again: nobody wants it any more.
    pub(crate) fn given_up(self) -> Undone {
        match self {
            Undone::Unavailable(Unavailable(why)) => Undone::Failed(Failed::because(why)),
            failed @ Undone::Failed(_) => failed,
        }
    }

    /// The same with what was being done before it.
    pub(crate) fn doing(self, what: &str) -> Undone {
        match self {
            Undone::Failed(failed) => Undone::Failed(Failed { error: format!("{what}: {}", failed.error), ..failed }),
            Undone::Unavailable(Unavailable(why)) => Undone::Unavailable(Unavailable(format!("{what}: {why}"))),
        }
    }
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undone::Failed(Failed { error: why, .. }) | Undone::Unavailable(Unavailable(why)) => f.write_str(why),
        }
    }
}

/// What failed, for whoever can say no more; what is unavailable goes on being that.
pub(crate) fn settled<T>(done: Result<T, Undone>) -> Result<Result<T, Failed>, Unavailable> {
    match done {
        Ok(found) => Ok(Ok(found)),
        Err(Undone::Failed(failed)) => Ok(Err(failed)),
        Err(Undone::Unavailable(why)) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_asked_again_is_unavailable() {
        for status in Status::ALL {
            let again = matches!(status, Status::Unavailable | Status::TooMany | Status::Conflict);
            let undone = Undone::from(Problem::new(status, "any", "why"));
            assert_eq!(matches!(undone, Undone::Unavailable(_)), again, "{status:?}");
        }
    }
}
