//! Missions of colonies: the ten criteria of the document that asks for them, crabs that come, go and are lost, and what
//! a restart of the engine leaves of it all.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use sluice_api::Problem;
use sluice_api::control::{AttemptEnded, AttemptStarted, CrabState, MissionStatus};
use sluice_home::ask::{KeyedId, Requester, Service};
use sluice_home::settings::places::HomePaths;

const MANIFEST: &str = include_str!("../../sluice-dialect/tests/seeds/001-dev-task.toml");

struct House {
    folder: tempfile::TempDir,
    service: Service,
}

fn open(folder: &std::path::Path) -> Service {
    let places = HomePaths::new(folder.join("home")).with_prompts(Some(folder.join("prompts")));
    std::fs::create_dir_all(places.home()).unwrap();
    let program = std::env::current_exe().unwrap();
    Service::open(places, None, program).unwrap()
}

impl House {
    fn new() -> House {
        let folder = tempfile::tempdir().unwrap();
        let prompts = folder.path().join("prompts");
        std::fs::create_dir_all(prompts.join("workflows")).unwrap();
        std::fs::create_dir_all(prompts.join("do")).unwrap();
        std::fs::write(prompts.join("workflows/dev-task.toml"), MANIFEST).unwrap();
        for name in ["plan", "implement", "review", "pr"] {
            let text = format!("{name}: {{{{mission_prompt}}}} in {{{{worktree_path}}}}\n{{{{context}}}}");
            std::fs::write(prompts.join(format!("do/{name}.md")), text).unwrap();
        }
        let service = open(folder.path());
        House { folder, service }
    }

    /// The engine ends and another begins.
    fn restart(self) -> House {
        self.service.close().unwrap();
        drop(self.service);
        let service = open(self.folder.path());
        House { service, ..self }
    }

    fn colony(&self) -> String {
        let colony = json!({ "name": "reef", "description": "of the test" });
        let found =
            self.service.found_group(&Requester::person("somebody"), &KeyedId::default(), &of(&colony)).unwrap();
        found.colony_id
    }

    fn crab(&self, colony: &str, role: &str) -> String {
        let crab = json!({ "colony_id": colony, "name": format!("the {role}"), "role": role });
        let found =
            self.service.register_worker(&Requester::person("somebody"), &KeyedId::default(), &of(&crab)).unwrap();
        assert_eq!(found.state, CrabState::Idle);
        found.crab_id
    }

    fn mission(&self, colony: &str) -> String {
        let wanted = json!({ "colony_id": colony, "prompt": "Fix issue #6", "workflow": "dev-task" });
        let person = Requester::person("somebody");
        self.service.create_mission(&person, &KeyedId::default(), &of(&wanted)).unwrap().mission_id
    }

    /// How many were assigned since it was last asked.
    fn tick(&self) -> usize {
        let ticked = self.service.tick(&Requester::person("somebody")).unwrap();
        assert!(ticked.ok);
        ticked.assigned
    }

    /// The statuses of all five steps.
    fn statuses(&self, mission: &str) -> String {
        let shown = self.service.mission(&Requester::person("somebody"), mission).unwrap();
        shown.tasks.iter().map(|task| format!("{} {}", task.step_id, task.status)).collect::<Vec<_>>().join(", ")
    }

    fn start(&self, mission: &str, step: &str, crab: &str) -> Result<AttemptStarted, Problem> {
        let wanted = json!({ "mission_id": mission, "task_id": format!("{mission}.{step}"), "crab_id": crab });
        self.service.start_attempt(&Requester::person("somebody"), &of(&wanted))
    }

    fn complete(&self, run: &str, result: Option<&str>) -> Result<AttemptEnded, Problem> {
        let wanted =
            json!({ "run_id": run, "status": "completed", "summary": format!("said by {run}"), "result": result });
        self.service.complete_attempt(&Requester::person("somebody"), &of(&wanted))
    }

    /// A crab does a step that was assigned to it.
    fn does(&self, mission: &str, step: &str, crab: &str, result: Option<&str>) {
        self.tick();
        let run = self.start(mission, step, crab).unwrap().run_id;
        self.complete(&run, result).unwrap();
    }

    fn listen(&self, crab: &str) -> (sluice_home::roster::WorkerConnection, Receiver<Value>) {
        let (sender, messages) = channel();
        let post = Box::new(move |message| drop(sender.send(message)));
        (self.service.connect_worker(&Requester::person("somebody"), crab, post).unwrap(), messages)
    }

    fn state_of(&self, crab: &str) -> String {
        let crabs = self.service.workers(&Requester::person("somebody"));
        crabs.iter().find(|it| it.crab_id == crab).unwrap().state.to_string()
    }
}

fn of<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

fn code<T: std::fmt::Debug>(refused: Result<T, Problem>) -> String {
    refused.unwrap_err().code
}

#[test]
fn a_mission_from_plan_to_pull_request() {
    let house = House::new();
    assert_eq!(house.service.mission_workflows(), ["dev-task"]);
    let colony = house.colony();
    let mission = house.mission(&colony);
    let shown = house.service.mission(&Requester::person("somebody"), &mission).unwrap();
    assert_eq!(shown.mission.worktree_path, format!("burrows/mission-{mission}/"));
    let task = |step: &str| format!("{mission}.{step}");
    let depends: Vec<Vec<String>> = shown.tasks.into_iter().map(|it| it.depends_on).collect();
    assert_eq!(
        depends,
        [vec![], vec![task("plan")], vec![task("implement")], vec![task("review")], vec![task("review")]]
    );
    assert_eq!(house.statuses(&mission), "plan queued, implement blocked, review blocked, fix blocked, pr blocked");
    assert_eq!(house.tick(), 0, "there is no crab");

    let planner = house.crab(&colony, "planner");
    assert_eq!(house.tick(), 1);
    assert!(house.statuses(&mission).starts_with("plan assigned, implement blocked"));
    assert_eq!(house.state_of(&planner), "busy");
    let run = house.start(&mission, "plan", &planner).unwrap().run_id;
    assert!(house.statuses(&mission).starts_with("plan running, implement blocked"));
    house.complete(&run, None).unwrap();
    assert!(house.statuses(&mission).starts_with("plan completed, implement queued, review blocked"));

    let (worker, reviewer) = (house.crab(&colony, "worker"), house.crab(&colony, "reviewer"));
    house.does(&mission, "implement", &worker, None);
    assert!(house.statuses(&mission).contains("implement completed"), "{}", house.statuses(&mission));
    house.does(&mission, "review", &reviewer, Some("FAIL"));
    house.tick();
    assert_eq!(
        house.statuses(&mission),
        "plan completed, implement completed, review completed, fix assigned, pr blocked"
    );
    house.does(&mission, "fix", &worker, None);
    house.tick();
    assert!(house.statuses(&mission).contains("review assigned, "), "{}", house.statuses(&mission));
    house.does(&mission, "review", &reviewer, Some("PASS"));
    house.tick();
    assert!(house.statuses(&mission).ends_with("fix skipped, pr assigned"), "{}", house.statuses(&mission));
    let pr = house.service.mission_tasks(&Requester::person("somebody"), Some(&mission)).unwrap().pop().unwrap();
    let prompt = pr.prompt.unwrap();
    assert!(prompt.starts_with(&format!("pr: Fix issue #6 in burrows/mission-{mission}/")), "{prompt}");
    assert!(pr.context.contains("said by"), "{}", pr.context);
    house.does(&mission, "pr", &pr.assigned_crab_id.unwrap(), None);
    assert_eq!(
        house.service.mission(&Requester::person("somebody"), &mission).unwrap().mission.status,
        MissionStatus::Completed
    );
}

#[test]
fn one_colony_never_works_for_another_and_one_mission_never_twice_at_once() {
    let house = House::new();
    let (reef, lagoon) = (house.colony(), house.colony());
    let stranger = house.crab(&lagoon, "any");
    let mission = house.mission(&reef);
    assert_eq!(house.tick(), 0);
    assert_eq!(code(house.start(&mission, "plan", &stranger)), "not_ready");
    let (one, other) = (house.crab(&reef, "any"), house.crab(&reef, "any"));
    assert_eq!(house.tick(), 1);
    let states = [house.state_of(&one), house.state_of(&other)];
    assert!(states.contains(&"busy".into()) && states.contains(&"idle".into()), "{states:?}");
}

#[test]
fn what_a_crab_says_twice_counts_once_and_what_it_says_late_is_refused() {
    let house = House::new();
    let colony = house.colony();
    let crab = house.crab(&colony, "any");
    let mission = house.mission(&colony);
    house.tick();
    let run = house.start(&mission, "plan", &crab).unwrap().run_id;
    assert_eq!(house.start(&mission, "plan", &crab).unwrap().run_id, run, "asked again it is the same");
    house.complete(&run, None).unwrap();
    house.complete(&run, None).unwrap();
    assert_eq!(house.service.mission(&Requester::person("somebody"), &mission).unwrap().tasks[0].attempt, 1);

    house.tick();
    let run = house.start(&mission, "implement", &crab).unwrap().run_id;
    house.service.unregister_worker(&Requester::person("somebody"), &crab).unwrap();
    assert_eq!(house.state_of(&crab), "offline");
    let other = house.crab(&colony, "any");
    house.does(&mission, "implement", &other, None);
    assert_eq!(code(house.complete(&run, None)), "lease_lost");
    assert_eq!(house.service.mission(&Requester::person("somebody"), &mission).unwrap().tasks[1].attempt, 2);
}

#[test]
fn a_crab_that_listens_is_told_again_after_a_restart_and_goes_on() {
    let house = House::new();
    let colony = house.colony();
    let crab = house.crab(&colony, "any");
    let (_connection, messages) = house.listen(&crab);
    let mission = house.mission(&colony);
    let told = messages.recv().unwrap();
    assert_eq!((&told["kind"]["type"], &told["mission_id"]), (&json!("task_assigned"), &json!(mission)));
    let payload = &told["kind"]["payload"];
    assert_eq!((&payload["step_id"], &payload["role"]), (&json!("plan"), &json!("planner")));
    assert_eq!(payload["prompt"], format!("plan: Fix issue #6 in burrows/mission-{mission}/\n"));
    let run = house.start(&mission, "plan", &crab).unwrap().run_id;

    let house = house.restart();
    assert_eq!(house.state_of(&crab), "offline", "it has a moment to come back");
    let (connection, messages) = house.listen(&crab);
    let again = messages.recv().unwrap(); // it may be told twice
    assert_eq!((&again["kind"]["payload"]["dispatch"], &again["run_id"]), (&payload["dispatch"], &json!(run)));
    assert_eq!(house.state_of(&crab), "busy");
    house.complete(&run, None).unwrap();
    let mut told = messages.iter().map(|it| it["kind"]["payload"]["step_id"].clone());
    assert_eq!(told.find(|step| step != "plan").unwrap(), "implement");
    house.service.disconnect_worker(&crab, connection);
    assert_eq!(house.state_of(&crab), "offline");
}

#[test]
fn a_crab_need_not_wait_for_the_scheduler() {
    let house = House::new();
    let colony = house.colony();
    let crab = house.crab(&colony, "any");
    for _ in 0..10 {
        let mission = house.mission(&colony);
        for (step, result) in [("plan", None), ("implement", None), ("review", Some("PASS")), ("pr", None)] {
            let run = house.start(&mission, step, &crab).unwrap().run_id;
            house.complete(&run, result).unwrap();
        }
        assert_eq!(
            house.service.mission(&Requester::person("somebody"), &mission).unwrap().mission.status,
            MissionStatus::Completed
        );
        assert_eq!(code(house.start(&mission, "pr", &crab)), "not_ready");
    }
}

#[test]
fn a_task_that_failed_and_is_queued_again_can_be_had_at_once() {
    let house = House::new();
    let manifest = "[workflow]\nname = 'stubborn'\n[[steps]]\nid = 'a'\nrole = 'any'\nprompt_file = 'do/plan.md'\n\
        max_retries = 1\n";
    std::fs::write(house.folder.path().join("prompts/workflows/stubborn.toml"), manifest).unwrap();
    let colony = house.colony();
    let crab = house.crab(&colony, "any");
    let wanted = json!({ "colony_id": colony, "prompt": "x", "workflow": "stubborn" });
    let person = Requester::person("somebody");
    let mission = house.service.create_mission(&person, &KeyedId::default(), &of(&wanted)).unwrap().mission_id;
    let fails = || {
        let run = house.start(&mission, "a", &crab).unwrap().run_id;
        let report = json!({ "run_id": run, "status": "failed", "summary": "no tools" });
        house.service.complete_attempt(&Requester::person("somebody"), &of(&report)).unwrap();
    };
    fails();
    assert_eq!((house.tick(), house.statuses(&mission).as_str()), (2, "a assigned"));
    fails();
    assert_eq!(house.statuses(&mission), "a failed");
}

#[test]
fn ids_can_be_shortened() {
    let house = House::new();
    let colony = house.colony();
    let crab = house.crab(&colony[..8], "any");
    let shown = house.service.workers(&Requester::person("somebody"));
    assert_eq!(shown.iter().find(|it| it.crab_id == crab).unwrap().colony_id, colony);
    let idea = json!({ "colony_id": &colony[..8], "prompt": "one day" });
    let idea = house.service.create_mission(&Requester::person("somebody"), &KeyedId::default(), &of(&idea)).unwrap();
    assert_eq!(idea.colony_id, colony);
    let mission = house.mission(&colony[..8]);
    for id in [mission, idea.mission_id] {
        assert_eq!(house.service.mission(&Requester::person("somebody"), &id[..8]).unwrap().mission.mission_id, id);
    }
    assert_eq!(code(house.service.mission(&Requester::person("somebody"), "")), "not_found");
    assert_eq!(code(house.service.mission(&Requester::person("somebody"), "nobody")), "not_found");
}

#[test]
fn a_crab_is_told_that_its_mission_was_cancelled() {
    let house = House::new();
    let colony = house.colony();
    let crab = house.crab(&colony, "any");
    let (_connection, messages) = house.listen(&crab);
    let mission = house.mission(&colony);
    assert_eq!(messages.recv().unwrap()["kind"]["type"], "task_assigned");
    house.service.cancel_run(&Requester::person("somebody"), &mission, "not wanted".into()).unwrap();
    assert_eq!(messages.recv().unwrap()["kind"]["type"], "task_withdrawn");
    assert_eq!(
        house.service.mission(&Requester::person("somebody"), &mission).unwrap().mission.status,
        MissionStatus::Cancelled
    );
    assert_eq!(house.state_of(&crab), "idle");
}

#[test]
fn what_is_wrong_is_named() {
    let house = House::new();
    let colony = house.colony();
    let person = Requester::person("somebody");
    let mission = |colony: &str, prompt: &str, workflow: Value| {
        let wanted = json!({ "colony_id": colony, "prompt": prompt, "workflow": workflow });
        house.service.create_mission(&person, &KeyedId::default(), &of(&wanted))
    };
    // Until everything has been taken up, what is not known may only not be known yet.
    while code(house.complete("never", None)) == "unavailable" {
        house.tick();
    }
    assert_eq!(code(house.complete("never", None)), "not_found");
    assert_eq!(code(mission("nowhere", "x", json!("dev-task"))), "not_found");
    assert_eq!(code(mission(&colony, "x", json!("unknown"))), "not_found");
    assert_eq!(code(mission(&colony, " ", json!(null))), "bad_request");
    let idea = mission(&colony, "one day", json!(null)).unwrap();
    assert_eq!((idea.status, idea.workflow_name), (MissionStatus::Pending, None));
    let house = House { service: house.service, folder: house.folder }.restart();
    assert_eq!(house.service.missions(&Requester::person("somebody")).unwrap()[0].mission_id, idea.mission_id);
    assert_eq!(
        house.service.mission_tasks(&Requester::person("somebody"), Some(&idea.mission_id)).unwrap(),
        Vec::new()
    );
    let crab = json!({ "colony_id": "nowhere", "name": "x", "role": "any" });
    assert_eq!(
        code(house.service.register_worker(&Requester::person("somebody"), &KeyedId::default(), &of(&crab))),
        "not_found"
    );
}
