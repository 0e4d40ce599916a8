//! The one way in which a step is carried out, wherever that is: by the engine on its own machine, and by `sluice worker` on
//! another. It knows orders, folders and processes; what a run is and where it stands it is not told.
//!
//! Each module uses only those above it in this list; a test fails on an import that goes down:
//!
//! - [`names`], [`value`]: new ids, secrets and moments in words; values as JSON has them
//! - [`machine`]: the folder on this machine in which Sluice works: its files, settings, log and identity
//! - [`undone`]: why something could not be done
//! - [`redact`]: what is stored of work, without the secrets in it
//! - [`report`]: what came of a step, between the work protocol and a run
//! - [`spans`]: the traces of steps
//! - [`perform`]: how a step is carried out
//! - [`worker`]: the process that does so for an engine elsewhere

pub mod machine;
pub mod names;
pub mod perform;
pub mod redact;
pub mod report;
pub mod spans;
pub mod undone;
pub mod value;
pub mod worker;
