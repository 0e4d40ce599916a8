//! An engine that does not answer: the client tells the person who waits, and gives the engine up after half a minute.
//!
//! Some answers take long, as a command waits for its effects; so it is not the answer that is timed. While none comes, the
//! engine is asked on another connection whether it is there, and only if it does not say so either it is given up.

use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::Method;
use tokio::time::timeout;

use super::Client;
use crate::problem::{Problem, ProblemStatus};

/// The code of a problem that says that there is an engine which does not answer: it is not known whether it heard.
pub const SILENT: &str = "engine_silent";

/// How long an answer does not come before the engine is asked whether it is there.
pub(super) const ANSWER: Duration = Duration::from_secs(2);
/// The same for a line that is followed, where nothing may happen for long.
pub(super) const LINE: Duration = Duration::from_secs(15);
const SIGN_WITHIN: Duration = Duration::from_secs(3);
/// So often in a row it is asked without a sign before it is given up: half a minute.
const MOST_ASKED: u32 = 6;

/// Who tells a person that an engine does not answer.
pub(super) static TELL: Mutex<Option<fn(&str)>> = Mutex::new(None);

/// From now on people are told in this way while an engine does not answer.
pub fn when_silent(tell: fn(&str)) {
    *TELL.lock().unwrap_or_else(PoisonError::into_inner) = Some(tell);
}

impl Client {
    /// Waits for something of an engine's, as long as that shows that it is there.
    pub(super) async fn attend<T>(
        &self,
        (method, first): (&Method, Duration),
        answer: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let mut answer = pin!(answer);
        let mut asked = 0;
        while asked < MOST_ASKED {
            let pause = if asked == 0 { first } else { ANSWER };
            if let Ok(answered) = timeout(pause, &mut answer).await {
                return answered;
            }
            let is_there = tokio::select! {
                biased;
                answered = &mut answer => return answered,
                sign = timeout(SIGN_WITHIN, self.send(Method::GET, "/healthz", None)) => matches!(sign, Ok(Ok(_))),
            };
            asked = if is_there { 0 } else { asked + 1 };
            if asked == 1 {
                self.tell(&format!("the engine at {} does not answer; waiting for it", self.address.place));
            }
        }
        Err(self.silent(method))
    }

    /// Whether the engine answers within this time, whatever else it does.
    pub fn sign_within(&self, within: Duration) -> Result<(), Problem> {
        let sign = async { timeout(within, self.send(Method::GET, "/healthz", None)).await };
        super::run(async { sign.await.unwrap_or_else(|_| Err(self.silent(&Method::GET))).map(drop) })
    }

    fn silent(&self, method: &Method) -> Problem {
        let message = format!("the engine at {} is there and does not answer", self.address.place);
        let problem = Problem::new(ProblemStatus::Unavailable, SILENT, message);
        if *method == Method::GET {
            return problem
                .hint("it may be stopped (`kill -CONT` lets it go on) or have too much to do; ask again later");
        }
        problem.hint(
            "it may have taken this all the same, and do it when it goes on: look with `sluice task list --all`, \
             `sluice run list --all` or `sluice events` before you ask for it again",
        )
    }
}
