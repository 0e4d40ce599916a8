//! Carrying out what the engine asks for: worktrees, sessions, TASK.md, commands, pull requests.
//!
//! Everything here may be asked for a second time, after a crash in between; then it finds what is done already.

mod git;
pub(crate) mod merges;
pub(crate) mod queue;
pub(crate) mod run;
pub(crate) mod run_merges;
mod start;
mod state_run;

pub(crate) use git::{create_pr, current_branch};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use sluice_core::id::TaskId;
use sluice_core::task::effect::{Instruction, PlainEffect, StartSession};
use sluice_core::task::input::{TaskEffectOutcome, TaskEffectProduct};
use sluice_core::task::session::SessionNumber;
use sluice_engine::actor::EffectOutcome;
use sluice_engine::codec::task_effect;
use sluice_engine::host::{EngineClock, EngineHandle, Executor};
use sluice_engine::reactor::{Assignment, ReactorMessage};
use sluice_engine::workers::{Dispatch, WorkerId};
use sluice_os::harness::HarnessWatchdogs;
use sluice_os::process::{self, ProcessScript, ScriptProgram};
use sluice_os::session::{SayDelivery, SayRequest, SessionFailure};
use sluice_os::taskfile;
use sluice_store::Effect;
use sluice_telemetry::caused_by;

use crate::background::lane::LaneTurn;
use crate::home::channels::PROGRAM_LIMIT;
use crate::home::errand::{Errand, ErrandPending, ErrandPlace};
use crate::home::hook::{hook, run_to_end};
use crate::home::notices::{self, cleaned};
use crate::home::setup::{self, SetupEnd};
use crate::home::{Home, session_id};
use crate::perform::GRACE;
use crate::read::tasks::{TaskSnapshot, id_of};
use crate::read::{files, runs};
use crate::settings::ids::OWN;
use crate::settings::log::words;
use crate::spans;
use crate::undone::described;
use crate::undone::{PerformError, PerformFailure, settled};

/// Why something was not begun.
const ENDED: &str = "the task has ended while its worktree was made ready";

pub(crate) struct LocalExecutor {
    pub(crate) home: Arc<Home>,
}

impl LocalExecutor {
    pub(crate) fn new(home: Arc<Home>) -> LocalExecutor {
        process::tidy_notes(&home.context.commands());
        LocalExecutor { home }
    }

    /// Tells a worker what it was handed, as soon as that can be read.
    fn tell_worker(&self, assignment: &Assignment, attempt: Option<String>) {
        let Some(dispatch) = self.home.roster.assigned(assignment, attempt) else { return };
        let name = format!("word of {} of {}", assignment.effect.id, assignment.stream);
        Errand::run(&self.home, name, move |home, _| Ok(home.roster.tell(home, dispatch)?));
    }
}

impl Executor for LocalExecutor {
    fn perform(&mut self, assignment: Assignment, report: &EngineHandle) {
        let (home, report) = (self.home.clone(), report.clone());
        if assignment.worker.as_ref().is_some_and(|worker| worker.0 != OWN) {
            return self.tell_worker(&assignment, None);
        }
        let name = format!("{} of {}", assignment.effect.id, assignment.stream);
        let began = Instant::now();
        Errand::run(&home.clone(), name, move |home, place| {
            // It was decided while the store was ours. Before anything is done it must be so again, or still.
            if !home.context.until_it_may_act() {
                return Ok(());
            }
            let outcome = outcome_of(home, &assignment, place);
            home.waits.note(&home.tasks, &assignment, began, outcome.as_ref().err());
            let outcome = outcome?;
            let Assignment { stream, effect, dispatch, .. } = assignment.clone();
            report.send(ReactorMessage::Ended { token: None, stream, effect: effect.id, dispatch, outcome });
            Ok(())
        });
    }

    fn held(&mut self, assignment: Assignment, name: Option<String>, _: &EngineHandle) {
        // Its worker may listen again before what it holds is known.
        self.tell_worker(&assignment, name);
    }

    fn withdrawn(&mut self, _: &WorkerId, dispatch: Dispatch, is_lost: bool) {
        let lost = self.home.roster.withdrawn(&self.home, dispatch, is_lost).filter(|_| is_lost);
        if let Some(worker) = lost {
            let home = self.home.clone();
            self.home.threads.run(move || home.roster.lost(&home, &worker));
        }
    }
}

type EffectResult = Result<TaskEffectProduct, PerformError>;

fn outcome_of(home: &Arc<Home>, assignment: &Assignment, place: &ErrandPlace) -> Result<EffectOutcome, ErrandPending> {
    let Assignment { stream, effect, .. } = assignment;
    caught(&format!("{} of {stream}", effect.id), || match (id_of(stream), runs::id_of(stream)) {
        (Some(task), _) => carried_out(home, &task, effect, place),
        (None, Some(run)) => caused_by(spans::root_of(stream), || run::carry_out(home, &run, assignment, place)),
        (None, None) => Ok(EffectOutcome::Failed(format!("{stream} is neither a task nor a run"))),
    })
}

/// What came of carrying something out. A panic is a fault of ours: this effect has failed, and all others go on.
fn caught(
    name: &str,
    work: impl FnOnce() -> Result<EffectOutcome, ErrandPending>,
) -> Result<EffectOutcome, ErrandPending> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let why = words(panic.as_ref());
        tracing::error!("{name} has failed: {why}");
        Ok(EffectOutcome::Failed(why))
    })
}

fn carried_out(
    home: &Arc<Home>,
    id: &TaskId,
    effect: &Effect,
    place: &ErrandPlace,
) -> Result<EffectOutcome, ErrandPending> {
    let failed =
        |failed: PerformFailure| TaskEffectOutcome::Failed(home.context.clean().text(&failed.error.to_string()));
    let (seen, instruction) = match settled(wanted(home, id, effect))? {
        Ok(wanted) => wanted,
        Err(gone) => return Ok(EffectOutcome::Task(failed(gone))),
    };
    let next = place_of(home, &seen, &instruction);
    if *place != next {
        return Err(ErrandPending::On(next));
    }
    let span = spans::task(id, &effect.id, &effect.kind);
    let done = caused_by(span.context(), || carry_out(home, &seen, &effect.id, &instruction));
    let done = settled(done)?;
    let code = done.as_ref().err().and_then(|failed| failed.error.code()).map(str::to_owned);
    let outcome = done.unwrap_or_else(failed);
    spans::task_ended(span, &outcome, code.as_deref());
    Ok(EffectOutcome::Task(outcome))
}

/// The task of an effect, and what it is told.
fn wanted(home: &Home, id: &TaskId, effect: &Effect) -> Result<(TaskSnapshot, Instruction), PerformError> {
    let wanted = task_effect::read(&effect.id, &effect.data).map_err(|error| error.to_string())?;
    Ok((home.tasks.load(id)?.ok_or("the task is gone")?, wanted.instruction))
}

fn place_of(home: &Home, seen: &TaskSnapshot, instruction: &Instruction) -> ErrandPlace {
    let is_for_git = match instruction {
        Instruction::AcquireWorkspace { .. } | Instruction::ReleaseWorkspace { .. } | Instruction::StartRun { .. } => {
            true
        }
        // They wait: for an agent, a remote, a command, or the steps of a run.
        Instruction::StartSession(_)
        | Instruction::EndSession { .. }
        | Instruction::TypeToWorker { .. }
        | Instruction::Plain(_)
        | Instruction::RunCommand { .. }
        | Instruction::CancelRun { .. }
        | Instruction::WriteArtifact { .. } => false,
    };
    match home.projects.get(&seen.state.about.project) {
        Ok(project) if is_for_git => {
            ErrandPlace::Git { repository: project.path, asker: seen.id.to_string(), turn: LaneTurn::InLine }
        }
        Ok(_) | Err(_) => ErrandPlace::Pool,
    }
}

fn carry_out(
    home: &Arc<Home>,
    seen: &TaskSnapshot,
    effect: &str,
    instruction: &Instruction,
) -> Result<TaskEffectOutcome, PerformError> {
    let done = match instruction {
        Instruction::AcquireWorkspace { reserved } => git::acquire(home, seen, reserved.as_ref()),
        Instruction::ReleaseWorkspace { workspace } => git::release(home, seen, &workspace.0),
        Instruction::StartSession(wanted) => return started(home, seen, wanted),
        Instruction::EndSession { sessions, whole } => end(home, seen, sessions, *whole),
        Instruction::TypeToWorker { session, text, .. } => tell_worker(home, seen, *session, effect, text),
        Instruction::Plain(plain) => return carry_out_plain(home, seen, effect, plain),
        Instruction::RunCommand { workspace, script, environment } => {
            match setup::of_task(home, seen, Path::new(&workspace.0))? {
                SetupEnd::Ready => command(home, seen, effect, &workspace.0, script, environment),
                SetupEnd::Unwanted => return Ok(TaskEffectOutcome::Skipped(ENDED.into())),
            }
        }
        Instruction::StartRun { recipe, inputs, workspace } => {
            state_run::start(home, seen, effect, recipe, inputs, workspace.as_ref())
        }
        Instruction::CancelRun { run } => state_run::cancel(home, run),
        Instruction::WriteArtifact { feedback, .. } => {
            // What is true now, not what was true when it was asked for: a later writing has been asked for then.
            let truth = files::truth(seen, home.tmux_session(seen).as_deref());
            let body = files::write(&home.context.places, seen, &truth, feedback.as_deref())?;
            home.keep_body(seen, &body);
            Ok(TaskEffectProduct::Nothing)
        }
    };
    done.map(TaskEffectOutcome::Ok)
}

/// Starts an agent in a worktree that is ready for it.
fn started(home: &Arc<Home>, seen: &TaskSnapshot, wanted: &StartSession) -> Result<TaskEffectOutcome, PerformError> {
    if !seen.state.is_living(wanted.session) {
        return Ok(TaskEffectOutcome::Ok(TaskEffectProduct::Nothing)); // it has been, and its end is recorded
    }
    if !setup::has_begun(home, session_id(&seen.id, wanted.session)) {
        match setup::of_task(home, seen, Path::new(&wanted.workspace.0))? {
            SetupEnd::Ready => {}
            SetupEnd::Unwanted => return Ok(TaskEffectOutcome::Skipped(ENDED.into())),
        }
    }
    let started = start::session(home, seen, wanted);
    // A move that comes behind this one does not wait for an agent that cannot be started now.
    let started = if seen.state.turns.len() > 1 { started.map_err(PerformError::given_up) } else { started };
    started.map(TaskEffectOutcome::Ok)
}

fn carry_out_plain(
    home: &Arc<Home>,
    seen: &TaskSnapshot,
    effect: &str,
    plain: &PlainEffect,
) -> Result<TaskEffectOutcome, PerformError> {
    let done = match plain {
        PlainEffect::SpawnNext {} => {
            queue::begin_next(home, seen, effect)?;
            Ok(TaskEffectProduct::Nothing)
        }
        PlainEffect::PushBranch {} => git::push(home, seen),
        // What is not deleted there has not failed.
        PlainEffect::DeleteRemoteBranch {} => return git::delete_remote_branch(home, seen),
        PlainEffect::CreatePr {} => Ok(TaskEffectProduct::PullRequest(git::create_pr(home, seen)?)),
        PlainEffect::Notify { message } => {
            let notes = home.context.places.task(&seen.state.about.project, &seen.id);
            notify(home, seen.id.as_str(), effect, &notes, message)
        }
    };
    done.map(TaskEffectOutcome::Ok)
}

fn end(home: &Home, seen: &TaskSnapshot, sessions: &[SessionNumber], whole: bool) -> EffectResult {
    for number in sessions {
        let id = session_id(&seen.id, *number)?;
        let ended = match home.asker(&id) {
            Some(process) => home.context.sessions.end_when_gone(&id, &process, GRACE, "the engine moved on"),
            None => home.context.sessions.end(&id, GRACE, "the engine moved on"),
        };
        match ended {
            Ok(_) | Err(SessionFailure::Unknown(_)) => {}
            Err(failure) => return Err(PerformError::by(failure)),
        }
        home.look_for_leaks(&id, seen);
    }
    if let (true, Some(tmux)) = (whole, home.context.sessions.tmux()) {
        // Windows that a person opened beside them go too: the session is the task's.
        // A server that hangs keeps nobody: the agents have ended, and their windows go when it goes on.
        match tmux.kill_key(seen.id.as_str()) {
            Err(hangs @ sluice_os::tmux::TmuxFailure::Hangs { .. }) => tracing::warn!("{}", described(&hangs)),
            ended => ended.map_err(PerformError::by)?,
        }
    }
    Ok(TaskEffectProduct::Nothing)
}

fn tell_worker(home: &Home, seen: &TaskSnapshot, session: SessionNumber, effect: &str, text: &str) -> EffectResult {
    let id = session_id(&seen.id, session)?;
    // An engine that was killed may have said it already.
    let text = match seen.state.workspace.bound() {
        Some(name) => files::told_again(Path::new(&name.0), text),
        None => text.to_owned(),
    };
    // One that has just been started may not have read its prompt yet.
    let say = SayRequest { turn_within: HarnessWatchdogs::STREAMING.start_up, ..SayRequest::new(text).once(effect) };
    match home.context.sessions.say(&id, &say).map_err(PerformError::by)? {
        SayDelivery::Delivered { .. } => Ok(TaskEffectProduct::Nothing),
        SayDelivery::NotDelivered { reason } => Err(reason.into()),
    }
}

/// Tells a person, once: a note in the folder `notes` says that the program which tells has ended well. An engine that is
/// killed between that end and the note tells again, which is better than never; nothing can be asked of the program. What it
/// is about is not told through the same program again.
fn notify(home: &Home, about: &str, effect: &str, notes: &Path, message: &str) -> EffectResult {
    let note = notices::note(notes, effect);
    home.notices.hook_tells(about, effect, message, home.clock.now().0);
    if note.exists() {
        return Ok(TaskEffectProduct::Nothing);
    }
    let command = home.context.config().notify.command.clone();
    let is_nobody_told = command.is_empty();
    let hook = hook(home, about, effect, ScriptProgram::Arguments(command), home.context.places.home())?;
    if is_nobody_told {
        return Ok(TaskEffectProduct::Nothing);
    }
    let (input, timeout) = (cleaned(message).into_bytes(), Some(PROGRAM_LIMIT));
    run_to_end(home, &ProcessScript { input, timeout, ..hook })
        .inspect_err(|_| home.notices.hook_failed(about, effect))?;
    // Told is told: without its note it is told again after a crash, and fails for nothing else.
    let noted = std::fs::create_dir_all(notes).map_err(|error| error.to_string());
    if let Err(why) = noted.and_then(|()| taskfile::write(&note, message.as_bytes()).map_err(|error| described(&error)))
    {
        tracing::warn!("{} cannot be written: {why}", note.display());
    }
    Ok(TaskEffectProduct::Nothing)
}

fn command(
    home: &Home,
    seen: &TaskSnapshot,
    effect: &str,
    workspace: &str,
    text: &str,
    values: &[(String, String)],
) -> EffectResult {
    let mut hook = hook(home, seen.id.as_str(), effect, ScriptProgram::Shell(text.to_owned()), Path::new(workspace))?;
    hook.environment.extend(start::about(home, seen));
    hook.environment.extend(values.iter().cloned());
    run_to_end(home, &hook)?;
    Ok(TaskEffectProduct::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::background::later::HomeTimer;
    use crate::background::threads::ThreadPool;
    use crate::settings::clock::WallClock;
    use crate::settings::log_of_tests;

    #[test]
    fn a_panic_is_an_outcome_and_a_line_in_the_log_and_ends_no_thread() {
        let log = log_of_tests();
        let later = HomeTimer::start(Arc::new(WallClock::default())).unwrap();
        let threads = ThreadPool::new(later);
        let (sender, outcomes) = std::sync::mpsc::channel();
        for number in 0..3 {
            let sender = sender.clone();
            threads.run(move || {
                let outcome = caught("perform of run/x", || panic!("item {number} is missing"));
                sender.send(matches!(outcome, Ok(EffectOutcome::Failed(why)) if why.contains("is missing"))).unwrap();
            });
        }
        assert_eq!(outcomes.iter().take(3).collect::<Vec<_>>(), [true; 3]);
        let said = std::fs::read_to_string(log).unwrap();
        let told =
            said.lines().filter(|line| line.contains("perform of run/x has failed: a fault of Sluice's own: item"));
        assert_eq!(told.count(), 3, "{said}");
        // One that has nothing to report is told too, and its thread goes on.
        threads.run(|| panic!("it has no outcome"));
        let (sender, after) = std::sync::mpsc::channel();
        threads.run(move || sender.send(()).unwrap());
        after.recv().unwrap();
    }
}
