//! Patrols: recipes that start again when they have ended, and of which only the last few runs are kept.
//!
//! The wish to start again is an effect of the run that ended, so it outlives the engine.

use sluice_api::problem::Problem;
use sluice_core::id::{MalformedId, RunId};
use sluice_core::machine::RefusalCode;
use sluice_core::run::RunConclusion;
use sluice_engine::actor::{ActorInput, EffectOutcome};
use sluice_engine::run_actor::REPEAT;
use sluice_os::workspace::WorkspaceName;
use sluice_store::StreamId;
use sluice_worker::names::run_branch;

use crate::evidence;
use crate::home::Home;
use crate::home::engine::{refusal, say_to};
use crate::home::setup;
use crate::home::worktrees::pool_of as workspace_pool;
use crate::read::runs::{KIND, RunSnapshot, id_of, stream};
use crate::read::tasks::unread;
use crate::undone::described;

/// So many runs of one patrol are looked through at once.
const MOST_TURNS: usize = 10_000;
/// The first run of a patrol, and which turn this one is.
pub(crate) fn turn(id: &RunId) -> (&str, u64) {
    let id = id.as_str();
    let numbered = id.rsplit_once("-r").and_then(|(first, turn)| Some((first, turn.parse::<u64>().ok()?)));
    numbered.unwrap_or((id, 0))
}

pub(crate) fn next(id: &RunId) -> Result<RunId, Problem> {
    let (first, turn) = turn(id);
    format!("{first}-r{}", turn + 1).parse().map_err(|error: MalformedId| Problem::fault(error.to_string()))
}

/// The wish of a run to start again, if that is still open.
pub(crate) fn wish(home: &Home, id: &RunId) -> Result<Option<String>, Problem> {
    let mut loader = home.tasks.loader();
    let stored = loader.reader().load(&stream(id)).map_err(unread)?;
    let open = stored.map(|stored| stored.effects).unwrap_or_default();
    Ok(open.into_iter().find(|open| open.effect.kind == REPEAT).map(|open| open.effect.id))
}

/// Ends a patrol whose run has ended and whose next one has not begun. `None`: this is no such run.
pub(crate) fn end(home: &Home, seen: &RunSnapshot) -> Result<Option<()>, Problem> {
    let has_failed = match &seen.state.end {
        Some(RunConclusion::Completed { .. }) => false,
        Some(RunConclusion::Failed { .. }) => true,
        Some(RunConclusion::Cancelled { .. }) | None => return Ok(None),
    };
    if seen.plan.recipe.repeat.is_none() {
        return Ok(None);
    }
    let Some(effect) = wish(home, &seen.id)? else {
        if has_failed {
            return Ok(None); // it is given up itself
        }
        let message = format!("run {} has completed, and nothing follows from it any more", seen.id);
        let refused = refusal(RefusalCode::Finished, message);
        return Err(match turns(home, &seen.id)?.pop() {
            Some(newest) if newest != seen.id => refused.hint(format!("its patrol goes on as {newest}; cancel that")),
            Some(_) | None => refused,
        });
    };
    let said = ActorInput::Outcome { effect, outcome: EffectOutcome::Failed("the patrol was ended".into()) };
    say_to(home, stream(&seen.id), seen.id.as_str(), said).map(|_| Some(()))
}

/// The runs of a patrol, in order.
fn turns(home: &Home, id: &RunId) -> Result<Vec<RunId>, Problem> {
    let (first, _) = turn(id);
    let named = home.tasks.loader().reader().named(&format!("{KIND}{first}"), MOST_TURNS);
    let named = named.map_err(unread)?;
    let mut ids: Vec<RunId> = named.iter().filter_map(id_of).filter(|id| turn(id).0 == first).collect();
    ids.sort_by_key(|id| turn(id).1);
    Ok(ids)
}

/// Forgets the oldest runs of a patrol, with their files, so that as many ended ones are left as it keeps.
pub(crate) fn tidy(home: &Home, seen: &RunSnapshot) -> Result<(), Problem> {
    let Some(repeat) = &seen.plan.recipe.repeat else { return Ok(()) };
    let ids = turns(home, &seen.id)?;
    // Those after it go on.
    let ended: Vec<&RunId> = ids.iter().filter(|id| turn(id).1 <= turn(&seen.id).1).collect();
    let old = ended.len().saturating_sub((repeat.keep as usize).max(1));
    let mut forgotten: Vec<StreamId> = Vec::new();
    for id in ended.into_iter().take(old).filter(|id| **id != seen.id) {
        let Some(old) = home.tasks.load_run(id)?.filter(|old| old.state.end.is_some()) else { continue };
        home.mirrors.forget(&old);
        evidence::forget(home, id);
        remove_worktree(home, &old);
        forgotten.push(stream(id));
    }
    home.engine.forget(forgotten);
    Ok(())
}

/// Removes the worktree of a run that is forgotten; what is at risk is kept.
fn remove_worktree(home: &Home, seen: &RunSnapshot) {
    if seen.state.given.workspace.is_empty() {
        return;
    }
    let pool = workspace_pool(home, &seen.state.given);
    if let (Ok(pool), Ok(name)) = (pool, WorkspaceName::new(seen.id.as_str())) {
        if let Err(undone) = setup::tear_down(home, pool.repository().folder(), &pool.folder(&name)) {
            return tracing::warn!(run = seen.id.as_str(), "its checkout stays: {undone}");
        }
        let id = seen.id.as_str();
        let removed = pool.destroy(&name, id).and_then(|_| pool.delete_branch(&run_branch(&seen.id), id));
        if let Err(error) = removed {
            tracing::warn!(run = id, "its checkout or branch stays: {}", described(&error));
        }
    }
}
