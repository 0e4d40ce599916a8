//! The stored form of what a task wants done. Version 1.
//!
//! The key of an effect is its id in the store, so only the instruction is written here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sluice_core::task::effect::StartSession;
use sluice_core::task::session::SessionId;
use sluice_core::task::state::WorkspaceName;
use sluice_core::task::{Effect, EffectKey, Instruction};

use super::task_data::{StoredHarness, StoredOccasion, StoredPermissions, StoredPlace, StoredRole, StoredValue};
use super::{Unreadable, bytes, known};

/// The version that is written.
pub const VERSION: u16 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u16,
    asked: StoredInstruction,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum StoredInstruction {
    AcquireWorkspace { reserved: Option<String> },
    ReleaseWorkspace { workspace: String },
    StartSession(StoredStart),
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
    WriteArtifact { frontmatter: BTreeMap<String, StoredValue>, feedback: Option<String> },
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredStart {
    session: u32,
    place: StoredPlace,
    role: StoredRole,
    window: String,
    prompt: String,
    harness: StoredHarness,
    permissions: StoredPermissions,
    workspace: String,
}

/// What is to be done, in the store's words.
pub fn kind(instruction: &Instruction) -> &'static str {
    match instruction {
        Instruction::AcquireWorkspace { .. } => "acquire_workspace",
        Instruction::ReleaseWorkspace { .. } => "release_workspace",
        Instruction::StartSession(_) => "start_session",
        Instruction::EndSession { .. } => "end_session",
        Instruction::TypeToWorker { .. } => "type_to_worker",
        Instruction::SpawnNext => "spawn_next",
        Instruction::PushBranch => "push_branch",
        Instruction::CreatePr => "create_pr",
        Instruction::DeleteRemoteBranch => "delete_remote_branch",
        Instruction::Notify { .. } => "notify",
        Instruction::RunCommand { .. } => "run_command",
        Instruction::StartRun { .. } => "start_run",
        Instruction::CancelRun { .. } => "cancel_run",
        Instruction::WriteArtifact { .. } => "write_artifact",
    }
}

/// The bytes of an instruction.
pub fn write(instruction: &Instruction) -> Vec<u8> {
    let asked = match instruction {
        Instruction::AcquireWorkspace { reserved } => {
            StoredInstruction::AcquireWorkspace { reserved: reserved.as_ref().map(|name| name.0.clone()) }
        }
        Instruction::ReleaseWorkspace { workspace } => {
            StoredInstruction::ReleaseWorkspace { workspace: workspace.0.clone() }
        }
        Instruction::StartSession(start) => StoredInstruction::StartSession(start.into()),
        Instruction::EndSession { sessions, whole } => {
            StoredInstruction::EndSession { sessions: sessions.iter().map(|id| id.0).collect(), whole: *whole }
        }
        Instruction::TypeToWorker { session, occasion, text } => {
            StoredInstruction::TypeToWorker { session: session.0, occasion: (*occasion).into(), text: text.clone() }
        }
        Instruction::SpawnNext => StoredInstruction::SpawnNext,
        Instruction::PushBranch => StoredInstruction::PushBranch,
        Instruction::CreatePr => StoredInstruction::CreatePr,
        Instruction::DeleteRemoteBranch => StoredInstruction::DeleteRemoteBranch,
        Instruction::Notify { message } => StoredInstruction::Notify { message: message.clone() },
        Instruction::RunCommand { workspace, script, environment } => StoredInstruction::RunCommand {
            workspace: workspace.0.clone(),
            script: script.clone(),
            environment: environment.clone(),
        },
        Instruction::StartRun { recipe, inputs, workspace } => StoredInstruction::StartRun {
            recipe: recipe.clone(),
            inputs: inputs.clone(),
            workspace: workspace.as_ref().map(|name| name.0.clone()),
        },
        Instruction::CancelRun { run } => StoredInstruction::CancelRun { run: run.clone() },
        Instruction::WriteArtifact { frontmatter, feedback } => StoredInstruction::WriteArtifact {
            frontmatter: frontmatter.iter().map(|(name, value)| (name.clone(), value.into())).collect(),
            feedback: feedback.clone(),
        },
    };
    bytes(&Stored { version: VERSION, asked })
}

/// The effect with this id and these bytes.
pub fn read(id: &str, bytes: &[u8]) -> Result<Effect, Unreadable> {
    let key = EffectKey::read(id).ok_or_else(|| Unreadable(format!("no effect of a task is called `{id}`")))?;
    known("an effect", bytes, VERSION)?;
    let Stored { version: _, asked } = serde_json::from_slice(bytes)?;
    let instruction = match asked {
        StoredInstruction::AcquireWorkspace { reserved } => {
            Instruction::AcquireWorkspace { reserved: reserved.map(WorkspaceName) }
        }
        StoredInstruction::ReleaseWorkspace { workspace } => {
            Instruction::ReleaseWorkspace { workspace: WorkspaceName(workspace) }
        }
        StoredInstruction::StartSession(start) => Instruction::StartSession(start.into()),
        StoredInstruction::EndSession { sessions, whole } => {
            Instruction::EndSession { sessions: sessions.into_iter().map(SessionId).collect(), whole }
        }
        StoredInstruction::TypeToWorker { session, occasion, text } => {
            Instruction::TypeToWorker { session: SessionId(session), occasion: occasion.into(), text }
        }
        StoredInstruction::SpawnNext => Instruction::SpawnNext,
        StoredInstruction::PushBranch => Instruction::PushBranch,
        StoredInstruction::CreatePr => Instruction::CreatePr,
        StoredInstruction::DeleteRemoteBranch => Instruction::DeleteRemoteBranch,
        StoredInstruction::Notify { message } => Instruction::Notify { message },
        StoredInstruction::RunCommand { workspace, script, environment } => {
            Instruction::RunCommand { workspace: WorkspaceName(workspace), script, environment }
        }
        StoredInstruction::StartRun { recipe, inputs, workspace } => {
            Instruction::StartRun { recipe, inputs, workspace: workspace.map(WorkspaceName) }
        }
        StoredInstruction::CancelRun { run } => Instruction::CancelRun { run },
        StoredInstruction::WriteArtifact { frontmatter, feedback } => Instruction::WriteArtifact {
            frontmatter: frontmatter.into_iter().map(|(name, value)| (name, value.into())).collect(),
            feedback,
        },
    };
    Ok(Effect { key, instruction })
}

impl From<&StartSession> for StoredStart {
    fn from(it: &StartSession) -> Self {
        StoredStart {
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

impl From<StoredStart> for StartSession {
    fn from(it: StoredStart) -> Self {
        StartSession {
            session: SessionId(it.session),
            place: it.place.into(),
            role: it.role.into(),
            window: it.window,
            prompt: it.prompt,
            harness: it.harness.into(),
            permissions: it.permissions.into(),
            workspace: WorkspaceName(it.workspace),
        }
    }
}
