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
    /// The step.
    #[serde(flatten)]
    pub step: Option<StepSubject>,
    /// What else it says.
    #[serde(flatten)]
    pub data: RunEventData,
}

/// The run that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum RunSubject {
    /// A run.
    #[serde(rename = "run_id")]
    Run(String),
    /// A mission.
    #[serde(rename = "mission_id")]
    Mission(String),
    /// A workflow.
    #[serde(rename = "workflow_id")]
    Workflow(String),
    /// A process.
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
    /// The same.
    pub step_name: String,
    /// What kind of work it is.
    pub step_type: String,
}

/// What an event of a run says beside what it is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RunEventData {
    /// A step began.
    StepStarted(StepStarted),
    /// A step is done.
    StepCompleted(StepCompleted),
    /// An attempt failed.
    AttemptFailed {
        /// The exit code of a command.
        exit_code: Option<i32>,
        /// The end of what it printed.
        printed: String,
    },
    /// A step or a run has this status now.
    Status {
        /// The status.
        status: &'static str,
    },
    /// A run begins to end.
    Ending {
        /// How it will have ended.
        end: &'static str,
    },
    /// A step or a run has this status now, because of this error.
    Failed {
        /// The status.
        status: &'static str,
        /// The error.
        error: String,
    },
    /// An attempt is repeated or stopped.
    Error {
        /// Why.
        error: String,
    },
    /// A person is asked.
    Asked {
        /// The id of the question.
        question: String,
        /// What is asked.
        reason: String,
        /// What can be answered.
        options: Vec<String>,
    },
    /// A run waits for a person, or was cancelled.
    Stopped {
        /// The status.
        status: &'static str,
        /// Why.
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
        /// The part.
        part: String,
        /// Why it failed.
        error: Option<String>,
        /// What came of it.
        output_summary: Option<String>,
    },
    /// Something about a part of a step.
    Part {
        /// The part.
        part: String,
    },
    /// A step was gone back to.
    LoopedBack {
        /// From this step.
        from: String,
        /// To this step.
        to: String,
    },
    /// A run is done.
    Completed {
        /// `completed`.
        status: &'static str,
        /// What came of it.
        summary: String,
    },
    /// The name of the event says all there is.
    Nothing {},
}

/// A step began.
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
    /// `completed`.
    pub status: String,
    /// What came of it.
    pub output_summary: String,
    /// The same.
    pub summary: String,
    /// The word that conditions read.
    pub result: Option<String>,
}
