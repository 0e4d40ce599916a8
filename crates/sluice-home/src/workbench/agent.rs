//! Agents without a terminal: their stream read as it comes, and judged by what they say and not by how they exit alone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use sluice_core::lifecycle::Permissions as Allowed;
use sluice_core::recipe::{Data, FailureKind};
use sluice_core::run::{Outcome, Usage};
use sluice_worker::harness::result::result;
use sluice_worker::harness::stream::{Exit, Reader, Usage as Told};
use sluice_worker::harness::{Harness, Invocation, Mode, Permissions, Request};
use sluice_worker::passing::Passing;
use sluice_worker::session::{Cause, End, Failure, Gone, How, Limits, Place, SessionId, Spec, Stream};

use super::environment::{about, inherited, token};
use super::{GRACE, Order, Performed, SIGNALLED, Voice, Workbench, data};
use crate::undone::{Failed, Undone};

/// How often an agent's stream is read while nothing else happens.
const READ: Duration = Duration::from_millis(500);
/// Bytes that are read at once.
const PIECE: usize = 1 << 20;
/// Bytes of complaints that are looked at.
const COMPLAINTS: usize = 16 << 10;
/// The harness of a home that names none.
const DEFAULT_HARNESS: &str = "claude";

/// Starts the agent of an order, or adopts the one that an earlier process started, and waits for its end.
pub(super) fn run(bench: &Workbench, order: &Order, prompt: &str) -> Performed {
    let (config, harnesses) = (bench.config(), bench.harnesses());
    let name = order.harness.as_ref().or(config.defaults.harness.as_ref());
    let harness = harnesses.get(name.map_or(DEFAULT_HARNESS, String::as_str)).map_err(|error| error.to_string())?;
    let id = SessionId::new(&order.name)?;
    let private = bench.places.attempt(&order.name);
    let mut environment = inherited(bench);
    environment.extend(about(bench, order));
    if let Voice::OfThisHome = &order.voice {
        environment.insert("SLUICE_TOKEN".into(), token(&id, &private)?);
    }
    let lookup = |name: &str| environment.get(name).map(OsString::from);
    let permissions = match order.permissions {
        Allowed::Full => Permissions::Full,
        Allowed::Reduced => Permissions::Reduced,
    };
    let request = Request {
        mode: Mode::Headless,
        permissions,
        prompt,
        workspace: &order.folder,
        private: &private,
        sluice: &bench.program,
        environment: &lookup,
    };
    let invocation = harness.invocation(&request).map_err(|error| error.to_string())?;
    let spec = Spec {
        keeper: order.keeper.clone(),
        lease: bench.lease(),
        ..spec(id.clone(), invocation, environment, &order.folder, &private)?
    };
    bench.note_program(harness, &private);
    bench.start_session(&spec).map_err(Undone::by)?;
    let (over, ended) = channel();
    bench.sessions.watch(&id, move |_, gone| drop(over.send(gone))).map_err(Undone::by)?;
    follow(bench, &id, harness, &ended)
}

fn spec(
    id: SessionId,
    invocation: Invocation,
    mut environment: BTreeMap<String, String>,
    folder: &Path,
    private: &Path,
) -> Result<Spec, Undone> {
    invocation.prepare().map_err(Undone::at("cannot prepare", private))?;
    let input: Option<PathBuf> = match &invocation.stdin {
        None => None,
        Some(bytes) => {
            let path = private.join("stdin");
            let written = std::fs::create_dir_all(private).and_then(|()| std::fs::write(&path, bytes));
            written.map_err(Undone::at("cannot prepare", private))?;
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
    Ok(Spec {
        id,
        arguments,
        environment,
        folder,
        place: Place::Headless { input },
        typed: None,
        limits: Limits::default(),
        keeper: None,
        lease: None,
        may_leave: false,
    })
}

/// Reads an agent's stream until it is over. One that says nothing for too long, or does not end after its last words,
/// is ended. Time is counted by looks: none of it passes while the agent is paused, or while nobody can look.
fn follow(bench: &Workbench, id: &SessionId, harness: &Harness, ended: &Receiver<Result<Gone, Failure>>) -> Performed {
    let mut reader = Reader::new(harness.output);
    let (mut at, mut quiet, mut finished) = (0, Duration::ZERO, Duration::ZERO);
    let mut silent = None;
    let gone = loop {
        let over = match ended.recv_timeout(READ) {
            Ok(gone) => Some(gone.map_err(Undone::by)?),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err("nobody saw how it ended".into()),
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
fn read_on(bench: &Workbench, id: &SessionId, reader: &mut Reader, at: &mut u64) -> Result<(), Undone> {
    loop {
        match bench.sessions.output_from(id, Stream::Output, *at, PIECE) {
            Ok(chunk) if chunk.bytes.is_empty() => return Ok(()),
            Ok(chunk) => {
                *at = chunk.next();
                reader.feed(&chunk.bytes);
            }
            Err(failure) if failure.is_passing() => return Err(Undone::by(failure)),
            Err(_) => return Ok(()), // it has said nothing, or nothing more can be read of it
        }
    }
}

fn end(bench: &Workbench, id: &SessionId) -> Result<(), Undone> {
    bench.sessions.end(id, GRACE, "a watchdog").map(drop).map_err(Undone::by)
}

/// What became of it: by its last words, and by how it ended.
fn judged(bench: &Workbench, id: &SessionId, reader: Reader, gone: &Gone, silent: Option<String>) -> Performed {
    let lost = |why: String| Some((FailureKind::Lost, why));
    let (exit, broken) = match &gone.how {
        How::Lost { why } => (Exit::Signal(9), lost(why.clone())),
        How::Exited(record) => match (&record.end, record.cause) {
            (End::Code(_) | End::Signal(_) | End::NotStarted(_), Cause::Unkept) if !reader.is_final() => {
                (Exit::Signal(9), lost("its worker was away for too long".to_owned()))
            }
            // Many programs make an exit status of the signal that ends them. Its last words count, not our signal.
            (End::Code(_), Cause::Asked) if reader.is_final() => (Exit::Signal(15), None),
            (End::Code(code), _) => (Exit::Code(*code), None),
            (End::Signal(signal), Cause::Itself) if !reader.is_final() => {
                (Exit::Signal(*signal), Some((FailureKind::Crashed, format!("signal {signal} ended it"))))
            }
            (End::Signal(signal), _) => (Exit::Signal(*signal), None),
            // That is no accident: it would not start the next time either.
            (End::NotStarted(why), _) => {
                (Exit::Code(127), Some((FailureKind::Failed, format!("it could not be started: {why}"))))
            }
        },
    };
    let complaints = bench.sessions.output_tail(id, Stream::Errors, COMPLAINTS).map(|it| it.bytes).unwrap_or_default();
    let ended = reader.finish(exit, &complaints);
    let said = result(&ended.text);
    let outcome = Box::new(Outcome {
        summary: said.summary,
        result: said.result,
        output: said.value.as_ref().map_or_else(|| Data::Text(ended.text.clone()), data),
        exit_code: Some(match exit {
            Exit::Code(code) => code,
            Exit::Signal(signal) => SIGNALLED + signal,
        }),
        stderr: Some(String::from_utf8_lossy(&complaints).into_owned()),
        commit: None,
        usage: used(ended.usage),
    });
    match (silent, broken, ended.error) {
        (Some(error), ..) => Err(Failed { kind: FailureKind::Timeout, error, outcome }.into()),
        (None, Some((kind, error)), _) => Err(Failed { kind, error, outcome }.into()),
        (None, None, Some(error)) => Err(Failed { kind: FailureKind::Failed, error, outcome }.into()),
        (None, None, None) => Ok(*outcome),
    }
}

/// What an agent used up, if its program tells anything of it.
fn used(told: Told) -> Option<Box<Usage>> {
    let Told { input, cached, output, total, cost } = told;
    (told != Told::default()).then(|| Box::new(Usage { input, cached, output, total, cost }))
}
