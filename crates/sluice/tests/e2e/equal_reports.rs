//! A step gives the same report on this machine and at a worker on another one: the same table of steps is carried out on
//! both sides.

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

/// What a step has reported, as its run shows it.
fn reported(reef: &Reef, run: &str) -> Value {
    let shown = &reef.ask("GET", &format!("/v1/recipe/runs/{run}"), &Value::Null)["run"];
    let fields = ["status", "attempt", "summary", "result", "output", "exit_code", "stderr", "usage", "error"];
    let step = fields.map(|field| (field.to_owned(), shown["steps"][0][field].clone()));
    json!({ "run": shown["status"], "step": serde_json::Map::from_iter(step) })
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
        let mission = reef.mission(name);
        reef.ended(&mission);
        let file = reef.home.path(&format!("prompts/workflows/{name}.toml"));
        let wanted = json!({ "recipe": file, "cwd": reef.home.path("prompts"), "harness": "demo" });
        let here = text(&reef.ask("POST", "/v1/recipe/runs", &wanted)["run"], "id");
        settled(&reef.home, &here);
        assert_eq!(
            reported(&reef, &mission),
            reported(&reef, &here),
            "{name}: the worker's first, then this machine's"
        );
    }
}
