//! What waits for a person is in the inbox as soon as the engine knows it, `wait` ends with 10, and one answer solves it.

use serde_json::{Value, json};

use super::home::{Home, run};
use super::recipes::{begin, fresh, grimoire, question, settled, text, until};
use super::served::{Served, token};

/// Waits for the `count`th attention of a task, and gives it as the inbox has it: there is nothing to wait for then.
#[track_caller]
fn raised(home: &Home, id: &str, count: usize) -> Value {
    let event = home.until_event(id, "attention.set", count);
    let inbox = home.json(&["inbox"])["questions"].take();
    let found = inbox.as_array().unwrap().iter().find(|it| it["task"] == id).unwrap_or_else(|| panic!("{inbox:#}"));
    assert_eq!(found["id"], event["data"]["id"], "{event:#}");
    assert_eq!(found["text"], event["data"]["attention"], "{event:#}");
    let note = home.task(id)["attention"].take();
    let same = ["id", "reason", "text", "since", "said_by"];
    assert_eq!(same.map(|key| &note[key]), same.map(|key| &found[key]), "{note:#}");
    assert_eq!(note["choices"], found["options"], "{note:#}");
    let waited = home.sluice(&["task", "wait", id]);
    assert_eq!(waited.code, 10, "{waited:?}");
    assert!(waited.stderr.contains(&format!("({})", text(&found["reason"]))), "{waited:?}");
    let first = text(&found["options"][0]);
    assert!(waited.stderr.contains(&format!("`sluice answer {} {first}", text(&found["id"]))), "{waited:?}");
    let shown = home.sluice(&["inbox"]).done().stdout;
    assert!(shown.contains(&format!("sluice answer {} {first}", text(&found["id"]))), "{shown}");
    let listed = home.sluice(&["task", "list"]).done().stdout;
    assert!(listed.contains(&format!("! {}: ", text(&found["reason"]))), "{listed}");
    found.clone()
}

fn options(attention: &Value) -> Vec<&str> {
    attention["options"].as_array().unwrap().iter().map(text).collect()
}

#[track_caller]
fn answer(home: &Home, attention: &Value, more: &[&str]) -> Value {
    home.json(&[&["answer", text(&attention["id"])], more].concat())
}

fn waiting(home: &Home) -> usize {
    home.json(&["inbox"])["questions"].as_array().unwrap().len()
}

#[test]
fn a_review_is_approved_or_sent_back_from_the_inbox() {
    let home = Home::new();
    let more = ["--workflow", "reviewed"];
    let id = home.create("brew", "worker: work\nreviewer: review pass", &more);
    let asked = raised(&home, &id, 1);
    assert_eq!((text(&asked["reason"]), text(&asked["title"]), text(&asked["said_by"])), ("review", "brew", "engine"));
    assert_eq!(options(&asked), ["approve", "request-changes", "working", "cancel"]);
    // What sends it back needs words.
    assert_eq!(home.refused(&["answer", &id, "request-changes"]), "2 bad_request");
    assert_eq!(home.refused(&["answer", &id, "perhaps"]), "2 bad_request");
    let sent = answer(&home, &asked, &["request-changes", "--message", "hotter"]);
    assert_eq!(sent["task"]["status"], "working", "{sent:#}");
    // The same id is answered once.
    assert_eq!(home.refused(&["answer", text(&asked["id"]), "approve"]), "5 not_ready");
    assert_eq!(home.refused(&["answer", &format!("{id}/99"), "approve"]), "3 not_found");
    let again = raised(&home, &id, 2);
    assert_ne!(again["id"], asked["id"]);
    let merged = answer(&home, &again, &["approve"]);
    assert_eq!((&merged["task"]["status"], &merged["task"]["attention"]), (&"done".into(), &Value::Null), "{merged:#}");
    assert_eq!(waiting(&home), 0);
}

#[test]
fn a_hook_that_failed_does_not_hide_the_review() {
    let home = Home::new();
    std::fs::write(home.place().join("config.toml"), "[notify]\ndesktop = false\ncommand = [\"false\"]\n").unwrap();
    let id = home.create("brew", "worker: work\nreviewer: review pass", &["--workflow", "reviewed"]);
    // The wait is over when the hooks of the move are, and says that one of them failed.
    let waited = home.sluice(&["task", "wait", &id, "--status", "reviewing"]);
    assert_eq!(waited.code, 10, "{waited:?}");
    assert!(waited.stderr.contains("is in `reviewing` and needs a person (hook_failed): "), "{waited:?}");
    let inbox = home.json(&["inbox"])["questions"].take();
    let asked = &inbox[0];
    assert_eq!(inbox.as_array().unwrap().len(), 1, "{inbox:#}");
    assert!(text(&asked["text"]).contains("; also: notify failed: it ended with exit code 1"), "{asked:#}");
    assert_eq!(options(asked), ["approve", "request-changes", "retry", "skip", "working", "cancel"]);
    // What failed is skipped, and the review waits as before.
    let skipped = answer(&home, asked, &["skip"]);
    let left = &skipped["task"]["attention"];
    assert_eq!((&left["id"], &left["reason"]), (&asked["id"], &asked["reason"]), "{skipped:#}");
    assert!(!text(&left["text"]).contains("also:"), "{skipped:#}");
    let merged = answer(&home, asked, &["approve"]);
    assert_eq!((&merged["task"]["status"], &merged["task"]["attention"]), (&"done".into(), &Value::Null), "{merged:#}");
    assert_eq!(waiting(&home), 0);
}

#[test]
fn a_crash_and_what_is_stuck_are_answered_from_the_inbox() {
    let home = Home::new();
    let script = "worker 1: say \"no such bean\"; exit 3\nworker 2: exit 4\nworker: work\nreviewer: review pass";
    let id = home.create("brew", script, &[]);
    let crashed = raised(&home, &id, 1);
    assert_eq!((text(&crashed["reason"]), text(&crashed["said_by"])), ("crashed", "exit"), "{crashed:#}");
    assert!(text(&crashed["text"]).contains("exit code 3"), "{crashed:#}");
    assert_eq!(crashed["evidence"].as_array().unwrap().last(), Some(&json!("no such bean")), "{crashed:#}");
    assert_eq!(options(&crashed)[0], "respawn");
    answer(&home, &crashed, &["respawn"]);
    let stuck = raised(&home, &id, 2);
    assert_eq!(text(&stuck["reason"]), "stuck", "{stuck:#}");
    assert_eq!(options(&stuck), ["request-changes", "respawn", "working", "agent-review", "cancel"]);
    answer(&home, &stuck, &["move:working"]);
    assert_eq!(text(&raised(&home, &id, 3)["reason"]), "review");
    let cancelled = home.json(&["answer", &id, "cancel"]);
    assert_eq!(cancelled["task"]["status"], "cancelled", "{cancelled:#}");
}

#[test]
fn a_question_of_the_worker_waits_for_a_person() {
    let home = Home::new();
    let script = "worker: write Questions \"hot or cold?\"; update clarification; wait for notification; work";
    let id = home.create("brew", &format!("{script}\nreviewer: review pass"), &[]);
    let asked = raised(&home, &id, 1);
    assert_eq!(text(&asked["reason"]), "clarification", "{asked:#}");
    assert_eq!(options(&asked), ["working", "attach", "cancel"]);
    let told = answer(&home, &asked, &["attach"]);
    assert!(text(&told["notes"][0]).contains(&format!("sluice task attach {id}")), "{told:#}");
    answer(&home, &asked, &["working", "--message", "cold, please"]);
    // The agent that waits in its session is told, and goes on; what it was told stands in TASK.md.
    home.until_status(&id, "reviewing");
    let file = std::fs::read_to_string(home.home_file(&id)).unwrap();
    assert_eq!(file.matches("cold, please").count(), 1, "{file}");
}

#[test]
fn an_agent_that_cannot_be_started_is_retried_from_the_inbox() {
    let home = Home::empty();
    std::fs::create_dir(home.place()).unwrap();
    let script = home.path("agent.sh");
    let config = format!("[harnesses.plain]\ninteractive = [{script:?}, \"{{prompt}}\"]\n");
    std::fs::write(home.place().join("config.toml"), config).unwrap();
    home.sluice(&["project", "add"]).done();
    let created = home.json(&["task", "create", "brew", "Do it", "--harness", "plain"]);
    let id = text(&created["task"]["id"]).to_owned();
    let asked = raised(&home, &id, 1);
    assert_eq!(text(&asked["reason"]), "cannot_start", "{asked:#}");
    assert!(text(&asked["text"]).contains("agent.sh"), "{asked:#}");
    assert!(options(&asked).starts_with(&["respawn", "retry"]), "{asked:#}");
    std::fs::write(&script, "#!/bin/sh\nexec cat\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mended = answer(&home, &asked, &["retry"]);
    assert_eq!(
        (&mended["task"]["session"], &mended["task"]["attention"]),
        (&"active".into(), &Value::Null),
        "{mended:#}"
    );
    assert_eq!(waiting(&home), 0);
}

#[test]
fn a_gate_ends_the_wait_for_a_run() {
    let home = fresh();
    grimoire(&home, "gated", "steps:\n  - {name: check, type: gate, command: 'echo cold; exit 3'}\n");
    let id = begin(&home, &["gated"]);
    let waited = home.sluice(&["run", "wait", &id]);
    assert_eq!(waited.code, 10, "{waited:?}");
    assert!(
        waited.stderr.contains("(gate)") && waited.stderr.contains(&format!("sluice answer {id}/1 retry")),
        "{waited:?}"
    );
    let asked = question(&home, &id);
    assert_eq!((text(&asked["reason"]), text(&asked["kind"]), text(&asked["title"])), ("gate", "gate", "gated"));
    assert_eq!(asked["evidence"], json!(["cold"]), "{asked:#}");
    assert!(text(&asked["since"]).starts_with("20"), "{asked:#}");
    home.json(&["answer", &id, "skip"]);
    assert_eq!(home.json(&["run", "wait", &id])["run"]["status"], "completed");
    assert_eq!(home.refused(&["answer", &id, "skip"]), "5 not_ready");
    let id = begin(&home, &["gated"]);
    home.sluice(&["run", "wait", &id]);
    home.json(&["answer", &format!("{id}/1"), "abort"]);
    assert_eq!(home.refused(&["run", "wait", &id]), "1 not_there");
}

#[test]
fn a_full_pool_is_told_when_it_takes_long() {
    let home = Home::empty();
    home.sluice(&["project", "add", "--pool-size", "1"]).done();
    home.create("first", "worker: wait for notification", &[]);
    let second = home.create("second", "worker: work", &[]);
    assert_eq!(home.task(&second)["attention"]["reason"], "pool_full");
    assert_eq!(waiting(&home), 0, "it gets one when it is its turn");
    assert_eq!(home.refused(&["task", "wait", &second, "--timeout", "10ms"]), "6 timeout");
    let config = home.place().join("config.toml");
    let before = std::fs::read_to_string(&config).unwrap_or_default();
    std::fs::write(&config, format!("{before}\n[attention]\npool_full_after = \"0s\"\n")).unwrap();
    let inbox = home.json(&["inbox"])["questions"].take();
    assert_eq!((&inbox[0]["reason"], &inbox[0]["task"]), (&"pool_full".into(), &second.as_str().into()), "{inbox:#}");
    home.json(&["answer", &second, "cancel"]);
    assert_eq!(waiting(&home), 0);
}

#[test]
fn the_network_and_the_metrics_tell_what_waits() {
    let home = Home::new();
    let id = home.create("brew", "worker: work\nreviewer: review pass", &[]);
    raised(&home, &id, 1);
    let (_, person) = token(&home, &["--scope", "person"]);
    let (_, reader) = token(&home, &["--scope", "read"]);
    home.sluice(&["stop"]).done();
    let served = Served::start(&home, &[]);
    let list = served.ask("GET", "/v1/attention", Some(&reader), "").json();
    let one = list["attention"][0].clone();
    assert_eq!((text(&one["reason"]), text(&one["task"])), ("review", id.as_str()), "{list:#}");
    let path = format!("/v1/attention/{}", text(&one["id"]));
    assert_eq!(served.ask("GET", &path, Some(&reader), "").json(), one);
    let metrics = served.ask("GET", "/metrics", Some(&reader), "").body;
    assert!(metrics.contains("sluice_attention{reason=\"review\"} 1"), "{metrics}");
    assert!(metrics.contains("sluice_attention{reason=\"stuck\"} 0"), "{metrics}");
    assert!(metrics.contains("sluice_attention_oldest_seconds "), "{metrics}");
    let cancel = r#"{"option": "cancel"}"#;
    assert!(served.ask("POST", &path, Some(&reader), cancel).short().starts_with("403"));
    let answered = served.ask("POST", &path, Some(&person), cancel).json();
    assert_eq!(answered["task"]["status"], "cancelled", "{answered:#}");
    assert!(served.ask("POST", &path, Some(&person), cancel).short().starts_with("409"));
    assert_eq!(served.ask("GET", "/v1/attention", Some(&reader), "").json()["attention"], json!([]));
}

#[test]
fn a_question_that_no_person_answers_in_time_takes_its_default() {
    let home = fresh();
    let ask = "sluice step ask 'Hot or cold?' --option hot --option cold --default cold --timeout 1s";
    let steps = format!(
        "steps:\n  - name: work\n    type: agent\n    harness: shell\n    prompt: |\n      echo \"chose $({ask})\"\n"
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    let run = until(&home, &id, |run| run["status"] == "completed");
    assert_eq!(text(&run["steps"][0]["output"]), "chose cold\n", "{run:#}");
    // So does a gate whose author says what is to be done then.
    let gate = "{name: check, type: gate, command: 'exit 3', answer_timeout: 1s, default: skip}";
    grimoire(&home, "gated", &format!("steps:\n  - {gate}\n"));
    let id = begin(&home, &["gated"]);
    let run = until(&home, &id, |run| run["status"] == "completed");
    assert_eq!(text(&run["steps"][0]["status"]), "skipped", "{run:#}");
}

/// Agents write the options of their questions, and a person copies the command that answers.
#[test]
fn a_command_that_is_copied_answers_and_runs_nothing_else() {
    let home = fresh();
    let option = home.path("option");
    let ask = format!("sluice step ask 'Which?' --option \"$(cat {})\" --option other", option.display());
    let work = format!("printf 'chose %s' \"$({ask})\"");
    let steps = format!("steps:\n  - name: work\n    type: agent\n    harness: shell\n    prompt: |\n      {work}\n");
    grimoire(&home, "mine", &steps);
    let hostile = ["use postgres", "$(touch evil)`touch evil`", "it's \"so\"", "one\ntwo; touch evil", "--json"];
    for chosen in hostile {
        std::fs::write(&option, chosen).unwrap();
        let id = begin(&home, &["mine"]);
        assert_eq!(settled(&home, &id)["status"], "held");
        let asked = question(&home, &id);
        assert_eq!(options(&asked)[0], chosen);
        let inbox = home.sluice(&["inbox"]).done().stdout;
        let command = inbox.lines().find_map(|line| Some(&line[line.find("sluice answer ")?..])).unwrap();
        let command = command.split("  ").next().unwrap();
        let shown = home.sluice(&["run", "show", &id]).done().stdout;
        assert!(shown.contains(command), "{command} is not in {shown}");
        let mut shell = home.program("bash");
        let binary = env!("CARGO_BIN_EXE_sluice");
        shell.arg("-c").arg(format!("sluice() {{ '{binary}' \"$@\"; }}; {command}"));
        run(&mut shell).done();
        let done = until(&home, &id, |run| run["status"] == "completed");
        assert_eq!(text(&done["steps"][0]["output"]), format!("chose {chosen}"), "{done:#}");
    }
    assert!(!home.repository().join("evil").exists());
}

/// `answer` and the commands of tasks mean the same by the same word, and drop no words of a person.
#[test]
fn an_answer_means_what_the_command_of_that_name_means_and_keeps_its_message() {
    let home = Home::new();
    let id = home.create("brew", "worker: work\nreviewer: review pass", &["--workflow", "reviewed"]);
    let asked = raised(&home, &id, 1);
    let back = answer(&home, &asked, &["reject"]);
    assert_eq!(back["task"]["status"], "working", "{back:#}");
    let again = raised(&home, &id, 2);
    let moved = answer(&home, &again, &["working", "--message", "Mind the beans"]);
    assert_eq!(moved["task"]["status"], "working", "{moved:#}");
    let body = home.json(&["task", "file", &id])["file"]["text"].clone();
    assert!(text(&body).contains("Mind the beans"), "{body}");
    let third = raised(&home, &id, 3);
    // What has no place for words says so, and does nothing.
    assert_eq!(home.refused(&["answer", text(&third["id"]), "cancel", "--message", "Too late"]), "2 bad_request");
    let merged = answer(&home, &third, &["approve", "--message", "Well done"]);
    assert_eq!(merged["task"]["status"], "done", "{merged:#}");
    let body = std::fs::read_to_string(home.home_file(&id)).unwrap();
    assert!(body.contains("Well done"), "{body}");
}

/// What is named whole is meant, and a branch has as many slashes as it likes.
#[test]
fn a_branch_names_its_own_task_and_no_other() {
    let home = Home::new();
    let other = home.create("other", "worker: hang", &["--no-spawn"]);
    let branch = &other[..3];
    let id = home.create(branch, "worker: hang", &["--no-spawn"]);
    assert_eq!(home.json(&["task", "show", branch])["task"]["id"], id.as_str());
    assert_eq!(home.json(&["task", "show", &other[..4]])["task"]["id"], other.as_str());
    let script = "worker: work\nreviewer: review pass";
    let slashed = home.create("feature/hot/1", script, &["--workflow", "reviewed"]);
    raised(&home, &slashed, 1);
    assert_eq!(home.refused(&["answer", "feature/hot/1/9", "approve"]), "3 not_found");
    let back = home.json(&["answer", "feature/hot/1/1", "request-changes", "--message", "hotter"]);
    assert_eq!((&back["task"]["id"], &back["task"]["status"]), (&slashed.as_str().into(), &"working".into()));
    raised(&home, &slashed, 2);
    let merged = home.json(&["answer", "feature/hot/1", "approve"]);
    assert_eq!(merged["task"]["status"], "done", "{merged:#}");
}

#[test]
fn a_run_is_answered_where_exactly_one_thing_of_it_waits() {
    let home = fresh();
    let gate = |name: &str| format!("  - {{name: {name}, type: gate, needs: [], command: 'exit 3'}}\n");
    grimoire(&home, "two", &format!("max_parallel: 2\nsteps:\n{}{}", gate("one"), gate("other")));
    let id = begin(&home, &["two"]);
    until(&home, &id, |_| waiting(&home) == 2);
    assert_eq!(home.refused(&["answer", &id, "skip"]), "2 bad_request");
    home.json(&["answer", &format!("{id}/1"), "skip"]);
    home.json(&["answer", &id, "skip"]);
    assert_eq!(home.json(&["run", "wait", &id])["run"]["status"], "completed");
    // One that waits for nothing is not cancelled by an answer.
    let go = home.pipe("go");
    let command = format!("cat {}", go.path());
    grimoire(&home, "busy", &format!("steps:\n  - {{name: work, type: script, command: '{command}'}}\n"));
    let id = begin(&home, &["busy"]);
    for of in [id.clone(), format!("{id}/worker"), format!("{id}/wait")] {
        assert!(home.refused(&["answer", &of, "cancel"]).ends_with("not_found"), "{of}");
    }
    go.let_go();
    assert_eq!(home.json(&["run", "wait", &id])["run"]["status"], "completed");
}

#[test]
fn what_only_passes_by_itself_says_that_there_is_nothing_to_answer() {
    let home = Home::new();
    let config = home.place().join("config.toml");
    let before = std::fs::read_to_string(&config).unwrap_or_default();
    std::fs::write(&config, format!("{before}\n[workspaces]\nleast_free = \"999 TiB\"\n")).unwrap();
    home.sluice(&["stop"]).done();
    let inbox = home.json(&["inbox"])["questions"].take();
    let disk = inbox.as_array().unwrap().iter().find(|it| it["reason"] == "work_at_risk").unwrap().clone();
    let said = home.sluice(&["answer", text(&disk["id"]), "dismiss", "--json"]);
    assert_eq!(said.refusal(), "1 not_ready");
    assert!(text(&said.json()["error"]["message"]).contains("bytes left"), "{said:?}");
    assert_eq!(home.refused(&["answer", "disk/nowhere", "dismiss"]), "3 not_found");
}
