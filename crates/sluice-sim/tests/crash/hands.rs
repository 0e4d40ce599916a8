//! What performs effects in the child: on a thread of its own, a little later. It plays the agents as well.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use sluice_core::name::StateName;
use sluice_core::run::{AttemptReport, StepOutcome};
use sluice_core::task::input::{TaskEffectOutcome, TaskEffectProduct, WorkspaceReservation};
use sluice_core::task::session::{SessionExit, SessionNumber, SessionRole};
use sluice_core::task::{Evidence, Instruction, TaskAsker, TaskInput};
use sluice_engine::actor::{ActorInput, EffectOutcome};
use sluice_engine::codec::task_effect;
use sluice_engine::host::{EngineHandle, Executor};
use sluice_engine::reactor::{Assignment, ReactorMessage};
use sluice_store::StreamId;

use crate::child::say;
use crate::is_task;

/// Performs everything on a thread of its own, a little later.
pub(crate) struct Hands {
    work: Sender<(Assignment, EngineHandle)>,
}

impl Hands {
    pub(crate) fn new() -> Hands {
        let (work, inbox) = channel();
        std::thread::spawn(move || World::new().go(&inbox));
        Hands { work }
    }
}

impl Executor for Hands {
    fn perform(&mut self, assignment: Assignment, report: &EngineHandle) {
        let _ = self.work.send((assignment, report.clone()));
    }
}

enum Due {
    Performed(Box<Assignment>),
    Agent(StreamId, SessionNumber, SessionRole),
}

struct World {
    number: u64,
    held: Vec<(Instant, Due, EngineHandle)>,
    /// The agent of each task that lives in this process.
    alive: BTreeMap<StreamId, SessionNumber>,
}

impl World {
    fn new() -> World {
        World { number: u64::from(std::process::id()) | 1, held: Vec::new(), alive: BTreeMap::new() }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.number ^= self.number << 13;
        self.number ^= self.number >> 7;
        self.number ^= self.number << 17;
        self.number % limit
    }

    fn hold(&mut self, micros: u64, due: Due, reporter: EngineHandle) {
        let wait = Duration::from_micros(self.below(micros));
        self.held.push((Instant::now() + wait, due, reporter));
    }

    fn go(mut self, inbox: &Receiver<(Assignment, EngineHandle)>) {
        loop {
            let wait = self.held.iter().map(|(at, _, _)| at.saturating_duration_since(Instant::now())).min();
            match inbox.recv_timeout(wait.unwrap_or(Duration::from_secs(60))) {
                Ok((assignment, reporter)) => {
                    say(&format!("begin {} {}", assignment.stream, assignment.effect.id));
                    self.hold(3000, Due::Performed(Box::new(assignment)), reporter);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let due = self.held.iter().position(|(at, _, _)| *at <= Instant::now());
            match due.map(|index| self.held.swap_remove(index)) {
                Some((_, Due::Performed(assignment), reporter)) => self.performed(*assignment, &reporter),
                Some((_, Due::Agent(stream, session, role), reporter)) => self.agent(stream, session, role, &reporter),
                None => {}
            }
        }
    }

    fn performed(&mut self, it: Assignment, reporter: &EngineHandle) {
        let outcome = match it.effect.kind.as_str() {
            "perform" => {
                let result = if self.below(3) == 0 { "FAIL" } else { "PASS" };
                EffectOutcome::Run(AttemptReport::Completed(StepOutcome {
                    result: Some(result.into()),
                    ..StepOutcome::default()
                }))
            }
            _ if is_task(&it.stream) => EffectOutcome::Task(self.carries_out(&it, reporter)),
            _ => EffectOutcome::Done,
        };
        say(&format!("end {} {}", it.stream, it.effect.id));
        let (stream, effect) = (it.stream, it.effect.id);
        reporter.send(ReactorMessage::Ended { token: None, stream, effect, dispatch: it.dispatch, outcome });
    }

    fn carries_out(&mut self, it: &Assignment, reporter: &EngineHandle) -> TaskEffectOutcome {
        let effect = task_effect::read(&it.effect.id, &it.effect.data).unwrap();
        // A task that is over keeps what could not be ended or released, and the person here looks at open ones only.
        let must = matches!(effect.instruction, Instruction::EndSession { .. } | Instruction::ReleaseWorkspace { .. });
        if !must && self.below(40) == 0 {
            return TaskEffectOutcome::Failed("no luck".into());
        }
        match effect.instruction {
            Instruction::AcquireWorkspace { reserved: Some(name) } => {
                return TaskEffectOutcome::Ok(TaskEffectProduct::Workspace(name));
            }
            Instruction::AcquireWorkspace { reserved: None } => {
                return TaskEffectOutcome::Failed("none was kept free".into());
            }
            Instruction::ReleaseWorkspace { .. } => {
                if let Some(id) = self.alive.get(&it.stream) {
                    say(&format!("wrong {}: released while {id} works in it", it.stream));
                }
            }
            Instruction::StartSession(start) => {
                if let Some(other) = self.alive.insert(it.stream.clone(), start.session) {
                    say(&format!("wrong {}: {} starts while {other} lives", it.stream, start.session));
                }
                self.hold(8000, Due::Agent(it.stream.clone(), start.session, start.role), reporter.clone());
            }
            Instruction::EndSession { sessions, .. } => {
                if self.alive.get(&it.stream).is_some_and(|id| sessions.contains(id)) {
                    self.alive.remove(&it.stream);
                }
            }
            Instruction::StartRun { .. } => return TaskEffectOutcome::Failed("no run is started here".into()),
            Instruction::TypeToWorker { .. }
            | Instruction::Plain(_)
            | Instruction::CancelRun { .. }
            | Instruction::RunCommand { .. }
            | Instruction::WriteArtifact { .. } => {}
        }
        TaskEffectOutcome::Ok(TaskEffectProduct::Nothing)
    }

    /// An agent does the one thing that it is there for: it asks for the next status, or it ends, with its artifact or
    /// without.
    fn agent(&mut self, stream: StreamId, session: SessionNumber, role: SessionRole, reporter: &EngineHandle) {
        if self.alive.get(&stream) != Some(&session) {
            return;
        }
        let passes = self.below(2) == 0;
        let text = format!("{} {}", std::process::id(), self.number);
        let body = match (role, passes) {
            (SessionRole::Worker, _) => format!("## Handoff\nDONE: {text}\n"),
            (SessionRole::Reviewer, true) => format!("## Review\nVerdict: PASS\n{text}\n"),
            (SessionRole::Reviewer, false) => format!("## Review\nVerdict: FAIL\n{text}\n"),
        };
        let evidence = |body: String| Evidence { body, ..Evidence::default() };
        let tell = |input: TaskInput| {
            reporter.send(ReactorMessage::Say { token: None, stream: stream.clone(), said: ActorInput::Task(input) });
        };
        match self.below(6) {
            0 => {
                self.alive.remove(&stream);
                tell(TaskInput::SessionExited {
                    session,
                    exit: SessionExit::Code(1),
                    evidence: evidence(String::new()),
                });
            }
            1 => {
                self.alive.remove(&stream);
                tell(TaskInput::SessionExited { session, exit: SessionExit::Code(0), evidence: evidence(body) });
            }
            _ => {
                let ways: &[&str] = match (role, passes) {
                    (SessionRole::Worker, _) => &["reviewing", "agent-review"],
                    (SessionRole::Reviewer, true) => &["reviewing"],
                    // The round decides which of them is refused.
                    (SessionRole::Reviewer, false) => &["working", "stuck"],
                };
                for to in ways {
                    let (by, to) = (TaskAsker::Session(session), StateName::new(*to));
                    tell(TaskInput::Move {
                        by,
                        to,
                        evidence: evidence(body.clone()),
                        room: WorkspaceReservation::Unasked,
                        feedback: None,
                    });
                }
                self.hold(30_000, Due::Agent(stream.clone(), session, role), reporter.clone());
            }
        }
    }
}
