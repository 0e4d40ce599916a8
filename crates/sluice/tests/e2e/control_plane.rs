//! Missions over HTTP: the ten success criteria of the document that asks for them, one after the other, in its words.

use serde_json::{Value, json};

use super::home::Home;
use super::served::{Served, token};

const MANIFEST: &str = include_str!("../../../sluice-dialect/tests/seeds/001-dev-task.toml");

/// A control plane with one colony.
struct Plane {
    _home: Home,
    served: Served,
    secret: String,
    colony: String,
}

impl Plane {
    fn new() -> Plane {
        let home = Home::new();
        let prompts = home.path("prompts");
        std::fs::create_dir_all(prompts.join("workflows")).unwrap();
        std::fs::create_dir_all(prompts.join("do")).unwrap();
        std::fs::write(prompts.join("workflows/dev-task.toml"), MANIFEST).unwrap();
        for name in ["plan", "implement", "review", "pr"] {
            let text = format!("{name}: {{{{mission_prompt}}}}\n{{{{context}}}}\n");
            std::fs::write(prompts.join(format!("do/{name}.md")), text).unwrap();
        }
        let served = Served::start(&home, &["--prompts", prompts.to_str().unwrap()]);
        let (_, secret) = token(&home, &[]);
        let mut plane = Plane { _home: home, served, secret, colony: String::new() };
        plane.colony = text(&plane.post("/v1/colonies", &json!({ "name": "reef" })), "colony_id");
        plane
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.served.ask("GET", path, Some(&self.secret), "");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self.served.ask("POST", path, Some(&self.secret), &body.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    fn crab(&self, role: &str) -> String {
        let crab = json!({ "colony_id": self.colony, "name": role, "role": role });
        let registered = self.post("/v1/crabs/register", &crab);
        assert_eq!(registered["state"], "idle");
        text(&registered, "crab_id")
    }

    fn mission(&self) -> String {
        let wanted = json!({ "colony_id": self.colony, "prompt": "Fix issue #6", "workflow": "dev-task" });
        text(&self.post("/v1/missions", &wanted), "mission_id")
    }

    fn tasks(&self, mission: &str) -> Vec<Value> {
        self.get(&format!("/v1/tasks?mission_id={mission}")).as_array().unwrap().clone()
    }

    /// The statuses of the five tasks, in the order of the file.
    fn statuses(&self, mission: &str) -> Vec<String> {
        self.tasks(mission).iter().map(|task| text(task, "status")).collect()
    }

    /// A crab does what it was assigned, with this result.
    fn completes(&self, mission: &str, step: &str, crab: &str, result: Option<&str>) {
        self.post("/v1/scheduler/tick", &json!({}));
        let begin = json!({ "mission_id": mission, "task_id": format!("{mission}.{step}"), "crab_id": crab });
        let run = text(&self.post("/v1/runs/start", &begin), "run_id");
        self.post("/v1/runs/update", &json!({ "run_id": run, "progress_message": "half way" }));
        let usage = json!({ "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7 });
        let end = json!({
            "run_id": run, "status": "completed", "summary": format!("{step} is done"), "result": result, "token_usage": usage,
        });
        self.post("/v1/runs/complete", &end);
    }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}")).to_owned()
}

#[test]
fn the_ten_success_criteria() {
    let plane = Plane::new();
    // 1. `GET /v1/workflows` returns loaded workflow names
    assert_eq!(plane.get("/v1/workflows"), json!(["dev-task"]));

    // 2. Creating a mission with `workflow: "dev-task"` produces 5 tasks with correct dependencies
    let mission = plane.mission();
    let task = |step: &str| format!("{mission}.{step}");
    let tasks = plane.tasks(&mission);
    let steps: Vec<String> = tasks.iter().map(|task| text(task, "step_id")).collect();
    assert_eq!(steps, ["plan", "implement", "review", "fix", "pr"]);
    let needs: Vec<Value> = tasks.iter().map(|task| task["depends_on"].clone()).collect();
    let of = |step: &str| json!([task(step)]);
    assert_eq!(needs, [json!([]), of("plan"), of("implement"), of("review"), of("review")]);

    // 3. Only the `plan` task starts as `Queued`; others start as `Blocked`
    assert_eq!(plane.statuses(&mission), ["queued", "blocked", "blocked", "blocked", "blocked"]);

    // 4. Scheduler assigns `plan` to an idle planner crab
    let planner = plane.crab("planner");
    assert_eq!(plane.post("/v1/scheduler/tick", &json!({})), json!({ "ok": true, "assigned": 1 }));
    let plan = &plane.tasks(&mission)[0];
    assert_eq!((&plan["status"], &plan["assigned_crab_id"]), (&json!("assigned"), &json!(planner)));

    // 5. Completing plan cascades: `implement` becomes `Queued`
    plane.completes(&mission, "plan", &planner, None);
    assert_eq!(plane.statuses(&mission)[..3], ["completed", "queued", "blocked"]);

    // 6. Completing implement cascades: `review` becomes `Queued`
    let worker = plane.crab("worker");
    plane.completes(&mission, "implement", &worker, None);
    assert_eq!(plane.statuses(&mission), ["completed", "completed", "queued", "blocked", "blocked"]);

    // 8. Review with `result=FAIL` cascades: `fix` becomes `Queued`, `pr` stays `Blocked`
    let reviewer = plane.crab("reviewer");
    plane.served.ask("DELETE", &format!("/v1/crabs/{worker}"), Some(&plane.secret), "");
    plane.completes(&mission, "review", &reviewer, Some("FAIL"));
    assert_eq!(plane.statuses(&mission), ["completed", "completed", "completed", "queued", "blocked"]);

    // 9. Completing fix re-queues review (retry loop)
    plane.served.ask("DELETE", &format!("/v1/crabs/{reviewer}"), Some(&plane.secret), "");
    let worker = plane.crab("worker");
    plane.completes(&mission, "fix", &worker, None);
    assert_eq!(plane.statuses(&mission)[2], "queued");
    let review = &plane.tasks(&mission)[2];
    assert!(text(review, "context").contains("fix is done"), "the reviewer sees what the fix said: {review}");

    // 7. Review with `result=PASS` cascades: `pr` becomes `Queued`, `fix` becomes `Skipped`
    for crab in [&worker, &planner] {
        plane.served.ask("DELETE", &format!("/v1/crabs/{crab}"), Some(&plane.secret), "");
    }
    let reviewer = plane.crab("reviewer");
    let run = {
        plane.post("/v1/scheduler/tick", &json!({}));
        let begin = json!({ "mission_id": mission, "task_id": task("review"), "crab_id": reviewer });
        text(&plane.post("/v1/runs/start", &begin), "run_id")
    };
    // A crab of another colony gets nothing of it.
    let lagoon = text(&plane.post("/v1/colonies", &json!({ "name": "lagoon" })), "colony_id");
    plane.post("/v1/crabs/register", &json!({ "colony_id": lagoon, "name": "x", "role": "any" }));
    plane.post("/v1/runs/complete", &json!({ "run_id": run, "status": "completed", "result": "PASS" }));
    let statuses = plane.statuses(&mission);
    assert_eq!(statuses[3], "skipped");
    assert!(["queued", "assigned"].contains(&statuses[4].as_str()), "{statuses:?}");

    // 10. Full lifecycle ends with mission status `Completed`
    assert_eq!(plane.get(&format!("/v1/missions/{mission}"))["status"], "running");
    plane.completes(&mission, "pr", &reviewer, None);
    let shown = plane.get(&format!("/v1/missions/{mission}"));
    assert_eq!(shown["status"], "completed");
    assert_eq!(shown["tasks"].as_array().unwrap().len(), 5);
    assert_eq!(plane.get("/v1/status")["summary"]["missions"], json!({ "completed": 1 }));
}

#[test]
fn the_loop_is_bounded_and_says_so() {
    let plane = Plane::new();
    let crab = plane.crab("any");
    let mission = plane.mission();
    plane.completes(&mission, "plan", &crab, None);
    plane.completes(&mission, "implement", &crab, None);
    for _ in 0..3 {
        plane.completes(&mission, "review", &crab, Some("FAIL"));
        plane.completes(&mission, "fix", &crab, None);
    }
    plane.completes(&mission, "review", &crab, Some("FAIL"));
    let shown = plane.get(&format!("/v1/missions/{mission}"));
    assert_eq!(shown["status"], "failed");
    assert!(text(&shown, "error").contains("fix"), "{shown}");
}

#[test]
fn a_failure_cascades_and_never_overwrites_a_finished_step() {
    let plane = Plane::new();
    let crab = plane.crab("any");
    let mission = plane.mission();
    plane.completes(&mission, "plan", &crab, None);
    plane.post("/v1/scheduler/tick", &json!({}));
    let begin = json!({ "mission_id": mission, "task_id": format!("{mission}.implement"), "crab_id": crab });
    let run = text(&plane.post("/v1/runs/start", &begin), "run_id");
    plane.post("/v1/runs/complete", &json!({ "run_id": run, "status": "failed", "summary": "no tools" }));
    assert_eq!(plane.statuses(&mission), ["completed", "failed", "failed", "failed", "failed"]);
    assert_eq!(plane.get(&format!("/v1/missions/{mission}"))["status"], "failed");
    // Said twice it is counted once; another end is refused.
    plane.post("/v1/runs/complete", &json!({ "run_id": run, "status": "failed", "summary": "no tools" }));
    let late = json!({ "run_id": run, "status": "completed" }).to_string();
    let late = plane.served.ask("POST", "/v1/runs/complete", Some(&plane.secret), &late);
    assert_eq!(late.short(), "409 finished");
    assert_eq!(plane.statuses(&mission)[1], "failed", "what counted counts");
    let never =
        plane.served.ask("POST", "/v1/runs/complete", Some(&plane.secret), r#"{"run_id":"x","status":"completed"}"#);
    assert_eq!(never.short(), "404 not_found");
}

#[test]
fn a_cancelled_mission_says_so() {
    let plane = Plane::new();
    let mission = plane.mission();
    plane.served.ask("DELETE", &format!("/v1/recipe/runs/{mission}"), Some(&plane.secret), "{}");
    let shown = plane.get(&format!("/v1/missions/{mission}"));
    assert_eq!(shown["status"], "cancelled", "{shown}");
    assert_eq!(plane.statuses(&mission), ["failed", "skipped", "skipped", "skipped", "skipped"]);
}
