//! The stored form of what a turn of a task has to do.

use serde::{Deserialize, Serialize};
use sluice_core::lifecycle::StateId;
use sluice_core::task::state::{AgentStart, EdgeId, TaskJob};

use super::task_data::{StoredPlace, StoredPrompt};

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum StoredTaskJob {
    Hook { edge: u32, hook: u32 },
    Acquire,
    Start { state: u32, prompt: StoredPrompt, place: StoredPlace, again: bool },
    StartRun { state: u32 },
    CancelRun,
    Tell,
}

impl From<TaskJob> for StoredTaskJob {
    fn from(it: TaskJob) -> Self {
        match it {
            TaskJob::Hook { edge, hook } => StoredTaskJob::Hook { edge: edge.0, hook },
            TaskJob::Acquire => StoredTaskJob::Acquire,
            TaskJob::Start(start) => StoredTaskJob::Start {
                state: start.state.0,
                prompt: start.prompt.into(),
                place: start.place.into(),
                again: start.again,
            },
            TaskJob::StartRun(state) => StoredTaskJob::StartRun { state: state.0 },
            TaskJob::CancelRun => StoredTaskJob::CancelRun,
            TaskJob::Tell => StoredTaskJob::Tell,
        }
    }
}

impl From<StoredTaskJob> for TaskJob {
    fn from(it: StoredTaskJob) -> Self {
        match it {
            StoredTaskJob::Hook { edge, hook } => TaskJob::Hook { edge: EdgeId(edge), hook },
            StoredTaskJob::Acquire => TaskJob::Acquire,
            StoredTaskJob::Start { state, prompt, place, again } => {
                TaskJob::Start(AgentStart { state: StateId(state), prompt: prompt.into(), place: place.into(), again })
            }
            StoredTaskJob::StartRun { state } => TaskJob::StartRun(StateId(state)),
            StoredTaskJob::CancelRun => TaskJob::CancelRun,
            StoredTaskJob::Tell => TaskJob::Tell,
        }
    }
}
