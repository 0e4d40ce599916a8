//! What happens to a run.

use super::effect::AttemptPart;
use super::input::{AttemptReport, RunParameters};
use super::parts::{CONFLICT, TIMED_OUT};
use super::plan::RunPlan;
use crate::attention::AttentionReason;
use crate::machine::Moment;
use crate::recipe::{Data, FailureKind, StepId, StepWork};
use crate::words::words;

/// What happened to a run, as its log records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// The run has started.
    Started {
        /// The recipe's inputs and everything else the run was started with.
        given: Box<RunParameters>,
        /// The moment at which the run started.
        at: Moment,
    },
    /// All that a step waits for has ended; it may begin when there is room.
    StepReady(StepId),
    /// An attempt has begun.
    StepStarted {
        /// The step that is attempted.
        step: StepId,
        /// The number of the attempt, counted from 1 over all rounds.
        attempt: u32,
        /// The moment at which the attempt began.
        at: Moment,
        /// The items of a fan-out, fixed from here on.
        items: Option<Vec<Data>>,
    },
    /// A part of an attempt has begun.
    PartStarted {
        /// The step that the attempt belongs to.
        step: StepId,
        /// The part that has begun: an item, a turn, or the arbiter's answer to one.
        part: AttemptPart,
    },
    /// A part of an attempt has ended.
    PartEnded {
        /// The step that the attempt belongs to.
        step: StepId,
        /// The part that has ended.
        part: AttemptPart,
        /// What the part gave, or the error that it failed with.
        result: Result<StepOutcome, String>,
    },
    /// A part of an attempt was lost with its worker, and is done again as an attempt of its own.
    PartLost {
        /// The step that the attempt belongs to.
        step: StepId,
        /// The part that was lost.
        part: AttemptPart,
        /// The moment before which the part does not begin again; `None`: at once.
        until: Option<Moment>,
    },
    /// A step has completed.
    StepCompleted {
        /// The step that has completed.
        step: StepId,
        /// What the step gave, for conditions and variables to read.
        outcome: StepOutcome,
        /// The moment at which the step ended.
        at: Moment,
    },
    /// An attempt has failed and left something behind, such as a command's exit code and what it printed.
    AttemptFailed {
        /// The step that the attempt belongs to.
        step: StepId,
        /// What the attempt left behind, such as an exit code.
        outcome: StepOutcome,
    },
    /// A step has failed for good.
    StepFailed {
        /// The step that has failed.
        step: StepId,
        /// Why the step failed, in its last attempt or without one.
        failure: StepFailure,
        /// The moment at which the step ended.
        at: Moment,
    },
    /// An attempt has failed, and another will be made.
    StepRetried {
        /// The step that is tried again.
        step: StepId,
        /// Why the last one failed.
        failure: StepFailure,
        /// The moment before which the next attempt does not begin.
        until: Moment,
    },
    /// A step is left out.
    StepSkipped {
        /// The step that is left out.
        step: StepId,
        /// Why the step is left out.
        reason: SkipReason,
        /// The moment at which that was decided.
        at: Moment,
    },
    /// A step waits for a person.
    StepHeld {
        /// The step that waits for an answer.
        step: StepId,
        /// What they are asked.
        question: RunQuestion,
    },
    /// A question has been answered.
    Answered {
        /// The step that the question is about.
        step: StepId,
        /// The number of the question within the run.
        question: u32,
        /// The option that was chosen; words where the question has no options.
        option: String,
        /// What the answerer said besides; `None` if nothing.
        message: Option<String>,
        /// Whether a person answered or the deadline did.
        by: Answerer,
    },
    /// An agent asks a person, and goes on.
    Asked {
        /// The agent of this step.
        step: StepId,
        /// Of this part of it.
        part: AttemptPart,
        /// The question that the agent asked.
        question: RunQuestion,
    },
    /// Nobody waits for the answer to an agent's question any more.
    Withdrawn {
        /// The step whose agent asked the question.
        step: StepId,
        /// The number of the question within the run.
        question: u32,
    },
    /// An agent says how its work went. The attempt ends when its process does.
    Said {
        /// The step that the agent works on.
        step: StepId,
        /// Of this part of it.
        part: AttemptPart,
        /// Success or failure, in the agent's own words.
        report: AttemptReport,
    },
    /// An attempt has taken too long, or cannot go on, and is being ended.
    StepStopping {
        /// The step whose attempt is being ended.
        step: StepId,
        /// Why the attempt is being ended.
        failure: StepFailure,
    },
    /// The run goes back to an earlier step, which runs again with all that lies between.
    LoopedBack {
        /// The step that has completed and from which the run goes back.
        from: StepId,
        /// The earlier step that runs again.
        to: StepId,
    },
    /// A failed step is to be tried again, and what failed only because of it waits again.
    Reopened {
        /// The failed step that is tried again.
        step: StepId,
        /// What the agent is told besides.
        guidance: Option<String>,
    },
    /// Nothing goes on before a person has answered: the run is held.
    Blocked {
        /// The first step that has an open question.
        step: StepId,
        /// The reason of that question, for people.
        reason: String,
    },
    /// The run is being ended: what is under way is stopped, and then only the steps run that always do.
    Ending {
        /// How it will have ended.
        end: super::state::RunConclusion,
        /// The moment from which the run is being ended.
        at: Moment,
    },
    /// A step was ended because the run is.
    StepCancelled {
        /// The step that was ended before it could complete.
        step: StepId,
        /// The moment at which the step ended.
        at: Moment,
    },
    /// The run has ended.
    Ended {
        /// Whether the run completed, failed or was cancelled.
        end: super::state::RunConclusion,
        /// The moment at which the run ended.
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
    /// The exit code of a step's command; `None` for other steps.
    pub exit_code: Option<i32>,
    /// What a step's command wrote to standard error; `None` for other steps.
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
    /// Tokens that the agent has written.
    pub output: Option<u64>,
    /// All tokens, read and written, as the agent program counts them.
    pub total: Option<u64>,
    /// Millionths of a US dollar.
    pub cost: Option<u64>,
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepFailure {
    /// Its own attempt failed, and no other follows.
    Attempt {
        /// The kind of failure, which decides whether another attempt follows.
        kind: FailureKind,
        /// What went wrong, in words for people.
        error: String,
    },
    /// The step failed because a step that it needs has failed.
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
    /// A person said that it is to be left out.
    Person,
}

/// Who answers a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answerer {
    /// A person, or a program that a person trusts.
    Person,
    /// The deadline passed without an answer, so the default is the answer.
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
    /// The moment at which the default becomes the answer; `None`: the question waits.
    pub deadline: Option<Moment>,
    /// The moment at which it was asked; 0 where an older engine asked it.
    pub since: Moment,
}

impl RunQuestion {
    /// A question that waits as long as it takes.
    pub fn new(id: u32, kind: QuestionKind, reason: impl Into<String>) -> Self {
        let (reason, since) = (reason.into(), Moment(0));
        RunQuestion { id, kind, reason, choices: Vec::new(), default: None, deadline: None, since }
    }

    /// The words in which a person is told that `step` asks it.
    pub fn told(&self, step: &str) -> String {
        match self.kind {
            QuestionKind::Clarification => format!("`{step}` asks: {}", self.reason),
            QuestionKind::Gate
            | QuestionKind::MaxIterations
            | QuestionKind::PartialFailure
            | QuestionKind::LoopExhausted
            | QuestionKind::Undecided => format!("`{step}` needs a person: {}", self.reason),
        }
    }

    /// Why a person is needed, in the word that tasks and runs share.
    pub fn attention(&self) -> AttentionReason {
        match self.kind {
            QuestionKind::Gate if self.reason.contains(TIMED_OUT) => AttentionReason::Timeout,
            QuestionKind::Gate => AttentionReason::Gate,
            QuestionKind::MaxIterations | QuestionKind::LoopExhausted => AttentionReason::LoopExhausted,
            QuestionKind::PartialFailure if self.reason.contains(CONFLICT) => AttentionReason::Conflict,
            QuestionKind::PartialFailure | QuestionKind::Clarification | QuestionKind::Undecided => {
                AttentionReason::Question
            }
        }
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

words! {
    /// What a question is about, which decides what can be answered.
    QuestionKind {
        /// A gate's command has failed.
        Gate = "gate",
        /// A loop of agent and arbiter has used up its turns.
        MaxIterations = "max_iterations",
        /// Some items of a fan-out have failed.
        PartialFailure = "partial_failure",
        /// A loop back has used up its turns.
        LoopExhausted = "loop_exhausted",
        /// An agent wants to know something.
        Clarification = "clarification",
        /// An arbiter said neither that the work is done nor that it is not.
        Undecided = "undecided",
    }
}

impl QuestionKind {
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
