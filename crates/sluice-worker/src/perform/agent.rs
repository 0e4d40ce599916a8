//! Agents without a terminal: their stream read as it comes, and judged by what they say and not by how they exit alone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use sluice_core::lifecycle::AgentPermissions;
use sluice_core::recipe::{Data, FailureKind};
use sluice_core::run::{AgentUsage, StepOutcome};
use sluice_os::harness::result::result;
use sluice_os::harness::stream::{HarnessExit, HarnessReader, HarnessUsage};
use sluice_os::harness::{
    Harness, HarnessInvocation, HarnessMode, HarnessPermissions, HarnessRequest, HarnessRetry, HarnessScene,
};
use sluice_os::passing::PassingError;
use sluice_os::session::{
    AgentEnd, AgentEndCause, EndedSession, SessionEnding, SessionFailure, SessionId, SessionLimits, SessionPlace,
    SessionSpec, SessionStream,
};

use super::environment::{about, inherited, token};
use super::{GRACE, LocalOrder, PerformContext, PerformResult, SIGNALLED, StepIdentity};
use crate::undone::{PerformError, PerformFailure};
use crate::value::data;

/// How often an agent's stream is read while nothing else happens.
const READ: Duration = Duration::from_millis(500);
/// Bytes that are read at once.
const PIECE: usize = 1 << 20;
/// Bytes of complaints that are looked at.
const COMPLAINTS: usize = 16 << 10;
/// The harness of a home that names none.
pub const DEFAULT_HARNESS: &str = "claude";

/// Starts the agent of an order, or adopts the one that an earlier process started, and waits for its end.
pub(super) fn run(bench: &PerformContext, order: &LocalOrder, prompt: &str) -> PerformResult {
    let (config, harnesses) = (bench.config(), bench.harnesses());
    let name = order.harness.as_ref().or(config.defaults.harness.as_ref());
    let harness = harnesses.get(name.map_or(DEFAULT_HARNESS, String::as_str)).map_err(|error| error.to_string())?;
    let id = SessionId::new(&order.name)?;
    let private = bench.places.attempt(&order.name);
    let mut environment = inherited(bench);
    environment.extend(about(bench, order));
    if let StepIdentity::OfThisHome = &order.voice {
        environment.insert("SLUICE_TOKEN".into(), token(&id, &private)?);
    }
    let lookup = |name: &str| environment.get(name).map(OsString::from);
    let permissions = match order.permissions {
        AgentPermissions::Full => HarnessPermissions::Full,
        AgentPermissions::Reduced => HarnessPermissions::Reduced,
    };
    let request = HarnessRequest {
        mode: HarnessMode::Headless,
        permissions,
        prompt,
        workspace: &order.folder,
        private: &private,
        sluice: &bench.program,
        session: None,
        environment: &lookup,
    };
    let invocation = harness.invocation(&request).map_err(|error| error.to_string())?;
    // One that was asked for before is adopted, whatever has changed since.
    if !bench.sessions.is_known(&id) {
        let arguments: Vec<String> = invocation.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let scene = HarnessScene {
            mode: HarnessMode::Headless,
            arguments: &arguments,
            environment: &environment,
            workspace: &order.folder,
        };
        let then = format!("`sluice run retry {} {}`", order.run, order.step);
        harness.refusal(&scene, HarnessRetry::Command(&then)).map_or(Ok(()), Err)?;
    }
    let spec = SessionSpec {
        keeper: order.keeper.clone(),
        lease: bench.lease(),
        ..spec(id.clone(), invocation, environment, &order.folder, &private)?
    };
    bench.note_program(harness, &private);
    bench.start_session(&spec).map_err(PerformError::by)?;
    let (over, ended) = channel();
    bench.sessions.watch(&id, move |_, gone| drop(over.send(gone))).map_err(PerformError::by)?;
    follow(bench, &id, harness, &ended)
}

fn spec(
    id: SessionId,
    invocation: HarnessInvocation,
    mut environment: BTreeMap<String, String>,
    folder: &Path,
    private: &Path,
) -> Result<SessionSpec, PerformError> {
    invocation.prepare().map_err(PerformError::at("cannot prepare", private))?;
    let input: Option<PathBuf> = match &invocation.stdin {
        None => None,
        Some(bytes) => {
            let path = private.join("stdin");
            let written = std::fs::create_dir_all(private).and_then(|()| std::fs::write(&path, bytes));
            written.map_err(PerformError::at("cannot prepare", private))?;
            Some(path)
        }
    };
    for gone in &invocation.env_unset {
        environment.remove(gone);
    }
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    environment.extend(invocation.env_set.iter().map(|(name, value)| (name.clone(), text(value))));
    let arguments = invocation.argv.iter().map(text).collect();
    let folder = folder.to_owned();
    Ok(SessionSpec {
        id,
        arguments,
        environment,
        folder,
        place: SessionPlace::Headless { input },
        typed: None,
        limits: SessionLimits::default(),
        keeper: None,
        lease: None,
        may_leave: false,
    })
}

/// Reads an agent's stream until it is over. One that says nothing for too long, or does not end after its last words,
/// is ended. Time is counted by looks: none of it passes while the agent is paused, or while nobody can look.
fn follow(
    bench: &PerformContext,
    id: &SessionId,
    harness: &Harness,
    ended: &Receiver<Result<EndedSession, SessionFailure>>,
) -> PerformResult {
    let mut reader = HarnessReader::new(harness.output);
    let (mut at, mut quiet, mut finished) = (0, Duration::ZERO, Duration::ZERO);
    let mut silent = None;
    let gone = loop {
        let over = match ended.recv_timeout(READ) {
            Ok(gone) => Some(gone.map_err(PerformError::by)?),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err("how it ended is not known".into()),
        };
        let before = at;
        let read = read_on(bench, id, &mut reader, &mut at);
        let is_seen = read.is_ok() && !bench.sessions.is_paused(id);
        let passed = if is_seen { READ } else { Duration::ZERO };
        quiet = if at == before { quiet + passed } else { Duration::ZERO };
        // What looked like the last words was not, if it goes on: pi tries again after a failure.
        finished = if reader.is_final() { finished + passed } else { Duration::ZERO };
        if let Some(gone) = over {
            // What it said last decides; if that cannot be read now, all of it is read again.
            read?;
            break gone;
        }
        let limit = if at == 0 { harness.watchdogs.start_up } else { harness.watchdogs.silence };
        if finished > harness.watchdogs.after_result {
            end(bench, id)?;
        } else if quiet > limit && silent.is_none() {
            silent = Some(format!("it said nothing for {} seconds", limit.as_secs()));
            end(bench, id)?;
        }
    };
    judged(bench, id, reader, &gone, silent)
}

/// Reads what an agent has said since. An error says that it cannot be read at the moment.
fn read_on(
    bench: &PerformContext,
    id: &SessionId,
    reader: &mut HarnessReader,
    at: &mut u64,
) -> Result<(), PerformError> {
    loop {
        match bench.sessions.output_from(id, SessionStream::Output, *at, PIECE) {
            Ok(chunk) if chunk.bytes.is_empty() => return Ok(()),
            Ok(chunk) => {
                *at = chunk.next();
                reader.feed(&chunk.bytes);
            }
            Err(failure) if failure.is_passing() => return Err(PerformError::by(failure)),
            Err(_) => return Ok(()), // it has said nothing, or nothing more can be read of it
        }
    }
}

fn end(bench: &PerformContext, id: &SessionId) -> Result<(), PerformError> {
    bench.sessions.end(id, GRACE, "a watchdog").map(drop).map_err(PerformError::by)
}

/// What became of it: by its last words, and by how it ended.
fn judged(
    bench: &PerformContext,
    id: &SessionId,
    reader: HarnessReader,
    gone: &EndedSession,
    silent: Option<String>,
) -> PerformResult {
    let lost = |why: String| Some((FailureKind::Lost, why));
    let (exit, broken) = match &gone.how {
        SessionEnding::Lost { why } => (HarnessExit::Signal(9), lost(why.clone())),
        SessionEnding::Exited(record) => match (&record.end, record.cause) {
            (AgentEnd::Code(_) | AgentEnd::Signal(_) | AgentEnd::NotStarted(_), AgentEndCause::Unkept)
                if !reader.is_final() =>
            {
                (HarnessExit::Signal(9), lost("its worker was away for too long".to_owned()))
            }
            // Many programs make an exit status of the signal that ends them. Its last words count, not our signal.
            (AgentEnd::Code(_), AgentEndCause::Asked) if reader.is_final() => (HarnessExit::Signal(15), None),
            (AgentEnd::Code(code), _) => (HarnessExit::Code(*code), None),
            (AgentEnd::Signal(signal), AgentEndCause::Itself) if !reader.is_final() => {
                (HarnessExit::Signal(*signal), Some((FailureKind::Crashed, format!("signal {signal} ended it"))))
            }
            (AgentEnd::Signal(signal), _) => (HarnessExit::Signal(*signal), None),
            // That is no accident: it would not start the next time either.
            (AgentEnd::NotStarted(why), _) => {
                (HarnessExit::Code(127), Some((FailureKind::Failed, format!("it could not be started: {why}"))))
            }
        },
    };
    let complaints =
        bench.sessions.output_tail(id, SessionStream::Errors, COMPLAINTS).map(|it| it.bytes).unwrap_or_default();
    let ended = reader.finish(exit, &complaints);
    let said = result(&ended.text);
    let outcome = Box::new(StepOutcome {
        summary: said.summary,
        result: said.result,
        output: said.value.as_ref().map_or_else(|| Data::Text(ended.text.clone()), data),
        exit_code: Some(match exit {
            HarnessExit::Code(code) => code,
            HarnessExit::Signal(signal) => SIGNALLED + signal,
        }),
        stderr: Some(String::from_utf8_lossy(&complaints).into_owned()),
        commit: None,
        usage: used(ended.usage),
    });
    match (silent, broken, ended.error) {
        (Some(error), ..) => Err(PerformFailure { kind: FailureKind::Timeout, error: error.into(), outcome }.into()),
        (None, Some((kind, error)), _) => Err(PerformFailure { kind, error: error.into(), outcome }.into()),
        (None, None, Some(error)) => {
            Err(PerformFailure { kind: FailureKind::Failed, error: error.into(), outcome }.into())
        }
        (None, None, None) => Ok(*outcome),
    }
}

/// What an agent used up, if its program tells anything of it.
fn used(told: HarnessUsage) -> Option<Box<AgentUsage>> {
    let HarnessUsage { input, cached, output, total, cost } = told;
    (told != HarnessUsage::default()).then(|| Box::new(AgentUsage { input, cached, output, total, cost }))
}
