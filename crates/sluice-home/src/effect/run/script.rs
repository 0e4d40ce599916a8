//! The commands at the end of a run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sluice_core::run::effect::RunScript;
use sluice_os::process::{ProcessScript, ScriptProgram, kill_leftover};

use super::super::OUTPUT_LIMIT;
use crate::home::Home;
use crate::perform::{GRACE, inherited};
use crate::read::runs::RunSnapshot;
use crate::undone::PerformError;

/// Runs a command that belongs to the end of a run.
pub(super) fn hook(home: &Arc<Home>, seen: &RunSnapshot, effect: &str, script: &RunScript) -> Result<(), PerformError> {
    crate::home::worktrees::ready(home, &seen.state.given)?;
    let mut environment = inherited(&home.context);
    environment.insert("SLUICE_RUN".into(), seen.id.clone());
    environment.extend(script.environment.iter().cloned());
    let record = home.context.record(&seen.id, effect);
    kill_leftover(&record).map_err(PerformError::by)?;
    let script = ProcessScript {
        program: ScriptProgram::Shell(script.script.clone()),
        environment,
        folder: PathBuf::from(seen.folder()),
        input: Vec::new(),
        timeout: Some(Duration::from_secs(600)),
        grace: GRACE,
        output_limit: OUTPUT_LIMIT,
        output_file: None,
        record,
        speaks_for: None,
        ward: None,
    };
    super::super::run_to_end(home, &script).map(drop)
}
