//! The engine's own hands at work for tasks: they are slow, they fail, and they are killed with the engine. What they
//! have done is still done then, and they look at the world to see that it need not be done again.

use sluice_core::id::RunId;
use sluice_core::task::effect::StartSession;
use sluice_core::task::input::{RunEnd, TaskEffectOutcome, TaskEffectProduct, WorkspaceReservation};
use sluice_core::task::session::{SessionExit, SessionNumber, TaskSessionPlace};
use sluice_core::task::state::WorktreePath;
use sluice_core::task::{Instruction, PlainEffect, TaskAsker, TaskInput};
use sluice_engine::actor::{ActorInput, EffectOutcome};
use sluice_engine::codec::task_effect;
use sluice_engine::reactor::{Assignment, ReactorMessage, ReactorToken};
use sluice_store::StreamId;

use crate::bug::SimBug;
use crate::ground::run_of;
use crate::watch::TaskWatch;
use crate::world::{CALM, SimEvent, SimLife, SimRequest};

pub(crate) fn is_task(stream: &StreamId) -> bool {
    stream.as_str().starts_with("task-")
}

impl SimLife {
    pub(crate) fn say(&mut self, stream: &StreamId, asked: Option<SimRequest>, input: TaskInput) {
        if !self.is_heard() {
            return;
        }
        self.watch.asks(stream, input.asker());
        let input = match self.bug {
            Some(SimBug::TrustsSessions) => as_a_person(input),
            _ => input,
        };
        self.number += 1;
        let token = ReactorToken(self.number);
        let token = asked.map(|asked| {
            self.engine().asked.insert(token, asked);
            token
        });
        self.hear(ReactorMessage::Say { token, stream: stream.clone(), said: ActorInput::Task(input) });
    }

    /// Looks for a workspace, and keeps it free until what it is for is known.
    pub(crate) fn room(&mut self) -> (WorkspaceReservation, Option<WorktreePath>) {
        if self.chance.percent(10) {
            return (WorkspaceReservation::Unasked, None);
        }
        match self.free_workspace() {
            Some(name) => {
                self.engine().kept.insert(name.clone());
                (WorkspaceReservation::Reserved(name.clone()), Some(name))
            }
            None if self.has(SimBug::LendsWithoutAsking) => match self.takes_from_somebody() {
                Some(name) => (WorkspaceReservation::Reserved(name), None),
                None => (WorkspaceReservation::Full, None),
            },
            None => {
                self.lends_one();
                (WorkspaceReservation::Full, None)
            }
        }
    }

    fn free_workspace(&self) -> Option<WorktreePath> {
        let in_use = match self.bug {
            Some(SimBug::ForgetsReservations) => Default::default(),
            _ => self.watch.workspaces(),
        };
        self.ground.free(&in_use, &self.engines[self.here].kept)
    }

    pub(crate) fn hand_to_task(&mut self, assignment: Assignment) -> Result<(), String> {
        self.note(&format!("{}: {} begins", assignment.stream, assignment.effect.id));
        self.watch.task_begins(&assignment.stream, &assignment.effect.id, self.here)?;
        let wait = if self.chance.percent(5) { self.soon(20_000) } else { self.soon(600) };
        self.at(wait, SimEvent::Acts { assignment });
        self.is_in_peril(4, 900);
        Ok(())
    }

    /// Something is done to the world, unless the time in which the engine may do that is over. Then nothing is said
    /// about it either: it is taken up again by whoever owns the store next.
    pub(crate) fn acts(&mut self, assignment: Assignment) -> Result<(), String> {
        if !self.may_act() {
            self.at(200, SimEvent::Acts { assignment });
            return Ok(());
        }
        self.hands_on()?;
        let outcome = self.carries_out(&assignment)?;
        // An agent may come to its end while the hands are still at what started it.
        let is_slow = self.now < CALM && assignment.effect.kind == "start_session" && self.chance.percent(10);
        let wait = if is_slow { self.soon(30_000) } else { self.soon(300) };
        self.at(wait, SimEvent::Answers { assignment, outcome });
        Ok(())
    }

    pub(crate) fn answers(&mut self, it: &Assignment, outcome: TaskEffectOutcome) -> Result<(), String> {
        self.note(&format!("{}: {} is answered {outcome:?}", it.stream, it.effect.id));
        self.watch.task_ends(&it.stream, self.here);
        self.reports(it, &EffectOutcome::Task(outcome))
    }

    pub(crate) fn carries_out(&mut self, it: &Assignment) -> Result<TaskEffectOutcome, String> {
        let (stream, key) = (&it.stream, &it.effect.id);
        if !self.is_owner(self.here) {
            return Err(format!("{stream}: {key} is done by an engine whose store is another's"));
        }
        let effect = task_effect::read(key, &it.effect.data).map_err(|error| error.to_string())?;
        let unlucky = self.chance.percent(if self.now < CALM { 7 } else { 2 });
        match unlucky && !self.is_done(stream, key, &effect.instruction) {
            true => Ok(self.fails(stream, &effect.instruction)),
            false => match &effect.instruction {
                Instruction::StartRun { workspace, .. } => self.starts_run(stream, key, workspace.as_ref()),
                Instruction::Plain(PlainEffect::SpawnNext {}) => self.spawns_next(stream, key),
                other => self.succeeds(stream, other),
            },
        }
    }

    pub(crate) fn is_done_already(&self, it: &Assignment) -> Result<bool, String> {
        let effect = task_effect::read(&it.effect.id, &it.effect.data).map_err(|error| error.to_string())?;
        Ok(self.is_done(&it.stream, &it.effect.id, &effect.instruction))
    }

    /// Whether the world shows that something is done already.
    fn is_done(&self, stream: &StreamId, key: &str, instruction: &Instruction) -> bool {
        let run = |run: &RunId| self.ground.runs.get(&(stream.clone(), run.clone()));
        match instruction {
            Instruction::AcquireWorkspace { .. } => self.ground.bound_to(stream).is_some(),
            Instruction::ReleaseWorkspace { .. } => self.ground.bound_to(stream).is_none(),
            Instruction::StartSession(start) => self.ground.knows(stream, start.session, self.here),
            Instruction::StartRun { .. } => run_of(key).is_ok_and(|id| run(&id).is_some()),
            Instruction::CancelRun { run: id } => run(id).is_some_and(Option::is_some),
            Instruction::EndSession { .. }
            | Instruction::TypeToWorker { .. }
            | Instruction::Plain(_)
            | Instruction::WriteArtifact { .. }
            | Instruction::RunCommand { .. } => false,
        }
    }

    /// Nothing is done of what a task wants.
    pub(crate) fn fails_at(&mut self, it: &Assignment) -> Result<(), String> {
        let effect = task_effect::read(&it.effect.id, &it.effect.data).map_err(|error| error.to_string())?;
        self.fails(&it.stream, &effect.instruction);
        Ok(())
    }

    fn fails(&mut self, stream: &StreamId, instruction: &Instruction) -> TaskEffectOutcome {
        match instruction {
            Instruction::EndSession { sessions, .. } => {
                for id in sessions {
                    if let Some(process) = self.ground.processes.get_mut(&(stream.clone(), *id)) {
                        process.withstood = true;
                    }
                }
                self.ground.clinging.insert(stream.clone());
            }
            Instruction::CancelRun { .. } | Instruction::ReleaseWorkspace { .. } => {
                self.ground.clinging.insert(stream.clone());
            }
            Instruction::WriteArtifact { .. } => self.ground.sheet(stream).is_behind = true,
            Instruction::AcquireWorkspace { .. }
            | Instruction::StartSession(_)
            | Instruction::TypeToWorker { .. }
            | Instruction::Plain(_)
            | Instruction::StartRun { .. }
            | Instruction::RunCommand { .. } => {}
        }
        TaskEffectOutcome::Failed("no luck".into())
    }

    fn succeeds(&mut self, stream: &StreamId, instruction: &Instruction) -> Result<TaskEffectOutcome, String> {
        match instruction {
            Instruction::AcquireWorkspace { reserved } => return self.acquires(stream, reserved.as_ref()),
            Instruction::ReleaseWorkspace { workspace } => self.ground.release(stream, workspace)?,
            Instruction::StartSession(start) => self.starts_session(stream, start)?,
            Instruction::EndSession { sessions, .. } => sessions.iter().for_each(|id| self.ends(stream, *id)),
            Instruction::TypeToWorker { session, .. } => {
                let worker = self.ground.processes.get(&(stream.clone(), *session));
                let here = worker.filter(|it| it.home == self.here && it.exit.is_none()).is_some();
                match worker.map(|it| it.place) {
                    Some(TaskSessionPlace::Main) if here => self.speak_to(stream),
                    Some(TaskSessionPlace::Main) => return Ok(TaskEffectOutcome::Failed("it is gone".into())),
                    Some(TaskSessionPlace::Beside) | None => {
                        return Err(format!("{stream}: {session} is no worker of it"));
                    }
                }
            }
            Instruction::Plain(PlainEffect::CreatePr {}) => {
                return Ok(TaskEffectOutcome::Ok(TaskEffectProduct::PullRequest(format!("pull/{stream}"))));
            }
            Instruction::CancelRun { run } => {
                if let Some(end) = self.ground.runs.get_mut(&(stream.clone(), run.clone())) {
                    end.get_or_insert(RunEnd::Cancelled);
                }
            }
            Instruction::RunCommand { workspace, .. } => {
                if self.ground.bound_to(stream) != Some(workspace) {
                    return Err(format!("{stream}: a command runs in {}, which is not its", workspace.0));
                }
            }
            Instruction::WriteArtifact { frontmatter, feedback } => {
                let sheet = self.ground.sheet(stream);
                sheet.frontmatter.clone_from(frontmatter);
                sheet.is_behind = false;
                if let Some(text) = feedback.as_ref().filter(|text| !sheet.says("Feedback", text)) {
                    sheet.write("Feedback", text);
                }
            }
            // What a plain effect does is outside of this world.
            Instruction::Plain(_) | Instruction::StartRun { .. } => {}
        }
        Ok(TaskEffectOutcome::Ok(TaskEffectProduct::Nothing))
    }

    fn acquires(&mut self, stream: &StreamId, reserved: Option<&WorktreePath>) -> Result<TaskEffectOutcome, String> {
        let has = self.ground.bound_to(stream).cloned();
        let former =
            || self.watch.tasks.get(stream).and_then(|task| task.state.lent.clone()).map(|lent| lent.workspace);
        let reserved = former().filter(|_| self.has(SimBug::TakesBackWhatIsLent)).or_else(|| reserved.cloned());
        let reserved = reserved.as_ref();
        let Some(name) = has.or_else(|| reserved.cloned()).or_else(|| self.free_workspace()) else {
            return Ok(TaskEffectOutcome::Failed("the pool is full".into()));
        };
        self.ground.bind(stream, &name)?;
        // What was kept free for it need not be named again.
        let unnamed = reserved == Some(&name) && self.chance.percent(10);
        Ok(TaskEffectOutcome::Ok(if unnamed { TaskEffectProduct::Nothing } else { TaskEffectProduct::Workspace(name) }))
    }

    fn starts_session(&mut self, stream: &StreamId, start: &StartSession) -> Result<(), String> {
        let is_living = |task: &TaskWatch| task.state.is_living(start.session);
        let is_over = !self.watch.tasks.get(stream).is_some_and(is_living);
        if is_over && !self.has(SimBug::StartsWhatHasEnded) {
            return Ok(());
        }
        let is_there = self.ground.knows(stream, start.session, self.here);
        if is_there && !self.has(SimBug::StartsTwice) {
            return Ok(());
        }
        if is_there {
            return Err(format!("{stream}: {} is started twice", start.session));
        }
        self.note(&format!("{stream}: {} lives as {}", start.session, start.role.word()));
        self.ground.start(stream, start, self.here)?;
        let wait = self.soon(3_000);
        self.at(wait, SimEvent::Agent { stream: stream.clone(), session: start.session, stir: 0 });
        Ok(())
    }

    /// Ends a process. Whoever watches it may say so as well.
    fn ends(&mut self, stream: &StreamId, session: SessionNumber) {
        let process = self.ground.processes.get_mut(&(stream.clone(), session));
        let Some(process) = process.filter(|process| process.home == self.here) else { return };
        if process.exit.is_none() {
            process.exit = Some(SessionExit::Signal(9));
            self.note(&format!("{stream}: {session} is ended"));
            if self.chance.percent(50) {
                let wait = self.soon(500);
                self.at(wait, SimEvent::Exited { stream: stream.clone(), session });
            }
        }
    }

    /// The next task that waits to be begun is begun: once for each time that this is asked, however often it is tried.
    fn spawns_next(&mut self, stream: &StreamId, key: &str) -> Result<TaskEffectOutcome, String> {
        let nothing = Ok(TaskEffectOutcome::Ok(TaskEffectProduct::Nothing));
        let cause = (stream.clone(), key.to_owned());
        let chosen = self.ground.chosen.get(&cause).filter(|_| !self.has(SimBug::BeginsOneMore)).cloned();
        let is_next = |task: &TaskWatch| task.status() == "pending";
        let waiting = || self.watch.tasks.iter().find(|(_, task)| is_next(task)).map(|(stream, _)| stream.clone());
        let Some(stream) = chosen.or_else(waiting) else { return nothing };
        if self.ground.chosen.insert(cause, stream.clone()).is_some_and(|before| before != stream) {
            return Err(format!("{key} begins {stream}, and has begun another before"));
        }
        self.is_in_peril(30, 300);
        let (room, kept) = self.room();
        let evidence = self.ground.sheet(&stream).evidence();
        self.note(&format!("{stream}: is next, with {room:?}"));
        self.say(&stream, Some(SimRequest::Goes(kept)), TaskInput::Spawn { by: TaskAsker::Engine, evidence, room });
        nothing
    }
}

fn as_a_person(input: TaskInput) -> TaskInput {
    match input {
        TaskInput::Move { to, evidence, room, feedback, .. } => {
            TaskInput::Move { by: TaskAsker::Person, to, evidence, room, feedback }
        }
        TaskInput::Cancel { evidence, .. } => TaskInput::Cancel { by: TaskAsker::Person, evidence },
        other => other,
    }
}
