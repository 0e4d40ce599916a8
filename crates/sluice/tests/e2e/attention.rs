//! What waits for a person is in the inbox as soon as the engine knows it, `wait` ends with 10, and one answer solves it.

use serde_json::{Value, json};

use super::home::Home;
use super::recipes::{begin, fresh, grimoire, question, text, until};
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
    let moved = answer(&home, &asked, &["working"]);
    assert_eq!((&moved["task"]["status"], &moved["task"]["attention"]), (&"working".into(), &Value::Null), "{moved:#}");
    assert_eq!(waiting(&home), 0);
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
