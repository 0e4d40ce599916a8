//! Scripts and gates: a shell in a folder, with the values in its environment.
//!
//! On the engine's own machine it is a child of the engine's, and one that an earlier engine left is ended before it is run
//! again. Elsewhere somebody must keep it, so it is a session: it is paused, ended and adopted as an agent is.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::channel;

use sluice_core::recipe::{Data, FailureKind};
use sluice_core::run::Outcome;
use sluice_core::run::effect::Script as Wanted;
use sluice_worker::harness::result::result;
use sluice_worker::process::{Cancel, Captured, Ending, Program, Script, kill_leftover};
use sluice_worker::session::{Cause, End, How, Keeper, Limits, Place, SessionId, Spec, Stream};

use super::environment::{about, inherited};
use super::{GRACE, Order, Performed, SIGNALLED, Workbench};
use crate::undone::{Failed, Undone};

/// Bytes of what a command prints that are kept in the run; all of a longer output's beginning and end.
const KEPT: usize = 1 << 20;
/// The signal that ends what is not wanted any more.
const TERMINATED: i32 = 15;
/// How much of it is a summary.
const SUMMARY: usize = 2000;

/// A command that has ended.
struct Ended {
    ending: Ending,
    stdout: String,
    stderr: String,
}

/// Runs the command of an order.
pub(super) fn run(bench: &Workbench, order: &Order, script: &Wanted) -> Performed {
    let mut environment = inherited(bench);
    environment.extend(about(bench, order));
    environment.extend(script.environment.iter().cloned());
    let text = script.script.clone();
    let Ended { ending, stdout, stderr } = match &order.keeper {
        None => here(bench, order, text, environment)?,
        Some(keeper) => kept(bench, order, text, environment, keeper)?,
    };
    let found = result(&stdout);
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.map(|line| format!(": {}", line.trim())).unwrap_or_default();
    let outcome = Outcome {
        summary: stdout.trim().chars().take(SUMMARY).collect(),
        result: found.result,
        output: Data::Text(stdout.strip_suffix('\n').unwrap_or(&stdout).to_owned()),
        exit_code: Some(match ending {
            Ending::Code(code) => code,
            Ending::Signal(signal) => SIGNALLED + signal,
            Ending::TimedOut | Ending::Cancelled => SIGNALLED + TERMINATED,
        }),
        stderr: Some(stderr),
        ..Outcome::default()
    };
    let (kind, what) = match ending {
        Ending::Code(0) => return Ok(outcome),
        Ending::Code(code) => (FailureKind::Failed, format!("it ended with exit code {code}")),
        Ending::Signal(signal) => (FailureKind::Crashed, format!("signal {signal} ended it")),
        Ending::TimedOut => (FailureKind::Timeout, "its time was over".into()),
        Ending::Cancelled => (FailureKind::Failed, "it was ended".into()),
    };
    Err(Failed { kind, error: format!("{what}{last}"), outcome: Box::new(outcome) }.into())
}

/// As a child of ours. One that an earlier process left running is ended first.
fn here(
    bench: &Workbench,
    order: &Order,
    text: String,
    environment: BTreeMap<String, String>,
) -> Result<Ended, Undone> {
    let name = &order.name;
    let record = bench.record(name, "step");
    kill_leftover(&record).map_err(Undone::by)?;
    let cancel = Cancel::new().map_err(Undone::by)?;
    let _running = bench.performs(name, cancel.clone());
    let script = Script {
        program: Program::Shell(text),
        environment,
        folder: order.folder.clone(),
        input: Vec::new(),
        timeout: None, // the run has its own, and ends it
        grace: GRACE,
        output_limit: KEPT,
        output_file: printed(bench, name),
        record,
        speaks_for: Some(name.clone()),
        ward: None,
    };
    let ended = bench.run_script(&script, &cancel).map_err(Undone::by)?;
    Ok(Ended { ending: ended.ending, stdout: ended.stdout.text(), stderr: ended.stderr.text() })
}

/// As a session. One that an earlier process started is adopted.
fn kept(
    bench: &Workbench,
    order: &Order,
    text: String,
    environment: BTreeMap<String, String>,
    keeper: &Keeper,
) -> Result<Ended, Undone> {
    let id = SessionId::new(&order.name)?;
    let spec = Spec {
        id: id.clone(),
        arguments: vec!["/bin/sh".to_owned(), "-c".to_owned(), text],
        environment,
        folder: order.folder.clone(),
        place: Place::Headless { input: None },
        typed: None,
        limits: Limits::default(),
        keeper: Some(keeper.clone()),
        lease: None,
        may_leave: true,
    };
    bench.sessions.start(&spec).map_err(Undone::by)?;
    let (over, ended) = channel();
    bench.sessions.watch(&id, move |_, gone| drop(over.send(gone))).map_err(Undone::by)?;
    let gone = ended.recv().map_err(|_| Failed::because("nobody saw how it ended"))?.map_err(Undone::by)?;
    let lost = |error: String| Failed { kind: FailureKind::Lost, error, outcome: Box::default() };
    let ending = match gone.how {
        How::Lost { why } => return Err(lost(why).into()),
        How::Exited(record) => match (record.end, record.cause) {
            (End::Code(_) | End::Signal(_) | End::NotStarted(_), Cause::Unkept) => {
                return Err(lost("its worker was away for too long".to_owned()).into());
            }
            (End::NotStarted(why), _) => return Err(format!("it could not be started: {why}").into()),
            (End::Code(_) | End::Signal(_), Cause::Asked) => Ending::Cancelled,
            (End::Code(_) | End::Signal(_), Cause::TimeLimit) => Ending::TimedOut,
            (End::Code(code), Cause::Itself | Cause::TerminalGone) => Ending::Code(code),
            (End::Signal(signal), Cause::Itself | Cause::TerminalGone) => Ending::Signal(signal),
        },
    };
    let said = |stream| said(bench, &id, stream).map(|said| said.text());
    Ok(Ended { ending, stdout: said(Stream::Output)?, stderr: said(Stream::Errors)? })
}

/// What a session printed, as far as a run keeps it.
fn said(bench: &Workbench, id: &SessionId, stream: Stream) -> Result<Captured, Undone> {
    let mut head = bench.sessions.output_from(id, stream, 0, KEPT / 2).map_err(Undone::by)?;
    let tail = bench.sessions.output_tail(id, stream, KEPT / 2).map_err(Undone::by)?;
    let both = usize::try_from(head.next().saturating_sub(tail.start)).unwrap_or(usize::MAX);
    let omitted = tail.start.saturating_sub(head.next());
    if omitted > 0 {
        return Ok(Captured { head: head.bytes, omitted, tail: tail.bytes });
    }
    head.bytes.extend(tail.bytes.iter().skip(both));
    Ok(Captured { head: head.bytes, ..Captured::default() })
}

/// Where the output of a script goes that is longer than a run keeps.
fn printed(bench: &Workbench, name: &str) -> Option<PathBuf> {
    let folder = bench.places.printed();
    std::fs::create_dir_all(&folder).ok()?;
    // Its last part is put in place of an ending, so the name gets one.
    Some(folder.join(format!("{name}.script")))
}
