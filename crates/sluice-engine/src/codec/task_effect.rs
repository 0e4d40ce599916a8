//! The stored form of what a task wants done. Version 1.
//!
//! The key of an effect is its id in the store, so only the instruction is written here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sluice_core::task::effect::StartSession;
use sluice_core::task::session::SessionNumber;
use sluice_core::task::state::WorktreePath;
use sluice_core::task::{EffectKey, Instruction, PlainEffect, TaskEffect};

use super::task_data::{StoredFieldValue, StoredHarness, StoredOccasion, StoredPermissions, StoredPlace, StoredRole};
use super::{UnreadableData, bytes, known};

pub const VERSION: u16 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskEffectEnvelope {
    version: u16,
    asked: StoredTaskEffect,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum StoredTaskEffect {
    AcquireWorkspace { reserved: Option<String> },
    ReleaseWorkspace { workspace: String },
    StartSession(StoredSessionStart),
    EndSession { sessions: Vec<u32>, whole: bool },
    TypeToWorker { session: u32, occasion: StoredOccasion, text: String },
    SpawnNext,
    PushBranch,
    CreatePr,
    DeleteRemoteBranch,
    Notify { message: String },
    RunCommand { workspace: String, script: String, environment: Vec<(String, String)> },
    StartRun { recipe: String, inputs: Vec<(String, String)>, workspace: Option<String> },
    CancelRun { run: String },
    WriteArtifact { frontmatter: BTreeMap<String, StoredFieldValue>, feedback: Option<String> },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSessionStart {
    session: u32,
    place: StoredPlace,
    role: StoredRole,
    window: String,
    prompt: String,
    harness: StoredHarness,
    permissions: StoredPermissions,
    workspace: String,
}

pub fn write(instruction: &Instruction) -> Vec<u8> {
    let asked = match instruction {
        Instruction::AcquireWorkspace { reserved } => {
            StoredTaskEffect::AcquireWorkspace { reserved: reserved.as_ref().map(|name| name.0.clone()) }
        }
        Instruction::ReleaseWorkspace { workspace } => {
            StoredTaskEffect::ReleaseWorkspace { workspace: workspace.0.clone() }
        }
        Instruction::StartSession(start) => StoredTaskEffect::StartSession(start.into()),
        Instruction::EndSession { sessions, whole } => {
            StoredTaskEffect::EndSession { sessions: sessions.iter().map(|id| id.0).collect(), whole: *whole }
        }
        Instruction::TypeToWorker { session, occasion, text } => {
            StoredTaskEffect::TypeToWorker { session: session.0, occasion: (*occasion).into(), text: text.clone() }
        }
        Instruction::Plain(plain) => stored_plain(plain),
        Instruction::RunCommand { workspace, script, environment } => StoredTaskEffect::RunCommand {
            workspace: workspace.0.clone(),
            script: script.clone(),
            environment: environment.clone(),
        },
        Instruction::StartRun { recipe, inputs, workspace } => StoredTaskEffect::StartRun {
            recipe: recipe.clone(),
            inputs: inputs.clone(),
            workspace: workspace.as_ref().map(|name| name.0.clone()),
        },
        Instruction::CancelRun { run } => StoredTaskEffect::CancelRun { run: run.to_string() },
        Instruction::WriteArtifact { frontmatter, feedback } => StoredTaskEffect::WriteArtifact {
            frontmatter: frontmatter.iter().map(|(name, value)| (name.clone(), value.into())).collect(),
            feedback: feedback.clone(),
        },
    };
    bytes(&TaskEffectEnvelope { version: VERSION, asked })
}

fn stored_plain(plain: &PlainEffect) -> StoredTaskEffect {
    match plain {
        PlainEffect::SpawnNext {} => StoredTaskEffect::SpawnNext,
        PlainEffect::PushBranch {} => StoredTaskEffect::PushBranch,
        PlainEffect::CreatePr {} => StoredTaskEffect::CreatePr,
        PlainEffect::DeleteRemoteBranch {} => StoredTaskEffect::DeleteRemoteBranch,
        PlainEffect::Notify { message } => StoredTaskEffect::Notify { message: message.clone() },
    }
}

/// The effect with this id and these bytes.
pub fn read(id: &str, bytes: &[u8]) -> Result<TaskEffect, UnreadableData> {
    let key = EffectKey::read(id).ok_or_else(|| UnreadableData(format!("no effect of a task is called `{id}`")))?;
    known("an effect", bytes, VERSION)?;
    let TaskEffectEnvelope { version: _, asked } = serde_json::from_slice(bytes)?;
    let instruction = match asked {
        StoredTaskEffect::AcquireWorkspace { reserved } => {
            Instruction::AcquireWorkspace { reserved: reserved.map(WorktreePath) }
        }
        StoredTaskEffect::ReleaseWorkspace { workspace } => {
            Instruction::ReleaseWorkspace { workspace: WorktreePath(workspace) }
        }
        StoredTaskEffect::StartSession(start) => Instruction::StartSession(start.into()),
        StoredTaskEffect::EndSession { sessions, whole } => {
            Instruction::EndSession { sessions: sessions.into_iter().map(SessionNumber).collect(), whole }
        }
        StoredTaskEffect::TypeToWorker { session, occasion, text } => {
            Instruction::TypeToWorker { session: SessionNumber(session), occasion: occasion.into(), text }
        }
        StoredTaskEffect::SpawnNext => Instruction::Plain(PlainEffect::SpawnNext {}),
        StoredTaskEffect::PushBranch => Instruction::Plain(PlainEffect::PushBranch {}),
        StoredTaskEffect::CreatePr => Instruction::Plain(PlainEffect::CreatePr {}),
        StoredTaskEffect::DeleteRemoteBranch => Instruction::Plain(PlainEffect::DeleteRemoteBranch {}),
        StoredTaskEffect::Notify { message } => Instruction::Plain(PlainEffect::Notify { message }),
        StoredTaskEffect::RunCommand { workspace, script, environment } => {
            Instruction::RunCommand { workspace: WorktreePath(workspace), script, environment }
        }
        StoredTaskEffect::StartRun { recipe, inputs, workspace } => {
            Instruction::StartRun { recipe, inputs, workspace: workspace.map(WorktreePath) }
        }
        StoredTaskEffect::CancelRun { run } => Instruction::CancelRun { run: run.parse()? },
        StoredTaskEffect::WriteArtifact { frontmatter, feedback } => Instruction::WriteArtifact {
            frontmatter: frontmatter.into_iter().map(|(name, value)| (name, value.into())).collect(),
            feedback,
        },
    };
    Ok(TaskEffect { key, instruction })
}

impl From<&StartSession> for StoredSessionStart {
    fn from(it: &StartSession) -> Self {
        StoredSessionStart {
            session: it.session.0,
            place: it.place.into(),
            role: it.role.into(),
            window: it.window.clone(),
            prompt: it.prompt.clone(),
            harness: it.harness.into(),
            permissions: it.permissions.into(),
            workspace: it.workspace.0.clone(),
        }
    }
}

impl From<StoredSessionStart> for StartSession {
    fn from(it: StoredSessionStart) -> Self {
        StartSession {
            session: SessionNumber(it.session),
            place: it.place.into(),
            role: it.role.into(),
            window: it.window,
            prompt: it.prompt,
            harness: it.harness.into(),
            permissions: it.permissions.into(),
            workspace: WorktreePath(it.workspace),
        }
    }
}
