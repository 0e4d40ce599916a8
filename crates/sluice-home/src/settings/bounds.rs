//! How long a text may be that is said about work. What is only told is cut, and says so; what is read by machines is never
//! cut.

pub use sluice_api::work::{LONGEST_PROGRESS, LONGEST_SUMMARY, LONGEST_VALUE, LONGEST_WORD};
pub use sluice_worker::value::cut;
