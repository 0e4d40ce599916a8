//! Seed 003, scenario by scenario: each test has the name of one, and shows it on the built binary.

use super::home::Home;
use super::process;
use super::recipes::{
    all_gone, begin, events, first, fresh, grimoire, question, settled, show, standing, start, step, text, told,
    until_status,
};

/// What an agent of the shell says to answer with JSON.
const ANSWER: &str = "answer() { printf '```json\\n%s\\n```\\n' \"$1\"; }";

/// Starts a grimoire of these steps and gives the run as it stands when nothing happens any more by itself.
#[track_caller]
fn ran(home: &Home, steps: &str) -> serde_json::Value {
    grimoire(home, "mine", steps);
    let ran = start(home, &["mine"]);
    assert!([0, 1, 10].contains(&ran.code), "{ran:?}");
    ran.json()["run"].take()
}

#[test]
fn grimoire_loaded_from_built_in_defaults() {
    let home = fresh();
    let list = home.json(&["workflow", "list"]).to_string();
    for name in ["spec-to-beads", "implement-bead", "review-loop", "prepare-pr"] {
        assert!(list.contains(&format!("\"{name}\"")), "{name} is not in {list}");
        let shown = home.sluice(&["workflow", "show", name]).done().stdout;
        let path = home.path(&format!("{name}.yml"));
        std::fs::write(&path, &shown).unwrap();
        let checked = home.sluice(&["check", path.to_str().unwrap(), "--format", "json"]).done().json();
        assert_eq!(checked["problems"].as_array().unwrap().len(), 0, "{checked:#}");
        assert!(shown.contains("steps:"), "{shown}");
    }
}

#[test]
fn grimoire_loaded_from_custom_file() {
    let home = fresh();
    grimoire(&home, "greet", "steps:\n  - {name: hello, type: script, command: echo hello}\n");
    let run = start(&home, &["greet"]).done().json();
    assert_eq!(run["run"]["kind"], "workflow");
    // One with the name of a built-in one hides it.
    grimoire(&home, "prepare-pr", "steps:\n  - {name: mine, type: script, command: echo mine}\n");
    let run = start(&home, &["prepare-pr"]).done().json();
    assert_eq!(standing(&run["run"]), "mine completed");
}

#[test]
fn agent_step_execution() {
    let home = fresh();
    let pipe = home.pipe("go");
    let steps = format!(
        "steps:\n  - name: work\n    type: agent\n    prompt: 'demo: wait for {}; say three lines changed'\n  - {{name: after, type: script, command: 'true'}}\n",
        pipe.path()
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    pipe.let_go();
    let run = until_status(&home, &id, "completed");
    let told = told(&home, &id, "workflow.step.");
    assert_eq!(
        told,
        [
            "workflow.step.started work",
            "workflow.step.completed work",
            "workflow.step.started after",
            "workflow.step.completed after"
        ],
        "the next step waits for the agent"
    );
    assert!(text(&step(&run, "work")["output"]).contains("three lines changed"), "{run:#}");
}

#[test]
fn script_step_execution() {
    let home = fresh();
    let run = ran(&home, "steps:\n  - {name: both, type: script, command: 'echo out; echo err >&2'}\n");
    assert_eq!(text(&run["status"]), "completed");
    assert_eq!(text(&step(&run, "both")["output"]), "out");
    let log = home.sluice(&["run", "log", text(&run["id"]), "both"]).done().stdout;
    assert_eq!(log, "out\nerr\n");
    let run = ran(&home, "steps:\n  - {name: bad, type: script, command: 'echo no such luck >&2; exit 3'}\n");
    assert_eq!(text(&run["status"]), "failed");
    assert_eq!(text(&step(&run, "bad")["error"]), "it ended with exit code 3: no such luck");
}

#[test]
fn gate_step_execution() {
    let home = fresh();
    let note = home.path("note");
    let config =
        format!("[notify]\ncommand = [\"sh\", \"-c\", \"cat > {0}.new && mv {0}.new {0}\"]\n", note.to_str().unwrap());
    std::fs::write(home.place().join("config.toml"), config).unwrap();
    let steps = "steps:\n  - {name: tests, type: gate, command: 'test -e fine'}\n  - {name: after, type: script, command: 'true'}\n";
    grimoire(&home, "mine", steps);
    let ran = start(&home, &["mine"]);
    assert_eq!(ran.code, 10, "{ran:?}");
    let run = ran.json()["run"].take();
    assert_eq!(standing(&run), "tests held, after waiting");
    let id = text(&run["id"]).to_owned();
    assert_eq!(text(&question(&home, &id)["kind"]), "gate");
    // Once the check can pass, it is made again and the workflow goes on from there.
    std::fs::write(std::path::Path::new(text(&run["workspace"])).join("fine"), "").unwrap();
    home.json(&["answer", &id, "retry"]);
    assert_eq!(standing(&until_status(&home, &id, "completed")), "tests completed, after completed");
    let told = std::fs::read_to_string(&note).unwrap();
    assert!(told.contains("`tests` needs a person: the check failed: exit code 1"), "{told}");
}

#[test]
fn fan_out_to_multiple_agents() {
    let home = fresh();
    let pipes = ["go-a", "go-b", "go-c"].map(|name| home.pipe(name));
    let steps = format!(
        "steps:\n  - name: all\n    type: parallel-agents\n    for_each: [a, b, c]\n    max_concurrent: 2\n    prompt: 'demo: wait for {}-${{item}}; say I did ${{item}}'\n",
        home.path("go").display()
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    let states = || {
        let run = show(&home, &id);
        let items = step(&run, "all")["items"].as_array().unwrap().clone();
        items.iter().map(|it| text(&it["status"]).to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(states(), "running running waiting");
    pipes[1].let_go();
    // An item that writes is merged after those before it, and so ends after them.
    pipes[0].let_go();
    home.until_event(&id, "workflow.step.part.ended", 2);
    assert_eq!(states(), "completed completed running");
    pipes[2].let_go();
    assert_eq!(settled(&home, &id)["status"], "completed");
}

#[test]
fn parallel_agent_output_aggregation() {
    let home = fresh();
    let steps = "steps:\n  - name: all\n    type: parallel-agents\n    for_each: [a, b, c]\n    output: found\n    prompt: 'demo: json {\"item\": \"${item}\", \"at\": ${index}}'\n  - {name: use, type: script, command: 'echo ${found.1.item}'}\n";
    let run = ran(&home, steps);
    let expected = serde_json::json!([{"item": "a", "at": 0}, {"item": "b", "at": 1}, {"item": "c", "at": 2}]);
    assert_eq!(run["variables"]["found"], expected, "{run:#}");
    assert_eq!(text(&step(&run, "use")["output"]), "b");
}

#[test]
fn partial_failure_handling() {
    let home = fresh();
    let steps = |on_failure: &str| {
        format!(
            "steps:\n  - name: all\n    type: parallel-agents\n    harness: shell\n    for_each: [1, 2, 3]\n    on_failure: {on_failure}\n    output: found\n    prompt: 'test ${{item}} != 2 || test -e \"$SLUICE_HOME/mended\" && echo done ${{item}}'\n  - {{name: after, type: script, command: 'true'}}\n"
        )
    };
    let run = ran(&home, &steps("continue"));
    assert_eq!(text(&run["status"]), "completed");
    assert_eq!(text(&step(&run, "all")["summary"]), "2 of 3 items completed, 1 failed");
    let states: Vec<&str> =
        step(&run, "all")["items"].as_array().unwrap().iter().map(|it| text(&it["status"])).collect();
    assert_eq!(states, ["completed", "failed", "completed"]);
    assert_eq!(run["variables"]["found"][0], "done 1\n");
    assert!(text(&run["variables"]["found"][1]["error"]).contains("exit"), "{run:#}");
    // The same, but a person is asked; only what failed is done again.
    let run = ran(&home, &steps("block"));
    assert_eq!(standing(&run), "all held, after waiting");
    let id = text(&run["id"]).to_owned();
    let asked = question(&home, &id);
    assert!(text(&asked["text"]).starts_with("1 of 3 items failed; item 1: "), "{asked}");
    std::fs::write(home.place().join("mended"), "").unwrap();
    home.json(&["answer", &id, "retry"]);
    let run = until_status(&home, &id, "completed");
    assert_eq!(run["variables"]["found"][1], "done 2\n");
    let began = |part: &str| {
        let started =
            |it: &&serde_json::Value| it["type"] == "workflow.step.part.started" && it["data"]["part"] == part;
        events(&home, &id).iter().filter(started).count()
    };
    assert_eq!((began("item-0"), began("item-1"), began("item-2")), (1, 2, 1));
}

/// A loop whose arbiter says `done` in turn `done_at`.
fn judged(done_at: u32, more: &str) -> String {
    format!(
        "steps:\n  - name: loop\n    type: agent-loop\n    harness: shell\n    max_iterations: 3\n{more}    prompt: |\n      echo work of turn ${{iteration}}\n    arbiter_prompt: |\n      {ANSWER}\n      if test ${{iteration}} -ge {done_at}; then answer '{{\"result\": \"done\"}}'; else answer '{{\"result\": \"actionable\", \"summary\": \"not yet\"}}'; fi\n      exit 0\n  - {{name: after, type: script, command: 'true'}}\n"
    )
}

#[test]
fn agent_loop_iteration() {
    let home = fresh();
    let run = ran(&home, &judged(2, ""));
    assert_eq!(text(&run["status"]), "completed", "{run:#}");
    assert_eq!(text(&step(&run, "loop")["result"]), "done");
    assert_eq!(text(&step(&run, "loop")["output"]), "work of turn 2\n");
    let all = events(&home, text(&run["id"]));
    let parts = all.iter().filter(|it| it["type"] == "workflow.step.part.ended");
    let parts: Vec<&str> = parts.map(|it| text(&it["data"]["part"])).collect();
    assert_eq!(parts, ["turn-1", "arbiter-1", "turn-2", "arbiter-2"]);
}

#[test]
fn agent_loop_max_iterations() {
    let home = fresh();
    let run = ran(&home, &judged(9, "    on_max_iterations: continue\n"));
    assert_eq!(standing(&run), "loop completed, after completed");
    assert_eq!(text(&step(&run, "loop")["result"]), "actionable");
    let run = ran(&home, &judged(9, "    on_max_iterations: block\n"));
    assert_eq!(standing(&run), "loop held, after waiting");
    let id = text(&run["id"]);
    assert_eq!(text(&question(&home, id)["kind"]), "max_iterations");
    home.json(&["answer", id, "continue"]);
    assert_eq!(standing(&until_status(&home, id, "completed")), "loop completed, after completed");
}

#[test]
fn arbiter_context() {
    let home = fresh();
    let note = home.path("judged");
    // It sees the work, the output and the history, and what it writes where it stands is gone afterwards.
    let steps = format!(
        "steps:\n  - name: loop\n    type: agent-loop\n    harness: shell\n    prompt: |\n      echo ${{iteration}} >> work.txt; echo output of turn ${{iteration}}\n    arbiter_prompt: |\n      {ANSWER}\n      cat work.txt > {note}; echo vandalised > work.txt; git commit -qam mine\n      echo 'I judge: ${{output}} after: ${{history}}' >> {note}\n      if test ${{iteration}} -ge 2; then answer '{{\"result\": \"done\"}}'; else answer '{{\"result\": \"actionable\", \"summary\": \"go on\"}}'; fi\n      exit 0\n",
        note = note.to_str().unwrap()
    );
    let run = ran(&home, &steps);
    assert_eq!(text(&run["status"]), "completed", "{run:#}");
    let judged = std::fs::read_to_string(&note).unwrap();
    assert!(judged.starts_with("1\n2\n"), "{judged}");
    assert!(judged.contains("I judge: output of turn 2"), "{judged}");
    assert!(judged.contains("Turn 1: output of turn 1\nArbiter: actionable go on"), "{judged}");
    let work = std::path::Path::new(text(&run["workspace"])).join("work.txt");
    assert_eq!(std::fs::read_to_string(work).unwrap(), "1\n2\n", "the work is as the agent left it");
}

#[test]
fn an_arbiter_that_reaches_for_the_work_fails_its_step() {
    let home = fresh();
    let steps = format!(
        "steps:\n  - name: loop\n    type: agent-loop\n    harness: shell\n    prompt: |\n      echo good > work.txt\n    arbiter_prompt: |\n      {ANSWER}\n      echo vandalised > '${{run.workspace}}/work.txt'; answer '{{\"result\": \"done\"}}'; exit 0\n"
    );
    let run = ran(&home, &steps);
    assert_eq!(text(&run["status"]), "failed");
    let error = text(&step(&run, "loop")["error"]);
    assert!(error.starts_with("the arbiter changed the work, which it may not; the work was put back"), "{error}");
    let work = std::path::Path::new(text(&run["workspace"])).join("work.txt");
    assert_eq!(std::fs::read_to_string(work).unwrap(), "good\n");
}

#[test]
fn outside_git_an_arbiter_that_touches_the_work_is_found_out() {
    let home = fresh();
    let plain = home.path("plain");
    std::fs::create_dir(&plain).unwrap();
    let started = |arbiter: &str| {
        let text = format!(
            "name: mine\nsteps:\n  - name: loop\n    type: agent-loop\n    harness: shell\n    prompt: |\n      echo good > work.txt\n    arbiter_prompt: |\n      {ANSWER}\n      {arbiter}answer '{{\"result\": \"done\"}}'; exit 0\n"
        );
        std::fs::write(plain.join("mine.yml"), text).unwrap();
        let mut command = home.command(&["start", "mine.yml", "--json"]);
        super::home::run(command.current_dir(&plain)).json()["run"].take()
    };
    assert_eq!(text(&started("")["status"]), "completed");
    let run = started("echo vandalised > work.txt; ");
    let error = text(&step(&run, "loop")["error"]);
    assert!(error.starts_with("the arbiter changed the work, which it may not: "), "{error}");
    assert!(error.contains("work.txt"), "{error}");
}

#[test]
fn what_an_agent_used_up_is_kept_with_its_step() {
    let home = fresh();
    let config = home.place().join("config.toml");
    let said = home.path("said.json");
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"done","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":4}}"#;
    std::fs::write(&said, format!("{result}\n")).unwrap();
    let counting =
        format!("\n[harnesses.counting]\nheadless = [\"cat\", \"{}\"]\noutput = \"claude\"\n", said.display());
    let kept = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, kept + &counting).unwrap();
    let run = ran(&home, "steps:\n  - {name: one, type: agent, harness: counting, prompt: go}\n");
    let usage = &step(&run, "one")["usage"];
    assert_eq!((&usage["output_tokens"], &usage["cost_usd"]), (&4.into(), &0.25.into()), "{run:#}");
    let noted = home.place().join(format!("sessions/attempts/{}.0.1.whole/harness.json", text(&run["id"])));
    let noted: serde_json::Value = serde_json::from_slice(&std::fs::read(noted).unwrap()).unwrap();
    assert_eq!((&noted["harness"], &noted["program"]), (&"counting".into(), &"cat".into()));
}

/// As claude and others do: it stays, and makes an exit status of the signal that ends it.
#[test]
fn a_program_that_stays_after_its_last_words_is_ended_and_they_count() {
    let home = fresh();
    let config = home.place().join("config.toml");
    let script = home.path("stays.sh");
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;
    std::fs::write(&script, format!("trap 'exit 143' TERM\necho '{result}'\nsleep 600 & wait\n")).unwrap();
    let staying =
        format!("\n[harnesses.staying]\nheadless = [\"sh\", \"{}\"]\noutput = \"claude\"\n", script.display());
    let kept = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, kept + &staying).unwrap();
    let run = ran(&home, "steps:\n  - {name: one, type: agent, harness: staying, prompt: go}\n");
    let one = step(&run, "one");
    assert_eq!((text(&one["status"]), text(&one["output"])), ("completed", "done"), "{run:#}");
}

#[test]
fn step_output_stored() {
    let home = fresh();
    let run = ran(&home, "steps:\n  - {name: one, type: script, command: echo 41, output: answer}\n");
    assert_eq!(run["variables"]["answer"], "41");
}

#[test]
fn variable_resolution_in_input() {
    let home = fresh();
    let steps = "steps:\n  - {name: one, type: agent, output: plan, prompt: 'demo: json {\"files\": {\"first\": \"a b.rs\"}}'}\n  - {name: two, type: script, command: 'echo ${plan.files.first}'}\n  - {name: three, type: agent, prompt: 'demo: say saw ${two.output}'}\n";
    let run = ran(&home, steps);
    assert_eq!(text(&step(&run, "two")["output"]), "a b.rs");
    assert!(text(&step(&run, "three")["output"]).contains("saw a b.rs"), "{run:#}");
    // A variable that nobody gave is the end, with its name.
    let steps = "steps:\n  - {name: one, type: agent, output: plan, prompt: 'demo: json {}'}\n  - {name: two, type: script, command: 'echo ${plan.files.first}'}\n";
    let run = ran(&home, steps);
    assert_eq!(text(&run["status"]), "failed");
    assert_eq!(text(&run["error"]), "`two` failed: `plan.files.first` is not defined");
}

#[test]
fn variable_resolution_in_for_each() {
    let home = fresh();
    let steps = |said: &str| {
        format!(
            "steps:\n  - {{name: find, type: agent, output: found, prompt: 'demo: json {said}'}}\n  - name: all\n    type: parallel-agents\n    for_each: ${{found.files}}\n    prompt: 'demo: say saw ${{item}}'\n"
        )
    };
    let run = ran(&home, &steps("{\"files\": [\"x\", \"y\"]}"));
    assert_eq!(step(&run, "all")["items"].as_array().unwrap().len(), 2, "{run:#}");
    let run = ran(&home, &steps("{\"files\": \"x\"}"));
    assert_eq!(standing(&run), "find failed, all failed");
    assert_eq!(text(&step(&run, "find")["error"]), "it did not give a list as `found.files`, which `all` goes over");
}

#[test]
fn workflow_start() {
    let home = fresh();
    let pipe = home.pipe("go");
    let steps = format!(
        "steps:\n  - {{name: one, type: agent, prompt: 'demo: wait for {}'}}\n  - {{name: two, type: script, command: 'true'}}\n",
        pipe.path()
    );
    grimoire(&home, "mine", &steps);
    let (one, other) = (begin(&home, &["mine"]), begin(&home, &["mine"]));
    assert_ne!(one, other);
    let run = show(&home, &one);
    assert_eq!((text(&run["status"]), text(&run["current_step"])), ("running", "one"));
    assert_eq!(standing(&run), "one running, two waiting");
    assert_eq!(told(&home, &one, "workflow."), ["workflow.started", "workflow.step.started one"]);
    home.json(&["run", "cancel", &one]);
    home.json(&["run", "cancel", &other]);
}

#[test]
fn workflow_completion() {
    let home = fresh();
    let run = ran(&home, "steps:\n  - {name: one, type: script, command: 'true'}\n");
    assert_eq!(text(&run["status"]), "completed");
    let event = first(&home, text(&run["id"]), "workflow.completed");
    assert_eq!((&event["data"]["workflow_id"], &event["data"]["status"]), (&run["id"], &"completed".into()));
}

#[test]
fn workflow_failure() {
    let home = fresh();
    let steps =
        "steps:\n  - {name: one, type: script, command: 'exit 4'}\n  - {name: two, type: script, command: 'true'}\n";
    let run = ran(&home, steps);
    assert_eq!((text(&run["status"]), text(&run["error"])), ("failed", "`one` failed: it ended with exit code 4"));
    let event = first(&home, text(&run["id"]), "workflow.failed");
    assert_eq!(text(&event["data"]["error"]), "`one` failed: it ended with exit code 4");
    assert_eq!(text(&step(&run, "two")["error"]), "`one` failed");
}

#[test]
fn workflow_blocking() {
    let home = fresh();
    let steps = "steps:\n  - {name: one, type: script, command: 'echo x >> count; wc -l < count'}\n  - {name: gate, type: gate, command: 'test -e fine'}\n  - {name: two, type: script, command: 'cat count'}\n";
    let run = ran(&home, steps);
    let id = text(&run["id"]);
    assert_eq!((text(&run["status"]), text(&run["current_step"])), ("held", "gate"));
    assert_eq!(home.sluice(&["run", "follow", id]).code, 10);
    assert_eq!(home.refused(&["answer", id, "perhaps"]), "1 not_ready");
    home.json(&["answer", id, "skip"]);
    let run = until_status(&home, id, "completed");
    assert_eq!(standing(&run), "one completed, gate skipped, two completed");
    assert_eq!(text(&step(&run, "two")["output"]), "x", "what was done is not done again");
    assert_eq!(home.refused(&["answer", id, "skip"]), "5 not_ready");
    assert_eq!(home.refused(&["answer", &format!("{id}/1"), "skip"]), "5 not_ready");
    assert_eq!(home.refused(&["answer", &format!("{id}/99"), "skip"]), "3 not_found");
}

#[test]
fn cancel_workflow() {
    let home = fresh();
    let told_here = home.pipe("told");
    let steps = format!(
        "steps:\n  - {{name: one, type: agent, prompt: 'demo: leave daemon {}; tell {}; hang'}}\n  - {{name: two, type: script, command: 'true'}}\n",
        home.path("daemon").display(),
        told_here.path()
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    told_here.hear();
    let daemon: i32 = std::fs::read_to_string(home.path("daemon")).unwrap().trim().parse().unwrap();
    assert!(process::lives(daemon));
    let run = home.json(&["run", "cancel", &id, "--reason", "not needed"])["run"].take();
    all_gone(&[daemon]);
    assert_eq!((text(&run["status"]), text(&run["error"])), ("cancelled", "not needed"));
    assert_eq!(text(&first(&home, &id, "workflow.cancelled")["data"]["reason"]), "not needed");
    assert_eq!(home.refused(&["run", "cancel", &id]), "1 finished");
}

#[test]
fn step_started_event_and_step_completed_event() {
    let home = fresh();
    let run = ran(&home, "steps:\n  - {name: one, type: script, command: 'echo three files'}\n");
    let id = text(&run["id"]);
    let data = first(&home, id, "workflow.step.started")["data"].take();
    assert_eq!((text(&data["workflow_id"]), text(&data["step_name"]), text(&data["step_type"])), (id, "one", "script"));
    let data = first(&home, id, "workflow.step.completed")["data"].take();
    let said = (text(&data["workflow_id"]), text(&data["step_name"]), text(&data["output_summary"]));
    assert_eq!(said, (id, "one", "three files"));
}

#[test]
fn intervention_required_event() {
    let home = fresh();
    let run = ran(&home, "steps:\n  - {name: tests, type: gate, command: 'exit 2'}\n");
    let id = text(&run["id"]);
    let data = first(&home, id, "workflow.intervention.required")["data"].take();
    assert_eq!((text(&data["workflow_id"]), text(&data["step_name"])), (id, "tests"));
    assert_eq!(text(&data["reason"]), "the check failed: exit code 2");
    assert_eq!(data["options"], serde_json::json!(["retry", "skip", "abort"]), "{data:#}");
}
