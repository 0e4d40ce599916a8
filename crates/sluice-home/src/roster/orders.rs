//! A step of a run becomes an order of the work protocol. What comes back is read by `sluice_worker::report`.
//!
//! Everything is taken apart by name and without `..`: a field that is added does not compile until it is carried.

use sluice_api::work::{OrderWorkspace, PROTOCOL, StepOrder, StepPermissions};
use sluice_core::id::Dispatch;
use sluice_core::lifecycle::AgentPermissions;
use sluice_core::recipe::{StepPrompt, StepWork, StepWorkspace};
use sluice_core::run::{Perform, RunJob, is_folder};

use super::task_id;
use crate::read::runs::{RunSnapshot, performance};
use crate::read::view_run::unless_empty;

/// What the engine adds to a step before it hands it out.
pub(super) struct StepHandOut {
    pub(super) dispatch: Dispatch,
    pub(super) repository: Option<String>,
    pub(super) lease_ms: u64,
    pub(super) away_ms: u64,
    pub(super) agent_token: Option<String>,
}

pub(super) fn order(seen: &RunSnapshot, wanted: &Perform, hand_out: StepHandOut) -> StepOrder {
    let StepHandOut { dispatch, repository, lease_ms, away_ms, agent_token } = hand_out;
    let Perform { step: id, attempt, part, role, job, workspace, harness, permissions } = wanted;
    let step = seen.plan.recipe.step(*id);
    let none = Vec::new();
    // What an earlier version stored does not tell; the worker is not told that it stands nowhere.
    let is_told = |folder_at: &Vec<usize>| !folder_at.is_empty() || !asks_for_folder(&step.work, job);
    let (prompt, folder_at, script) = match job {
        RunJob::Agent { prompt, folder_at } | RunJob::Arbiter { prompt, folder_at } => {
            (prompt.as_str(), folder_at, None)
        }
        RunJob::Script(script) | RunJob::Gate(script) => ("", &none, Some(script)),
        RunJob::Task { summary, .. } => (summary.as_str(), &none, None),
    };
    StepOrder {
        protocol: Some(PROTOCOL),
        dispatch: dispatch.0,
        task_id: task_id(&seen.id, step.name.as_str(), *part),
        mission_id: seen.id.to_string(),
        step_id: step.name.as_str().to_owned(),
        role: role.to_string(),
        title: crate::roster::missions::title(step),
        prompt: prompt.to_owned(),
        context: sluice_core::run::context(&seen.plan, &seen.state, *id),
        worktree_path: seen.state.given.folder(*workspace).to_owned(),
        worktree_at: Some(folder_at).filter(|at| is_told(at)).cloned(),
        worktree_in: Some(folder_in(&step.work)),
        kind: step.work.kind().to_owned(),
        is_arbiter: matches!(job, RunJob::Arbiter { .. }),
        script: script.map(|it| it.script.clone()),
        environment: script.map(|it| it.environment.clone()),
        attempt: *attempt,
        part: part.to_string(),
        performance: performance(&seen.id, *id, *attempt, *part),
        harness: harness.clone().or_else(|| unless_empty(&seen.state.given.origin.harness)),
        permissions: match permissions {
            AgentPermissions::Full => StepPermissions::Full,
            AgentPermissions::Reduced => StepPermissions::Reduced,
        },
        own_workspace: *workspace == StepWorkspace::Own,
        workspace: Some(match workspace {
            StepWorkspace::Run => OrderWorkspace::Run,
            StepWorkspace::Own => OrderWorkspace::Own,
            StepWorkspace::Scratch => OrderWorkspace::Scratch,
            StepWorkspace::Here => OrderWorkspace::Here,
        }),
        repo: repository,
        commit: tip(seen).filter(|_| workspace.is_worktree()).map(str::to_owned),
        lease_ms: Some(lease_ms),
        away_ms: Some(away_ms),
        agent_token,
    }
}

/// Whether the folder of the run stands in what an agent is told.
fn asks_for_folder(work: &StepWork, job: &RunJob) -> bool {
    let prompt = match (work, job) {
        (StepWork::AgentLoop { arbiter, .. }, RunJob::Arbiter { .. }) => arbiter,
        (
            StepWork::Agent { prompt } | StepWork::AgentLoop { prompt, .. } | StepWork::ParallelAgents { prompt, .. },
            _,
        ) => prompt,
        (StepWork::Script { .. } | StepWork::Gate { .. } | StepWork::Task(_), _) => return false,
    };
    let (StepPrompt::Text(text) | StepPrompt::File { content: Some(text), .. }) = prompt else { return false };
    text.fill_telling(&|_| Some(String::new()), &is_folder).is_ok_and(|(_, at)| !at.is_empty())
}

/// The variables of a command's environment that hold the folder of the run.
pub(crate) fn folder_in(work: &StepWork) -> Vec<String> {
    let (StepWork::Script { command } | StepWork::Gate { command, .. }) = work else { return Vec::new() };
    command.environment.iter().filter(|(_, path)| is_folder(path)).map(|(name, _)| name.as_str().to_owned()).collect()
}

/// The commit at which the work of a run stands. A run that an earlier version stored does not say: there it is the commit
/// of the step that ended last.
pub(super) fn tip(seen: &RunSnapshot) -> Option<&str> {
    if let Some(work) = &seen.state.work {
        return Some(work);
    }
    let ended =
        seen.state.steps.iter().filter_map(|state| Some((state.ended?, state.latest.as_ref()?.commit.as_ref()?)));
    let begun = Some(seen.state.given.origin.base.as_str()).filter(|base| !base.is_empty());
    ended.max_by_key(|(at, _)| *at).map(|(_, commit)| commit.as_str()).or(begun)
}
