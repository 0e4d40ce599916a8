//! Which task or run is meant by what a person types: a whole id, a branch, or the beginning of an id.
//!
//! It guesses nothing: what could mean several is refused with their names.

use std::sync::Arc;

use sluice_api::Problem;
use sluice_store::StreamId;

use crate::read::tasks::{KIND, ReadModel, TaskSnapshot, unread};

impl ReadModel {
    /// The task whose id is this text: the name of a file, or what stands on a worktree. What is no id is no task's.
    pub(crate) fn named(&self, name: &str) -> Result<Option<TaskSnapshot>, Problem> {
        name.parse().map_or(Ok(None), |id| self.load(&id))
    }

    /// The task with this id, else the open task of this branch, else the one whose id begins like this: what is named whole is
    /// meant. The error says why there is not exactly one.
    pub fn find(&self, begins: &str) -> Result<TaskSnapshot, Problem> {
        let none = || {
            Problem::not_found(format!("there is no task `{begins}`"))
                .hint("`sluice task list --all` shows all of them")
        };
        // Most say the whole of it.
        if let Some(seen) = self.named(begins)? {
            return Ok(seen);
        }
        match self.open().iter().filter(|seen| seen.state.about.branch == begins).collect::<Vec<_>>().as_slice() {
            [] => self.only(KIND, begins)?.map_or(Ok(None), |id| self.named(&id))?.ok_or_else(none),
            // As the store has it now.
            [one] => self.load(&one.id)?.ok_or_else(none),
            several => {
                let name = |seen: &&Arc<TaskSnapshot>| format!("{} (project {})", seen.id, seen.state.about.project);
                let all: Vec<String> = several.iter().map(name).collect();
                let message = format!("the branch `{begins}` is that of several open tasks: {}", all.join(", "));
                Err(Problem::bad_request(message).hint("give the id of the task"))
            }
        }
    }

    /// The only id of a kind that begins like this, or is exactly this.
    pub(crate) fn only(&self, kind: &str, begins: &str) -> Result<Option<String>, Problem> {
        if begins.is_empty() {
            return Ok(None);
        }
        let wanted = format!("{kind}{begins}");
        let found = self.loader().reader().named(&wanted, 9).map_err(unread)?;
        let id = |stream: &StreamId| stream.as_str().strip_prefix(kind).unwrap_or_default().to_owned();
        match found.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(id(one))),
            [exact, ..] if exact.as_str() == wanted => Ok(Some(begins.to_owned())),
            several => {
                let ids: Vec<String> = several.iter().map(id).collect();
                Err(Problem::bad_request(format!("`{begins}` could be any of: {}", ids.join(", ")))
                    .hint("say more of it"))
            }
        }
    }
}
