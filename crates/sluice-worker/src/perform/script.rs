//! Scripts and gates: a shell in a folder, with the values in its environment.
//!
//! On the engine's own machine it is a child of the engine's, and one that an earlier engine left is ended before it is run
//! again. Elsewhere somebody must keep it, so it is a session: it is paused, ended and adopted as an agent is.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::channel;

use sluice_core::recipe::{Data, FailureKind};
use sluice_core::run::StepOutcome;
use sluice_core::run::effect::RunScript;
use sluice_os::harness::result::result;
use sluice_os::process::{CapturedOutput, ProcessEnding, ProcessScript, ScriptCancel, ScriptProgram, kill_leftover};
use sluice_os::session::{
    AgentEnd, AgentEndCause, SessionEnding, SessionId, SessionKeeper, SessionLimits, SessionPlace, SessionSpec,
    SessionStream,
};

use super::environment::{about, inherited};
use super::{GRACE, LocalOrder, PerformContext, PerformResult, SIGNALLED};
use crate::undone::{PerformError, PerformFailure};

/// Bytes of what a command prints that are kept in the run; all of a longer output's beginning and end.
const KEPT: usize = 1 << 20;
/// The signal that ends what is not wanted any more.
const TERMINATED: i32 = 15;
const LONGEST_SUMMARY: usize = 2000;

struct EndedCommand {
    ending: ProcessEnding,
    stdout: String,
    stderr: String,
}

pub(super) fn run(bench: &PerformContext, order: &LocalOrder, script: &RunScript) -> PerformResult {
    let mut environment = inherited(bench);
    environment.extend(about(bench, order));
    environment.extend(script.environment.iter().cloned());
    let text = script.script.clone();
    let EndedCommand { ending, stdout, stderr } = match &order.keeper {
        None => here(bench, order, text, environment)?,
        Some(keeper) => kept(bench, order, text, environment, keeper)?,
    };
    let found = result(&stdout);
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.map(|line| format!(": {}", line.trim())).unwrap_or_default();
    let outcome = StepOutcome {
        summary: stdout.trim().chars().take(LONGEST_SUMMARY).collect(),
        result: found.result,
        output: Data::Text(stdout.strip_suffix('\n').unwrap_or(&stdout).to_owned()),
        exit_code: Some(match ending {
            ProcessEnding::Code(code) => code,
            ProcessEnding::Signal(signal) => SIGNALLED + signal,
            ProcessEnding::TimedOut | ProcessEnding::Cancelled => SIGNALLED + TERMINATED,
        }),
        stderr: Some(stderr),
        ..StepOutcome::default()
    };
    let (kind, what) = match ending {
        ProcessEnding::Code(0) => return Ok(outcome),
        ProcessEnding::Code(code) => (FailureKind::Failed, format!("it ended with exit code {code}")),
        ProcessEnding::Signal(signal) => (FailureKind::Crashed, format!("signal {signal} ended it")),
        ProcessEnding::TimedOut => (FailureKind::Timeout, "its time was over".into()),
        ProcessEnding::Cancelled => (FailureKind::Failed, "it was ended".into()),
    };
    Err(PerformFailure { kind, error: format!("{what}{last}").into(), outcome: Box::new(outcome) }.into())
}

/// As a child of ours. One that an earlier process left running is ended first.
fn here(
    bench: &PerformContext,
    order: &LocalOrder,
    text: String,
    environment: BTreeMap<String, String>,
) -> Result<EndedCommand, PerformError> {
    let name = &order.name;
    let record = bench.record(name, "step");
    kill_leftover(&record).map_err(PerformError::by)?;
    let cancel = ScriptCancel::new().map_err(PerformError::by)?;
    let _running = bench.performs(name, cancel.clone());
    let script = ProcessScript {
        program: ScriptProgram::Shell(text),
        environment,
        folder: order.folder.clone(),
        input: Vec::new(),
        timeout: None, // the run has its own, and ends it
        grace: GRACE,
        output_limit: KEPT,
        output_file: Some(printed(bench, name)),
        record,
        speaks_for: Some(name.clone()),
        ward: None,
    };
    let ended = bench.run_script(&script, &cancel).map_err(PerformError::by)?;
    Ok(EndedCommand { ending: ended.ending, stdout: ended.stdout.text(), stderr: ended.stderr.text() })
}

/// As a session. One that an earlier process started is adopted.
fn kept(
    bench: &PerformContext,
    order: &LocalOrder,
    text: String,
    environment: BTreeMap<String, String>,
    keeper: &SessionKeeper,
) -> Result<EndedCommand, PerformError> {
    let id = SessionId::new(&order.name)?;
    let spec = SessionSpec {
        id: id.clone(),
        arguments: vec!["/bin/sh".to_owned(), "-c".to_owned(), text],
        environment,
        folder: order.folder.clone(),
        place: SessionPlace::Headless { input: None },
        typed: None,
        limits: SessionLimits::default(),
        keeper: Some(keeper.clone()),
        lease: None,
        may_leave: true,
    };
    bench.sessions.start(&spec).map_err(PerformError::by)?;
    let (over, ended) = channel();
    bench.sessions.watch(&id, move |_, gone| drop(over.send(gone))).map_err(PerformError::by)?;
    let gone =
        ended.recv().map_err(|_| PerformFailure::because("how it ended is not known"))?.map_err(PerformError::by)?;
    let lost = |error: String| PerformFailure { kind: FailureKind::Lost, error: error.into(), outcome: Box::default() };
    let ending = match gone.how {
        SessionEnding::Lost { why } => return Err(lost(why).into()),
        SessionEnding::Exited(record) => match (record.end, record.cause) {
            (AgentEnd::Code(_) | AgentEnd::Signal(_) | AgentEnd::NotStarted(_), AgentEndCause::Unkept) => {
                return Err(lost("its worker was away for too long".to_owned()).into());
            }
            (AgentEnd::NotStarted(why), _) => return Err(format!("it could not be started: {why}").into()),
            (AgentEnd::Code(_) | AgentEnd::Signal(_), AgentEndCause::Asked) => ProcessEnding::Cancelled,
            (AgentEnd::Code(_) | AgentEnd::Signal(_), AgentEndCause::TimeLimit) => ProcessEnding::TimedOut,
            (AgentEnd::Code(code), AgentEndCause::Itself | AgentEndCause::TerminalGone) => ProcessEnding::Code(code),
            (AgentEnd::Signal(signal), AgentEndCause::Itself | AgentEndCause::TerminalGone) => {
                ProcessEnding::Signal(signal)
            }
        },
    };
    let said = |stream| said(bench, &id, stream).map(|said| said.text());
    Ok(EndedCommand { ending, stdout: said(SessionStream::Output)?, stderr: said(SessionStream::Errors)? })
}

fn said(bench: &PerformContext, id: &SessionId, stream: SessionStream) -> Result<CapturedOutput, PerformError> {
    let mut head = bench.sessions.output_from(id, stream, 0, KEPT / 2).map_err(PerformError::by)?;
    let tail = bench.sessions.output_tail(id, stream, KEPT / 2).map_err(PerformError::by)?;
    let both = usize::try_from(head.next().saturating_sub(tail.start)).unwrap_or(usize::MAX);
    let omitted = tail.start.saturating_sub(head.next());
    if omitted > 0 {
        return Ok(CapturedOutput { head: head.bytes, omitted, tail: tail.bytes });
    }
    head.bytes.extend(tail.bytes.iter().skip(both));
    Ok(CapturedOutput { head: head.bytes, ..CapturedOutput::default() })
}

/// Where the output of a script goes that is longer than a run keeps.
fn printed(bench: &PerformContext, name: &str) -> PathBuf {
    // Its last part is put in place of an ending, so the name gets one.
    bench.places.printed().join(format!("{name}.script"))
}
