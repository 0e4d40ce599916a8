//! Crashes for real: the engine as a process, killed with SIGKILL a hundred times under load, on SQLite and PostgreSQL.
//!
//! The child (this same program, started with an environment variable) goes round with a store, starts runs and tasks,
//! and writes down what it was promised and what it begins. The parent kills it at random moments and looks at the
//! store. Agents and workspaces are played in the child; they end with it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "crash/child.rs"]
mod child;
#[path = "crash/hands.rs"]
mod hands;
#[path = "crash/parent.rs"]
mod parent;
#[path = "crash/people.rs"]
mod people;

use std::sync::Arc;

use sluice_core::lifecycle::Lifecycle;
use sluice_core::run::RunPlan;
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, DefinitionFile, Sources, builtin, load};
use sluice_store::StreamId;

const RECIPE: &str = "
name: crash
max_parallel: 2
steps:
  - {name: a, type: script, needs: [], command: a}
  - {name: b, type: script, needs: [a], command: b}
  - {name: c, type: script, needs: [a], command: c}
  - {name: check, type: script, needs: [b, c], command: check}
  - {name: mend, type: script, needs: [check], when: \"check.result == 'FAIL'\", loop: {to: check, max: 3}, command: mend}
  - {name: each, type: parallel-agents, needs: [check], for_each: [x, y, z], max_concurrent: 2, prompt: 'do ${item}'}
  - {name: ship, type: script, needs: [each], always: true, command: ship}
";
/// What stands for the pinned definitions; they are known by their digests.
const PINNED_RECIPE: &[u8] = b"recipe";
const PINNED_LIFECYCLE: &[u8] = b"lifecycle";
/// How often the process is killed.
const KILLS: usize = 100;

fn definition(path: &str, text: &str) -> Option<Definition> {
    load(&DefinitionFile { path, bytes: text.as_bytes() }, &mut NoPrompts, &mut Sources::new()).definition
}

fn plan() -> Arc<RunPlan> {
    match definition("crash.yml", RECIPE) {
        Some(Definition::Recipe(recipe)) => Arc::new(RunPlan::new(recipe)),
        _ => panic!("not a recipe"),
    }
}

fn lifecycle() -> Arc<Lifecycle> {
    let text = builtin::ALL.iter().find(|file| file.file == "default.yml").unwrap().text;
    match definition("default.yml", text) {
        Some(Definition::Lifecycle(lifecycle)) => Arc::new(lifecycle),
        _ => panic!("not a lifecycle"),
    }
}

fn is_task(stream: &StreamId) -> bool {
    stream.as_str().starts_with("task-")
}

/// The child. As a test of its own it has nothing to do.
#[test]
fn child() {
    if let Ok(address) = std::env::var("SLUICE_CRASH_STORE") {
        child::live(&address);
    }
}

#[test]
fn on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    parent::crash_a_hundred_times(format!("sqlite:{}", folder.path().join("crash.db").display()));
}

#[test]
fn on_postgres() {
    let cluster = sluice_store::testing::Cluster::shared();
    parent::crash_a_hundred_times(cluster.database());
}
