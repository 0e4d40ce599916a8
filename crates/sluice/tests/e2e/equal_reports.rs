//! A step gives the same report on this machine and at a worker on another one: the same table of steps is carried out on
//! both sides.

use std::path::Path;

use serde_json::{Value, json};

use super::recipes::settled;
use super::reef::{Reef, text};

/// The workflows of the table: each has one step.
const STEPS: [(&str, &str); 7] = [
    ("prints", "type = \"script\"\ncommand = \"echo ground; echo hot >&2\""),
    ("prints-nothing", "type = \"script\"\ncommand = \"true\""),
    ("prints-a-table", "type = \"script\"\ncommand = \"echo '{\\\"beans\\\": [1, 2.50]}'\""),
    ("fails", "type = \"script\"\ncommand = \"echo ground; echo full >&2; exit 3\""),
    ("times-out", "type = \"script\"\ntimeout = \"1s\"\ncommand = \"echo begins; exec sleep 600\""),
    ("passes", "type = \"gate\"\ncommand = \"echo good\""),
    ("agent", "prompt = '''\n```demo\njson {\"summary\": \"brewed\", \"result\": \"PASS\"}\n```\n'''"),
];

/// Recipes whose steps go on from each other's work, and how their runs end. What the last step prints shows it.
const WORK: [(&str, &str, &str); 12] = [
    (
        "fan-out",
        "completed",
        "  - {name: each, type: parallel-agents, for_each: [a, b, c], prompt: 'echo ${item} > ${item}.txt; echo did ${item}'}
  - {name: after, type: script, command: 'cat ?.txt'}",
    ),
    (
        "fan-out-in-conflict",
        "held",
        "  - {name: each, type: parallel-agents, for_each: [a, b], prompt: 'echo ${item} > both.txt'}
  - {name: after, type: script, command: 'cat both.txt'}",
    ),
    (
        "fan-out-that-fails",
        "completed",
        "  - name: each
    type: parallel-agents
    for_each: [a, b, c]
    on_failure: continue
    prompt: 'echo ${item} > ${item}.txt; test ${item} != b'
  - {name: after, type: script, command: 'cat ?.txt'}",
    ),
    (
        "printed-list",
        "completed",
        r#"  - {name: list, type: script, output: found, command: 'echo ''["x", "y"]'''}
  - {name: each, type: parallel-agents, for_each: '${found}', prompt: 'echo did ${item}'}"#,
    ),
    (
        "own-workspaces",
        "completed",
        "  - {name: one, workspace: own, prompt: 'echo 1 > one.txt'}
  - {name: two, workspace: own, prompt: 'echo 2 > two.txt'}
  - {name: after, type: script, needs: [one, two], command: 'cat *.txt'}",
    ),
    (
        "own-workspaces-of-scripts",
        "completed",
        "  - {name: one, type: script, needs: [], workspace: own, command: 'echo 1 > one.txt; ls; git add .'}
  - {name: two, type: script, needs: [], workspace: own, command: 'echo 2 > two.txt; test ${run.workspace} = \"$(pwd)\"'}
  - {name: judge, type: gate, needs: [], workspace: own, command: 'echo 3 > three.txt'}
  - {name: after, type: script, needs: [one, two, judge], command: 'cat one.txt two.txt three.txt'}",
    ),
    (
        "own-workspace-of-a-script-that-fails",
        "failed",
        "  - {name: half, type: script, workspace: own, command: 'echo half > half.txt; exit 4'}",
    ),
    (
        "loop",
        "completed",
        r#"  - name: again
    type: agent-loop
    max_iterations: 3
    prompt: echo turn >> turns.txt
    arbiter_prompt: |
      if test "$(grep -c turn turns.txt)" = 2; then word=done; else word=actionable; fi
      echo arbiter >> turns.txt
      printf '```json\n{"result": "%s"}\n```\n' "$word"; exit
  - {name: after, type: script, command: cat turns.txt}"#,
    ),
    (
        "one-after-the-other",
        "completed",
        "  - {name: writes, prompt: 'echo 1 > one.txt'}
  - {name: looks, permissions: reduced, needs: [writes], prompt: 'cat one.txt'}
  - {name: scripts, type: script, needs: [looks], command: 'echo 2 > two.txt'}
  - {name: after, type: script, needs: [scripts], command: 'cat *.txt'}",
    ),
    (
        "without-workspace",
        "completed",
        "  - {name: writes, type: script, workspace: none, command: 'ls -A; echo 1 > one.txt; cat one.txt'}
  - {name: asks, workspace: none, prompt: 'test ! -e README.md && echo 2 > two.txt; cat two.txt'}
  - {name: each, type: parallel-agents, workspace: none, for_each: [a, b], prompt: 'echo ${item} > ${item}.txt; echo did'}
  - {name: work, prompt: 'echo 3 > three.txt'}
  - {name: after, type: script, command: 'ls; cat three.txt'}",
    ),
    (
        "arbiter-that-changes-a-scratch-folder",
        "failed",
        "  - name: again
    type: agent-loop
    workspace: none
    prompt: echo turn >> turns.txt
    arbiter_prompt: rm -f turns.txt; echo more > more.txt; exit",
    ),
    ("failing-script", "failed", "  - {name: half, type: script, command: 'echo half > half.txt; exit 4'}"),
];

/// What a run and its steps have reported, as the run shows it.
fn reported(reef: &Reef, run: &str) -> Value {
    let shown = &reef.ask("GET", &format!("/v1/recipe/runs/{run}"), &Value::Null)["run"];
    let fields = ["status", "attempt", "summary", "result", "output", "exit_code", "stderr", "usage", "error"];
    let of_step = |step: &Value| fields.map(|field| (field.to_owned(), step[field].clone()));
    let steps = shown["steps"].as_array().unwrap().iter().map(|step| serde_json::Map::from_iter(of_step(step)));
    // The names of branches have the run in them.
    let told = json!({ "run": shown["status"], "steps": steps.collect::<Vec<_>>() }).to_string().replace(run, "RUN");
    serde_json::from_str(&told).unwrap()
}

/// Runs a workflow as a mission, which workers do, and here.
fn both(reef: &Reef, name: &str, file: &Path, folder: &Path, harness: &str) -> [Value; 2] {
    let mission = reef.mission(name);
    settled(&reef.home, &mission);
    let wanted = json!({ "recipe": file, "cwd": folder, "harness": harness });
    let here = text(&reef.ask("POST", "/v1/recipe/runs", &wanted)["run"], "id");
    settled(&reef.home, &here);
    [reported(reef, &mission), reported(reef, &here)]
}

#[test]
fn steps_that_go_on_from_each_other_give_the_same_reports_here_and_at_workers() {
    let reef = Reef::new("[harnesses.shell]\nheadless = [\"sh\"]\noutput = \"text\"\n", None);
    std::fs::write(reef.home.path("with-shell"), "").unwrap();
    let _workers = [reef.hire("ann", "any"), reef.hire("ben", "any")];
    for (name, ends, steps) in WORK {
        let file = reef.home.path(&format!("prompts/workflows/{name}.yml"));
        std::fs::write(&file, format!("name: {name}\nmax_parallel: 2\nsteps:\n{steps}\n")).unwrap();
        let [there, here] = both(&reef, name, &file, &reef.home.repository(), "shell");
        assert_eq!(there, here, "{name}: the workers' first, then this machine's");
        assert_eq!(here["run"], ends, "{name}: {here:#}");
    }
}

#[test]
fn a_step_gives_the_same_report_here_and_at_a_worker() {
    let reef = Reef::new("", None);
    for (name, step) in STEPS {
        let head = format!("[workflow]\nname = \"{name}\"\ndescription = \"A test\"\nversion = \"1.0.0\"\n");
        reef.workflow(name, &format!("{head}\n[[steps]]\nid = \"step\"\nrole = \"any\"\n{step}\n"));
    }
    let _worker = reef.hire("ann", "any");
    for (name, _) in STEPS {
        let file = reef.home.path(&format!("prompts/workflows/{name}.toml"));
        let [there, here] = both(&reef, name, &file, &reef.home.path("prompts"), "demo");
        assert_eq!(there, here, "{name}: the worker's first, then this machine's");
    }
}
