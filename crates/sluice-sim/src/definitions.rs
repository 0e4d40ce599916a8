//! The definitions of the simulation: recipes with every kind of step, loop, join, retry and question, and lifecycles
//! with every hook and every reaction to an exit.

use std::sync::{Arc, OnceLock};

use sluice_core::lifecycle::Lifecycle;
use sluice_core::run::RunPlan;
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, DefinitionFile, Sources, builtin, load};
use sluice_store::Digest;

/// A recipe, ready to be run, with what stands in for its pinned bytes.
#[derive(Clone)]
pub(crate) struct SimRecipe {
    pub(crate) plan: Arc<RunPlan>,
    pub(crate) digest: Digest,
}

/// A lifecycle, with what stands in for its pinned bytes.
pub(crate) struct SimLifecycle {
    pub(crate) lifecycle: Arc<Lifecycle>,
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
    "name: tasks\nmax_parallel: 3\nsteps:\n  - {name: a, type: task, needs: [], summary: a}\n  - {name: b, type: task, needs: [], summary: b}\n  \
     - {name: c, type: task, needs: [], summary: c}\n  - {name: d, type: script, needs: [a, b, c], always: true, command: d}\n",
];

/// A lifecycle with what the built-in ones lack: the hooks that reach out, an agent and a run that are started on entering
/// a state, crashes without a state `stuck`, and a worker that cannot be started again to be told something.
const ODD: &str = "
name: odd
version: 1
states:
  pending: {}
  work: {respawn_prompt: work}
  review: {respawn_prompt: judge}
  checked: {run: {recipe: check, inputs: {branch: '{branch}'}, completed: shown, failed: cancelled}}
  shown: {enter_prompt: show}
  done: {terminal: true}
  cancelled: {terminal: true}
transitions:
  - from: pending
    to: work
    hooks: [{action: acquire_workspace}, {action: spawn_agent, prompt: work}]
  - from: work
    to: review
    gate: {section: '## Handoff', fields: [DONE]}
    hooks:
      - {action: increment_review_round}
      - {action: run_command, command: 'echo ${summary}'}
      - {action: push_branch}
      - {action: create_pr}
      - {action: spawn_reviewer, prompt: judge, harness: review, permissions: reduced}
      - {action: notify, message: 'round {review_round}'}
      - {action: spawn_next}
  - from: review
    to: work
    gate: {section: '## Review', verdict: FAIL}
    when: review_round < 3
    hooks: [{action: kill_reviewer}, {action: notify_worker}]
  - from: review
    to: shown
    gate: {section: '## Review', verdict: FAIL}
    when: review_round >= 3
    hooks: [{action: kill_reviewer}]
  - from: review
    to: checked
    gate: {section: '## Review', verdict: PASS}
    when: review_round < 3
    hooks: [{action: kill_reviewer}, {action: set_field, field: mood, value: hopeful}]
  - {from: checked, to: shown}
  - {from: checked, to: work, hooks: [{action: spawn_agent, prompt: work}]}
  - {from: checked, to: cancelled, hooks: [{action: kill_session}, {action: release_workspace}]}
  - {from: shown, to: work, hooks: [{action: spawn_agent, prompt: work}]}
  - {from: shown, to: done, hooks: [{action: kill_session}, {action: release_workspace}, {action: spawn_next}]}
  - {from: pending, to: cancelled}
  - {from: work, to: cancelled, hooks: [{action: kill_session}, {action: release_workspace}, {action: spawn_next}]}
  - {from: review, to: cancelled, hooks: [{action: kill_session}, {action: release_workspace}, {action: spawn_next}]}
  - {from: shown, to: cancelled, hooks: [{action: kill_session}, {action: release_workspace}]}
exit_monitoring:
  rules:
    - {status: work, has_artifact: {section: '## Handoff'}, then: review}
    - {status: work, no_artifact: true, action: crash, stuck_after: 2}
    - status: review
      has_artifact: {section: '## Review', verdict: FAIL}
      then_when: [{when: review_round < 3, then: work}, {when: review_round >= 3, then: shown}]
    - {status: review, no_artifact: true, action: crash, stuck_after: 3, respawn: true}
    - {status: shown, action: mark_dead}
prompts: {work: 'Do {summary}.', judge: 'Judge {summary}.', show: 'Show {summary}.'}
";

/// A lifecycle whose work only a run judges, while no agent lives.
const CHECKED: &str = "
name: checked
version: 1
states:
  pending: {}
  work: {respawn_prompt: work}
  checked: {run: {recipe: check, completed: shown, failed: work}}
  shown: {}
  done: {terminal: true}
  cancelled: {terminal: true}
transitions:
  - {from: pending, to: work, hooks: [{action: acquire_workspace}, {action: spawn_agent, prompt: work}]}
  - {from: work, to: checked, gate: {section: '## Handoff'}, hooks: [{action: kill_session}]}
  - {from: checked, to: shown}
  - {from: checked, to: work, hooks: [{action: spawn_agent, prompt: work}]}
  - {from: checked, to: cancelled, hooks: [{action: kill_session}, {action: release_workspace}]}
  - {from: shown, to: work, hooks: [{action: spawn_agent, prompt: work}]}
  - {from: shown, to: done, hooks: [{action: kill_session}, {action: release_workspace}, {action: spawn_next}]}
  - {from: shown, to: cancelled, hooks: [{action: kill_session}, {action: release_workspace}]}
  - {from: pending, to: cancelled}
  - {from: work, to: cancelled, hooks: [{action: kill_session}, {action: release_workspace}, {action: spawn_next}]}
exit_monitoring:
  rules:
    - {status: work, has_artifact: {section: '## Handoff'}, then: checked}
    - {status: work, no_artifact: true, action: crash, stuck_after: 2}
prompts: {work: 'Do {summary}.'}
";

fn digest(kind: u8, index: usize) -> Digest {
    let mut digest = [0u8; 32];
    (digest[0], digest[1]) = (u8::try_from(index).unwrap_or(u8::MAX), kind);
    Digest(digest)
}

pub(crate) fn recipes() -> &'static [SimRecipe] {
    static KNOWN: OnceLock<Vec<SimRecipe>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let own = OWN.iter().map(|text| ("own.yml", *text));
        let dev_task =
            builtin::ALL.iter().filter(|file| file.file == "dev-task.toml").map(|file| (file.file, file.text));
        let plan = |name: &str, text: &str| match read(name, text) {
            Definition::Recipe(recipe) => Arc::new(RunPlan::new(recipe)),
            Definition::Lifecycle(_) => panic!("{name} of the simulation is not a recipe"),
        };
        let known = |(index, (name, text))| SimRecipe { plan: plan(name, text), digest: digest(0, index) };
        own.chain(dev_task).enumerate().map(known).collect()
    })
}

pub(crate) fn lifecycles() -> &'static [SimLifecycle] {
    static KNOWN: OnceLock<Vec<SimLifecycle>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let wanted = |file: &str| file == "default.yml" || file == "persistent.yml";
        let built_in = builtin::ALL.iter().filter(|file| wanted(file.file)).map(|file| (file.file, file.text));
        let lifecycle = |name: &str, text: &str| match read(name, text) {
            Definition::Lifecycle(lifecycle) => Arc::new(lifecycle),
            Definition::Recipe(_) => panic!("{name} of the simulation is not a lifecycle"),
        };
        let known = |(index, (name, text))| SimLifecycle { lifecycle: lifecycle(name, text), digest: digest(1, index) };
        built_in.chain([("odd.yml", ODD), ("checked.yml", CHECKED)]).enumerate().map(known).collect()
    })
}

fn read(name: &str, text: &str) -> Definition {
    let loaded = load(&DefinitionFile { path: name, bytes: text.as_bytes() }, &mut NoPrompts, &mut Sources::new());
    match loaded.definition {
        Some(definition) => definition,
        None => panic!("{name} of the simulation is broken: {:?}", loaded.problems),
    }
}

pub(crate) fn plan(digest: &str) -> Result<&'static Arc<RunPlan>, String> {
    let known = recipes().iter().find(|it| it.digest.to_string() == digest);
    known.map(|it| &it.plan).ok_or_else(|| "an unknown recipe".into())
}

pub(crate) fn lifecycle(digest: &str) -> Result<&'static Arc<Lifecycle>, String> {
    let known = lifecycles().iter().find(|it| it.digest.to_string() == digest);
    known.map(|it| &it.lifecycle).ok_or_else(|| "an unknown lifecycle".into())
}
