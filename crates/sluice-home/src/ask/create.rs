//! Creating a task.

use sluice_api::problem::Problem;
use sluice_api::task::{CreateTask, TaskAnswer};

use super::{KeyedId, Requester, Service};
use crate::definitions::committed::DefinitionSite;
use crate::start::create_task;

impl Service {
    /// Creates a task, and starts its agent unless told otherwise.
    pub fn create(&self, who: &Requester, chosen: &KeyedId, wanted: &CreateTask) -> Result<TaskAnswer, Problem> {
        who.must_be_person("creating a task")?;
        if let Some(there) = chosen.there()
            && self.home.tasks.load(there)?.is_some()
        {
            return self.show(there);
        }
        let id = chosen.id()?;
        let created = create_task(&self.home, &id, wanted, DefinitionSite::Checkout, None)?;
        self.settled(who, &id, created)
    }
}
