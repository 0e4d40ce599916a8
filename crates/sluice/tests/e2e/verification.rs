//! Verification (seed 004): evidence of what each step produced, the verdict, what follows from it, and the supervisor.

use std::time::Instant;

use serde_json::Value;

use super::home::{Home, LONG};
use super::processes::{file, read, template};

/// A harness `scripted`: the scripted agent, told by this and not by its prompt.
fn scripted(home: &Home, script: &str) {
    let path = home.path("script");
    std::fs::write(&path, script).unwrap();
    std::fs::create_dir_all(home.place()).unwrap();
    let (program, path) = (env!("CARGO_BIN_EXE_sluice"), path.display());
    let words = format!("[\"{program}\", \"demo-agent\", \"--script\", \"{path}\"]");
    let config = format!("[harnesses.scripted]\nheadless = {words}\nreduced = {words}\noutput = \"text\"\n");
    std::fs::write(home.place().join("config.toml"), config).unwrap();
}

/// What is kept of a run: of its steps, and its verdict at the end.
fn evidence(home: &Home, run: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(home.place().join("evidence").join(format!("{run}.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The verdict of a run. What a step that was cancelled gave may stand behind it.
fn verdict(home: &Home, run: &str) -> Value {
    evidence(home, run).into_iter().rfind(|line| line["kind"] == "verdict").unwrap()
}

/// Starts a recipe, and gives its run when it has ended.
fn run(home: &Home, arguments: &[&str]) -> Value {
    let ran = home.sluice(&[&["start"], arguments, &["--json"]].concat());
    ran.json()["run"].take()
}

/// `step status` of the steps of a run.
fn statuses(run: &Value) -> Vec<String> {
    let steps = run["steps"].as_array().unwrap().iter();
    steps.map(|step| format!("{} {}", step["id"].as_str().unwrap(), step["status"].as_str().unwrap())).collect()
}

const JUDGED: &str = "designer: json {\"summary\": \"it must be hot\"}
strategist: json {\"summary\": \"a thermometer\"}
auditor: json {\"summary\": \"shown by the thermometer\"}
advocate: json {\"summary\": \"it is hot\"}
critic: json {\"summary\": \"it could be hotter\"}
judge: json {\"summary\": \"hot enough\", \"result\": \"PASS\"}
";

#[test]
fn verify_pipeline_leaves_evidence_and_a_verdict() {
    let home = Home::empty();
    let together = home.pipe("together");
    // Each of the two waits for the other: they are at work at the same time.
    let script = JUDGED
        .replace("advocate: ", &format!("advocate: tell {}; ", together.path()))
        .replace("critic: ", &format!("critic: wait for {}; ", together.path()));
    scripted(&home, &script);
    let verify = "verify_command=echo warm; test -f README.md";
    let run = run(
        &home,
        &[
            "verify-pipeline",
            "--harness",
            "scripted",
            "--prompt",
            "Make it hot",
            "--work-order",
            "wo-1",
            "--input",
            verify,
        ],
    );
    assert_eq!(run["status"], "completed", "{run:#}");
    let id = run["id"].as_str().unwrap();
    let kept = evidence(&home, id);
    let of = |kind: &str, step: &str| {
        kept.iter().find(|line| line["kind"] == kind && line["step"] == step && line["attempt"] == 1).unwrap().clone()
    };
    assert!(of("told", "elaborate")["prompt"].as_str().unwrap().contains("Make it hot"));
    assert!(of("told", "verify")["command"].as_str().unwrap().contains("echo PASS"));
    let verified = of("gave", "verify");
    assert_eq!((&verified["output"], &verified["stderr"]), (&"PASS".into(), &"warm\n".into()));
    assert_eq!(
        (&verified["status"], &verified["exit_code"], &verified["type"]),
        (&"completed".into(), &0.into(), &"script".into())
    );
    // One file for all of it.
    let files = std::fs::read_dir(home.place().join("evidence")).unwrap().count();
    assert_eq!((files, kept.len()), (1, 15));
    let verdict = verdict(&home, id);
    assert_eq!(
        (&verdict["result"], &verdict["judged_by"], &verdict["status"]),
        (&"PASS".into(), &"judge".into(), &"completed".into())
    );
    assert_eq!((&verdict["work_order"], &verdict["summary"]), (&"wo-1".into(), &"hot enough".into()));
    assert_eq!(verdict["definition"].as_str().unwrap().len(), 64, "{verdict:#}");
    assert_eq!(verdict["commit"].as_str().unwrap().len(), 40, "{verdict:#}");
    assert_eq!(read(file(&home, &format!("{id}.archive.json")))["status"], "completed");
}

#[test]
fn qa_merge_merges_and_archives_on_pass() {
    let home = Home::empty();
    scripted(&home, JUDGED);
    home.sluice(&["project", "add"]).done();
    let task = home.create("brew", "worker: work\nreviewer: review pass", &[]);
    home.until_status(&task, "reviewing");
    let run =
        run(&home, &["qa-merge", "--harness", "scripted", "--work-order", &task, "--input", "verify_command=true"]);
    assert_eq!(
        statuses(&run),
        [
            "receive completed",
            "verify completed",
            "audit completed",
            "advocate completed",
            "criticize completed",
            "judge completed",
            "merge completed",
            "rework skipped",
            "discard skipped",
        ],
        "{run:#}"
    );
    assert_eq!(home.task(&task)["status"], "done");
    let id = run["id"].as_str().unwrap();
    assert_eq!(read(file(&home, &format!("{id}.archive.json")))["wo_id"], task.as_str());
    let verdict = verdict(&home, id);
    assert_eq!(verdict["result"], "PASS");
    // The commit that was judged is the one that was merged.
    home.git(&["merge-base", "--is-ancestor", verdict["commit"].as_str().unwrap(), "main"]);
}

#[test]
fn qa_merge_asks_for_rework_and_is_cancelled_on_fail() {
    let home = Home::empty();
    let fails = JUDGED.replace("\"hot enough\", \"result\": \"PASS\"", "\"it is cold\", \"result\": \"FAIL\"");
    scripted(&home, &fails);
    home.sluice(&["project", "add"]).done();
    let script = "worker: work\nreviewer: review pass";
    let task = home.create("brew", script, &["--workflow", "persistent"]);
    home.until_status(&task, "reviewing");
    let run =
        run(&home, &["qa-merge", "--harness", "scripted", "--work-order", &task, "--input", "verify_command=true"]);
    assert_eq!((&run["status"], &run["error"]), (&"cancelled".into(), &"rework requested".into()), "{run:#}");
    let id = run["id"].as_str().unwrap();
    assert!(statuses(&run).contains(&"rework completed".to_owned()), "{run:#}");
    let history = home.history(&task);
    let asked = |event: &&Value| event["type"] == "status.changed" && event["data"]["from"] == "reviewing";
    assert_eq!(history.iter().find(asked).unwrap()["data"]["to"], "working");
    let said = std::fs::read_to_string(home.home_file(&task)).unwrap();
    assert!(said.contains("## Feedback") && said.contains("it is cold"), "{said}");
    assert_eq!(home.json(&["process", "list", "--all"])["processes"].as_array().unwrap().len(), 0);
    assert!(!file(&home, &format!("{id}.json")).exists() && !file(&home, &format!("{id}.archive.json")).exists());
    assert_eq!(verdict(&home, id)["result"], "FAIL");
}

#[test]
fn hooks_at_the_end_of_a_run() {
    let home = Home::empty();
    let told = home.path("told");
    std::fs::create_dir_all(home.place()).unwrap();
    let command = format!("cat >> {}", told.display());
    std::fs::write(home.place().join("config.toml"), format!("[notify]\ncommand = [\"sh\", \"-c\", \"{command}\"]\n"))
        .unwrap();
    let done = home.pipe("done");
    template(
        &home,
        "next",
        &format!("[[steps]]\nid = \"a\"\ntype = \"script\"\ncommand = \"echo x > {}\"\n", done.path()),
    );
    let hooks = |word: &str| {
        format!(
            "{word} = [{{ action = \"notify\", message = \"${{run.work_order}} is over\" }}, {{ action = \"run_command\", \
             command = \"echo ran >> {}\" }}, {{ action = \"start\", recipe = \"next\" }}]\n",
            told.display()
        )
    };
    let step = |command: &str| format!("[[steps]]\nid = \"a\"\ntype = \"script\"\ncommand = \"{command}\"\n");
    template(&home, "good", &(hooks("on_complete") + &step("true")));
    template(&home, "bad", &(hooks("on_fail") + &step("exit 1")));
    for (recipe, status) in [("good", "completed"), ("bad", "failed")] {
        let ended = run(&home, &[recipe, "--work-order", "wo-3"]);
        assert_eq!(ended["status"], status);
        done.hear();
        let mut settled = home.follow(&["--type", "effect.settled", "--correlation", ended["id"].as_str().unwrap()]);
        for _ in 0..3 {
            let event = settled.next(Instant::now() + LONG).unwrap();
            assert!(event["data"]["error"].is_null(), "{event:#}");
        }
    }
    let runs = home.json(&["run", "list", "--all"]);
    let next = runs["runs"].as_array().unwrap().iter().filter(|run| run["recipe"] == "next").count();
    assert_eq!(next, 2);
    let words = std::fs::read_to_string(&told).unwrap();
    assert_eq!((words.matches("wo-3 is over").count(), words.matches("ran").count()), (2, 2), "{words}");
}

#[test]
fn the_supervisor_lists_nudges_and_ends() {
    let home = Home::empty();
    scripted(&home, "");
    home.sluice(&["project", "add"]).done();
    let (here, nudged) = (home.pipe("here"), home.pipe("nudged"));
    let waits = format!("worker: tell {}; wait for notification; tell {}; hang", here.path(), nudged.path());
    let idle = home.create("slow", &waits, &[]);
    here.hear();
    let stuck = home.create("dead", &format!("worker: tell {}; hang", here.path()), &[]);
    here.hear();
    let listed = home.json(&["task", "list"]);
    assert!(listed["tasks"].as_array().unwrap().iter().all(|task| task["idle_seconds"].is_number()), "{listed:#}");

    let found = format!("{{\"summary\": \"one idle, one stuck\", \"idle\": \"{idle}\", \"stuck\": \"{stuck}\"}}");
    scripted(&home, &format!("supervisor: sluice task list --json; json {found}\n"));
    let run = run(&home, &["supervisor-patrol", "--harness", "scripted"]);
    assert_eq!(run["status"], "completed", "{run:#}");
    nudged.hear();
    assert_eq!(home.task(&stuck)["status"], "stuck");
    assert_eq!(home.task(&idle)["status"], "working");
    let steps = run["steps"].as_array().unwrap();
    assert_eq!(steps[2]["output"].as_str().unwrap().lines().last().unwrap(), format!("nudged {idle}"));
    assert!(steps[3]["output"].as_str().unwrap().contains(&format!("moved {stuck} to stuck")), "{run:#}");
    // It rests until the next patrol; a person ends it, and the workers one by one.
    home.sluice(&["process", "cancel", run["id"].as_str().unwrap()]).done();
    for task in [&idle, &stuck] {
        home.sluice(&["task", "cancel", task, "--yes"]).done();
        assert_eq!(home.task(task)["session"], "inactive");
    }
}
