//! The stored form of what a run wants done. Version 1.

use serde::{Deserialize, Serialize};
use sluice_core::lifecycle::AgentPermissions;
use sluice_core::machine::Moment;
use sluice_core::name::Role;
use sluice_core::recipe::{StepId, StepWorkspace};
use sluice_core::run::effect::RunScript;
use sluice_core::run::{Perform, RunEffect, RunJob};

use super::data::part;
use super::{UnreadableData, bytes, known};

pub const VERSION: u16 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunEffectEnvelope {
    version: u16,
    asked: StoredRunEffect,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case", deny_unknown_fields)]
enum StoredRunEffect {
    Perform {
        step: u32,
        attempt: u32,
        part: String,
        role: String,
        job: StoredRunJob,
        #[serde(default)]
        own_workspace: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outside: Option<StoredOutside>,
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
    Release,
    Repeat {
        at: i64,
    },
}

/// Where work outside worktrees is done. Earlier engines knew of none, and of worktrees `own_workspace` says which.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredOutside {
    Scratch,
    Here,
}

impl StoredOutside {
    fn of(workspace: StepWorkspace) -> Option<StoredOutside> {
        match workspace {
            StepWorkspace::Run | StepWorkspace::Own => None,
            StepWorkspace::Scratch => Some(StoredOutside::Scratch),
            StepWorkspace::Here => Some(StoredOutside::Here),
        }
    }

    fn workspace(outside: Option<StoredOutside>, own_workspace: bool) -> StepWorkspace {
        match outside {
            Some(StoredOutside::Scratch) => StepWorkspace::Scratch,
            Some(StoredOutside::Here) => StepWorkspace::Here,
            None if own_workspace => StepWorkspace::Own,
            None => StepWorkspace::Run,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum StoredRunJob {
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
#[serde(deny_unknown_fields)]
struct StoredScript {
    script: String,
    environment: Vec<(String, String)>,
}

impl From<&RunScript> for StoredScript {
    fn from(it: &RunScript) -> Self {
        StoredScript { script: it.script.clone(), environment: it.environment.clone() }
    }
}

impl From<StoredScript> for RunScript {
    fn from(it: StoredScript) -> Self {
        RunScript { script: it.script, environment: it.environment }
    }
}

/// The bytes of an effect; `None` for timers, which are stored as such.
pub fn write(effect: &RunEffect) -> Option<Vec<u8>> {
    let asked = match effect {
        RunEffect::Perform(it) => StoredRunEffect::Perform {
            step: it.step.0,
            attempt: it.attempt,
            part: it.part.to_string(),
            role: it.role.to_string(),
            job: (&it.job).into(),
            own_workspace: it.workspace == StepWorkspace::Own,
            outside: StoredOutside::of(it.workspace),
            harness: it.harness.clone(),
            reduced: it.permissions == AgentPermissions::Reduced,
        },
        RunEffect::Stop { step, attempt, part } => {
            StoredRunEffect::Stop { step: step.0, attempt: *attempt, part: part.to_string() }
        }
        RunEffect::Notify(text) => StoredRunEffect::Notify { text: text.clone() },
        RunEffect::RunCommand(script) => StoredRunEffect::RunCommand { script: script.into() },
        RunEffect::Start { recipe } => StoredRunEffect::Start { recipe: recipe.clone() },
        RunEffect::Release => StoredRunEffect::Release,
        RunEffect::Repeat { at } => StoredRunEffect::Repeat { at: at.0 },
        RunEffect::SetTimer(..) | RunEffect::ClearTimer(_) => return None,
    };
    Some(bytes(&RunEffectEnvelope { version: VERSION, asked }))
}

impl From<&RunJob> for StoredRunJob {
    fn from(it: &RunJob) -> Self {
        match it {
            RunJob::Agent { prompt, folder_at } => {
                StoredRunJob::Agent { prompt: prompt.clone(), folder_at: folder_at.clone() }
            }
            RunJob::Arbiter { prompt, folder_at } => {
                StoredRunJob::Arbiter { prompt: prompt.clone(), folder_at: folder_at.clone() }
            }
            RunJob::Script(script) => StoredRunJob::Script { script: script.into() },
            RunJob::Gate(script) => StoredRunJob::Gate { script: script.into() },
            RunJob::Task { summary, branch, workflow, project, context } => StoredRunJob::Task {
                summary: summary.clone(),
                branch: branch.clone(),
                workflow: workflow.clone(),
                project: project.clone(),
                context: context.clone(),
            },
        }
    }
}

impl From<StoredRunJob> for RunJob {
    fn from(it: StoredRunJob) -> Self {
        match it {
            StoredRunJob::Agent { prompt, folder_at } => RunJob::Agent { prompt, folder_at },
            StoredRunJob::Arbiter { prompt, folder_at } => RunJob::Arbiter { prompt, folder_at },
            StoredRunJob::Script { script } => RunJob::Script(script.into()),
            StoredRunJob::Gate { script } => RunJob::Gate(script.into()),
            StoredRunJob::Task { summary, branch, workflow, project, context } => {
                RunJob::Task { summary, branch, workflow, project, context }
            }
        }
    }
}

pub fn read(bytes: &[u8]) -> Result<RunEffect, UnreadableData> {
    known("an effect", bytes, VERSION)?;
    let RunEffectEnvelope { version: _, asked } = serde_json::from_slice(bytes)?;
    Ok(match asked {
        StoredRunEffect::Perform { step, attempt, part: text, role, job, own_workspace, outside, harness, reduced } => {
            RunEffect::Perform(Box::new(Perform {
                step: StepId(step),
                attempt,
                part: part(&text)?,
                role: Role::new(role),
                job: job.into(),
                workspace: StoredOutside::workspace(outside, own_workspace),
                harness,
                permissions: if reduced { AgentPermissions::Reduced } else { AgentPermissions::Full },
            }))
        }
        StoredRunEffect::Stop { step, attempt, part: text } => {
            RunEffect::Stop { step: StepId(step), attempt, part: part(&text)? }
        }
        StoredRunEffect::Notify { text } => RunEffect::Notify(text),
        StoredRunEffect::RunCommand { script } => RunEffect::RunCommand(script.into()),
        StoredRunEffect::Start { recipe } => RunEffect::Start { recipe },
        StoredRunEffect::Release => RunEffect::Release,
        StoredRunEffect::Repeat { at } => RunEffect::Repeat { at: Moment(at) },
    })
}
