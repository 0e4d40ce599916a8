//! What events of runs say, in the words of what a run was started as.

use serde::{Deserialize, Serialize};

/// What an event of a run says, of which run and which step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunEventShown {
    /// The run, by what it was started as.
    #[serde(flatten)]
    pub run: RunSubject,
    /// The name of the recipe.
    pub recipe: String,
    /// What a process is known by as well.
    #[serde(flatten)]
    pub process: Option<ProcessSubject>,
    /// The step that the event is about; absent if it is about the run as a whole.
    #[serde(flatten)]
    pub step: Option<StepSubject>,
    /// What else it says.
    #[serde(flatten)]
    pub data: RunEventData,
}

/// The run that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum RunSubject {
    /// The id of a run that was started by a recipe alone.
    #[serde(rename = "run_id")]
    Run(String),
    /// The id of a mission of a colony.
    #[serde(rename = "mission_id")]
    Mission(String),
    /// The id of a workflow that was started by a grimoire.
    #[serde(rename = "workflow_id")]
    Workflow(String),
    /// The id of a process that was started by a template.
    #[serde(rename = "process_id")]
    Process(String),
}

/// What an event says of its process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessSubject {
    /// The name of the template.
    pub template: String,
    /// What the process is done for.
    pub wo_id: Option<String>,
}

/// The step that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSubject {
    /// The name of the step.
    pub step_id: String,
    /// The same value as `step_id`.
    pub step_name: String,
    /// What kind of work it is.
    pub step_type: String,
}

/// What an event of a run says beside what it is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RunEventData {
    /// An attempt of a step began.
    StepStarted(StepStarted),
    /// A step is done.
    StepCompleted(StepCompleted),
    /// An attempt of a step failed; the step may be tried again.
    AttemptFailed {
        /// The exit code of a command.
        exit_code: Option<i32>,
        /// The end of what it printed.
        printed: String,
    },
    /// A step or a run has this status now.
    Status {
        /// The status of the step or run after the event.
        status: &'static str,
    },
    /// A run begins to end.
    Ending {
        /// How it will have ended.
        end: &'static str,
    },
    /// A step or a run has this status now, because of this error.
    Failed {
        /// The status of the step or run after the event: `failed` or `blocked`.
        status: &'static str,
        /// Why the step or run failed, in plain text.
        error: String,
    },
    /// An attempt is repeated or stopped.
    Error {
        /// What was wrong with the attempt, in plain text.
        error: String,
    },
    /// A person is asked.
    Asked {
        /// The id of the question.
        question: String,
        /// The question, in plain text.
        reason: String,
        /// What can be answered.
        options: Vec<String>,
    },
    /// A run waits for a person, or was cancelled.
    Stopped {
        /// The status of the run after the event: `held`, `blocked` or `cancelled`.
        status: &'static str,
        /// Why the run waits or was cancelled, in plain text.
        reason: String,
    },
    /// A question was answered.
    Answered {
        /// The option that was chosen.
        option: String,
        /// What was said with it.
        message: Option<String>,
    },
    /// A part of a step has ended.
    PartEnded {
        /// The part that has ended: `whole`, `item-N`, `turn-N` or `arbiter-N`.
        part: String,
        /// Why the part failed; null if it is done.
        error: Option<String>,
        /// The summary of the part.
        output_summary: Option<String>,
    },
    /// Something about a part of a step.
    Part {
        /// The part that the event is about: `whole`, `item-N`, `turn-N` or `arbiter-N`.
        part: String,
    },
    /// A step was gone back to.
    LoopedBack {
        /// The name of the step after which the run went back.
        from: String,
        /// The name of the step that is done again.
        to: String,
    },
    /// A run is done.
    Completed {
        /// Always `completed` in this event.
        status: &'static str,
        /// The summary of the run.
        summary: String,
    },
    /// The name of the event says all there is.
    Nothing {},
}

/// What the event says when an attempt of a step begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStarted {
    /// Which attempt, from 1.
    pub attempt: u32,
    /// The number of items of a fan-out.
    pub items: Option<usize>,
}

/// A step is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepCompleted {
    /// Always `completed` in this event.
    pub status: String,
    /// The summary of the step.
    pub output_summary: String,
    /// The same value as `output_summary`.
    pub summary: String,
    /// The word that conditions read.
    pub result: Option<String>,
}
