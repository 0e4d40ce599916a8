//! Runs on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The recipe to start, and what the run is given.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// The recipe's name, or its file.
    pub recipe: String,
    /// The folder to start in: the recipe is looked for there and works on its repository.
    #[serde(default)]
    pub cwd: String,
    /// The inputs of the recipe, each a name and a value.
    #[serde(default)]
    pub inputs: Vec<(String, serde_json::Value)>,
    /// What is wanted, in words.
    #[serde(default)]
    pub prompt: Option<String>,
    /// The work order that the run is done for, as `${run.work_order}` reads it.
    #[serde(default)]
    pub work_order: Option<String>,
    /// The agent program of steps that name none.
    #[serde(default)]
    pub harness: Option<String>,
    /// Whether the caller does the steps and reports each one, as for a process.
    #[serde(default)]
    pub by_hand: bool,
    /// Whether the workers of the project do the steps, and not the engine's machine.
    #[serde(default)]
    pub workers: bool,
}

/// An answer to a question.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerQuestion {
    /// The option to choose, one of those that the question lists.
    pub option: String,
    /// A comment to go with the option.
    #[serde(default)]
    pub message: Option<String>,
}

/// What an agent or script says about its own step.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepSays {
    /// Whether the step is complete, has failed, or asks a person.
    #[schemars(extend("enum" = ["complete", "fail", "ask"]))]
    pub verb: String,
    /// What came of the step, in a few words.
    #[serde(default)]
    pub summary: Option<String>,
    /// The word that conditions read.
    #[serde(default)]
    pub result: Option<String>,
    /// The value that variables read.
    #[serde(default)]
    pub output: Option<serde_json::Value>,
    /// The question to ask, with `ask`.
    #[serde(default)]
    pub text: Option<String>,
    /// The options of the question; default: any text can be answered.
    #[serde(default)]
    pub options: Vec<String>,
    /// The answer to take when no person has answered in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// How long the question waits for a person, in seconds; default: without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

impl StepSays {
    /// What is said with this verb and nothing else.
    pub fn new(verb: &str) -> StepSays {
        StepSays { verb: verb.to_owned(), ..StepSays::default() }
    }
}

/// The engine's answer to what a session says about its step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum StepHeard {
    /// A person has answered.
    Answered {
        /// Always true: a person has answered.
        answered: bool,
        /// The option that was chosen.
        option: String,
        /// What was said with it.
        message: Option<String>,
    },
    /// A person is asked, and has not answered yet: ask again in the same words.
    Unanswered {
        /// Always false: no person has answered yet.
        answered: bool,
    },
    /// The report is recorded, and counts when the process of the step ends.
    Said {
        /// Always true: the report is recorded.
        said: bool,
    },
}

/// What is said about a step of a process.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessStepReport {
    /// What came of the step, in a few words.
    pub summary: Option<String>,
    /// The word that conditions read.
    pub result: Option<String>,
}
