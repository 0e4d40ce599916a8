//! The recipes that simulated runs carry out: every kind of step, loop, join, retry and question.

use std::sync::Arc;

use sluice_core::run::Plan;
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, Source, Sources, builtin, load};
use sluice_store::Digest;

/// A recipe, ready to be run, with what stands in for its pinned bytes.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) plan: Arc<Plan>,
    pub(crate) digest: Digest,
}

const OWN: &[&str] = &[
    "name: sequence\nsteps:\n  - {name: a, type: script, command: a, retry: {max: 2, backoff: 2s}}\n  \
     - {name: b, type: gate, command: b}\n  - {name: c, type: script, timeout: 20s, command: c}\n",
    "name: diamond\nmax_parallel: 2\nsteps:\n  - {name: a, type: script, needs: [], command: a}\n  \
     - {name: b, type: script, needs: [a], command: b}\n  - {name: c, type: script, needs: [a], command: c, workspace: own}\n  \
     - {name: d, type: script, needs: [b, c], join: any_completed, command: d}\n  \
     - {name: e, type: script, needs: [c], always: true, command: e}\n",
    "name: looping\nsteps:\n  - {name: work, type: script, needs: [], command: w, timeout: 30s}\n  \
     - {name: check, needs: [work], prompt: check}\n  \
     - {name: mend, needs: [check], when: \"check.result == 'FAIL'\", loop: {to: work, max: 2, on_exhausted: hold}, prompt: mend}\n  \
     - {name: ship, type: script, needs: [check], when: \"check.result == 'PASS'\", command: ship}\n",
    "name: fan\nsteps:\n  - {name: each, type: parallel-agents, for_each: [a, b, c, d, e], max_concurrent: 2, prompt: 'do ${item}'}\n  \
     - {name: polish, type: agent-loop, max_iterations: 2, prompt: p, arbiter_prompt: q}\n",
];

/// Every recipe there is.
pub(crate) fn all() -> Vec<Known> {
    let own = OWN.iter().map(|text| ("own.yml", *text));
    let dev_task = builtin::ALL.iter().filter(|file| file.file == "dev-task.toml").map(|file| (file.file, file.text));
    own.chain(dev_task).enumerate().map(|(index, (name, text))| known(index, name, text)).collect()
}

fn known(index: usize, name: &str, text: &str) -> Known {
    let loaded = load(&Source { path: name, bytes: text.as_bytes() }, &mut NoPrompts, &mut Sources::new());
    let Some(Definition::Recipe(recipe)) = loaded.definition else {
        panic!("a recipe of the simulation is broken: {:?}", loaded.problems.first());
    };
    let mut digest = [0u8; 32];
    digest[0] = u8::try_from(index).unwrap_or(u8::MAX);
    Known { plan: Arc::new(Plan::new(recipe)), digest: Digest(digest) }
}
