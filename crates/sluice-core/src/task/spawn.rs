//! Starting agents: what each is told, where it stands, and what it is asked to be.

use super::apply::edge as edge_at;
use super::effect::{Instruction, StartSession, TaskAction};
use super::event::Settlement;
use super::hooks::{ends_soon, fill, increment};
use super::pending::TaskPending;
use super::session::{SessionChange, SessionRole, TaskSessionPlace};
use super::state::{StatePrompt, TaskAttention, TaskJob};
use crate::lifecycle::{AgentPermissions, AgentSpawn, HarnessChoice, Lifecycle, StateId, TransitionHook, WORKER_AGAIN};
use crate::name::{FieldName, PromptName};

pub(super) struct SpawnPlan<'a> {
    pub(super) place: TaskSessionPlace,
    role: SessionRole,
    prompt: &'a PromptName,
    harness: HarnessChoice,
    permissions: AgentPermissions,
    increment: Option<&'a FieldName>,
    pub(super) again: bool,
}

impl<'a> SpawnPlan<'a> {
    pub(super) fn of(lifecycle: &'a Lifecycle, job: TaskJob) -> Option<SpawnPlan<'a>> {
        match job {
            TaskJob::Acquire | TaskJob::StartRun(_) | TaskJob::CancelRun | TaskJob::Tell => None,
            TaskJob::Hook { edge, hook } => {
                let edge = edge_at(lifecycle, edge)?;
                let hook = edge.hooks.get(hook as usize)?;
                let (place, spawn) = (place(hook), hook.spawn()?);
                Some(SpawnPlan {
                    place,
                    role: role(lifecycle, edge.to, place),
                    prompt: &spawn.prompt,
                    harness: spawn.harness,
                    permissions: spawn.permissions,
                    increment: spawn.increment.as_ref(),
                    again: false,
                })
            }
            TaskJob::Start(start) => {
                let state = lifecycle.state(start.state);
                let manner = SpawnManner::of(lifecycle, start.state);
                let prompt = match start.prompt {
                    StatePrompt::Enter => state.enter_prompt.as_ref(),
                    StatePrompt::Respawn => state.respawn_prompt.as_ref(),
                };
                Some(SpawnPlan {
                    place: start.place,
                    role: role(lifecycle, start.state, start.place),
                    prompt: prompt?,
                    harness: manner.harness,
                    permissions: manner.permissions,
                    increment: None,
                    again: start.again,
                })
            }
        }
    }
}

/// The role of whoever is started for `state` in `place`: where a verdict is asked for, its author is started.
fn role(lifecycle: &Lifecycle, state: StateId, place: TaskSessionPlace) -> SessionRole {
    match (place, lifecycle.is_reviewed(state)) {
        (TaskSessionPlace::Beside, _) | (TaskSessionPlace::Main, true) => SessionRole::Reviewer,
        (TaskSessionPlace::Main, false) => SessionRole::Worker,
    }
}

/// For a worker that should have been told something, and is not there.
pub(super) fn worker_again(lifecycle: &Lifecycle) -> Option<SpawnPlan<'_>> {
    let (prompt, _) = lifecycle.prompts.get_key_value(WORKER_AGAIN)?;
    Some(SpawnPlan {
        place: TaskSessionPlace::Main,
        role: SessionRole::Worker,
        prompt,
        harness: HarnessChoice::Task,
        permissions: AgentPermissions::Full,
        increment: None,
        again: true,
    })
}

fn place(hook: &TransitionHook) -> TaskSessionPlace {
    match matches!(hook, TransitionHook::SpawnReviewer(_)) {
        true => TaskSessionPlace::Beside,
        false => TaskSessionPlace::Main,
    }
}

/// How an agent of a state is started where no hook says it: as every transition says that starts one there, and like
/// a worker where they differ or there is none.
pub(super) struct SpawnManner {
    pub(super) place: TaskSessionPlace,
    harness: HarnessChoice,
    permissions: AgentPermissions,
}

impl SpawnManner {
    pub(super) fn of(lifecycle: &Lifecycle, state: StateId) -> SpawnManner {
        let hooks = lifecycle.transitions.iter().filter(|edge| edge.to == state).flat_map(|edge| &edge.hooks);
        let spawns: Vec<(TaskSessionPlace, &AgentSpawn)> =
            hooks.filter_map(|hook| Some((place(hook), hook.spawn()?))).collect();
        let all =
            |test: &dyn Fn(&(TaskSessionPlace, &AgentSpawn)) -> bool| !spawns.is_empty() && spawns.iter().all(test);
        SpawnManner {
            place: match all(&|(place, _)| *place == TaskSessionPlace::Beside) {
                true => TaskSessionPlace::Beside,
                false => TaskSessionPlace::Main,
            },
            harness: match all(&|(_, spawn)| spawn.harness == HarnessChoice::Review) {
                true => HarnessChoice::Review,
                false => HarnessChoice::Task,
            },
            permissions: match all(&|(_, spawn)| spawn.permissions == AgentPermissions::Reduced) {
                true => AgentPermissions::Reduced,
                false => AgentPermissions::Full,
            },
        }
    }
}

/// Counts, and makes the place free; then starts.
pub(super) fn prepare(ledger: &mut TaskPending<'_>, plan: &SpawnPlan<'_>) {
    if let Some(field) = plan.increment {
        increment(ledger, field);
    }
    // The task has moved on, and the agent would be ended as soon as it had started.
    if ends_soon(ledger, plan.place, true) {
        return ledger.settle(Settlement::Idle);
    }
    if ledger.state.workspace.bound().is_none() {
        ledger.settle(Settlement::Skipped("there is no workspace".into()));
        if ledger.state.marked().is_none() {
            ledger.mark(TaskAttention::NoWorkspace);
        }
        return;
    }
    let session = ledger.state.session(plan.place);
    match session.agent().map(|agent| agent.id).filter(|_| session.is_living()) {
        Some(id) => {
            ledger.heard(plan.place, SessionChange::EndAsked, false);
            let instruction = Instruction::EndSession { sessions: vec![id], whole: false };
            ledger.ask(TaskAction::ending(plan.place), instruction);
        }
        None => start(ledger, plan),
    }
}

/// Asks for the session. Its place is free.
pub(super) fn start(ledger: &mut TaskPending<'_>, plan: &SpawnPlan<'_>) {
    let Some(workspace) = ledger.state.workspace.bound().cloned() else { return ledger.settle(Settlement::Idle) };
    let agent = ledger.new_agent(plan.role);
    ledger.heard(plan.place, SessionChange::Asked(agent), plan.again);
    let prompt = ledger.lifecycle.prompts.get(plan.prompt).map(|text| fill(ledger, text)).unwrap_or_default();
    let window = match plan.role {
        SessionRole::Worker => plan.role.word().to_owned(),
        SessionRole::Reviewer => format!("review-{}", ledger.state.review_round),
    };
    let instruction = Instruction::StartSession(StartSession {
        session: agent.id,
        place: plan.place,
        role: plan.role,
        window,
        prompt,
        harness: plan.harness,
        permissions: plan.permissions,
        workspace,
    });
    ledger.ask(TaskAction::starting(plan.place), instruction);
}
