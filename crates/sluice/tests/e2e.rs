//! Drives the built `sluice` as people and agents do: a home of its own for each test, real git, real tmux, and the
//! scripted agent in place of a model. Nothing sleeps: tests wait for events and pipes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod e2e {
    pub(crate) mod archive;
    pub(crate) mod described;
    pub(crate) mod home;
    pub(crate) mod process;
    pub(crate) mod recipes;
    pub(crate) mod reef;
    pub(crate) mod relay;
    pub(crate) mod served;
    pub(crate) mod wire;

    pub(crate) mod access;
    pub(crate) mod again;
    pub(crate) mod agents;
    pub(crate) mod api;
    pub(crate) mod api_page;
    pub(crate) mod api_wrong;
    pub(crate) mod artifact;
    pub(crate) mod at_once;
    pub(crate) mod clocks;
    pub(crate) mod contract;
    pub(crate) mod control_plane;
    pub(crate) mod crab_protocol;
    pub(crate) mod damage;
    pub(crate) mod deaths;
    pub(crate) mod default_flow;
    pub(crate) mod doors;
    pub(crate) mod effect_kills;
    pub(crate) mod engine_kills;
    pub(crate) mod equal_reports;
    pub(crate) mod fence;
    pub(crate) mod fleet;
    pub(crate) mod fleet_under_fire;
    pub(crate) mod golden_homes;
    pub(crate) mod grimoires;
    pub(crate) mod homes;
    pub(crate) mod hostile;
    pub(crate) mod impostors;
    pub(crate) mod lent;
    pub(crate) mod letter;
    pub(crate) mod limits;
    pub(crate) mod lists;
    pub(crate) mod load;
    pub(crate) mod lost_machines;
    pub(crate) mod lost_stores;
    pub(crate) mod many;
    pub(crate) mod merge_kills;
    pub(crate) mod merges;
    pub(crate) mod merges_and_forges;
    pub(crate) mod missions;
    pub(crate) mod persistent_flow;
    pub(crate) mod pg_chaos;
    pub(crate) mod processes;
    pub(crate) mod product_bench;
    mod project_workers;
    pub(crate) mod rooms;
    pub(crate) mod run_kills;
    pub(crate) mod run_promises;
    pub(crate) mod run_words;
    pub(crate) mod run_worktrees;
    pub(crate) mod serve;
    pub(crate) mod settings;
    pub(crate) mod setup;
    pub(crate) mod shortage;
    pub(crate) mod signals;
    pub(crate) mod state_runs;
    pub(crate) mod step_folders;
    pub(crate) mod store_faults;
    pub(crate) mod takeover;
    pub(crate) mod tokens;
    pub(crate) mod traces;
    pub(crate) mod triggers;
    pub(crate) mod typing;
    pub(crate) mod uncommitted;
    pub(crate) mod verification;
    pub(crate) mod words;
    pub(crate) mod work_at_risk;
    pub(crate) mod workflow_api;
    pub(crate) mod workspaces;
}
