//! The run machine, played from scripts: each line is an input, and the answer is the log of what it leads to.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod run {
    pub(crate) mod agents;
    pub(crate) mod earlier;
    pub(crate) mod law;
    pub(crate) mod owed;
    pub(crate) mod play;
    pub(crate) mod promises;
    pub(crate) mod properties;
    pub(crate) mod questions;
    pub(crate) mod scripts;
}
