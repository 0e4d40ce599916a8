//! The law of a step: what can happen to it in which status, and what it is then.
//!
//! One table. [`super::state`] obeys it when it records an event, and `docs/machines/run.md` is drawn from it.

use crate::words::words;

words! {
    /// A step's status without its data. People and programs see its word; a step that is stopping still says `running`.
    StepStatusKind {
        /// Something it needs has not ended, or what its condition reads may still change.
        Waiting = "waiting",
        /// The step may begin, and waits for room.
        Ready = "ready",
        /// An attempt is under way.
        Running = "running",
        /// An attempt is being ended because it took too long, or cannot go on.
        Stopping = "running",
        /// The next attempt is not due yet.
        Retrying = "retrying",
        /// A person is asked.
        Held = "held",
        /// The step has ended well.
        Completed = "completed",
        /// The step has failed, by itself or because a step that it needs has.
        Failed = "failed",
        /// It was left out.
        Skipped = "skipped",
        /// The run ended first.
        Cancelled = "cancelled",
    }
}

impl StepStatusKind {
    /// Whether nothing more happens to it by itself.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Skipped | Self::Cancelled)
    }

    /// Whether an attempt is under way, be it on its way out.
    pub fn is_under_way(self) -> bool {
        matches!(self, Self::Running | Self::Stopping)
    }
}

/// What can happen to a step, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepHappening {
    /// Everything that the step waits for has ended.
    Ready,
    /// An attempt of the step begins.
    Started,
    /// A part of the attempt begins or ends.
    Part,
    /// The step completes, and gives an outcome.
    Completed,
    /// It fails for good.
    Failed,
    /// Another attempt will be made.
    Retried,
    /// It is left out.
    Skipped,
    /// A person is asked.
    Held,
    /// A question about it is answered.
    Answered,
    /// Its agent asks a person, and goes on.
    Asked,
    /// Nobody waits for an answer to its agent any more.
    Withdrawn,
    /// Its agent says how its work went.
    Said,
    /// It takes too long, or cannot go on.
    Stopping,
    /// It lies in a loop that goes round.
    Looped,
    /// A person wants it tried again.
    Reopened,
    /// The run ends before the step does.
    RunEnded,
}

impl StepHappening {
    /// Every happening, in the order of the law's table.
    pub const ALL: [StepHappening; 16] = [
        StepHappening::Ready,
        StepHappening::Started,
        StepHappening::Part,
        StepHappening::Completed,
        StepHappening::Failed,
        StepHappening::Retried,
        StepHappening::Skipped,
        StepHappening::Held,
        StepHappening::Answered,
        StepHappening::Asked,
        StepHappening::Withdrawn,
        StepHappening::Said,
        StepHappening::Stopping,
        StepHappening::Looped,
        StepHappening::Reopened,
        StepHappening::RunEnded,
    ];
}

/// What a step is after something has happened to it; `None`: that cannot happen.
pub fn next(status: StepStatusKind, happening: StepHappening) -> Option<StepStatusKind> {
    use StepHappening as H;
    use StepStatusKind as S;
    Some(match (status, happening) {
        (S::Waiting, H::Ready) => S::Ready,
        (S::Waiting | S::Ready | S::Retrying | S::Held, H::Started) => S::Running,
        (S::Running, H::Part) => S::Running,
        (S::Stopping, H::Part) => S::Stopping,
        (S::Running | S::Stopping | S::Held, H::Completed) => S::Completed,
        (S::Waiting | S::Running | S::Stopping | S::Held, H::Failed) => S::Failed,
        (S::Running | S::Stopping, H::Retried) => S::Retrying,
        (S::Waiting | S::Ready | S::Held, H::Skipped) => S::Skipped,
        (S::Waiting | S::Running | S::Stopping, H::Held) => S::Held,
        (S::Held, H::Answered) => S::Held,
        (S::Running, H::Asked | H::Answered | H::Withdrawn | H::Said) => S::Running,
        (S::Stopping, H::Answered | H::Withdrawn | H::Said) => S::Stopping,
        (S::Running, H::Stopping) => S::Stopping,
        (S::Completed | S::Skipped | S::Failed, H::Looped) => S::Waiting,
        (S::Failed, H::Reopened) => S::Waiting,
        (S::Waiting | S::Ready | S::Running | S::Stopping | S::Retrying | S::Held, H::RunEnded) => S::Cancelled,
        _ => return None,
    })
}

/// The table as a page.
pub fn page() -> String {
    let mut page = String::from(
        "<!-- Drawn from `sluice_core::run::law`. Rewrite it with `cargo xtask update`. -->\n\n\
         # The law of a step\n\nWhat can happen to a step of a run, and what it is then. What is not in the table \
         cannot happen.\n\n| in this status | when this happens | it is |\n|---|---|---|\n",
    );
    for status in StepStatusKind::ALL {
        for happening in StepHappening::ALL {
            if let Some(then) = next(status, happening) {
                page.push_str(&format!("| {status:?} | {happening:?} | {then:?} |\n"));
            }
        }
    }
    page
}
