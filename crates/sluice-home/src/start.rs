//! How tasks and runs begin, for a person, an agent, a trigger or another run alike.

mod cause;
pub(crate) mod repeats;
mod run;
mod task;

pub(crate) use cause::{chain, chain_to};
pub(crate) use run::{EngineStart, repeat, start_again, start_as};
pub(crate) use task::{create_task, must_hold_no_secret, project, summary, usual_reviewer};
