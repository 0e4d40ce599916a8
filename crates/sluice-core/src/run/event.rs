//! What happens to a run.

use super::effect::AttemptPart;
use super::input::{AttemptReport, RunParameters};
use super::plan::RunPlan;
use crate::machine::Moment;
use crate::recipe::{Data, FailureKind, StepId, StepWork};

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// The run has started.
    Started {
        /// With this.
        given: Box<RunParameters>,
        /// Then.
        at: Moment,
    },
    /// All that a step waits for has ended; it may begin when there is room.
    StepReady(StepId),
    /// An attempt has begun.
    StepStarted {
        /// At this step.
        step: StepId,
        /// Which.
        attempt: u32,
        /// Then.
        at: Moment,
        /// The items of a fan-out, fixed from here on.
        items: Option<Vec<Data>>,
    },
    /// A part of an attempt has begun.
    PartStarted {
        /// Of this step.
        step: StepId,
        /// Which.
        part: AttemptPart,
    },
    /// A part of an attempt has ended.
    PartEnded {
        /// Of this step.
        step: StepId,
        /// Which.
        part: AttemptPart,
        /// With what; or why not.
        result: Result<StepOutcome, String>,
    },
    /// A part of an attempt was lost with its worker, and is done again as an attempt of its own.
    PartLost {
        /// Of this step.
        step: StepId,
        /// Which.
        part: AttemptPart,
        /// Not before; `None`: at once.
        until: Option<Moment>,
    },
    /// A step has completed.
    StepCompleted {
        /// Which.
        step: StepId,
        /// With what.
        outcome: StepOutcome,
        /// Then.
        at: Moment,
    },
    /// An attempt has failed and left something behind, such as a command's exit code and what it printed.
    AttemptFailed {
        /// Of this step.
        step: StepId,
        /// What it left.
        outcome: StepOutcome,
    },
    /// A step has failed for good.
    StepFailed {
        /// Which.
        step: StepId,
        /// Why.
        failure: StepFailure,
        /// Then.
        at: Moment,
    },
    /// An attempt has failed, and another will be made.
    StepRetried {
        /// Of this step.
        step: StepId,
        /// Why the last one failed.
        failure: StepFailure,
        /// Not before.
        until: Moment,
    },
    /// A step is left out.
    StepSkipped {
        /// Which.
        step: StepId,
        /// Why.
        reason: SkipReason,
        /// Then.
        at: Moment,
    },
    /// A step waits for a person.
    StepHeld {
        /// Which.
        step: StepId,
        /// What they are asked.
        question: RunQuestion,
    },
    /// A question has been answered.
    Answered {
        /// About this step.
        step: StepId,
        /// Which.
        question: u32,
        /// With this option,
        option: String,
        /// and these words.
        message: Option<String>,
        /// By whom.
        by: Answerer,
    },
    /// An agent asks a person, and goes on.
    Asked {
        /// The agent of this step.
        step: StepId,
        /// Of this part of it.
        part: AttemptPart,
        /// What.
        question: RunQuestion,
    },
    /// Nobody waits for the answer to an agent's question any more.
    Withdrawn {
        /// Of this step.
        step: StepId,
        /// Which.
        question: u32,
    },
    /// An agent says how its work went. The attempt ends when its process does.
    Said {
        /// Of this step.
        step: StepId,
        /// Of this part of it.
        part: AttemptPart,
        /// How.
        report: AttemptReport,
    },
    /// An attempt has taken too long, or cannot go on, and is being ended.
    StepStopping {
        /// At this step.
        step: StepId,
        /// Why.
        failure: StepFailure,
    },
    /// The run goes back to an earlier step, which runs again with all that lies between.
    LoopedBack {
        /// From this step.
        from: StepId,
        /// To this one.
        to: StepId,
    },
    /// A failed step is to be tried again, and what failed only because of it waits again.
    Reopened {
        /// The step.
        step: StepId,
        /// What the agent is told besides.
        guidance: Option<String>,
    },
    /// Nothing goes on before a person has answered: the run is held.
    Blocked {
        /// By this step first.
        step: StepId,
        /// Because of this.
        reason: String,
    },
    /// The run is being ended: what is under way is stopped, and then only the steps run that always do.
    Ending {
        /// How it will have ended.
        end: super::state::RunConclusion,
        /// Then.
        at: Moment,
    },
    /// A step was ended because the run is.
    StepCancelled {
        /// Which.
        step: StepId,
        /// Then.
        at: Moment,
    },
    /// The run has ended.
    Ended {
        /// How.
        end: super::state::RunConclusion,
        /// Then.
        at: Moment,
    },
}

impl RunEvent {
    /// The commit that a report has brought the work to. The end of a loop and of a fan-out says again what one of its parts
    /// said, and the work may have gone on since.
    pub(super) fn brought_to(&self, plan: &RunPlan) -> Option<&String> {
        match self {
            RunEvent::PartEnded { result: Ok(outcome), .. } => outcome.commit.as_ref(),
            RunEvent::StepCompleted { step, outcome, .. } => match plan.recipe.step(*step).work {
                StepWork::AgentLoop { .. } | StepWork::ParallelAgents { .. } => None,
                StepWork::Agent { .. } | StepWork::Script { .. } | StepWork::Gate { .. } | StepWork::Task(_) => {
                    outcome.commit.as_ref()
                }
            },
            _ => None,
        }
    }

    /// The step it is about, if it is about one alone.
    pub fn step(&self) -> Option<StepId> {
        match self {
            RunEvent::StepReady(step)
            | RunEvent::StepStarted { step, .. }
            | RunEvent::PartStarted { step, .. }
            | RunEvent::PartEnded { step, .. }
            | RunEvent::PartLost { step, .. }
            | RunEvent::StepCompleted { step, .. }
            | RunEvent::AttemptFailed { step, .. }
            | RunEvent::StepFailed { step, .. }
            | RunEvent::StepCancelled { step, .. }
            | RunEvent::StepRetried { step, .. }
            | RunEvent::StepSkipped { step, .. }
            | RunEvent::StepHeld { step, .. }
            | RunEvent::Answered { step, .. }
            | RunEvent::Asked { step, .. }
            | RunEvent::Withdrawn { step, .. }
            | RunEvent::Said { step, .. }
            | RunEvent::StepStopping { step, .. }
            | RunEvent::Blocked { step, .. }
            | RunEvent::Reopened { step, .. } => Some(*step),
            RunEvent::Started { .. }
            | RunEvent::LoopedBack { .. }
            | RunEvent::Ending { .. }
            | RunEvent::Ended { .. } => None,
        }
    }
}

/// What a step gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepOutcome {
    /// In a few words.
    pub summary: String,
    /// The word that conditions read: `PASS`, `FAIL`, `done`.
    pub result: Option<String>,
    /// The value that variables read.
    pub output: Data,
    /// Of a command.
    pub exit_code: Option<i32>,
    /// Of a command.
    pub stderr: Option<String>,
    /// Where the work stands after it, if it was done elsewhere and what comes next starts from there.
    pub commit: Option<String>,
    /// What an agent used up, if anything of it is known.
    pub usage: Option<Box<AgentUsage>>,
}

/// What an agent used up. What its program does not tell is not known, and not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentUsage {
    /// Tokens read, from the cache or not.
    pub input: Option<u64>,
    /// Those of them that came from the cache.
    pub cached: Option<u64>,
    /// Tokens written.
    pub output: Option<u64>,
    /// All tokens.
    pub total: Option<u64>,
    /// Millionths of a US dollar.
    pub cost: Option<u64>,
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepFailure {
    /// Its own attempt did.
    Attempt {
        /// In which way.
        kind: FailureKind,
        /// Why.
        error: String,
    },
    /// Something it needs did.
    Upstream(StepId),
    /// A value it needs is not there.
    Undefined(String),
    /// Its loop has used up its turns.
    LoopExhausted,
    /// A person gave it up.
    Aborted,
}

/// Why a step was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Its condition does not hold, and will not.
    Condition,
    /// What it needs was left out.
    Join,
    /// Somebody said so.
    Person,
}

/// Who answers a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answerer {
    /// A person.
    Person,
    /// Nobody did in time, so the default is the answer.
    Deadline,
}

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunQuestion {
    /// Its number within the run.
    pub id: u32,
    /// What it is about.
    pub kind: QuestionKind,
    /// Why it is asked.
    pub reason: String,
    /// What can be answered, where the kind does not say it; none: any words.
    pub choices: Vec<String>,
    /// What is answered when nobody has answered in time.
    pub default: Option<String>,
    /// When that is.
    pub deadline: Option<Moment>,
}

impl RunQuestion {
    /// A question that waits as long as it takes.
    pub fn new(id: u32, kind: QuestionKind, reason: impl Into<String>) -> Self {
        RunQuestion { id, kind, reason: reason.into(), choices: Vec::new(), default: None, deadline: None }
    }

    /// What can be answered, the safest first; none: any words.
    pub fn options(&self) -> Vec<&str> {
        self.kind.options().iter().copied().chain(self.choices.iter().map(String::as_str)).collect()
    }

    /// Whether this can be answered. To an agent's question a person may also say something else, in words.
    pub(super) fn takes(&self, option: &str, message: Option<&String>) -> bool {
        let words = option.is_empty() && message.is_some_and(|message| !message.trim().is_empty());
        match self.kind {
            QuestionKind::Clarification if self.choices.is_empty() => !option.trim().is_empty() || words,
            QuestionKind::Clarification => self.choices.iter().any(|choice| choice == option) || words,
            QuestionKind::Gate
            | QuestionKind::MaxIterations
            | QuestionKind::PartialFailure
            | QuestionKind::LoopExhausted
            | QuestionKind::Undecided => self.kind.options().contains(&option),
        }
    }
}

/// What a question is about, which decides what can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// A gate's command has failed.
    Gate,
    /// A loop of agent and arbiter has used up its turns.
    MaxIterations,
    /// Some items of a fan-out have failed.
    PartialFailure,
    /// A loop back has used up its turns.
    LoopExhausted,
    /// An agent wants to know something.
    Clarification,
    /// An arbiter said neither that the work is done nor that it is not.
    Undecided,
}

impl QuestionKind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            QuestionKind::Gate => "gate",
            QuestionKind::MaxIterations => "max_iterations",
            QuestionKind::PartialFailure => "partial_failure",
            QuestionKind::LoopExhausted => "loop_exhausted",
            QuestionKind::Clarification => "clarification",
            QuestionKind::Undecided => "undecided",
        }
    }

    /// What can be answered to every question of this kind, the safest first.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            QuestionKind::Gate | QuestionKind::LoopExhausted => &["retry", "skip", "abort"],
            QuestionKind::MaxIterations | QuestionKind::PartialFailure | QuestionKind::Undecided => {
                &["retry", "continue", "skip", "abort"]
            }
            QuestionKind::Clarification => &[],
        }
    }
}
