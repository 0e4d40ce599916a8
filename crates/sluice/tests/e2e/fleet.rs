//! Workers as processes of their own: a mission from its beginning to its end, and what becomes of it when a worker or the
//! engine is killed, told to end, or not let in.

use serde_json::{Value, json};

use super::process;
use super::reef::{Reef, text};

/// An engine that soon gives up whoever is away.
const IMPATIENT: &str = "[workers]\nreconnect_seconds = 1\n";

const DONE: &str = "completed: plan completed, implement completed, review completed, fix skipped, pr completed";

/// Who began which attempt of a step, in order.
fn begun(reef: &Reef, mission: &str, step: &str) -> Vec<String> {
    let events = reef.events(&["--correlation", mission, "--type", "attempt.started"]);
    let of_step = events.iter().filter(|event| text(&event["data"], "task_id").ends_with(&format!(".{step}")));
    of_step.map(|event| text(&event["data"], "crab_id")).collect()
}

#[test]
fn three_workers_bring_a_mission_from_its_plan_to_its_end() {
    let reef = Reef::new("", None);
    reef.scripts("commit \"plan\"", "commit \"work\"", "review fail once, then pass", "json {\"summary\": \"opened\"}");
    let crew = [("ann", "planner"), ("bob", "worker"), ("cid", "reviewer")].map(|(name, role)| reef.hire(name, role));
    let mission = reef.mission("dev-task");
    assert_eq!(reef.ended(&mission), DONE);
    assert_eq!(reef.commits(&mission), ["plan", "work", "work"], "the plan, the work, and its mending");
    let who = |step: &str| begun(&reef, &mission, step);
    assert_eq!(who("plan"), [crew[0].crab.clone()]);
    assert_eq!(who("implement"), [crew[1].crab.clone()]);
    assert_eq!(who("fix"), [crew[1].crab.clone()]);
    assert_eq!(who("review"), [crew[2].crab.clone(), crew[2].crab.clone()]);
    let seen = reef.look(&mission);
    let review = seen["tasks"].as_array().unwrap().iter().find(|task| task["step_id"] == "review").unwrap();
    assert_eq!((&review["result"], &review["attempt"]), (&json!("PASS"), &json!(2)), "{seen:#}");
}

#[test]
fn a_worker_that_is_back_at_once_adopts_its_agent_and_the_step_runs_once() {
    let reef = Reef::new("", None);
    let (begins, goes) = (reef.home.pipe("begins"), reef.home.pipe("goes"));
    let plan = format!("tell {}\nwait for {}\ncommit \"plan\"", begins.path(), goes.path());
    reef.scripts(&plan, "commit \"work\"", "review pass", "json {\"summary\": \"opened\"}");
    let first = reef.hire("ann", "any");
    let mission = reef.mission("dev-task");
    begins.hear();
    let crab = first.crab.clone();
    first.kill();
    let again = reef.hire("ann", "any");
    assert_eq!(again.crab, crab, "it is the same worker");
    goes.let_go();
    assert_eq!(reef.ended(&mission), DONE);
    assert_eq!(reef.commits(&mission), ["plan", "work"]);
    let started = reef.events(&["--correlation", &mission, "--type", "step.started"]);
    assert_eq!(started.iter().filter(|event| event["data"]["step_id"] == "plan").count(), 1, "{started:#?}");
}

#[test]
fn the_step_of_a_worker_that_stays_away_is_given_to_another_once_its_agent_has_ended() {
    let reef = Reef::new(IMPATIENT, None);
    let (begins, goes) = (reef.home.pipe("begins"), reef.home.pipe("goes"));
    let plan = format!("tell {}\nwait for {}\ncommit \"plan\"", begins.path(), goes.path());
    reef.scripts(&plan, "commit \"work\"", "review pass", "json {\"summary\": \"opened\"}");
    let first = reef.hire("ann", "any");
    let mission = reef.mission("dev-task");
    begins.hear();
    let crab = first.crab.clone();
    let record = reef.place("ann").join(format!("sessions/live/{mission}.0.1.whole/started.json"));
    let started: serde_json::Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    let agent = i32::try_from(started["agent"]["pid"].as_i64().unwrap()).unwrap();
    first.kill();
    let second = reef.hire("bob", "any");
    begins.hear(); // the other's agent
    assert!(!process::lives(agent), "both are at it");
    assert_eq!(begun(&reef, &mission, "plan"), [crab.clone(), second.crab.clone()]);
    let late = json!({ "run_id": reef.events(&["--correlation", &mission, "--type", "attempt.started"])[0]["data"]["run_id"],
        "status": "completed", "summary": "too late" });
    assert_eq!(reef.answer("POST", "/v1/runs/complete", &reef.worker, &late).short(), "409 lease_lost");
    let _again = reef.hire("ann", "any");
    goes.let_go();
    assert_eq!(reef.ended(&mission), DONE);
    assert_eq!(reef.commits(&mission), ["plan", "work"]);
}

#[test]
fn an_engine_that_is_killed_goes_on_where_it_was_and_its_workers_come_back() {
    let mut reef = Reef::new("", None);
    let (begins, goes) = (reef.home.pipe("begins"), reef.home.pipe("goes"));
    let work = format!("tell {}\nwait for {}\ncommit \"work\"", begins.path(), goes.path());
    reef.scripts("commit \"plan\"", &work, "review pass", "json {\"summary\": \"opened\"}");
    let _crew = [("ann", "planner"), ("bob", "worker"), ("cid", "reviewer")].map(|(name, role)| reef.hire(name, role));
    let mission = reef.mission("dev-task");
    begins.hear();
    reef.kill_engine();
    goes.let_go(); // the agent ends while nobody is there to be told
    reef.serve();
    assert_eq!(reef.ended(&mission), DONE);
    assert_eq!(reef.commits(&mission), ["plan", "work"]);
    let started = reef.events(&["--correlation", &mission, "--type", "step.started"]);
    let steps: Vec<String> = started.iter().map(|event| text(&event["data"], "step_id")).collect();
    assert_eq!(steps, ["plan", "implement", "review", "pr"], "nothing that was finished runs again");
}

#[test]
fn cancelling_a_mission_ends_its_agent_on_the_worker_and_what_that_has_started() {
    let reef = Reef::new("", None);
    let begins = reef.home.pipe("begins");
    let left = reef.home.path("left");
    let plan = format!("leave daemon {}\ntell {}\nhang", left.display(), begins.path());
    reef.scripts(&plan, "work", "review pass", "work");
    let _worker = reef.hire("ann", "any");
    let mission = reef.mission("dev-task");
    begins.hear();
    let daemon: i32 = std::fs::read_to_string(&left).unwrap().trim().parse().unwrap();
    assert!(process::lives(daemon));
    let living = process::carrying(&format!("SLUICE_RUN={mission}"));
    assert!(living.len() >= 2, "{living:?}");
    reef.home.json(&["run", "cancel", &mission]);
    living.into_iter().chain([daemon]).for_each(process::until_gone);
    assert!(reef.ended(&mission).starts_with("cancelled: plan"), "{}", reef.ended(&mission));
}

#[test]
fn told_to_end_a_worker_finishes_its_step_and_takes_no_more() {
    let reef = Reef::new("", None);
    let (begins, goes) = (reef.home.pipe("begins"), reef.home.pipe("goes"));
    let plan = format!("tell {}\nwait for {}\ncommit \"plan\"", begins.path(), goes.path());
    reef.scripts(&plan, "commit \"work\"", "review pass", "json {\"summary\": \"opened\"}");
    let first = reef.hire("ann", "any");
    let crab = first.crab.clone();
    let mission = reef.mission("dev-task");
    begins.hear();
    first.terminate();
    goes.let_go();
    let (code, said) = first.ended();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let crabs = reef.ask("GET", "/v1/crabs", &json!(null));
    let state = |value: &serde_json::Value| value["crab_id"] == crab.as_str() && value["state"] == "offline";
    assert!(crabs.as_array().or(crabs["crabs"].as_array()).unwrap().iter().any(state), "{crabs:#}");
    assert_eq!(begun(&reef, &mission, "plan").len(), 1);
    assert_eq!(reef.look(&mission)["tasks"][0]["status"], "completed");
    let second = reef.hire("bob", "any");
    assert_eq!(reef.ended(&mission), DONE);
    assert_eq!(begun(&reef, &mission, "implement"), std::slice::from_ref(&second.crab));
}

#[test]
fn told_twice_a_worker_gives_its_step_back() {
    let reef = Reef::new("", None);
    let begins = reef.home.pipe("begins");
    let plan = format!("any: tell {}\nhang", begins.path());
    reef.scripts(&plan, "work", "review pass", "work");
    let first = reef.hire("ann", "any");
    let mission = reef.mission("dev-task");
    begins.hear();
    let living = process::carrying(&format!("SLUICE_RUN={mission}"));
    first.terminate();
    assert_eq!(
        first.says(),
        "stopping: the worker finishes its current step and then exits; a second Ctrl-C gives the step back and exits now"
    );
    first.terminate();
    let (code, said) = first.ended();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(living.iter().all(|pid| !process::lives(*pid)), "its agent ends before the step is given to another");
    let _second = reef.hire("bob", "any");
    begins.hear();
    assert_eq!(begun(&reef, &mission, "plan").len(), 2);
}

#[test]
fn whoever_is_not_let_in_is_told_why() {
    let reef = Reef::new("", None);
    let (code, said) = reef.hire_unheard("ann", "any", "slu_nobody", &reef.colony).ended();
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("the engine does not know this token"), "{said}");
    let (code, said) = reef.hire_unheard("ann", "any", &reef.worker, "nowhere").ended();
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("there is no colony `nowhere`"), "{said}");
    let reader = super::served::token(&reef.home, &["--scope", "read"]).1;
    let (code, said) = reef.hire_unheard("ann", "any", &reader, &reef.colony).ended();
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("does not allow this request"), "{said}");
}

#[test]
fn a_token_cannot_speak_for_another_tokens_worker() {
    let reef = Reef::new("", None);
    let worker = reef.hire("ann", "any");
    let other = super::served::token(&reef.home, &["--scope", "worker"]).1;
    let path = format!("/v1/crabs/{}", worker.crab);
    let start = json!({ "crab_id": worker.crab, "mission_id": "m", "task_id": "t" });
    let crab = |id: &str| json!({ "crab_id": id, "colony_id": reef.colony, "name": "mine", "role": "any" });
    // Whoever has no crab in the colony does not hear of it.
    assert_eq!(reef.answer("DELETE", &path, &other, &json!(null)).short(), "404 not_found");
    assert_eq!(reef.answer("POST", "/v1/runs/start", &other, &start).short(), "404 not_found");
    assert_eq!(reef.answer("POST", "/v1/crabs/register", &other, &crab(&worker.crab)).short(), "403 not_yours");
    assert_eq!(reef.answer("POST", "/v1/crabs/register", &other, &crab("bob")).short(), "200");
    assert_eq!(reef.answer("DELETE", &path, &other, &json!(null)).short(), "403 not_yours");
    assert_eq!(reef.answer("POST", "/v1/runs/start", &other, &start).short(), "403 not_yours");
}

#[test]
fn an_agent_on_a_worker_speaks_for_its_step_and_asks_a_person() {
    let reef = Reef::new("", None);
    let asks = "sluice step ask \"hot or cold?\" --option hot --option cold\ncommit \"plan\"";
    let says = "commit \"work\"\nsluice step complete --summary \"made it\"\nsay \"not this\"";
    reef.scripts(asks, says, "review pass", "json {\"summary\": \"opened\"}");
    let _worker = reef.hire("ann", "any");
    let mission = reef.mission("dev-task");
    reef.until_event(&mission, "step.asked", 1);
    let asked = reef.home.json(&["inbox"])["questions"][0].take();
    assert_eq!((&asked["reason"], &asked["text"]), (&"question".into(), &"hot or cold?".into()), "{asked:#}");
    reef.home.json(&["answer", &text(&asked, "id"), "hot"]);
    assert_eq!(reef.ended(&mission), DONE);
    let tasks = reef.look(&mission)["tasks"].clone();
    assert_eq!(tasks[1]["summary"], "made it", "{tasks:#}");
    assert_eq!(reef.commits(&mission), ["plan", "work"]);
}

#[test]
fn an_attempt_whose_time_is_over_is_ended_on_its_worker() {
    let reef = Reef::new("", None);
    let begins = reef.home.pipe("begins");
    reef.workflow(
        "short",
        "[workflow]\nname = \"short\"\ndescription = \"A test\"\nversion = \"1.0.0\"\n\n[[steps]]\nid = \"plan\"\nrole = \"any\"\nprompt_file = \"do/plan.md\"\ntimeout = \"5s\"\n",
    );
    reef.scripts(&format!("tell {}\nhang", begins.path()), "work", "work", "work");
    let _worker = reef.hire("ann", "any");
    let mission = reef.mission("short");
    begins.hear();
    let living = process::carrying(&format!("SLUICE_RUN={mission}"));
    assert!(!living.is_empty());
    assert_eq!(reef.ended(&mission), "failed: plan failed");
    assert!(living.iter().all(|pid| !process::lives(*pid)), "its end is waited for");
    assert!(text(&reef.look(&mission), "error").contains("`plan` failed"), "{:#}", reef.look(&mission));
}

#[test]
fn an_agent_on_a_worker_is_told_the_folder_it_works_in() {
    let reef = Reef::new("", None);
    let told = "json {\"summary\": \"{{worktree_path}}\"}";
    reef.scripts(told, "commit \"work\"", "review pass", "json {\"summary\": \"opened\"}");
    let _ann = reef.hire("ann", "any");
    let mission = reef.mission("dev-task");
    assert_eq!(reef.ended(&mission), DONE);
    let seen = reef.look(&mission);
    let plan = seen["tasks"].as_array().unwrap().iter().find(|task| task["step_id"] == "plan").unwrap();
    let folder = std::path::PathBuf::from(text(plan, "summary"));
    assert!(folder.is_absolute() && folder.join(".git").exists(), "{}: {plan:#}", folder.display());
}

/// The items of a fan-out come together in their order. A worker that waits for an item before its own can be the only one
/// that is left to do it.
#[test]
fn a_worker_that_waits_for_its_turn_does_what_it_waits_for() {
    let reef = Reef::new(IMPATIENT, None);
    std::fs::write(reef.home.path("with-shell"), "").unwrap();
    let begins = reef.home.pipe("begins");
    let steps = format!(
        "name: each
steps:
  - name: each
    type: parallel-agents
    max_concurrent: 2
    for_each: [a, b]
    prompt: |
      if test ${{item}} = a && mkdir {}; then echo > {}; exec sleep 600; fi
      echo ${{item}} > ${{item}}.txt
  - {{name: after, type: script, command: cat a.txt b.txt}}
",
        reef.home.path("was-here").display(),
        begins.path()
    );
    std::fs::write(reef.home.path("prompts/workflows/each.yml"), steps).unwrap();
    let ann = reef.hire("ann", "any");
    let mission = reef.mission("each");
    begins.hear();
    let ben = reef.hire("ben", "any");
    // The second item is done, and waits.
    reef.until_event(&mission, "attempt.started", 2);
    ann.kill();
    assert!(reef.ended(&mission).starts_with("completed: "), "{}", reef.look(&mission));
    let run = &reef.ask("GET", &format!("/v1/recipe/runs/{mission}"), &Value::Null)["run"];
    assert_eq!(run["steps"][1]["output"], "a\nb", "{run:#}");
    let holders = reef.events(&["--correlation", &mission, "--type", "attempt.ended"]);
    assert!(holders.iter().all(|event| event["actor"] == ben.crab.as_str()), "{holders:#?}");
}

/// A worker is killed when its work is at the remote and the engine has not heard of it. It is the same worker afterwards,
/// and what it did is not taken for nothing.
#[test]
fn work_that_was_pushed_and_not_reported_counts_when_its_worker_is_back() {
    let mut reef = Reef::new("", None);
    std::fs::write(reef.home.path("with-shell"), "").unwrap();
    let (pushed, goes) = (reef.home.pipe("pushed"), reef.home.pipe("goes"));
    let hook = reef.home.path("remote.git/hooks/post-receive");
    let once = reef.home.path("once");
    let waits = format!("mkdir {} && {{ echo > {}; read go < {}; }}", once.display(), pushed.path(), goes.path());
    std::fs::write(&hook, format!("#!/bin/sh\n{waits}\nexit 0\n")).unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let steps = "name: each
steps:
  - {name: each, type: parallel-agents, for_each: [a, b], prompt: 'echo ${item} > ${item}.txt; echo did ${item}'}
  - {name: after, type: script, command: cat a.txt b.txt}
";
    std::fs::write(reef.home.path("prompts/workflows/each.yml"), steps).unwrap();
    let ann = reef.hire("ann", "any");
    let mission = reef.mission("each");
    pushed.hear();
    reef.kill_engine();
    goes.let_go();
    ann.kill();
    reef.serve();
    let _ann = reef.hire("ann", "any");
    assert!(reef.ended(&mission).starts_with("completed: "), "{}", reef.look(&mission));
    let run = &reef.ask("GET", &format!("/v1/recipe/runs/{mission}"), &Value::Null)["run"];
    assert_eq!(run["steps"][1]["output"], "a\nb", "{run:#}");
    let remote = reef.home.path("remote.git");
    let words = ["-C", remote.to_str().unwrap(), "ls-tree", "--name-only", &format!("sluice/run-{mission}")];
    assert_eq!(reef.home.git(&words), "README.md\na.txt\nb.txt");
}
