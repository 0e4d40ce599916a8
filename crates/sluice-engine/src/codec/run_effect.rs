//! The stored form of what a run wants done. Version 1.

use serde::{Deserialize, Serialize};
use sluice_core::lifecycle::Permissions;
use sluice_core::machine::Moment;
use sluice_core::name::Role;
use sluice_core::recipe::StepId;
use sluice_core::run::effect::Script;
use sluice_core::run::{Effect, Job, Perform};

use super::data::part;
use super::{Unreadable, bytes, known};

/// The version that is written.
pub const VERSION: u16 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u16,
    asked: StoredEffect,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
enum StoredEffect {
    Perform {
        step: u32,
        attempt: u32,
        part: String,
        role: String,
        job: StoredJob,
        #[serde(default)]
        own_workspace: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        harness: Option<String>,
        #[serde(default)]
        reduced: bool,
    },
    Stop {
        step: u32,
        attempt: u32,
        part: String,
    },
    Notify {
        text: String,
    },
    RunCommand {
        script: StoredScript,
    },
    Start {
        recipe: String,
    },
    Repeat {
        at: i64,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum StoredJob {
    Agent {
        prompt: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        folder_at: Vec<usize>,
    },
    Arbiter {
        prompt: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        folder_at: Vec<usize>,
    },
    Script {
        script: StoredScript,
    },
    Gate {
        script: StoredScript,
    },
    Task {
        summary: String,
        branch: Option<String>,
        workflow: Option<String>,
        project: Option<String>,
        context: Option<String>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredScript {
    script: String,
    environment: Vec<(String, String)>,
}

impl From<&Script> for StoredScript {
    fn from(it: &Script) -> Self {
        StoredScript { script: it.script.clone(), environment: it.environment.clone() }
    }
}

impl From<StoredScript> for Script {
    fn from(it: StoredScript) -> Self {
        Script { script: it.script, environment: it.environment }
    }
}

/// The bytes of an effect; `None` for timers, which are stored as such.
pub fn write(effect: &Effect) -> Option<Vec<u8>> {
    let asked = match effect {
        Effect::Perform(it) => StoredEffect::Perform {
            step: it.step.0,
            attempt: it.attempt,
            part: it.part.to_string(),
            role: it.role.to_string(),
            job: (&it.job).into(),
            own_workspace: it.own_workspace,
            harness: it.harness.clone(),
            reduced: it.permissions == Permissions::Reduced,
        },
        Effect::Stop { step, attempt, part } => {
            StoredEffect::Stop { step: step.0, attempt: *attempt, part: part.to_string() }
        }
        Effect::Notify(text) => StoredEffect::Notify { text: text.clone() },
        Effect::RunCommand(script) => StoredEffect::RunCommand { script: script.into() },
        Effect::Start { recipe } => StoredEffect::Start { recipe: recipe.clone() },
        Effect::Repeat { at } => StoredEffect::Repeat { at: at.0 },
        Effect::SetTimer(..) | Effect::ClearTimer(_) => return None,
    };
    Some(bytes(&Stored { version: VERSION, asked }))
}

impl From<&Job> for StoredJob {
    fn from(it: &Job) -> Self {
        match it {
            Job::Agent { prompt, folder_at } => {
                StoredJob::Agent { prompt: prompt.clone(), folder_at: folder_at.clone() }
            }
            Job::Arbiter { prompt, folder_at } => {
                StoredJob::Arbiter { prompt: prompt.clone(), folder_at: folder_at.clone() }
            }
            Job::Script(script) => StoredJob::Script { script: script.into() },
            Job::Gate(script) => StoredJob::Gate { script: script.into() },
            Job::Task { summary, branch, workflow, project, context } => StoredJob::Task {
                summary: summary.clone(),
                branch: branch.clone(),
                workflow: workflow.clone(),
                project: project.clone(),
                context: context.clone(),
            },
        }
    }
}

impl From<StoredJob> for Job {
    fn from(it: StoredJob) -> Self {
        match it {
            StoredJob::Agent { prompt, folder_at } => Job::Agent { prompt, folder_at },
            StoredJob::Arbiter { prompt, folder_at } => Job::Arbiter { prompt, folder_at },
            StoredJob::Script { script } => Job::Script(script.into()),
            StoredJob::Gate { script } => Job::Gate(script.into()),
            StoredJob::Task { summary, branch, workflow, project, context } => {
                Job::Task { summary, branch, workflow, project, context }
            }
        }
    }
}

/// The effect in `bytes`.
pub fn read(bytes: &[u8]) -> Result<Effect, Unreadable> {
    known("an effect", bytes, VERSION)?;
    let Stored { version: _, asked } = serde_json::from_slice(bytes)?;
    Ok(match asked {
        StoredEffect::Perform { step, attempt, part: text, role, job, own_workspace, harness, reduced } => {
            Effect::Perform(Box::new(Perform {
                step: StepId(step),
                attempt,
                part: part(&text)?,
                role: Role::new(role),
                job: job.into(),
                own_workspace,
                harness,
                permissions: if reduced { Permissions::Reduced } else { Permissions::Full },
            }))
        }
        StoredEffect::Stop { step, attempt, part: text } => {
            Effect::Stop { step: StepId(step), attempt, part: part(&text)? }
        }
        StoredEffect::Notify { text } => Effect::Notify(text),
        StoredEffect::RunCommand { script } => Effect::RunCommand(script.into()),
        StoredEffect::Start { recipe } => Effect::Start { recipe },
        StoredEffect::Repeat { at } => Effect::Repeat { at: Moment(at) },
    })
}
