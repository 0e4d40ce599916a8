//! Folding events into the state. Nothing is refused here, and nothing is decided.

use std::collections::{BTreeMap, VecDeque};

use super::effect::TaskAction;
use super::event::{Settlement, TaskCreation, TaskEvent, TaskMove};
use super::input::{RunEnd, TaskAsker, TaskUpdate};
use super::runs;
use super::session::{SessionChange, SessionExit, SessionNumber, SessionTransition, TaskSession, TaskSessionPlace};
use super::state::{
    AgentStart, EdgeId, RunJudgement, StatePrompt, StatusVisit, TaskJob, TaskRun, TaskState, TaskTurn, TaskWorkspace,
};
use crate::lifecycle::{FieldValue, Lifecycle, LifecycleTransition, StateId, TransitionHook};
use crate::name::FieldName;

impl TaskState {
    /// The state of a task that has just been created.
    pub fn created(created: &TaskCreation) -> TaskState {
        TaskState {
            status: created.status,
            visit: StatusVisit {
                turn: 0,
                since: created.at,
                by: created.by,
                watch: TaskSessionPlace::Main,
                seen: created.seen.clone(),
                uprooted: 0,
                asked: None,
                handed: None,
                helped: false,
            },
            about: created.about.clone(),
            review_round: 0,
            crash_count: 0,
            numbers: BTreeMap::new(),
            texts: BTreeMap::new(),
            workspace: TaskWorkspace::Unbound,
            lent: None,
            main: TaskSession::Absent,
            beside: TaskSession::Absent,
            turns: VecDeque::new(),
            turns_taken: 0,
            sessions_asked: created.sessions,
            attention: None,
            undone: Vec::new(),
            attentions: 0,
            signal: None,
            judged: None,
            checked: None,
            pull_request: None,
            merged: None,
            run: None,
            events: 1,
        }
    }

    /// The state that a whole history leads to; `None` when it does not begin with a creation.
    pub fn fold<'a>(lifecycle: &Lifecycle, events: impl IntoIterator<Item = &'a TaskEvent>) -> Option<TaskState> {
        let mut events = events.into_iter();
        let Some(TaskEvent::Created(created)) = events.next() else { return None };
        let mut state = TaskState::created(created);
        events.for_each(|event| state.apply(lifecycle, event));
        Some(state)
    }

    /// Records what has happened.
    pub fn apply(&mut self, lifecycle: &Lifecycle, event: &TaskEvent) {
        self.events = self.events.saturating_add(1);
        match event {
            TaskEvent::Moved(moved) => self.moved(lifecycle, moved),
            TaskEvent::Began { turn, edge } => {
                if edge.and_then(|edge| self::edge(lifecycle, edge)).is_some_and(starts_beside) {
                    self.visit.watch = TaskSessionPlace::Beside;
                }
                let mut jobs = beginning(lifecycle, self.status, *edge);
                if lifecycle.state(self.status).run.is_some() {
                    jobs.extend(self.run_again());
                }
                self.push_turn(lifecycle, *turn, 0, jobs);
            }
            TaskEvent::Respawning { turn, place, by } => {
                self.visit.helped |= *by == TaskAsker::Person;
                self.respawning(lifecycle, *turn, *place);
            }
            TaskEvent::Retrying { turn, .. } => {
                let jobs = self.redoable(lifecycle).collect();
                self.undone.clear();
                self.push_turn(lifecycle, *turn, 0, jobs);
            }
            TaskEvent::VerdictRefused { asked, .. } => self.visit.asked = Some(*asked),
            TaskEvent::Crashed { count, .. } => self.crash_count = *count,
            TaskEvent::Updated(TaskUpdate::Summary(text)) => self.about.summary.clone_from(text),
            TaskEvent::Updated(TaskUpdate::Branch(name)) => self.about.branch.clone_from(name),
            TaskEvent::FieldSet { field, value } => self.set_field(field, value),
            TaskEvent::WorkspaceReserved(name) => self.workspace = TaskWorkspace::Reserved(name.clone()),
            TaskEvent::WorkspaceBound(name) => self.bind(name),
            TaskEvent::WorkspaceLent { workspace, commit, .. } => self.lend(workspace, commit),
            TaskEvent::WorkspaceReleased => self.workspace = TaskWorkspace::Unbound,
            TaskEvent::Session { place, session, change, .. } => self.heard(*place, *session, change),
            TaskEvent::Updated(TaskUpdate::PullRequest(url)) | TaskEvent::PullRequestOpened(url) => {
                self.pull_request = Some(url.clone())
            }
            TaskEvent::HookAsked { action, .. } => {
                if let Some(turn) = self.turns.front_mut() {
                    turn.waiting = Some(*action);
                }
            }
            TaskEvent::HookSettled { action, settlement, .. } => self.hook_settled(*action, settlement),
            TaskEvent::TurnSettled { .. } => {
                if let Some(turn) = self.turns.pop_front() {
                    self.crash_count = self.crash_count.saturating_sub(turn.crashes);
                }
            }
            TaskEvent::RunStarted { turn, run, began } => {
                // One that was opened again is the same.
                let before = self.run.as_ref().is_some_and(|before| before.id == *run && before.accompanied);
                let (id, began, accompanied) = (run.clone(), began.clone(), before || self.has_living_agent());
                self.run = Some(TaskRun { id, turn: *turn, end: None, began, accompanied });
            }
            TaskEvent::RunEnded { run: id, end, judged, .. } => {
                if let Some(run) = &mut self.run {
                    run.end = Some(*end);
                }
                if let Some(work) = judged.clone() {
                    self.checked = Some(RunJudgement { run: Some(id.clone()), end: Some(*end), work });
                }
            }
            TaskEvent::RunLeft { .. } => self.run = None,
            TaskEvent::Signalled { session, signal } => self.signalled(*session, signal),
            TaskEvent::AttentionSet(raised) => self.raise(raised),
            TaskEvent::AttentionCleared => self.lower(),
            TaskEvent::Merged { commit, .. } => self.merged.clone_from(commit),
            TaskEvent::Created(_) | TaskEvent::Advanced { .. } | TaskEvent::Cancelled | TaskEvent::NotWritten(_) => {}
        }
    }

    /// What failed is left undone, and so is a worktree that could not be given back because of that.
    fn hook_settled(&mut self, action: TaskAction, settlement: &Settlement) {
        let Some(turn) = self.turns.front_mut() else { return };
        turn.waiting = None;
        turn.step = turn.step.saturating_add(1);
        let Some(job) = turn.jobs.pop_front() else { return };
        let is_of_this_stay = turn.number >= self.visit.turn;
        self.undone.retain(|known| *known != job);
        let is_left = match settlement {
            Settlement::Failed(_) => true,
            Settlement::Skipped(_) => action == TaskAction::ReleaseWorkspace && !self.undone.is_empty(),
            Settlement::Done | Settlement::Idle => false,
        };
        if is_left && is_of_this_stay {
            self.undone.push(job);
        }
    }

    fn respawning(&mut self, lifecycle: &Lifecycle, turn: u32, place: TaskSessionPlace) {
        self.visit.watch = place;
        let start = AgentStart { state: self.status, prompt: StatePrompt::Respawn, place, again: true };
        let jobs = match runs::only(lifecycle, self.status) {
            true => self.run_again(),
            false => VecDeque::from([TaskJob::Start(start)]),
        };
        self.push_turn(lifecycle, turn, 0, jobs);
    }

    fn moved(&mut self, lifecycle: &Lifecycle, moved: &TaskMove) {
        let transition = moved.edge.and_then(|edge| self::edge(lifecycle, edge));
        let mut jobs = self.leave_run(moved.by);
        self.status = moved.to;
        self.signal = None;
        self.visit = StatusVisit {
            turn: moved.turn,
            since: moved.at,
            by: moved.by,
            watch: match transition.is_some_and(starts_beside) {
                true => TaskSessionPlace::Beside,
                false => TaskSessionPlace::Main,
            },
            seen: moved.seen.clone(),
            uprooted: 0,
            asked: None,
            handed: moved.handed.clone(),
            helped: false,
        };
        self.undone.clear();
        if moved.judged.is_some() {
            self.judged.clone_from(&moved.judged);
        }
        if moved.unchecked.is_some() {
            self.checked.clone_from(&moved.unchecked);
        }
        let hooks = transition.map_or(0, |transition| transition.hooks.len());
        let of_edge = |edge| (0u32..).take(hooks).map(move |hook| TaskJob::Hook { edge, hook });
        jobs.extend(moved.edge.into_iter().flat_map(of_edge));
        if lifecycle.state(moved.to).enter_prompt.is_some() {
            let start =
                AgentStart { state: moved.to, prompt: StatePrompt::Enter, place: TaskSessionPlace::Main, again: false };
            jobs.push_back(TaskJob::Start(start));
        }
        if lifecycle.state(moved.to).run.is_some() {
            jobs.push_back(TaskJob::StartRun(moved.to));
        }
        if moved.said && !jobs.iter().any(|job| tells_or_replaces(lifecycle, *job)) {
            jobs.push_back(TaskJob::Tell);
        }
        let crashes = self.crashes_here();
        self.push_turn(lifecycle, moved.turn, crashes, jobs);
    }

    /// What is done about the run of the state that is left, before anything else: it may work in the workspace. One
    /// that has ended is left alone, but a failed one may have been opened again by the person who moves the task now.
    fn leave_run(&mut self, by: TaskAsker) -> VecDeque<TaskJob> {
        let is_over = |run: &TaskRun| match run.end {
            Some(RunEnd::Completed | RunEnd::Cancelled) => true,
            Some(RunEnd::Failed) => by == TaskAsker::Engine,
            None => false,
        };
        if self.run.as_ref().is_some_and(is_over) {
            self.run = None;
        }
        if self.run.is_some() || self.starts_run() { VecDeque::from([TaskJob::CancelRun]) } else { VecDeque::new() }
    }

    /// The run of the present state once more; what is left of the one before is cancelled.
    fn run_again(&self) -> VecDeque<TaskJob> {
        let before = self.run.as_ref().map(|_| TaskJob::CancelRun);
        before.into_iter().chain([TaskJob::StartRun(self.status)]).collect()
    }

    /// A task whose worktree was lent on takes one up first, if what is to be done needs one.
    fn push_turn(&mut self, lifecycle: &Lifecycle, number: u32, crashes: u32, mut jobs: VecDeque<TaskJob>) {
        if self.must_take_up(lifecycle, jobs.iter()) && jobs.front() != Some(&TaskJob::Acquire) {
            jobs.push_front(TaskJob::Acquire);
        }
        self.turns_taken = self.turns_taken.max(number);
        self.turns.push_back(TaskTurn { number, crashes, step: 1, jobs, waiting: None });
    }

    fn set_field(&mut self, field: &FieldName, value: &FieldValue) {
        match (field.as_str(), value) {
            ("review_round", FieldValue::Number(number)) => self.review_round = *number,
            ("crash_count", FieldValue::Number(number)) => {
                self.crash_count = u32::try_from((*number).max(0)).unwrap_or(u32::MAX);
            }
            ("summary", FieldValue::Text(text)) => self.about.summary.clone_from(text),
            (_, FieldValue::Number(number)) => {
                self.numbers.insert(field.clone(), *number);
            }
            (_, FieldValue::Text(text)) => {
                self.texts.insert(field.clone(), text.clone());
            }
        }
    }

    fn heard(&mut self, place: TaskSessionPlace, session: SessionNumber, change: &SessionChange) {
        let is_uprooted = *change == SessionChange::Exited(SessionExit::Uprooted) && place == self.visit.watch;
        self.visit.uprooted = self.visit.uprooted.saturating_add(u32::from(is_uprooted));
        self.sessions_asked = self.sessions_asked.max(session.0);
        match self.session(place).after(change) {
            SessionTransition::Becomes(next) | SessionTransition::Died(next) => *self.session_mut(place) = next,
            SessionTransition::Stays | SessionTransition::Never => {}
        }
        let lives = self.has_living_agent();
        // One that has ended may be opened again.
        if let Some(run) = &mut self.run {
            run.accompanied |= lives;
        }
    }
}

/// The transition that `id` refers to; `None` when the lifecycle has no such transition.
pub(super) fn edge(lifecycle: &Lifecycle, id: EdgeId) -> Option<&LifecycleTransition> {
    lifecycle.transitions.get(id.0 as usize)
}

pub(super) fn starts_beside(edge: &LifecycleTransition) -> bool {
    edge.hooks.iter().any(|hook| matches!(hook, TransitionHook::SpawnReviewer(_)))
}

/// Whether a job tells the worker something by itself, starts an agent, which reads TASK.md first, or ends the one that lives:
/// then a living agent need not be told that a person has written there.
fn tells_or_replaces(lifecycle: &Lifecycle, job: TaskJob) -> bool {
    match job {
        TaskJob::Start(_) | TaskJob::Tell => true,
        TaskJob::Acquire | TaskJob::StartRun(_) | TaskJob::CancelRun => false,
        TaskJob::Hook { edge, hook } => {
            let hook = self::edge(lifecycle, edge).and_then(|edge| edge.hooks.get(hook as usize));
            hook.is_some_and(|hook| match hook {
                TransitionHook::SpawnAgent(_)
                | TransitionHook::SpawnReviewer(_)
                | TransitionHook::NotifyWorker { .. }
                | TransitionHook::KillSession => true,
                TransitionHook::AcquireWorkspace
                | TransitionHook::ReleaseWorkspace
                | TransitionHook::KillReviewer
                | TransitionHook::RunCommand(_)
                | TransitionHook::Increment(_)
                | TransitionHook::SetField { .. }
                | TransitionHook::Plain(_) => false,
            })
        }
    }
}

/// What a task that is created in `state` gets: a workspace, and what the transition gives that leads there and starts
/// an agent. Where none does, the state's own prompt serves.
fn beginning(lifecycle: &Lifecycle, state: StateId, edge: Option<EdgeId>) -> VecDeque<TaskJob> {
    let belongs = |hook: &TransitionHook| hook.spawn().is_some() || matches!(hook, TransitionHook::Increment(_));
    let mut jobs = VecDeque::from([TaskJob::Acquire]);
    match edge.and_then(|id| Some((id, self::edge(lifecycle, id)?))) {
        Some((id, transition)) => {
            let hooks = (0u32..).zip(&transition.hooks).filter(|(_, hook)| belongs(hook));
            jobs.extend(hooks.map(|(hook, _)| TaskJob::Hook { edge: id, hook }));
        }
        None if runs::only(lifecycle, state) && lifecycle.state(state).enter_prompt.is_none() => {}
        None => {
            let enters = lifecycle.state(state).enter_prompt.is_some();
            let prompt = if enters { StatePrompt::Enter } else { StatePrompt::Respawn };
            jobs.push_back(TaskJob::Start(AgentStart { state, prompt, place: TaskSessionPlace::Main, again: false }));
        }
    }
    jobs
}
