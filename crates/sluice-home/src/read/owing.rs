//! Tasks that have ended and still need a person: a merge that was not pushed, a hook at the end that failed. They are not
//! open, so that the model of open tasks does not have them; the newest that have ended are looked through once, when they are
//! first asked for, and from then on what changes is kept up to date.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sluice_api::Problem;
use sluice_core::id::TaskId;
use sluice_engine::task_actor::TaskActor;
use sluice_store::Query;

use super::tasks::{ReadModel, TaskSnapshot};
use crate::background::locked;

/// So many of the newest tasks that have ended are looked through.
const MOST_LOOKED_THROUGH: usize = 1000;
/// Cards that are read at a time.
const AT_A_TIME: usize = 200;

#[derive(Default)]
pub(super) struct OwingTasks {
    known: Mutex<BTreeMap<TaskId, Arc<TaskSnapshot>>>,
    /// Whether those that ended before were looked through. Locked while that is done.
    is_looked_through: Mutex<bool>,
}

impl OwingTasks {
    /// A task was read again, and this is how it stands now.
    pub(super) fn note(&self, id: &TaskId, seen: Option<&Arc<TaskSnapshot>>) {
        let owes = |seen: &&Arc<TaskSnapshot>| {
            !seen.card.open && seen.state.attention.is_some() && seen.card.status != TaskActor::DELETED
        };
        let mut known = locked(&self.known);
        match seen.filter(owes) {
            Some(seen) => drop(known.insert(id.clone(), seen.clone())),
            None => drop(known.remove(id)),
        }
    }
}

impl ReadModel {
    /// The tasks that have ended and still need a person, oldest first.
    pub(crate) fn owing(&self) -> Result<Vec<Arc<TaskSnapshot>>, Problem> {
        let mut is_looked_through = locked(&self.owing.is_looked_through);
        if !*is_looked_through {
            let query =
                Query { kind: Some(TaskActor::KIND.into()), open: Some(false), limit: AT_A_TIME, ..Query::default() };
            let mut left = MOST_LOOKED_THROUGH;
            self.walk(query, |summary| {
                left -= 1;
                self.is_read(&summary.stream)?;
                Ok(left > 0)
            })?;
            *is_looked_through = true;
        }
        drop(is_looked_through);
        let mut owing: Vec<Arc<TaskSnapshot>> = locked(&self.owing.known).values().cloned().collect();
        owing.sort_by(|one, other| (one.card.created, &one.id).cmp(&(other.card.created, &other.id)));
        Ok(owing)
    }
}
