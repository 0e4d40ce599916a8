//! Commands of the engine's own: hooks of tasks and runs, and what makes worktrees ready. They speak for no agent.

use std::path::Path;
use std::time::Duration;

use sluice_os::process::{ProcessEnding, ProcessOutcome, ProcessScript, ScriptCancel, ScriptProgram, kill_leftover};

use crate::home::Home;
use crate::perform::{GRACE, inherited};
use crate::undone::PerformError;

const HOOK_COMMAND_LIMIT: Duration = Duration::from_secs(600);
/// Bytes of each of its two outputs that are kept.
const OUTPUT_LIMIT: usize = 64 << 10;

/// What a hook of this task or run executes. What an engine that died may have left running of it is ended.
pub(crate) fn hook(
    home: &Home,
    about: &str,
    effect: &str,
    program: ScriptProgram,
    folder: &Path,
) -> Result<ProcessScript, PerformError> {
    let record = home.context.record(about, effect);
    kill_leftover(&record).map_err(PerformError::by)?;
    let mut environment = inherited(&home.context);
    environment.extend(home.context.port_base(folder));
    Ok(ProcessScript {
        program,
        environment,
        folder: folder.to_owned(),
        input: Vec::new(),
        timeout: Some(HOOK_COMMAND_LIMIT),
        grace: GRACE,
        output_limit: OUTPUT_LIMIT,
        output_file: None,
        record,
        speaks_for: None,
        ward: None,
    })
}

pub(crate) fn run_to_end(home: &Home, script: &ProcessScript) -> Result<(), PerformError> {
    match bad_end(home, script)? {
        None => Ok(()),
        Some((_, what)) => Err(what.into()),
    }
}

/// Runs it to its end, and says how it ended, if not well.
pub(crate) fn bad_end(home: &Home, script: &ProcessScript) -> Result<Option<(ProcessEnding, String)>, PerformError> {
    let cancel = ScriptCancel::new().map_err(PerformError::by)?;
    let outcome = home.context.run_script(script, &cancel).map_err(PerformError::by)?;
    Ok(how_it_failed(outcome.ending).map(|what| (outcome.ending, with_last_words(what, &outcome))))
}

/// How a command ended, if not well.
pub(crate) fn how_it_failed(ending: ProcessEnding) -> Option<String> {
    match ending {
        ProcessEnding::Code(0) => None,
        ProcessEnding::Code(code) => Some(format!("it ended with exit code {code}")),
        ProcessEnding::Signal(signal) => Some(format!("signal {signal} ended it")),
        ProcessEnding::TimedOut => Some("its time was over".to_owned()),
        ProcessEnding::Cancelled => Some("it was cancelled".to_owned()),
    }
}

/// What a command printed last as an error tells most about why.
fn with_last_words(what: String, outcome: &ProcessOutcome) -> String {
    let said = outcome.stderr.text();
    match said.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(last) => format!("{what}: {}", last.trim()),
        None => what,
    }
}
