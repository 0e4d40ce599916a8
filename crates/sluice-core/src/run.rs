//! The run machine: carries out a recipe, one input at a time.
//!
//! [`decide`] looks at the recipe, the state and an input, and answers with events and effects or a refusal;
//! [`RunState::apply`] records events. A decision costs as much as what changes, not as much as the run has steps: it
//! works on a [`pending`] view over the state, and what is needed to find the next step is kept at hand ([`state`]).
//!
//! The law of a step is one table, [`law`], drawn in `docs/machines/run.md`.

mod agents;
mod decide;
pub mod effect;
pub mod event;

mod finish;
pub mod input;
pub mod law;
mod owed;
mod parts;
mod pending;
mod people;
mod phase;
pub mod plan;
mod record;
mod results;
pub mod state;
mod values;
mod waits;

pub use decide::{begin, decide};
pub use effect::{AttemptPart, Perform, RunEffect, RunJob, TimerKey};
pub use event::{AgentUsage, Answerer, QuestionKind, RunEvent, RunQuestion, SkipReason, StepFailure, StepOutcome};
pub use input::{
    AttemptReport, ManualStepInput, QuestionRequest, RunAsker, RunInput, RunKind, RunMode, RunOrigin, RunParameters,
    Speaker,
};
pub use law::StepStatusKind;
pub use parts::CONFLICT;
pub use phase::RunPhase;
pub use plan::RunPlan;
pub use state::{RunConclusion, RunState, StepState, StepStatus};
pub use values::{context, is_folder, prompt};
