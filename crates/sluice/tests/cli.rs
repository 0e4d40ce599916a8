//! Drives the built `sluice` as a person or a script would: arguments in, text and exit code out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod cli {
    pub(crate) mod check;
    pub(crate) mod config;
    pub(crate) mod examples;
    pub(crate) mod graph;
    pub(crate) mod hostile;
    pub(crate) mod shell;
    pub(crate) mod sluice;
    pub(crate) mod workflow;
}
