//! The run that a task's state starts: started once, in the task's own worktree where there is one, and cancelled when
//! the state is left. It never owns that worktree.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sluice_api::run::StartRun;
use sluice_core::id::RunId;
use sluice_core::machine::RefusalCode;
use sluice_core::run::RunInput;
use sluice_core::task::input::TaskEffectProduct;
use sluice_core::task::state::{WorkSnapshot, WorktreePath};

use super::EffectResult;
use crate::definitions::committed::DefinitionSite;
use crate::home::Home;
use crate::home::engine::say;
use crate::perform::sweep;
use crate::read::runs::stream;
use crate::read::tasks::TaskSnapshot;
use crate::read::view::commit;
use crate::read::view_run::unless_empty;
use crate::settings::ids::run_from;
use crate::start::{EngineStart, chain_to, start_as};
use crate::undone::PerformError;

/// How long what a cancelled run was at may take to end.
const END_WITHIN: Duration = Duration::from_secs(60);

/// Starts the run, if that has not been done. Its id is the effect's: asked for again after a crash, the same run is
/// found.
pub(super) fn start(
    home: &Arc<Home>,
    seen: &TaskSnapshot,
    effect: &str,
    recipe: &str,
    inputs: &[(String, String)],
    workspace: Option<&WorktreePath>,
) -> EffectResult {
    let id = run_from(&["state", seen.id.as_str(), effect]);
    if let Some(known) = home.tasks.load_run(&id)? {
        return Ok(TaskEffectProduct::Run { id, began: known.state.given.origin.began.clone() });
    }
    let about = &seen.state.about;
    let project = home.projects.get(&about.project)?;
    let cause = chain_to(home, &seen.id)?;
    if cause.iter().any(|before| before == recipe) {
        return Err(format!("`{recipe}` led to this task, and would start itself again and again").into());
    }
    let wanted = StartRun {
        recipe: recipe.to_owned(),
        cwd: project.path,
        inputs: inputs.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect(),
        prompt: Some(about.summary.clone()),
        work_order: Some(seen.id.to_string()),
        harness: unless_empty(&about.harness),
        ..StartRun::default()
    };
    // Before anything of it works there: what is committed from now on is its own, or is not judged by it.
    let began = WorkSnapshot::of(&crate::home::work::of(home, seen)?);
    // Without a worktree of the task the run has one of its own, in which the same work stands.
    let base = commit(&began);
    let began = Some(began);
    let started = EngineStart {
        id: Some(id.clone()),
        cause,
        task: Some(seen.id.clone()),
        workspace: workspace.map(|name| name.0.clone()),
        reading: DefinitionSite::Commit,
        base,
        began: began.clone(),
        ..EngineStart::default()
    };
    start_as(home, &wanted, started)?;
    Ok(TaskEffectProduct::Run { id, began })
}

/// Cancels the run, if it has not ended. When this answers, nothing of it works any more.
pub(super) fn cancel(home: &Arc<Home>, run: &RunId) -> EffectResult {
    let seen = home.tasks.load_run(run)?;
    let Some(seen) = seen else { return Ok(TaskEffectProduct::Nothing) };
    if seen.state.end.is_none() {
        match say(home, run, RunInput::Cancel { reason: "its task moved on".into() }) {
            Ok(_) => {}
            Err(problem) if problem.code == RefusalCode::Finished.as_str() => {}
            Err(problem) => return Err(problem.into()),
        }
    }
    let is_at_rest = || {
        let stored = home.tasks.loader().reader().load(&stream(run)).ok()?;
        stored.is_none_or(|stored| stored.effects.is_empty()).then_some(())
    };
    let rests = home.tasks.wait_for(&stream(run), END_WITHIN, is_at_rest).is_some();
    match (sweep(run).map_err(PerformError::by)?, rests) {
        (0, true) => Ok(TaskEffectProduct::Nothing),
        (0, false) => Err(format!("run {run} is cancelled, and its steps have not ended").into()),
        (left, _) => Err(format!("run {run} is cancelled, but {left} of its processes would not go").into()),
    }
}
