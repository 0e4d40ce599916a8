//! Repeats for people: the recipes that start again by themselves, and when each begins next.

use sluice_api::problem::Problem;
use sluice_api::schedules::{SCHEDULES_SHOWN, ScheduledRepeat, Schedules};

use super::Service;
use super::page::PageQuery;
use crate::home::rows::RowMaker;
use crate::read::runs::RunSnapshot;
use crate::read::view_run;
use crate::start::repeats;

impl Service {
    /// The recipes that repeat and have been started, the one that begins next first.
    pub fn schedules(&self) -> Result<Schedules, Problem> {
        let maker = RowMaker::new(&self.home);
        let open = self.list_runs(None, false, &PageQuery::default())?.items;
        let mut repeats: Vec<ScheduledRepeat> = open.iter().filter_map(|seen| repeat(&maker, seen)).collect();
        repeats.sort_by(|one, other| {
            let key = |it: &ScheduledRepeat| (it.next_at.is_none(), it.next_at.clone(), it.run.clone());
            key(one).cmp(&key(other))
        });
        let count = repeats.len();
        repeats.truncate(SCHEDULES_SHOWN);
        Ok(Schedules { repeats, count })
    }
}

/// A run as the repeat that it belongs to; none of a run after which nothing begins.
fn repeat(maker: &RowMaker, seen: &RunSnapshot) -> Option<ScheduledRepeat> {
    let repeat = seen.plan.recipe.repeat.as_ref()?;
    // A run that has ended is open as long as the next one is to come of it.
    if seen.state.end.is_some() && seen.next_turn.is_none() {
        return None;
    }
    let shown = view_run::run(seen);
    Some(ScheduledRepeat {
        run: shown.id,
        recipe: shown.recipe,
        project: maker.project_of(seen),
        status: shown.status,
        error: shown.error,
        turn: repeats::turn(&seen.id).1 + 1,
        every_seconds: repeat.every.as_secs(),
        keep: repeat.keep,
        next_at: shown.next_turn_at,
    })
}
