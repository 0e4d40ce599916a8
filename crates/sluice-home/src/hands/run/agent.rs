//! Agents of a run: without a terminal, their stream read as it comes, and judged by what they say and not by how they
//! exit alone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use sluice_core::lifecycle::Permissions as Allowed;
use sluice_core::recipe::{Data, FailureKind};
use sluice_core::run::{Outcome, Perform};
use sluice_worker::harness::result::result;
use sluice_worker::harness::stream::{Exit, Reader};
use sluice_worker::harness::{Harness, Invocation, Mode, Permissions, Request};
use sluice_worker::session::{Cause, End, Failure, Gone, How, Limits, Place, SessionId, Spec, Stream};

use super::super::{GRACE, start};
use super::{Failed, Performed, data, workspace};
use crate::ground::Ground;
use crate::projects::described;
use crate::runs::SeenRun;

/// How often an agent's stream is read while nothing else happens.
const READ: Duration = Duration::from_millis(500);
/// Bytes that are read at once.
const PIECE: usize = 1 << 20;
/// Bytes of complaints that are looked at.
const COMPLAINTS: usize = 16 << 10;
/// The harness of a home that names none.
const DEFAULT_HARNESS: &str = "claude";

/// An agent that does the work of a step, or of a part of it.
pub(super) fn work(ground: &Arc<Ground>, seen: &SeenRun, wanted: &Perform, name: &str, prompt: &str) -> Performed {
    if !workspace::wants_own(seen, wanted) {
        let done = agent(ground, seen, wanted, name, prompt, Path::new(seen.folder()), wanted.permissions);
        workspace::save(ground, seen, wanted);
        return done;
    }
    let own = workspace::own(ground, seen, wanted, name)?;
    let done = agent(ground, seen, wanted, name, prompt, &own.folder, wanted.permissions);
    match done {
        Ok(outcome) => match own.merge(ground, seen, wanted) {
            Ok(()) => Ok(outcome),
            Err(failed) => Err(Failed { outcome: Box::new(outcome), ..failed }),
        },
        Err(failed) => {
            own.discard(seen);
            Err(failed)
        }
    }
}

/// An arbiter: it sees a copy of the work, and that the work itself is as it was is looked at afterwards.
pub(super) fn judge(ground: &Arc<Ground>, seen: &SeenRun, wanted: &Perform, name: &str, prompt: &str) -> Performed {
    if !workspace::has_worktree(seen) {
        return agent(ground, seen, wanted, name, prompt, Path::new(seen.folder()), Allowed::Reduced);
    }
    let pool = workspace::pool(ground, Path::new(&seen.state.given.origin.root))?;
    let standing = || pool.repository().standing(Path::new(seen.folder())).map_err(|error| described(&error));
    // One that an earlier engine sent may have touched the work by now: the work was committed before it began.
    let is_adopted = !matches!(ground.sessions.adopt(&SessionId::new(name)?), Err(Failure::Unknown(_)));
    let (found, was_touched) = standing().map(|(head, dirty)| (head, is_adopted && dirty))?;
    let copy = workspace::own(ground, seen, wanted, name)?;
    let before = standing()?;
    let done = agent(ground, seen, wanted, name, prompt, &copy.folder, Allowed::Reduced);
    copy.discard(seen);
    if standing()? == before && !was_touched {
        return done;
    }
    let branch = format!("sluice/arbiter-{}", name.replace('.', "-"));
    let work = if was_touched { &found } else { &before.0 };
    let put_back = pool.repository().put_back(Path::new(seen.folder()), work, &branch);
    Err(Failed::because(match put_back {
        Ok(()) => format!(
            "the arbiter changed the work, which it may not; the work was put back, and what it changed is on `{branch}`"
        ),
        Err(error) => {
            format!("the arbiter changed the work, which it may not, and it cannot be put back: {}", described(&error))
        }
    }))
}

fn agent(
    ground: &Arc<Ground>,
    seen: &SeenRun,
    wanted: &Perform,
    name: &str,
    prompt: &str,
    folder: &Path,
    allowed: Allowed,
) -> Performed {
    let harness = harness(ground, seen, wanted)?;
    let id = SessionId::new(name)?;
    let private = ground.places.attempt(name);
    let mut environment = start::inherited(ground);
    environment.extend(start::about_run(ground, &seen.setting(), wanted));
    environment.insert("SLUICE_TOKEN".into(), start::token(&id, &private)?);
    let lookup = |name: &str| environment.get(name).map(OsString::from);
    let permissions = match allowed {
        Allowed::Full => Permissions::Full,
        Allowed::Reduced => Permissions::Reduced,
    };
    let request = Request {
        mode: Mode::Headless,
        permissions,
        prompt,
        workspace: folder,
        private: &private,
        sluice: &ground.program,
        environment: &lookup,
    };
    let invocation = harness.invocation(&request).map_err(|error| error.to_string())?;
    let spec = spec(id.clone(), invocation, environment, folder, &private)?;
    ground.sessions.start(&spec).map_err(|failure| described(&failure))?;
    let (over, ended) = channel();
    let watched =
        ground.sessions.watch(&id, move |_, gone| drop(over.send(gone.map_err(|failure| described(&failure)))));
    watched.map_err(|failure| described(&failure))?;
    follow(ground, &id, harness, &ended)
}

/// The agent program of a step: its own, the run's, the home's.
fn harness<'a>(ground: &'a Ground, seen: &SeenRun, wanted: &Perform) -> Result<&'a Harness, String> {
    let of_run = Some(&seen.state.given.origin.harness).filter(|name| !name.is_empty());
    let name = wanted.harness.as_ref().or(of_run).or(ground.config.defaults.harness.as_ref());
    ground.harnesses.get(name.map_or(DEFAULT_HARNESS, String::as_str)).map_err(|error| error.to_string())
}

fn spec(
    id: SessionId,
    invocation: Invocation,
    mut environment: BTreeMap<String, String>,
    folder: &Path,
    private: &Path,
) -> Result<Spec, String> {
    let unprepared = |error: std::io::Error| format!("cannot prepare {}: {error}", private.display());
    invocation.prepare().map_err(unprepared)?;
    let input: Option<PathBuf> = match &invocation.stdin {
        None => None,
        Some(bytes) => {
            let path = private.join("stdin");
            std::fs::create_dir_all(private).and_then(|()| std::fs::write(&path, bytes)).map_err(unprepared)?;
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
    Ok(Spec { id, arguments, environment, folder, place: Place::Headless { input }, limits: Limits::default() })
}

/// Reads an agent's stream until it is over. One that says nothing for too long, or does not end after its last words,
/// is ended.
fn follow(ground: &Ground, id: &SessionId, harness: &Harness, ended: &Receiver<Result<Gone, String>>) -> Performed {
    let mut reader = Reader::new(harness.output);
    let (mut at, mut heard, mut finished) = (0, Instant::now(), None);
    let mut silent = None;
    let gone = loop {
        let over = match ended.recv_timeout(READ) {
            Ok(gone) => Some(gone?),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(Failed::because("nobody saw how it ended")),
        };
        let before = at;
        while let Ok(chunk) = ground.sessions.output_from(id, Stream::Output, at, PIECE) {
            if chunk.bytes.is_empty() {
                break;
            }
            at = chunk.next();
            reader.feed(&chunk.bytes);
        }
        if at != before {
            heard = Instant::now();
        }
        if let Some(gone) = over {
            break gone;
        }
        let limit = if at == 0 { harness.watchdogs.start_up } else { harness.watchdogs.silence };
        let now = Instant::now();
        if reader.is_final() && now - *finished.get_or_insert(now) > harness.watchdogs.after_result {
            end(ground, id)?;
        } else if heard.elapsed() > limit && silent.is_none() {
            silent = Some(format!("it said nothing for {} seconds", limit.as_secs()));
            end(ground, id)?;
        }
    };
    judged(ground, id, reader, &gone, silent)
}

fn end(ground: &Ground, id: &SessionId) -> Result<(), Failed> {
    ground.sessions.end(id, GRACE, "a watchdog").map(drop).map_err(|failure| Failed::because(described(&failure)))
}

/// What became of it: by its last words, and by how it ended.
fn judged(ground: &Ground, id: &SessionId, reader: Reader, gone: &Gone, silent: Option<String>) -> Performed {
    let (exit, crashed) = match &gone.how {
        How::Lost { why } => (Exit::Signal(9), Some(why.clone())),
        How::Exited(record) => match (&record.end, record.cause) {
            (End::Code(code), _) => (Exit::Code(*code), None),
            (End::Signal(signal), Cause::Itself) if !reader.is_final() => {
                (Exit::Signal(*signal), Some(format!("signal {signal} ended it")))
            }
            (End::Signal(signal), _) => (Exit::Signal(*signal), None),
            (End::NotStarted(why), _) => (Exit::Code(127), Some(format!("it could not be started: {why}"))),
        },
    };
    let complaints = ground.sessions.output_tail(id, Stream::Errors, COMPLAINTS).map(|it| it.bytes).unwrap_or_default();
    let ended = reader.finish(exit, &complaints);
    let said = result(&ended.text);
    let outcome = Box::new(Outcome {
        summary: said.summary,
        result: said.result,
        output: said.value.as_ref().map_or_else(|| Data::Text(ended.text.clone()), data),
        exit_code: if let Exit::Code(code) = exit { Some(code) } else { None },
        stderr: Some(String::from_utf8_lossy(&complaints).into_owned()),
        commit: None,
    });
    match (silent, crashed, ended.error) {
        (Some(error), ..) => Err(Failed { kind: FailureKind::Timeout, error, outcome }),
        (None, Some(error), _) => Err(Failed { kind: FailureKind::Crashed, error, outcome }),
        (None, None, Some(error)) => Err(Failed { kind: FailureKind::Failed, error, outcome }),
        (None, None, None) => Ok(*outcome),
    }
}
