//! Starting agents: what each is told, where it stands, and what it is asked to be.

use super::apply::edge as edge_at;
use super::effect::{Action, Instruction, StartSession};
use super::event::Settlement;
use super::hooks::{ends_soon, fill, increment};
use super::ledger::Ledger;
use super::session::{Change, Place, Role};
use super::state::{Attention, Job, StatePrompt};
use crate::lifecycle::{HarnessChoice, Hook, Lifecycle, Permissions, Spawn, StateId, WORKER_AGAIN};
use crate::name::{FieldName, PromptName};

/// How an agent is to be started.
pub(super) struct Plan<'a> {
    pub(super) place: Place,
    role: Role,
    prompt: &'a PromptName,
    harness: HarnessChoice,
    permissions: Permissions,
    increment: Option<&'a FieldName>,
    pub(super) again: bool,
}

impl<'a> Plan<'a> {
    /// For a job that starts an agent.
    pub(super) fn of(lifecycle: &'a Lifecycle, job: Job) -> Option<Plan<'a>> {
        match job {
            Job::Acquire | Job::StartRun(_) | Job::CancelRun => None,
            Job::Hook { edge, hook } => {
                let edge = edge_at(lifecycle, edge)?;
                let (place, spawn) = spawning(edge.hooks.get(hook as usize)?)?;
                Some(Plan {
                    place,
                    role: role(lifecycle, edge.to, place),
                    prompt: &spawn.prompt,
                    harness: spawn.harness,
                    permissions: spawn.permissions,
                    increment: spawn.increment.as_ref(),
                    again: false,
                })
            }
            Job::Start(start) => {
                let state = lifecycle.state(start.state);
                let manner = Manner::of(lifecycle, start.state);
                let prompt = match start.prompt {
                    StatePrompt::Enter => state.enter_prompt.as_ref(),
                    StatePrompt::Respawn => state.respawn_prompt.as_ref(),
                };
                Some(Plan {
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
fn role(lifecycle: &Lifecycle, state: StateId, place: Place) -> Role {
    match (place, lifecycle.is_reviewed(state)) {
        (Place::Beside, _) | (Place::Main, true) => Role::Reviewer,
        (Place::Main, false) => Role::Worker,
    }
}

/// For a worker that should have been told something, and is not there.
pub(super) fn worker_again(lifecycle: &Lifecycle) -> Option<Plan<'_>> {
    let (prompt, _) = lifecycle.prompts.get_key_value(WORKER_AGAIN)?;
    Some(Plan {
        place: Place::Main,
        role: Role::Worker,
        prompt,
        harness: HarnessChoice::Task,
        permissions: Permissions::Full,
        increment: None,
        again: true,
    })
}

fn spawning(hook: &Hook) -> Option<(Place, &Spawn)> {
    match hook {
        Hook::SpawnAgent(spawn) => Some((Place::Main, spawn)),
        Hook::SpawnReviewer(spawn) => Some((Place::Beside, spawn)),
        Hook::AcquireWorkspace
        | Hook::ReleaseWorkspace
        | Hook::KillSession
        | Hook::KillReviewer
        | Hook::NotifyWorker { .. }
        | Hook::Increment(_)
        | Hook::SpawnNext
        | Hook::PushBranch
        | Hook::CreatePr
        | Hook::DeleteRemoteBranch
        | Hook::Notify { .. }
        | Hook::RunCommand(_)
        | Hook::SetField { .. } => None,
    }
}

/// How an agent of a state is started where no hook says it: as every transition says that starts one there, and like
/// a worker where they differ or there is none.
pub(super) struct Manner {
    pub(super) place: Place,
    harness: HarnessChoice,
    permissions: Permissions,
}

impl Manner {
    pub(super) fn of(lifecycle: &Lifecycle, state: StateId) -> Manner {
        let into = || lifecycle.transitions.iter().filter(|edge| edge.to == state);
        let spawns: Vec<(Place, &Spawn)> = into().flat_map(|edge| &edge.hooks).filter_map(spawning).collect();
        let all = |test: &dyn Fn(&(Place, &Spawn)) -> bool| !spawns.is_empty() && spawns.iter().all(test);
        Manner {
            place: if all(&|(place, _)| *place == Place::Beside) { Place::Beside } else { Place::Main },
            harness: match all(&|(_, spawn)| spawn.harness == HarnessChoice::Review) {
                true => HarnessChoice::Review,
                false => HarnessChoice::Task,
            },
            permissions: match all(&|(_, spawn)| spawn.permissions == Permissions::Reduced) {
                true => Permissions::Reduced,
                false => Permissions::Full,
            },
        }
    }
}

/// Counts, and makes the place free; then starts.
pub(super) fn prepare(ledger: &mut Ledger<'_>, plan: &Plan<'_>) {
    if let Some(field) = plan.increment {
        increment(ledger, field);
    }
    if ledger.state.workspace.bound().is_none() {
        ledger.settle(Settlement::Skipped("there is no workspace".into()));
        if ledger.state.attention.is_none() {
            ledger.mark(Attention::NoWorkspace);
        }
        return;
    }
    // The task has moved on, and the agent would be ended as soon as it had started.
    if ends_soon(ledger, plan.place, true) {
        return ledger.settle(Settlement::Idle);
    }
    let session = ledger.state.session(plan.place);
    match session.agent().map(|agent| agent.id).filter(|_| session.is_living()) {
        Some(id) => {
            ledger.heard(plan.place, Change::EndAsked, false);
            let instruction = Instruction::EndSession { sessions: vec![id], whole: false };
            ledger.ask(Action::ending(plan.place), instruction);
        }
        None => start(ledger, plan),
    }
}

/// Asks for the session. Its place is free.
pub(super) fn start(ledger: &mut Ledger<'_>, plan: &Plan<'_>) {
    let Some(workspace) = ledger.state.workspace.bound().cloned() else { return ledger.settle(Settlement::Idle) };
    let agent = ledger.new_agent(plan.role);
    ledger.heard(plan.place, Change::Asked(agent), plan.again);
    let prompt = ledger.lifecycle.prompts.get(plan.prompt).map(|text| fill(ledger, text)).unwrap_or_default();
    let window = match plan.role {
        Role::Worker => plan.role.word().to_owned(),
        Role::Reviewer => format!("review-{}", ledger.state.review_round),
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
    ledger.ask(Action::starting(plan.place), instruction);
}
