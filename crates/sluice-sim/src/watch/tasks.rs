//! What is promised of tasks and can be seen in their logs, looked at whenever something of one reaches the disk.
//!
//! The watch folds what it sees itself and keeps its own line of effects, so it agrees with the engine only if both are
//! right.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use sluice_core::artifact::Verdict;
use sluice_core::lifecycle::{ExitReaction, Lifecycle, LifecycleTransition, STUCK, StateId, TransitionHook};
use sluice_core::task::event::{Settlement, TaskMove};
use sluice_core::task::session::{
    SessionChange, SessionDeath, SessionExit, SessionNumber, SessionRole, TaskSession, TaskSessionPlace,
};
use sluice_core::task::state::{TaskAttention, TaskJob, TaskPhase, TaskWorkspace, WorktreePath};
use sluice_core::task::{TaskAction, TaskAsker, TaskEvent, TaskState};
use sluice_engine::codec::remark::Remarks;
use sluice_engine::codec::task_state::TaskHeader;
use sluice_engine::codec::{outbox, task_event, task_state};
use sluice_engine::task_actor::TaskActor;
use sluice_store::{Append, StoredStream, StreamId};

use super::SimWatch;
use crate::definitions;

/// The most agents that may be started for a task by itself: before a person, or an agent that is stuck, asks for more.
/// In `persistent` two rounds with a reviewer that is started again in each, a worker that is started again to be told,
/// and one that gets the task unstuck.
const MOST_AGENTS: u32 = 7;

pub(crate) struct TaskWatch {
    pub(crate) lifecycle: Arc<Lifecycle>,
    definition: String,
    pub(crate) state: TaskState,
    /// The effects that are not settled, in the order in which they were asked for.
    line: VecDeque<String>,
    known: BTreeSet<String>,
    /// What is being done, by which engine.
    doing: BTreeMap<usize, String>,
    version: u64,
    /// The newest hook that settled.
    settled: (u32, u32),
    roles: BTreeMap<SessionNumber, SessionRole>,
    /// The stay in which a person last had an agent started again, and where that was.
    pub(super) helped: Option<(u32, TaskSessionPlace)>,
    /// The hooks that failed since the task came where it is, by what they do, in the world's own book.
    failed: Vec<TaskAction>,
    /// Agents since a person last asked for more.
    agents: u32,
    /// Crashes of this stay.
    crashes: u32,
    /// The verdict that a reviewer was last refused here, in the world's own book: by whom, in which stay.
    refused: Option<(u32, SessionNumber, Verdict)>,
    /// A person has seen what there was to see, and has let it be.
    pub(super) is_looked_at: bool,
}

impl SimWatch {
    /// A caller asks something of a task that may move it.
    pub(crate) fn asks(&mut self, stream: &StreamId, by: TaskAsker) {
        *self.asked.entry((stream.clone(), format!("{by:?}"))).or_default() += 1;
    }

    /// A reviewer asked for a verdict, and was told no; or it asks again, and has not been answered.
    pub(crate) fn refused_verdict(&mut self, stream: &StreamId, session: SessionNumber, verdict: Option<Verdict>) {
        let Some(task) = self.tasks.get_mut(stream) else { return };
        let is_reviewer = task.roles.get(&session) == Some(&SessionRole::Reviewer);
        task.refused = verdict.filter(|_| is_reviewer).map(|verdict| (task.state.visit.turn, session, verdict));
    }

    /// A reviewer hears that it is refused a verdict: the store knows that it asked, so no crash can undo that.
    pub(crate) fn keeps_verdict(
        &self,
        stream: &StreamId,
        session: SessionNumber,
        verdict: Verdict,
    ) -> Result<(), String> {
        let Some(task) = self.tasks.get(stream) else { return Ok(()) };
        let gives_it = |edge: &LifecycleTransition| {
            edge.from == task.state.status
                && edge.gate.as_ref().and_then(|gate| gate.verdict).is_some_and(|test| test.wanted == verdict)
        };
        let is_reviewer = task.roles.get(&session) == Some(&SessionRole::Reviewer);
        if is_reviewer && task.lifecycle.transitions.iter().any(gives_it) && task.state.visit.asked.is_none() {
            return Err(format!("{stream}: {session} is refused {}, and that is not stored", verdict.word()));
        }
        Ok(())
    }

    pub(crate) fn task_stored(&mut self, append: &Append, place: usize) -> Result<(), String> {
        let stream = &append.stream;
        let mut events = Vec::new();
        for event in &append.events {
            let note = outbox::read(&event.kind, event.version, &event.data).map_err(|error| error.to_string())?;
            if note.is_none() {
                events.push(task_event::read(event.version, &event.data).map_err(|error| error.to_string())?);
            }
        }
        for event in &events {
            self.task_event(stream, append, event).map_err(|what| format!("{stream}: {what}"))?;
        }
        let Some(task) = self.tasks.get_mut(stream) else { return Err(format!("{stream}: it was never created")) };
        task.moves_on(append, place).map_err(|what| format!("{stream}: {what}"))?;
        self.has_its_own_workspace(stream)
    }

    fn task_event(&mut self, stream: &StreamId, append: &Append, event: &TaskEvent) -> Result<(), String> {
        match (self.tasks.get_mut(stream), event) {
            (None, TaskEvent::Created(created)) => {
                let task = TaskWatch::new(append, TaskState::created(created))?;
                self.tasks.insert(stream.clone(), task);
                Ok(())
            }
            (Some(_), TaskEvent::Created(_)) => Err("it is created twice".into()),
            (None, _) => Err("it is not created first".into()),
            (Some(task), event) => {
                task.happens(event)?;
                let TaskEvent::Moved(moved) = event else { return Ok(()) };
                if moved.by == TaskAsker::Engine {
                    return Ok(());
                }
                let asked = self.asked.get_mut(&(stream.clone(), format!("{:?}", moved.by)));
                match asked.filter(|left| **left > 0) {
                    Some(left) => *left -= 1,
                    None => return Err(format!("it is moved for {:?}, who did not ask", moved.by)),
                }
                Ok(())
            }
        }
    }

    fn has_its_own_workspace(&self, stream: &StreamId) -> Result<(), String> {
        let Some(mine) = self.tasks.get(stream).and_then(TaskWatch::workspace) else { return Ok(()) };
        let other = self.tasks.iter().find(|(other, task)| *other != stream && task.workspace() == Some(mine));
        match other {
            Some((other, _)) => Err(format!("{stream}: {} belongs to {other} as well", mine.0)),
            None => Ok(()),
        }
    }

    /// The workspaces that tasks on the disk have, or that are kept for them.
    pub(crate) fn workspaces(&self) -> BTreeSet<WorktreePath> {
        self.tasks.values().filter_map(TaskWatch::workspace).cloned().collect()
    }

    /// Somebody begins to perform an effect of a task: it is on the disk, it is its turn, and nobody is at another.
    pub(crate) fn task_begins(&mut self, stream: &StreamId, effect: &str, place: usize) -> Result<(), String> {
        let task =
            self.tasks.get_mut(stream).ok_or(format!("{stream}: {effect} is begun before the task is stored"))?;
        if let Some(other) = task.doing.get(&place) {
            return Err(format!("{stream}: {effect} is begun beside {other}"));
        }
        if task.line.front().is_none_or(|first| first != effect) {
            return Err(format!("{stream}: {effect} is begun, and the next should be {:?}", task.line.front()));
        }
        task.doing.insert(place, effect.to_owned());
        Ok(())
    }

    pub(crate) fn task_ends(&mut self, stream: &StreamId, place: usize) {
        if let Some(task) = self.tasks.get_mut(stream) {
            task.doing.remove(&place);
        }
    }
}

impl TaskWatch {
    fn new(append: &Append, state: TaskState) -> Result<TaskWatch, String> {
        let definition = task_state::definition_of(&append.header.data).map_err(|error| error.to_string())?;
        Ok(TaskWatch {
            lifecycle: definitions::lifecycle(&definition)?.clone(),
            definition,
            state,
            line: VecDeque::new(),
            known: BTreeSet::new(),
            doing: BTreeMap::new(),
            version: 0,
            settled: (0, 0),
            roles: BTreeMap::new(),
            helped: None,
            failed: Vec::new(),
            agents: 0,
            crashes: 0,
            refused: None,
            // Whoever creates it without an agent knows that it has none.
            is_looked_at: true,
        })
    }

    pub(crate) fn killed(&mut self, place: usize) {
        self.doing.remove(&place);
    }

    fn workspace(&self) -> Option<&WorktreePath> {
        match &self.state.workspace {
            TaskWorkspace::Unbound => None,
            TaskWorkspace::Reserved(name) | TaskWorkspace::Bound(name) => Some(name),
        }
    }

    pub(crate) fn status(&self) -> &str {
        self.lifecycle.state_name(self.state.status)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.state.phase(&self.lifecycle) == TaskPhase::Finished
    }

    /// Whether something follows from the end of an agent in the state that the task is in.
    pub(crate) fn is_driven(&self) -> bool {
        let mut rules = self.lifecycle.exits.rules.iter().filter(|rule| rule.state == self.state.status);
        rules.any(|rule| match rule.reaction {
            ExitReaction::Advance(_) | ExitReaction::Choose(_) | ExitReaction::Crash { .. } => true,
            ExitReaction::MarkDead => false,
        })
    }

    pub(crate) fn starts_a_check(&self) -> bool {
        let job = self.state.turns.front().and_then(|turn| turn.jobs.front());
        matches!(job, Some(TaskJob::StartRun(state)) if self.lifecycle.judges(*state))
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.line.is_empty() && (self.state.turns.is_empty() || self.state.waits_for_worktree())
    }

    pub(crate) fn left(&self) -> Vec<&str> {
        self.line.iter().map(String::as_str).collect()
    }

    fn happens(&mut self, event: &TaskEvent) -> Result<(), String> {
        match event {
            TaskEvent::Moved(moved) => self.may_move(moved)?,
            TaskEvent::HookSettled { turn, step, action, settlement } => {
                if self.settled >= (*turn, *step) {
                    return Err(format!("hook {turn}/{step} settles after {:?}", self.settled));
                }
                self.settled = (*turn, *step);
                if matches!(settlement, Settlement::Failed(_)) && *turn >= self.state.visit.turn {
                    self.failed.push(*action);
                }
            }
            TaskEvent::Retrying { .. } => {
                self.state.apply(&self.lifecycle, event);
                return self.does_again();
            }
            TaskEvent::Advanced { session, to } => self.has_judged(*session, *to)?,
            TaskEvent::Respawning { by: TaskAsker::Person, place, .. } => {
                self.agents = 0;
                self.helped = Some((self.state.visit.turn, *place));
            }
            TaskEvent::Session { place, change: SessionChange::Asked(agent), .. } => {
                if self.state.session(*place).is_living() {
                    return Err(format!("{} is asked for where another lives", agent.id));
                }
                if agent.id.0 != self.state.sessions_asked + 1 {
                    return Err(format!("{} is asked for after {}", agent.id, self.state.sessions_asked));
                }
                self.roles.insert(agent.id, agent.role);
                self.agents += 1;
                self.is_looked_at = false;
            }
            TaskEvent::Crashed { session, .. } => {
                if self.ends_soon() {
                    return Err(format!("{session} was to be ended, and its end counts as a crash"));
                }
                self.crashes += 1;
            }
            TaskEvent::WorkspaceLent { workspace, .. }
                if self.state.has_living_agent() || self.state.run.is_some() || !self.is_idle() =>
            {
                return Err(format!("{} is lent on, and something of the task goes on in it", workspace.0));
            }
            // What follows from where a task stands goes by itself; a mark goes because of somebody.
            TaskEvent::AttentionCleared => {
                let was = self.state.attention.as_ref().map(|raised| &raised.why);
                self.is_looked_at |= was.is_some_and(TaskAttention::is_dismissible);
            }
            TaskEvent::AttentionSet(_) => self.is_looked_at = false,
            _ => {}
        }
        self.state.apply(&self.lifecycle, event);
        if matches!(event, TaskEvent::Moved(_)) {
            self.failed.clear();
        }
        self.is_bounded()
    }

    /// What is done again has failed since the task came where it is, or was skipped after that; and nothing that a person can
    /// have done again is left out.
    fn does_again(&mut self) -> Result<(), String> {
        let failed = std::mem::take(&mut self.failed);
        let again: Vec<TaskAction> = self
            .state
            .turns
            .back()
            .into_iter()
            .flat_map(|turn| &turn.jobs)
            .filter_map(|job| match job {
                TaskJob::Hook { edge, hook } => {
                    Some(self.lifecycle.transitions.get(edge.0 as usize)?.hooks.get(*hook as usize)?.action())
                }
                TaskJob::CancelRun => Some(TaskAction::CancelRun),
                TaskJob::Tell => Some(TaskAction::NotifyWorker),
                TaskJob::Acquire | TaskJob::Start(_) | TaskJob::StartRun(_) => None,
            })
            .collect();
        let left_out = failed.iter().find(|action| match action {
            TaskAction::Plain(_)
            | TaskAction::KillSession
            | TaskAction::KillReviewer
            | TaskAction::ReleaseWorkspace => !again.contains(action),
            // A person starts agents and runs by other ways, and the rest needs a worktree or does not fail.
            TaskAction::AcquireWorkspace
            | TaskAction::SpawnAgent
            | TaskAction::SpawnReviewer
            | TaskAction::NotifyWorker
            | TaskAction::Increment
            | TaskAction::RunCommand
            | TaskAction::SetField
            | TaskAction::StartRun
            | TaskAction::CancelRun
            | TaskAction::WriteArtifact => false,
        });
        match left_out {
            Some(action) => Err(format!("{action} has failed, and is not done again: {again:?}")),
            None if failed.is_empty() && !again.is_empty() => {
                Err(format!("{again:?} is done again, and nothing has failed"))
            }
            None => Ok(()),
        }
    }

    /// A verdict counts at the end of a reviewer that came to its own end, and not of one that was killed; and never one that
    /// is not the last that a reviewer asked for here.
    fn has_judged(&self, session: SessionNumber, to: StateId) -> Result<(), String> {
        let here = |edge: &&LifecycleTransition| edge.from == self.state.status && edge.to == to;
        let mut gates = self.lifecycle.transitions.iter().filter(here).filter_map(|edge| edge.gate.as_ref());
        let verdict = gates.find_map(|gate| gate.verdict).map(|test| test.wanted);
        let is_verdict = verdict.is_some();
        if let (Some(taken), Some((turn, asker, asked))) = (verdict, self.refused)
            && (turn, asker) == (self.state.visit.turn, session)
            && taken != asked
        {
            return Err(format!("{} counts, and {asker} was refused {}", taken.word(), asked.word()));
        }
        let ended = [TaskSessionPlace::Main, TaskSessionPlace::Beside]
            .map(|place| self.state.session(place))
            .into_iter()
            .find_map(|it| match it {
                TaskSession::Dead(agent, SessionDeath::Exited(exit)) if agent.id == session => Some(*exit),
                _ => None,
            });
        match ended {
            Some(SessionExit::Code(_)) => Ok(()),
            exit if is_verdict => Err(format!("the verdict of {session} counts, which ended with {exit:?}")),
            _ => Ok(()),
        }
    }

    /// Whether a hook that has not begun is going to end every session of the task.
    fn ends_soon(&self) -> bool {
        let jobs = self.state.turns.iter().flat_map(|turn| &turn.jobs).skip(1);
        let hooks = jobs.filter_map(|job| match job {
            TaskJob::Hook { edge, hook } => self.lifecycle.transitions.get(edge.0 as usize)?.hooks.get(*hook as usize),
            TaskJob::Acquire | TaskJob::Start(_) | TaskJob::StartRun(_) | TaskJob::CancelRun | TaskJob::Tell => None,
        });
        hooks.into_iter().any(|hook| *hook == TransitionHook::KillSession)
    }

    /// A session moves its own task only, and the worker gives no verdict.
    fn may_move(&mut self, moved: &TaskMove) -> Result<(), String> {
        let stuck = self.lifecycle.find(STUCK) == Some(moved.from);
        match moved.by {
            TaskAsker::Person => self.agents = 0,
            TaskAsker::Engine => {}
            TaskAsker::Stranger => return Err("a session of another task moves it".into()),
            TaskAsker::Session(id) => {
                let places = [TaskSessionPlace::Main, TaskSessionPlace::Beside];
                let is_here =
                    |place: &TaskSessionPlace| self.state.session(*place).agent().is_some_and(|agent| agent.id == id);
                if !places.iter().any(is_here) {
                    return Err(format!("{id} moves it, and is no session of it"));
                }
                if moved.judged.is_some() && self.roles.get(&id) != Some(&SessionRole::Reviewer) {
                    return Err(format!("{id} gives the verdict on its own work"));
                }
                if stuck {
                    self.agents = 0;
                }
            }
        }
        self.crashes = 0;
        // Who moves it by hand sees what becomes of it.
        self.is_looked_at = moved.by == TaskAsker::Person;
        Ok(())
    }

    /// Where crashes lead to `stuck`, agents are not started for ever.
    fn is_bounded(&self) -> Result<(), String> {
        if self.lifecycle.find(STUCK).is_none() {
            return Ok(());
        }
        if self.agents > MOST_AGENTS {
            return Err(format!("{} agents were started, and nobody asked", self.agents));
        }
        let rules = self.lifecycle.exits.rules.iter().filter(|rule| rule.state == self.state.status);
        let limit = rules.filter_map(|rule| match rule.reaction {
            ExitReaction::Crash { stuck_after, .. } => stuck_after,
            ExitReaction::Advance(_) | ExitReaction::Choose(_) | ExitReaction::MarkDead => None,
        });
        match limit.max() {
            Some(limit) if self.crashes > limit => Err(format!("{} crashes in `{}`", self.crashes, self.status())),
            _ => Ok(()),
        }
    }

    /// What an append says beside its events: effects settle in turn, none is asked for twice, and the header is what
    /// all of it adds up to.
    fn moves_on(&mut self, append: &Append, place: usize) -> Result<(), String> {
        if append.expected != self.version {
            return Err(format!("an append for version {} at version {}", append.expected, self.version));
        }
        self.version += append.events.len() as u64;
        self.state.check_invariants(&self.lifecycle)?;
        for effect in &append.settled {
            if self.doing.get(&place) == Some(effect) {
                return Err(format!("{effect} is settled while somebody is at it"));
            }
            if self.line.pop_front().as_ref() != Some(effect) {
                return Err(format!("{effect} is settled before its turn, or twice"));
            }
        }
        if append.effects.iter().skip(1).any(|effect| effect.kind == "write_artifact") {
            return Err("TASK.md is written after what reads it".into());
        }
        for effect in &append.effects {
            if !self.known.insert(effect.id.clone()) {
                return Err(format!("{} is asked for twice", effect.id));
            }
            self.line.push_back(effect.id.clone());
        }
        let kept = TaskHeader {
            id: append.stream.to_string(),
            definition: self.definition.clone(),
            state: self.state.clone(),
            open: self.line.iter().cloned().collect(),
            remarks: Remarks::default(),
        };
        match task_state::write(&kept) == append.header.data {
            true => Ok(()),
            false => Err("the header is not what the events add up to".into()),
        }
    }

    /// Whether the whole log adds up to what is stored, and to what was seen of it as it was written.
    pub(super) fn adds_up(
        &self,
        stored: &StoredStream,
        log: impl Iterator<Item = sluice_store::Event>,
    ) -> Result<bool, String> {
        let read = |event: sluice_store::Event| task_event::read(event.version, &event.data);
        let events = log.map(read).collect::<Result<Vec<TaskEvent>, _>>().map_err(|error| error.to_string())?;
        let actor = TaskActor::restore(self.lifecycle.clone(), stored).map_err(|error| error.to_string())?;
        let folded = TaskState::fold(&self.lifecycle, &events);
        Ok(folded.as_ref() == Some(actor.state())
            && *actor.state() == self.state
            && actor.image() == stored.header.data
            && stored.effects.len() == self.line.len())
    }

    /// At the end of a life every task has ended: agents do, and people cancel what is left.
    pub(super) fn is_over(&self, stream: &StreamId) -> Result<(), String> {
        match self.is_finished() && self.line.is_empty() {
            true => Ok(()),
            false => Err(format!("{stream} did not end: `{}`, and left is {:?}", self.status(), self.line)),
        }
    }
}
