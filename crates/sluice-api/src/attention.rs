//! What waits for a person on the wire: one shape for tasks, runs and the home itself, and how it is answered.
//!
//! Nothing here decides whether something waits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shell::answer_command;
use crate::shown::Run;
use crate::task::Task;
use crate::words::words;

words! {
    /// Why a person is needed, in one word.
    AttentionCause {
        /// An agent or a run asks something, or a person must decide where a task goes.
        Question = "question",
        /// A gate of a run did not let it pass.
        Gate = "gate",
        /// Two statements or two changes do not fit together.
        Conflict = "conflict",
        /// A loop has used up its turns.
        LoopExhausted = "loop_exhausted",
        /// Something takes longer than usual, and is tried again.
        Timeout = "timeout",
        /// A hook of a transition failed.
        HookFailed = "hook_failed",
        /// Finished work waits for a person's review.
        Review = "review",
        /// What is wanted is not clear yet.
        Clarification = "clarification",
        /// The task cannot go on by itself.
        Stuck = "stuck",
        /// An agent ended, and is not started again by itself.
        Crashed = "crashed",
        /// An agent could not be started.
        CannotStart = "cannot_start",
        /// The agent program shows a dialog and waits.
        Dialog = "dialog",
        /// The agent has been quiet for long.
        Quiet = "quiet",
        /// No worktree of the pool is free.
        PoolFull = "pool_full",
        /// Work could be lost, or there is no room for it.
        WorkAtRisk = "work_at_risk",
        /// The store, or what is stored, has a fault.
        Store = "store",
        /// No worker is there that could do a step.
        Worker = "worker",
    }
}

words! {
    /// Which channel says that a person is needed.
    AttentionSource {
        /// The agent program's own protocol.
        Protocol = "protocol",
        /// A hook that the agent program runs.
        Hook = "hook",
        /// How a process ended.
        Exit = "exit",
        /// What stands on a terminal's screen; it may be wrong.
        Screen = "screen",
        /// What the engine itself knows.
        Engine = "engine",
    }
}

words! {
    /// What kind of thing waits: for a question of a run, why it is asked.
    AttentionKind {
        /// A gate did not let the run pass.
        Gate = "gate",
        /// A loop has used up its turns.
        MaxIterations = "max_iterations",
        /// Some items of a fan-out failed.
        PartialFailure = "partial_failure",
        /// A step has gone back as often as it may.
        LoopExhausted = "loop_exhausted",
        /// The agent of a step asks.
        Clarification = "clarification",
        /// An arbiter came to no decision.
        Undecided = "undecided",
        /// A task needs a person.
        Task = "task",
        /// A task or run waits for something that a person can make room for or start.
        Wait = "wait",
        /// The home itself needs a person.
        Home = "home",
    }
}

/// Something that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attention {
    /// The id by which it is answered: `TASK/NUMBER` or `RUN/NUMBER`. It stays the same as long as it waits.
    pub id: String,
    /// The kind of thing that waits.
    pub kind: AttentionKind,
    /// Why a person is needed, in one word.
    pub reason: AttentionCause,
    /// The id of the task that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The id of the run that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The step of the run that asks or waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The name of the recipe of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// The name of the project that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What a person calls it: the branch of the task, or the recipe of the run.
    pub title: String,
    /// What is the matter, in one sentence.
    pub text: String,
    /// Since when it waits, in RFC 3339 (UTC).
    pub since: String,
    /// What can be answered now. None: any words, or nothing can be answered from here.
    pub options: Vec<String>,
    /// What is taken for the answer at the deadline.
    #[serde(default)]
    pub default: Option<String>,
    /// When `default` becomes the answer, in RFC 3339 (UTC); null if it waits without end.
    #[serde(default)]
    pub deadline: Option<String>,
    /// The last lines that the agent or the command printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// The exit code of the command that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The end of what that command printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<String>,
    /// The channel that says so.
    pub said_by: AttentionSource,
}

/// Why a task or a run needs a person, where that task or run itself is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttentionNote {
    /// The id by which it is answered.
    pub id: String,
    /// Why a person is needed, in one word.
    pub reason: AttentionCause,
    /// What is the matter, in one sentence.
    pub text: String,
    /// Since when it holds, in RFC 3339 (UTC).
    pub since: String,
    /// What can be answered now.
    pub choices: Vec<String>,
    /// The channel that says so.
    pub said_by: AttentionSource,
}

impl Attention {
    /// The command that solves it with its usual answer, as a person types it; words in capitals are theirs to fill in. `None`
    /// where the text alone says what to do.
    pub fn command(&self) -> Option<String> {
        let project = self.project.as_deref();
        match (self.reason, project) {
            // Giving the task up is no answer to a lack of room.
            (AttentionCause::PoolFull, Some(project)) => {
                return Some(format!("sluice project update {project} --pool-size N"));
            }
            (AttentionCause::Store, _) => return Some("sluice doctor --deep".to_owned()),
            (_, _) => {}
        }
        let takes_words = self.kind == AttentionKind::Clarification;
        usual(&self.id, self.reason, &self.options).or_else(|| {
            let is_open = takes_words && self.options.is_empty();
            is_open.then(|| format!("sluice answer {} TEXT", self.id))
        })
    }
}

impl AttentionNote {
    /// The same, where the task itself is shown.
    pub fn command(&self) -> Option<String> {
        usual(&self.id, self.reason, &self.choices)
    }
}

/// What holds for a cause wherever it is shown.
struct CauseMarks {
    /// Something failed or died, or work may be lost.
    is_failure: bool,
    /// The option that is usual; none: the first of them.
    usual: Option<&'static str>,
}

impl AttentionCause {
    /// Whether something failed or died, or work may be lost: more than a turn that is a person's.
    pub const fn is_failure(self) -> bool {
        self.marks().is_failure
    }

    const fn marks(self) -> CauseMarks {
        let (is_failure, usual) = match self {
            AttentionCause::Dialog | AttentionCause::Quiet => (false, Some("attach")),
            AttentionCause::HookFailed | AttentionCause::WorkAtRisk => (true, Some("retry")),
            AttentionCause::Crashed | AttentionCause::CannotStart | AttentionCause::Store => (true, None),
            AttentionCause::Question
            | AttentionCause::Gate
            | AttentionCause::Conflict
            | AttentionCause::LoopExhausted
            | AttentionCause::Timeout
            | AttentionCause::Review
            | AttentionCause::Clarification
            | AttentionCause::Stuck
            | AttentionCause::PoolFull
            | AttentionCause::Worker => (false, None),
        };
        CauseMarks { is_failure, usual }
    }
}

/// The usual one of these options as a command: who waits in a terminal is talked with, what failed is done again, and everything
/// else has its usual answer first. To give up is always possible, and never the usual answer; to merge is it only where the
/// work waits to be read.
fn usual(id: &str, reason: AttentionCause, options: &[String]) -> Option<String> {
    let of = id.split_once('/').map_or(id, |(of, _)| of);
    let known = options.iter().find(|option| Some(option.as_str()) == reason.marks().usual);
    let merges = |option: &&String| *option == "approve" && reason != AttentionCause::Review;
    match known.or_else(|| options.iter().find(|option| !merges(option)))?.as_str() {
        "attach" => Some(format!("sluice task attach {of}")),
        "cancel" => None,
        option => Some(answer_command(id, option)),
    }
}

/// Everything that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttentionList {
    /// What waits, the oldest first.
    pub attention: Vec<Attention>,
}

/// An answer to something that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerAttention {
    /// One of the options; where there is none to choose from, any words.
    pub option: String,
    /// What is said besides: feedback for the worker, guidance for the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What came of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttentionAnswer {
    /// The id of what was answered.
    pub id: String,
    /// The option that was taken.
    pub option: String,
    /// The task, as it is after the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
    /// The run, as it is after the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// What else there is to say, such as the command to run next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

words! {
    /// What a dialog of an agent program is about.
    AgentDialogKind {
        /// Whether the folder is trusted.
        Trust = "trust",
        /// The program wants its user to log in.
        Login = "login",
        /// Whether the agent may do something.
        Permission = "permission",
        /// The agent asks its user something.
        Question = "question",
        /// The program offers a newer version of itself.
        Update = "update",
        /// A limit of use is reached.
        Limit = "limit",
        /// The program does not reach its model.
        Network = "network",
        /// Anything else that waits for a key.
        Other = "other",
    }
}

words! {
    /// What the hook of an agent program tells about its agent.
    AgentNews {
        /// The agent shows a dialog and waits for a person.
        Waits = "waits",
        /// The agent has ended its turn.
        TurnEnded = "turn_ended",
        /// The agent is at work.
        Works = "works",
    }
}

/// What a session tells about its own agent. Its agent program's hooks send it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalSession {
    /// The session that it is about: `TASK.NUMBER`. No other session may say it.
    pub session: String,
    /// What the agent does now.
    pub news: AgentNews,
    /// What the dialog is about; only for an agent that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<AgentDialogKind>,
    /// The words of the dialog, or what the agent said last. What is too long is cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Which dialog of the agent it is about, by a name of at most 100 letters that its end has too. An agent that works with
    /// this name has only that dialog behind it; without a name, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<String>,
}

/// Whether a signal was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignalAnswer {
    /// False when the session has told too much in a short time: then this signal was dropped.
    pub taken: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(reason: AttentionCause, kind: AttentionKind, options: &[&str]) -> Option<String> {
        let attention = Attention {
            id: "k3f9/2".to_owned(),
            kind,
            reason,
            task: None,
            run: None,
            step: None,
            recipe: None,
            project: Some("coffee".to_owned()),
            title: String::new(),
            text: String::new(),
            since: String::new(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            default: None,
            deadline: None,
            evidence: Vec::new(),
            exit_code: None,
            printed: None,
            said_by: AttentionSource::Engine,
        };
        attention.command()
    }

    #[test]
    fn each_thing_that_waits_has_its_usual_command() {
        use AttentionCause as Cause;
        let task = |reason, options: &[&str]| command(reason, AttentionKind::Task, options).unwrap_or_default();
        assert_eq!(task(Cause::Review, &["approve", "cancel"]), "sluice answer k3f9/2 approve");
        assert_eq!(task(Cause::Stuck, &["request-changes"]), "sluice answer k3f9/2 request-changes --message TEXT");
        assert_eq!(task(Cause::Dialog, &["stuck", "attach", "dismiss"]), "sluice task attach k3f9");
        assert_eq!(task(Cause::PoolFull, &["cancel"]), "sluice project update coffee --pool-size N");
        assert_eq!(task(Cause::Worker, &["cancel"]), "", "giving up is never the usual answer");
        let asked = |options: &[&str]| command(Cause::Question, AttentionKind::Clarification, options);
        assert_eq!(asked(&[]).as_deref(), Some("sluice answer k3f9/2 TEXT"));
        assert_eq!(asked(&["it's hot", "cold"]).as_deref(), Some("sluice answer k3f9/2 'it'\\''s hot'"));
    }
}
