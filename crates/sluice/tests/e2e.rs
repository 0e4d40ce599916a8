//! Drives the built `sluice` as people and agents do: a home of its own for each test, real git, real tmux, and the
//! scripted agent in place of a model. Nothing sleeps: tests wait for events and pipes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod e2e {
    pub(crate) mod home;
    pub(crate) mod process;
    pub(crate) mod recipes;

    pub(crate) mod default_flow;
    pub(crate) mod engine_kills;
    pub(crate) mod grimoires;
    pub(crate) mod limits;
    pub(crate) mod missions;
    pub(crate) mod persistent_flow;
    pub(crate) mod run_kills;
    pub(crate) mod run_words;
}
