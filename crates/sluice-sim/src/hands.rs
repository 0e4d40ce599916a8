//! The engine's own hands at work for tasks: they are slow, they fail, and they are killed with the engine. What they
//! have done is still done then, and by its key they know that they need not do it again.

use sluice_core::machine::Moment;
use sluice_core::task::effect::StartSession;
use sluice_core::task::input::{Found, Outcome as Ended, Room, RunEnd};
use sluice_core::task::session::{Exit, Place, SessionId};
use sluice_core::task::state::WorkspaceName;
use sluice_core::task::{Asker, Input, Instruction};
use sluice_engine::actor::{Outcome as Done, Said};
use sluice_engine::codec::task_effect;
use sluice_engine::reactor::{Assignment, Message, Token};
use sluice_store::StreamId;

use crate::bug::Bug;
use crate::world::{Asked, CALM, Due, Life};

/// Whether this is the stream of a task.
pub(crate) fn is_task(stream: &StreamId) -> bool {
    stream.as_str().starts_with("task-")
}

impl Life {
    /// Something is said to a task by whoever its input names.
    pub(crate) fn say(&mut self, stream: &StreamId, asked: Option<Asked>, input: Input) {
        if self.is_down {
            return;
        }
        self.watch.asks(stream, input.asker());
        let input = match self.bug {
            Some(Bug::TrustsSessions) => as_a_person(input),
            _ => input,
        };
        self.number += 1;
        let token = Token(self.number);
        let token = asked.map(|asked| {
            self.asked.insert(token, asked);
            token
        });
        let message = Message::Say { token, stream: stream.clone(), said: Said::Task(input) };
        self.reactor.receive(message, Moment(self.now));
    }

    /// Looks for a workspace, and keeps it free until what it is for is known.
    pub(crate) fn room(&mut self) -> (Room, Option<WorkspaceName>) {
        if self.chance.percent(10) {
            return (Room::Unasked, None);
        }
        match self.free_workspace() {
            Some(name) => {
                self.ground.kept.insert(name.clone());
                (Room::Reserved(name.clone()), Some(name))
            }
            None => (Room::Full, None),
        }
    }

    fn free_workspace(&self) -> Option<WorkspaceName> {
        let in_use = match self.bug {
            Some(Bug::ForgetsReservations) => Default::default(),
            _ => self.watch.workspaces(),
        };
        self.ground.free(&in_use)
    }

    pub(crate) fn hand_to_task(&mut self, assignment: Assignment) -> Result<(), String> {
        self.note(&format!("{}: {} begins", assignment.stream, assignment.effect.id));
        self.watch.task_begins(&assignment.stream, &assignment.effect.id)?;
        let wait = if self.chance.percent(5) { self.soon(20_000) } else { self.soon(600) };
        self.at(wait, Due::Acts { assignment });
        self.is_in_peril(4, 900);
        Ok(())
    }

    pub(crate) fn acts(&mut self, assignment: Assignment) -> Result<(), String> {
        let outcome = self.carries_out(&assignment)?;
        let wait = self.soon(300);
        self.at(wait, Due::Answers { assignment, outcome });
        Ok(())
    }

    pub(crate) fn answers(&mut self, it: &Assignment, outcome: Ended) {
        self.note(&format!("{}: {} is answered {outcome:?}", it.stream, it.effect.id));
        self.watch.task_ends(&it.stream);
        for _ in 0..=usize::from(self.chance.percent(5)) {
            let outcome = Done::Task(outcome.clone());
            let (stream, effect) = (it.stream.clone(), it.effect.id.clone());
            let message = Message::Ended { token: None, stream, effect, dispatch: it.dispatch, outcome };
            self.reactor.receive(message, Moment(self.now));
        }
    }

    /// Does to the world what a task wants done.
    pub(crate) fn carries_out(&mut self, it: &Assignment) -> Result<Ended, String> {
        let stream = &it.stream;
        let effect = task_effect::read(&it.effect.id, &it.effect.data).map_err(|error| error.to_string())?;
        let again = self.ground.was_done(stream, &it.effect.id);
        let unlucky = self.chance.percent(if self.now < CALM { 7 } else { 2 });
        let outcome = match unlucky && !again {
            true => self.fails(stream, &effect.instruction),
            false => match &effect.instruction {
                Instruction::StartRun { workspace, .. } => {
                    self.starts_run(stream, &it.effect.id, workspace.as_ref(), again)?
                }
                other => self.succeeds(stream, other, again)?,
            },
        };
        if matches!(outcome, Ended::Ok(_)) {
            self.ground.does(stream, &it.effect.id);
        }
        Ok(outcome)
    }

    /// Nothing is done, and that has consequences.
    fn fails(&mut self, stream: &StreamId, instruction: &Instruction) -> Ended {
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
            | Instruction::SpawnNext
            | Instruction::PushBranch
            | Instruction::CreatePr
            | Instruction::DeleteRemoteBranch
            | Instruction::Notify { .. }
            | Instruction::StartRun { .. }
            | Instruction::RunCommand { .. } => {}
        }
        Ended::Failed("no luck".into())
    }

    fn succeeds(&mut self, stream: &StreamId, instruction: &Instruction, again: bool) -> Result<Ended, String> {
        match instruction {
            Instruction::AcquireWorkspace { reserved } => return self.acquires(stream, reserved.as_ref()),
            Instruction::ReleaseWorkspace { workspace } => self.ground.release(stream, workspace)?,
            Instruction::StartSession(start) => self.starts(stream, start, again)?,
            Instruction::EndSession { sessions, .. } => sessions.iter().for_each(|id| self.ends(stream, *id)),
            Instruction::TypeToWorker { session, .. } => {
                let worker = self.ground.processes.get(&(stream.clone(), *session));
                match worker.map(|it| (it.place, it.exit)) {
                    Some((Place::Main, None)) => self.speak_to(stream),
                    Some((Place::Main, Some(_))) => return Ok(Ended::Failed("it is gone".into())),
                    Some((Place::Beside, _)) | None => return Err(format!("{stream}: {session} is no worker of it")),
                }
            }
            Instruction::SpawnNext if !again => self.spawns_next(),
            Instruction::CreatePr => return Ok(Ended::Ok(Found::PullRequest(format!("pull/{stream}")))),
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
                if let Some(text) = feedback.as_ref().filter(|_| !again) {
                    sheet.write("Feedback", text);
                }
            }
            Instruction::SpawnNext
            | Instruction::PushBranch
            | Instruction::DeleteRemoteBranch
            | Instruction::StartRun { .. }
            | Instruction::Notify { .. } => {}
        }
        Ok(Ended::Ok(Found::Nothing))
    }

    fn acquires(&mut self, stream: &StreamId, reserved: Option<&WorkspaceName>) -> Result<Ended, String> {
        let has = self.ground.bound_to(stream).cloned();
        let Some(name) = has.or_else(|| reserved.cloned()).or_else(|| self.free_workspace()) else {
            return Ok(Ended::Failed("the pool is full".into()));
        };
        self.ground.bind(stream, &name)?;
        // What was kept free for it need not be named again.
        let unnamed = reserved == Some(&name) && self.chance.percent(10);
        Ok(Ended::Ok(if unnamed { Found::Nothing } else { Found::Workspace(name) }))
    }

    fn starts(&mut self, stream: &StreamId, start: &StartSession, again: bool) -> Result<(), String> {
        if again && self.bug != Some(Bug::StartsTwice) {
            return Ok(());
        }
        self.note(&format!("{stream}: {} lives as {}", start.session, start.role.word()));
        self.ground.start(stream, start)?;
        let wait = self.soon(3_000);
        self.at(wait, Due::Agent { stream: stream.clone(), session: start.session, stir: 0 });
        Ok(())
    }

    /// Ends a process. Whoever watches it may say so as well.
    fn ends(&mut self, stream: &StreamId, session: SessionId) {
        let Some(process) = self.ground.processes.get_mut(&(stream.clone(), session)) else { return };
        if process.exit.is_none() {
            process.exit = Some(Exit::Signal(9));
            self.note(&format!("{stream}: {session} is ended"));
            if self.chance.percent(50) {
                let wait = self.soon(500);
                self.at(wait, Due::Exited { stream: stream.clone(), session });
            }
        }
    }

    /// The next task that waits to be begun is begun.
    fn spawns_next(&mut self) {
        let tasks = &self.watch.tasks;
        let next = tasks.iter().find(|(_, task)| task.status() == "pending").map(|(stream, _)| stream.clone());
        let Some(stream) = next else { return };
        let (room, kept) = self.room();
        let evidence = self.ground.sheet(&stream).evidence();
        self.note(&format!("{stream}: is next, with {room:?}"));
        self.say(&stream, Some(Asked::Goes(kept)), Input::Spawn { by: Asker::Engine, evidence, room });
    }
}

/// What an engine hears that cannot tell a session from a person.
fn as_a_person(input: Input) -> Input {
    match input {
        Input::Move { to, evidence, room, .. } => Input::Move { by: Asker::Person, to, evidence, room },
        Input::Cancel { evidence, .. } => Input::Cancel { by: Asker::Person, evidence },
        other => other,
    }
}
