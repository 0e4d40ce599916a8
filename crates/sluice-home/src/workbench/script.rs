//! Scripts and gates: a shell in a folder, with the values in its environment.

use std::path::PathBuf;

use sluice_core::recipe::{Data, FailureKind};
use sluice_core::run::Outcome;
use sluice_core::run::effect::Script as Wanted;
use sluice_worker::harness::result::result;
use sluice_worker::process::{self, Cancel, Ending, Program, Script, kill_leftover};

use super::environment::{about, inherited};
use super::{Failed, GRACE, Order, Performed, Workbench};
use crate::projects::described;

/// Bytes of what a command prints that are kept in the run; all of a longer output's beginning and end.
const KEPT: usize = 1 << 20;
/// How much of it is a summary.
const SUMMARY: usize = 2000;

/// Runs the command of an order. One that an earlier process left running is ended first.
pub(super) fn run(bench: &Workbench, order: &Order, script: &Wanted) -> Performed {
    let mut environment = inherited(bench);
    environment.extend(about(bench, order));
    environment.extend(script.environment.iter().cloned());
    let name = &order.name;
    let record = bench.record(name, "step");
    kill_leftover(&record).map_err(|failure| described(&failure))?;
    let cancel = Cancel::new().map_err(|error| error.to_string())?;
    let _running = bench.performs(name, cancel.clone());
    let script = Script {
        program: Program::Shell(script.script.clone()),
        environment,
        folder: order.folder.clone(),
        input: Vec::new(),
        timeout: None, // the run has its own, and ends it
        grace: GRACE,
        output_limit: KEPT,
        output_file: printed(bench, name),
        record,
    };
    let ended = process::run(&script, &cancel).map_err(|failure| described(&failure))?;
    let stdout = ended.stdout.text();
    let found = result(&stdout);
    let outcome = Outcome {
        summary: stdout.trim().chars().take(SUMMARY).collect(),
        result: found.result,
        output: Data::Text(stdout.strip_suffix('\n').unwrap_or(&stdout).to_owned()),
        exit_code: if let Ending::Code(code) = ended.ending { Some(code) } else { None },
        stderr: Some(ended.stderr.text()),
        ..Outcome::default()
    };
    let last = ended.stderr.text();
    let last = last.lines().rev().find(|line| !line.trim().is_empty()).map(|line| format!(": {}", line.trim()));
    let failed = |kind, what: String| {
        Err(Failed { kind, error: format!("{what}{}", last.unwrap_or_default()), outcome: Box::new(outcome.clone()) })
    };
    match ended.ending {
        Ending::Code(0) => Ok(outcome),
        Ending::Code(code) => failed(FailureKind::Failed, format!("it ended with exit code {code}")),
        Ending::Signal(signal) => failed(FailureKind::Crashed, format!("signal {signal} ended it")),
        Ending::TimedOut => failed(FailureKind::Timeout, "its time was over".into()),
        Ending::Cancelled => failed(FailureKind::Failed, "it was ended".into()),
    }
}

/// Where the output of a script goes that is longer than a run keeps.
fn printed(bench: &Workbench, name: &str) -> Option<PathBuf> {
    let folder = bench.places.printed();
    std::fs::create_dir_all(&folder).ok()?;
    // Its last part is put in place of an ending, so the name gets one.
    Some(folder.join(format!("{name}.script")))
}
