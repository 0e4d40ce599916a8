//! Runs on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A run that is asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// The recipe's name, or its file.
    pub recipe: String,
    /// Where the command was called.
    #[serde(default)]
    pub cwd: String,
    /// What it is given, by name.
    #[serde(default)]
    pub inputs: Vec<(String, serde_json::Value)>,
    /// What is wanted, in words.
    #[serde(default)]
    pub prompt: Option<String>,
    /// What it is done for.
    #[serde(default)]
    pub work_order: Option<String>,
    /// The agent program of steps that name none.
    #[serde(default)]
    pub harness: Option<String>,
    /// Whether whoever follows the instructions does the steps.
    #[serde(default)]
    pub by_hand: bool,
    /// Whether the workers of the project do the steps, and not the engine's machine.
    pub workers: bool,
}

/// An answer to a question.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerQuestion {
    /// What is chosen.
    pub option: String,
    /// And said.
    #[serde(default)]
    pub message: Option<String>,
}

/// What an agent or script says about its own step.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepSays {
    /// What it says.
    #[schemars(extend("enum" = ["complete", "fail", "ask"]))]
    pub verb: String,
    /// In a few words.
    #[serde(default)]
    pub summary: Option<String>,
    /// The word that conditions read.
    #[serde(default)]
    pub result: Option<String>,
    /// The value that variables read.
    #[serde(default)]
    pub output: Option<serde_json::Value>,
    /// What is asked.
    #[serde(default)]
    pub text: Option<String>,
    /// What can be answered.
    #[serde(default)]
    pub options: Vec<String>,
}

/// What came of what a session said about its step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum StepHeard {
    /// A person has answered.
    Answered {
        /// True.
        answered: bool,
        /// The option that was chosen.
        option: String,
        /// What was said with it.
        message: Option<String>,
    },
    /// A person is asked, and has not answered yet: ask again in the same words.
    Unanswered {
        /// False.
        answered: bool,
    },
    /// It is written down.
    Said {
        /// True.
        said: bool,
    },
}

/// What is said about a step of a process.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessStepReport {
    /// In a few words.
    pub summary: Option<String>,
    /// The word that conditions read.
    pub result: Option<String>,
}
