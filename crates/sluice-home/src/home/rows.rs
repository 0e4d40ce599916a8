//! Rows of the board: a task or a run in one line, with whose turn it is and what can be done. Nothing here asks git or reads
//! TASK.md; what takes long to find out is shown if it is known.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use sluice_api::attention::{Attention, AttentionCause, AttentionNote};
use sluice_api::board::{BoardAction, BoardGroup, BoardRound, BoardRow, BoardRowKind};
use sluice_api::usage::UsageSum;
use sluice_core::recipe::StepId;
use sluice_core::run::{RunConclusion, RunPhase, StepStatusKind};
use sluice_core::task::actions::{PersonCommand, TaskTurnHolder};
use sluice_core::task::state::TaskAttention;
use sluice_engine::host::EngineClock;
use sluice_os::session::SessionId;
use sluice_store::StreamId;

use super::attention::{lacks_worker, millis};
use super::daybook::usual_harness;
use super::signals::plain;
use super::{Home, session_of};
use crate::read::attention;
use crate::read::runs::{self, RunSnapshot};
use crate::read::tasks::{self, TaskSnapshot};
use crate::read::usage::harness;
use crate::read::view_run;
use crate::settings::clock::written;

/// The most terminals whose last line is read anew for one answer; of the others the line is shown that is known.
const MOST_LOOKS: usize = 48;

/// What the rows of one answer have in common.
pub(crate) struct RowMaker<'a> {
    home: &'a Home,
    waits: BTreeMap<StreamId, AttentionNote>,
    /// The living sessions of each task and run.
    living: BTreeMap<String, Vec<SessionId>>,
    /// The project around each folder that runs were started in.
    projects: RefCell<BTreeMap<String, Option<String>>>,
    usual_harness: String,
    looks: Cell<usize>,
    now: i64,
}

impl<'a> RowMaker<'a> {
    pub(crate) fn new(home: &'a Home) -> RowMaker<'a> {
        let mut living: BTreeMap<String, Vec<SessionId>> = BTreeMap::new();
        for id in home.context.sessions.living() {
            let owner = id.as_str().split_once('.').map_or(id.as_str(), |(owner, _)| owner).to_owned();
            living.entry(owner).or_default().push(id);
        }
        RowMaker {
            home,
            waits: home.waits.all(),
            living,
            projects: RefCell::default(),
            usual_harness: usual_harness(home),
            looks: Cell::new(MOST_LOOKS),
            now: home.clock.now().0,
        }
    }

    /// The project in whose folder a run was started.
    pub(crate) fn project_of(&self, seen: &RunSnapshot) -> Option<String> {
        let root = &seen.state.given.origin.root;
        let mut known = self.projects.borrow_mut();
        if let Some(found) = known.get(root) {
            return found.clone();
        }
        let found = self.home.projects.around(root.as_ref()).map(|project| project.name);
        known.insert(root.clone(), found.clone());
        found
    }

    pub(crate) fn task(&self, seen: &TaskSnapshot, usage: Option<UsageSum>) -> BoardRow {
        let (state, lifecycle) = (&seen.state, &seen.lifecycle);
        let raised = attention::note(seen).filter(|_| seen.card.open);
        let attention = raised.or_else(|| self.waits.get(&tasks::stream(&seen.id)).cloned());
        let holder = if seen.card.open { state.turn_holder(lifecycle) } else { TaskTurnHolder::Ended };
        let number = |id: &&SessionId| session_of(id).map(|(_, number)| number);
        let session = self.living.get(seen.id.as_str()).and_then(|all| all.iter().max_by_key(number));
        let is_reviewed = state.beside.is_living() || lifecycle.is_reviewed(state.status);
        let about = &state.about;
        let bound = lifecycle.review_bound();
        let mut actions: Vec<BoardAction> = state.commands(lifecycle).into_iter().map(action).collect();
        actions.extend(answers(attention.as_ref()));
        actions.push(BoardAction::Delete);
        let text = attention.as_ref().map(|note| note.text.clone()).or_else(|| self.line(session));
        BoardRow {
            kind: BoardRowKind::Task,
            id: seen.id.to_string(),
            name: plain(self.home, &about.branch),
            summary: plain(self.home, &about.summary),
            project: Some(about.project.clone()),
            workflow: lifecycle.name.to_string(),
            group: self.group_of(seen, holder, attention.as_ref()),
            status: seen.status().to_owned(),
            round: (state.review_round > 0 || bound.is_some())
                .then_some(BoardRound { round: state.review_round, bound }),
            text: plain(self.home, &text.unwrap_or_else(|| about.summary.clone())),
            attention,
            alive: session.is_some(),
            model: self.model(if is_reviewed { &about.review_harness } else { &about.harness }),
            harness: Some(if is_reviewed { about.review_harness.clone() } else { about.harness.clone() }),
            activity: self.activity(session),
            usage,
            since: written(if state.visit.since.0 == 0 { seen.card.updated } else { state.visit.since.0 }),
            task: None,
            run: state.run_here().map(|run| run.id.to_string()),
            step: None,
            pr_url: state.pull_request.clone(),
            diff: self.home.sizes.of(seen),
            actions,
        }
    }

    /// The group of a task: a person is asked where the inbox says so too.
    fn group_of(&self, seen: &TaskSnapshot, holder: TaskTurnHolder, note: Option<&AttentionNote>) -> BoardGroup {
        match holder {
            TaskTurnHolder::Ended => BoardGroup::Done,
            TaskTurnHolder::Person => BoardGroup::NeedsYou,
            TaskTurnHolder::Merger => BoardGroup::ReadyToMerge,
            TaskTurnHolder::Queue if seen.state.is_marked(&TaskAttention::PoolFull) => {
                let patience = millis(self.home.context.config().attention.pool_full_after);
                let since = seen.state.attention.as_ref().map_or(self.now, |raised| raised.since.0);
                let is_long = self.now.saturating_sub(since) >= patience;
                if is_long { BoardGroup::NeedsYou } else { BoardGroup::Queued }
            }
            TaskTurnHolder::Queue | TaskTurnHolder::Reviewer | TaskTurnHolder::Worker if note.is_some() => {
                BoardGroup::NeedsYou
            }
            TaskTurnHolder::Queue => BoardGroup::Queued,
            TaskTurnHolder::Reviewer => BoardGroup::InReview,
            TaskTurnHolder::Worker => BoardGroup::Working,
        }
    }

    pub(crate) fn run(&self, seen: &RunSnapshot, usage: Option<UsageSum>) -> BoardRow {
        let state = &seen.state;
        let attention = self.attention_of_run(seen);
        let session = self.living.get(seen.id.as_str()).and_then(|all| all.last());
        let step = current(seen);
        let name = |step: StepId| seen.plan.recipe.step(step).name.to_string();
        let told = attention.as_ref().map(|note| note.text.clone()).or_else(|| self.line(session));
        let error = step.and_then(|step| view_run::error(seen, &state.step(step).status));
        let ended = match &state.end {
            Some(RunConclusion::Failed { error }) => Some(error.clone()),
            Some(RunConclusion::Cancelled { reason }) => view_run::unless_empty(reason),
            Some(RunConclusion::Completed { summary }) => view_run::unless_empty(summary),
            None => None,
        };
        let text = told.or(error).or(ended).or_else(|| step.map(|step| format!("step {}", name(step))));
        let since = match (&state.end, attention.as_ref(), step.and_then(|step| state.step(step).began)) {
            (None, Some(note), _) => note.since.clone(),
            (None, None, Some(began)) => written(began.0),
            (Some(_), _, _) | (None, None, None) => written(seen.card.updated),
        };
        let mut actions = run_actions(seen);
        actions.extend(answers(attention.as_ref()));
        BoardRow {
            kind: BoardRowKind::Run,
            id: seen.id.to_string(),
            name: seen.plan.recipe.name.to_string(),
            summary: plain(self.home, &state.given.prompt),
            project: self.project_of(seen),
            workflow: seen.plan.recipe.name.to_string(),
            group: run_group(seen, attention.is_some()),
            status: view_run::status(state.phase()).word().to_owned(),
            round: None,
            text: plain(self.home, &text.unwrap_or_default()),
            attention,
            alive: session.is_some(),
            model: step.and_then(|step| self.model(&self.harness_of(seen, step)?)),
            harness: step.and_then(|step| self.harness_of(seen, step)),
            activity: self.activity(session),
            usage,
            since,
            task: state.given.origin.task.as_ref().map(ToString::to_string),
            run: None,
            step: step.map(name),
            pr_url: None,
            diff: None,
            actions,
        }
    }

    /// The model that the settings of a program name.
    fn model(&self, harness: &str) -> Option<String> {
        self.home.context.harnesses().get(harness).ok()?.model().map(str::to_owned)
    }

    fn harness_of(&self, seen: &RunSnapshot, step: StepId) -> Option<String> {
        seen.plan.recipe.step(step).work.prompt()?;
        Some(harness(&seen.plan, &seen.state.given, step, &self.usual_harness))
    }

    /// Why a run needs a person: a question, or what it waits for.
    fn attention_of_run(&self, seen: &RunSnapshot) -> Option<AttentionNote> {
        if seen.state.end.is_some() {
            return None;
        }
        let question = seen.state.question().map(|(step, asked)| noted(attention::question(seen, step, asked)));
        let wait = || self.waits.get(&runs::stream(&seen.id)).cloned();
        question.or_else(wait).or_else(|| lacks_worker(self.home, seen).map(noted))
    }

    fn line(&self, session: Option<&SessionId>) -> Option<String> {
        let may_look = || {
            let left = self.looks.get();
            self.looks.set(left.saturating_sub(1));
            left > 0
        };
        let line = self.home.pulses.line(&self.home.context.sessions, session?, may_look);
        line.filter(|line| !line.is_empty())
    }

    fn activity(&self, session: Option<&SessionId>) -> Vec<u8> {
        session.map(|session| self.home.pulses.activity(session)).unwrap_or_default()
    }
}

/// What waits, where the row itself says whose it is.
fn noted(it: Attention) -> AttentionNote {
    let Attention { id, reason, text, since, options, said_by, .. } = it;
    AttentionNote { id, reason, text, since, choices: options, said_by }
}

/// The step that a person looks for: what is under way, else what comes next.
fn current(seen: &RunSnapshot) -> Option<StepId> {
    let of = |wanted: &[StepStatusKind]| {
        let mut steps = (0u32..).map(StepId).zip(&seen.state.steps);
        steps.find(|(_, state)| wanted.contains(&state.kind())).map(|(id, _)| id)
    };
    if seen.state.end.is_some() {
        return None;
    }
    of(&[StepStatusKind::Running, StepStatusKind::Stopping, StepStatusKind::Held])
        .or_else(|| of(&[StepStatusKind::Ready, StepStatusKind::Retrying]))
}

fn run_group(seen: &RunSnapshot, waits_for_person: bool) -> BoardGroup {
    let is_busy = |kind: StepStatusKind| matches!(kind, StepStatusKind::Running | StepStatusKind::Stopping);
    match seen.state.end {
        Some(_) => BoardGroup::Done,
        None if waits_for_person => BoardGroup::NeedsYou,
        None if seen.state.steps.iter().any(|step| is_busy(step.kind())) => BoardGroup::Working,
        None => BoardGroup::Queued,
    }
}

/// What can be done with a run, as `merge`, `retry` and `delete` of runs ask it.
fn run_actions(seen: &RunSnapshot) -> Vec<BoardAction> {
    let has_branch = !seen.state.given.origin.base.is_empty();
    let mut actions = Vec::new();
    match seen.state.phase() {
        RunPhase::Running | RunPhase::Held => actions.push(BoardAction::Cancel),
        RunPhase::Completed if has_branch => actions.push(BoardAction::Merge),
        RunPhase::Failed => actions.push(BoardAction::Retry),
        RunPhase::Completed | RunPhase::Cancelled => {}
    }
    actions.push(BoardAction::Delete);
    actions
}

fn answers(note: Option<&AttentionNote>) -> Option<BoardAction> {
    // A question without choices takes any words; what only waits, and passes by itself, takes none.
    note.filter(|note| !note.choices.is_empty() || note.reason == AttentionCause::Question).map(|_| BoardAction::Answer)
}

fn action(command: PersonCommand) -> BoardAction {
    match command {
        PersonCommand::Merge => BoardAction::Merge,
        PersonCommand::Cancel => BoardAction::Cancel,
        PersonCommand::CreatePr => BoardAction::CreatePr,
        PersonCommand::Spawn => BoardAction::Spawn,
        PersonCommand::Respawn => BoardAction::Respawn,
        PersonCommand::Attach => BoardAction::Attach,
        PersonCommand::Approve => BoardAction::Approve,
        PersonCommand::RequestChanges => BoardAction::RequestChanges,
        PersonCommand::Nudge => BoardAction::Nudge,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_on_the_wire_are_those_of_the_commands() {
        assert!(PersonCommand::ALL.into_iter().all(|command| action(command).word() == command.word()));
    }
}
