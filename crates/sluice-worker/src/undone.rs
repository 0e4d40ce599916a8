//! Why something that the engine asked for is not done. Two things that are never mixed up: it failed, which is its
//! outcome; or it cannot be known or begun now, which is none, and it is asked for again.
//!
//! There is no way from [`UnavailableReason`] to an outcome: a store that could not be asked once must not end a step.

use std::fmt;
use std::path::Path;

use sluice_api::Problem;
use sluice_api::problem::ProblemStatus;
use sluice_core::recipe::FailureKind;
use sluice_core::run::StepOutcome;
use sluice_os::passing::PassingError;

/// It cannot be known or begun now.
#[derive(Debug)]
pub struct UnavailableReason(pub String);

/// Why something failed. Only the outcome of an effect makes words of it; until then its code and its hint are kept.
#[derive(Debug)]
pub enum FailureReason {
    /// What a program, git or the machine said.
    Words(String),
    /// What a person is answered who asks for the same.
    Answer(Box<Problem>),
}

impl FailureReason {
    /// The word for programs, where there is one.
    pub fn code(&self) -> Option<&str> {
        match self {
            FailureReason::Words(_) => None,
            FailureReason::Answer(problem) => Some(&problem.code),
        }
    }

    /// The same with what was being done before it.
    fn doing(self, what: &str) -> FailureReason {
        match self {
            FailureReason::Words(words) => FailureReason::Words(format!("{what}: {words}")),
            FailureReason::Answer(problem) => {
                let message = format!("{what}: {}", problem.message);
                FailureReason::Answer(Box::new(Problem { message, ..*problem }))
            }
        }
    }
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailureReason::Words(words) => f.write_str(words),
            FailureReason::Answer(problem) => match &problem.hint {
                Some(hint) => write!(f, "{} ({hint})", problem.message),
                None => f.write_str(&problem.message),
            },
        }
    }
}

impl From<String> for FailureReason {
    fn from(words: String) -> FailureReason {
        FailureReason::Words(words)
    }
}

#[derive(Debug)]
pub struct PerformFailure {
    pub kind: FailureKind,
    pub error: FailureReason,
    pub outcome: Box<StepOutcome>,
}

impl PerformFailure {
    pub fn because(error: impl Into<String>) -> PerformFailure {
        PerformFailure { kind: FailureKind::Failed, error: error.into().into(), outcome: Box::default() }
    }
}

impl From<String> for PerformFailure {
    fn from(error: String) -> PerformFailure {
        PerformFailure::because(error)
    }
}

#[derive(Debug)]
pub enum PerformError {
    Failed(PerformFailure),
    Unavailable(UnavailableReason),
}

impl From<PerformFailure> for PerformError {
    fn from(failed: PerformFailure) -> PerformError {
        PerformError::Failed(failed)
    }
}

impl From<UnavailableReason> for PerformError {
    fn from(unavailable: UnavailableReason) -> PerformError {
        PerformError::Unavailable(unavailable)
    }
}

impl From<String> for PerformError {
    fn from(error: String) -> PerformError {
        PerformError::Failed(PerformFailure::because(error))
    }
}

impl From<&str> for PerformError {
    fn from(error: &str) -> PerformError {
        PerformError::Failed(PerformFailure::because(error))
    }
}

impl From<Problem> for PerformError {
    fn from(problem: Problem) -> PerformError {
        match problem.status {
            // Somebody was faster, or what was asked for before is still on its way: what is there now is found then.
            ProblemStatus::Accepted | ProblemStatus::Unavailable | ProblemStatus::TooMany | ProblemStatus::Conflict => {
                PerformError::Unavailable(UnavailableReason(problem.message))
            }
            ProblemStatus::BadRequest
            | ProblemStatus::Unauthorized
            | ProblemStatus::Forbidden
            | ProblemStatus::NotFound
            | ProblemStatus::WrongMethod
            | ProblemStatus::TooLarge
            | ProblemStatus::WrongForm
            | ProblemStatus::Refused
            | ProblemStatus::Fault => {
                let error = FailureReason::Answer(Box::new(problem));
                PerformError::Failed(PerformFailure { kind: FailureKind::Failed, error, outcome: Box::default() })
            }
        }
    }
}

impl PerformError {
    /// What the machine, git or a program said. What passes is no outcome: the machine has too little of something, or
    /// somebody else is at it.
    pub fn by(error: impl PassingError) -> PerformError {
        match error.is_passing() {
            true => PerformError::Unavailable(UnavailableReason(described(&error))),
            false => PerformError::Failed(PerformFailure::because(described(&error))),
        }
    }

    pub fn at(doing: &str, path: &Path) -> impl FnOnce(std::io::Error) -> PerformError {
        let what = format!("{doing} {}", path.display());
        move |error| match error.is_passing() {
            true => PerformError::Unavailable(UnavailableReason(format!("{what}: {error}"))),
            false => PerformError::Failed(PerformFailure::because(format!("{what}: {error}"))),
        }
    }

    /// What somebody is answered who asked for it: a refusal with this code, or to ask again.
    pub fn refusal(self, code: &str) -> Problem {
        match self {
            PerformError::Failed(PerformFailure { error: FailureReason::Words(words), .. }) => {
                Problem::new(ProblemStatus::Refused, code, words)
            }
            PerformError::Failed(PerformFailure { error: FailureReason::Answer(problem), .. }) => {
                Problem { hint: problem.hint, ..Problem::new(ProblemStatus::Refused, code, problem.message) }
            }
            PerformError::Unavailable(UnavailableReason(why)) => Problem::unavailable(why),
        }
    }

    /// The same, and it is not asked for again: nobody wants it any more.
    pub fn given_up(self) -> PerformError {
        match self {
            PerformError::Unavailable(UnavailableReason(why)) => PerformError::Failed(PerformFailure::because(why)),
            failed @ PerformError::Failed(_) => failed,
        }
    }

    /// The same with what was being done before it.
    pub fn doing(self, what: &str) -> PerformError {
        match self {
            PerformError::Failed(failed) => {
                PerformError::Failed(PerformFailure { error: failed.error.doing(what), ..failed })
            }
            PerformError::Unavailable(UnavailableReason(why)) => {
                PerformError::Unavailable(UnavailableReason(format!("{what}: {why}")))
            }
        }
    }
}

impl fmt::Display for PerformError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerformError::Failed(failed) => failed.error.fmt(f),
            PerformError::Unavailable(UnavailableReason(why)) => f.write_str(why),
        }
    }
}

/// What failed, for whoever can say no more; what is unavailable goes on being that.
pub fn settled<T>(done: Result<T, PerformError>) -> Result<Result<T, PerformFailure>, UnavailableReason> {
    match done {
        Ok(found) => Ok(Ok(found)),
        Err(PerformError::Failed(failed)) => Ok(Err(failed)),
        Err(PerformError::Unavailable(why)) => Err(why),
    }
}

/// An error with its causes.
pub fn described(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_answered_keeps_its_code_and_its_hint() {
        let answer = || Problem::not_found("there is no project `x`").hint("`sluice project list` shows them");
        let PerformError::Failed(failed) = PerformError::from(answer()).doing("the task") else {
            panic!("it is there no later either");
        };
        assert_eq!(failed.error.code(), Some(answer().code.as_str()));
        let told = "the task: there is no project `x` (`sluice project list` shows them)";
        assert_eq!(failed.error.to_string(), told);
        let refused = PerformError::from(failed).refusal("no_pull_request");
        assert_eq!((refused.code.as_str(), refused.hint), ("no_pull_request", answer().hint));
        assert_eq!(PerformError::from("git said no").to_string(), "git said no");
    }

    #[test]
    fn only_what_can_be_asked_again_is_unavailable() {
        for status in ProblemStatus::ALL {
            let again = matches!(status, ProblemStatus::Unavailable | ProblemStatus::TooMany | ProblemStatus::Conflict);
            let undone = PerformError::from(Problem::new(status, "any", "why"));
            assert_eq!(matches!(undone, PerformError::Unavailable(_)), again, "{status:?}");
        }
    }
}
