//! What waits for a person besides agents and states: hooks that failed, merges that were not pushed, steps that no worker has,
//! a full disk, and what cannot be read. Each is in the inbox with its reason, `wait` ends with 10, and each goes by itself.

use serde_json::{Value, json};

use super::home::Home;
use super::merges::sh;
use super::recipes::{begin, fresh, grimoire, settled, show, text};
use super::reef::Reef;
use super::served::token;

fn inbox(home: &Home) -> Vec<Value> {
    home.json(&["inbox"])["questions"].as_array().unwrap().clone()
}

fn options(attention: &Value) -> Vec<&str> {
    attention["options"].as_array().unwrap().iter().map(text).collect()
}

/// Adds lines to the settings of a home.
fn set(home: &Home, lines: &str) {
    let file = home.place().join("config.toml");
    let before = std::fs::read_to_string(&file).unwrap_or_default();
    std::fs::write(file, format!("{before}\n{lines}")).unwrap();
}

/// A lifecycle whose way to a person and whose way to the end run a command each, which fails until its file is there.
fn hooked(home: &Home) {
    let command = |name: &str| format!("echo {name} >> {0}/ran; test -e {0}/{name}", home.path("").display());
    let lifecycle = format!(
        "name: hooked
version: 1
states:
  pending: {{}}
  working: {{ respawn_prompt: worker }}
  reviewing: {{}}
  done: {{ terminal: true }}
  cancelled: {{ terminal: true }}
transitions:
  - {{ from: pending, to: working, hooks: [{{ action: acquire_workspace }}, {{ action: spawn_agent, prompt: worker }}] }}
  - from: working
    to: reviewing
    gate: {{ section: '## Handoff' }}
    hooks: [{{ action: kill_session }}, {{ action: run_command, command: '{}' }}]
  - {{ from: working, to: cancelled, hooks: [{{ action: kill_session }}, {{ action: release_workspace }}] }}
  - from: reviewing
    to: done
    hooks: [{{ action: push_branch }}, {{ action: release_workspace }}]
  - {{ from: reviewing, to: cancelled, hooks: [{{ action: release_workspace }}] }}
exit_monitoring:
  rules: [{{ status: working, action: crash }}]
prompts:
  worker: |
    # Task: {{summary}}
",
        command("first")
    );
    std::fs::create_dir_all(home.place().join("workflows")).unwrap();
    std::fs::write(home.place().join("workflows/hooked.yml"), lifecycle).unwrap();
}

/// How often the command of the hook ran.
fn ran(home: &Home) -> usize {
    std::fs::read_to_string(home.path("ran")).unwrap_or_default().lines().count()
}

#[test]
fn a_hook_that_failed_is_retried_or_skipped_from_the_inbox() {
    let home = Home::new();
    hooked(&home);
    let script = "worker: edit milk.txt; commit \"milk\"; write Handoff \"DONE: milk\"; update reviewing";
    let id = home.create("brew", script, &["--workflow", "hooked"]);
    home.until_event(&id, "attention.set", 2);
    let waited = home.sluice(&["task", "wait", &id]);
    assert_eq!(waited.code, 10, "{waited:?}");
    assert!(waited.stderr.contains("(review)") && waited.stderr.contains("; also: run_command failed: "), "{waited:?}");
    let [failed] = inbox(&home).try_into().unwrap();
    assert_eq!((text(&failed["reason"]), text(&failed["task"])), ("review", id.as_str()), "{failed:#}");
    assert!(text(&failed["text"]).contains("; also: run_command failed: "), "{failed:#}");
    assert!(options(&failed).contains(&"retry") && options(&failed).contains(&"skip"), "{failed:#}");
    assert_eq!(ran(&home), 1);
    // It fails again, and is a new thing that waits.
    let again = home.json(&["answer", text(&failed["id"]), "retry"])["task"].take();
    assert_eq!((&again["status"], &again["attention"]["reason"]), (&"reviewing".into(), &"review".into()));
    assert!(text(&again["attention"]["text"]).contains("; also: run_command failed: "), "{again:#}");
    assert_ne!(again["attention"]["id"], failed["id"]);
    assert_eq!(ran(&home), 2);
    assert_eq!(home.refused(&["answer", text(&failed["id"]), "retry"]), "5 not_ready");
    std::fs::write(home.path("first"), "").unwrap();
    let mended = home.json(&["answer", &id, "retry"])["task"].take();
    assert_eq!((&mended["status"], &mended["attention"]["reason"]), (&"reviewing".into(), &"review".into()));
    assert!(!text(&mended["attention"]["text"]).contains("also:"), "{mended:#}");
    assert_eq!(ran(&home), 3);
    let retried = home.history(&id).iter().filter(|event| event["type"] == "hook.retrying").count();
    assert_eq!(retried, 2);
    // Another is left as it is.
    std::fs::remove_file(home.path("first")).unwrap();
    let id = home.create("tea", script, &["--workflow", "hooked"]);
    home.until_event(&id, "attention.set", 2);
    let skipped = home.json(&["answer", &id, "skip"])["task"].take();
    assert_eq!(skipped["attention"]["reason"], "review", "{skipped:#}");
    assert!(!text(&skipped["attention"]["text"]).contains("also:"), "{skipped:#}");
    assert_eq!(ran(&home), 4);
}

#[test]
fn a_hook_that_failed_at_the_end_stays_in_the_inbox_across_a_kill() {
    let home = Home::new();
    hooked(&home);
    std::fs::write(home.path("first"), "").unwrap();
    let script = "worker: edit milk.txt; commit \"milk\"; write Handoff \"DONE: milk\"; update reviewing";
    let id = home.create("brew", script, &["--workflow", "hooked"]);
    home.until_status(&id, "reviewing");
    // There is a remote, and it is away.
    home.git(&["remote", "add", "origin", home.path("remote.git").to_str().unwrap()]);
    home.json(&["task", "update", &id, "--status", "done"]);
    let task = home.until(&id, "ended", |task| task["ended"] == true && task["attention"] != Value::Null);
    assert_eq!(task["attention"]["reason"], "hook_failed", "{task:#}");
    home.kill_engine();
    let [failed] = inbox(&home).try_into().unwrap();
    assert_eq!((&failed["task"], options(&failed)), (&id.as_str().into(), vec!["retry", "skip"]), "{failed:#}");
    // It has ended well all the same.
    home.sluice(&["task", "wait", &id]).done();
    sh(&home, &home.path(""), "git init -q --bare remote.git");
    let mended = home.json(&["answer", text(&failed["id"]), "retry"])["task"].take();
    assert_eq!((&mended["status"], &mended["attention"]), (&"done".into(), &Value::Null), "{mended:#}");
    assert_eq!(sh(&home, &home.path("remote.git"), "git branch --format='%(refname:short)'"), "brew");
    assert_eq!(inbox(&home), [] as [Value; 0]);
}

/// A home whose repository has a remote, and a task whose merge could not be pushed there.
fn unpushed() -> (Home, String) {
    let home = Home::empty();
    let add = "git clone -q --bare . ../remote.git; git remote add origin \"$(cd ../remote.git; pwd)\"; git fetch -q";
    sh(&home, &home.repository(), add);
    home.sluice(&["project", "add"]).done();
    let id = home.create("brew", "worker: work\nreviewer: review pass", &[]);
    home.until_status(&id, "reviewing");
    std::fs::rename(home.path("remote.git"), home.path("away.git")).unwrap();
    home.json(&["task", "merge", &id]);
    home.until(&id, "ended", |task| task["ended"] == true);
    (home, id)
}

#[test]
fn a_merge_that_was_not_pushed_is_work_at_risk_until_it_is() {
    let (home, id) = unpushed();
    let [risk] = inbox(&home).try_into().unwrap();
    assert_eq!((text(&risk["reason"]), text(&risk["task"])), ("work_at_risk", id.as_str()), "{risk:#}");
    let said = text(&risk["text"]);
    assert!(said.starts_with("merged, not pushed: ") && said.contains("`git push origin main`"), "{risk:#}");
    assert_eq!(options(&risk), ["retry", "dismiss"]);
    // While the remote is away, it stays.
    assert_eq!(home.refused(&["answer", text(&risk["id"]), "retry"]), "1 not_ready");
    assert_eq!(inbox(&home).len(), 1);
    std::fs::rename(home.path("away.git"), home.path("remote.git")).unwrap();
    let pushed = home.json(&["answer", text(&risk["id"]), "retry"])["task"].take();
    assert_eq!((&pushed["status"], &pushed["attention"]), (&"done".into(), &Value::Null), "{pushed:#}");
    let main = home.git(&["rev-parse", "main"]);
    assert_eq!(sh(&home, &home.path("remote.git"), "git rev-parse main"), main);
    assert_eq!(inbox(&home), [] as [Value; 0]);
}

#[test]
fn a_merge_that_a_person_pushes_is_at_risk_no_more_and_without_a_remote_nothing_is() {
    let (home, _) = unpushed();
    std::fs::rename(home.path("away.git"), home.path("remote.git")).unwrap();
    home.git(&["push", "--quiet", "origin", "main"]);
    // That the branch on the remote could not be looked at is left.
    let left: Vec<Value> = inbox(&home).into_iter().filter(|it| text(&it["text"]).contains("not pushed")).collect();
    assert_eq!(left, [] as [Value; 0]);
    let home = Home::new();
    let id = home.create("brew", "worker: work\nreviewer: review pass", &[]);
    home.until_status(&id, "reviewing");
    home.json(&["task", "merge", &id]);
    home.until(&id, "ended", |task| task["ended"] == true);
    assert_eq!(inbox(&home), [] as [Value; 0]);
}

#[test]
fn a_step_that_no_worker_has_waits_and_its_time_counts_from_when_one_has_it() {
    let reef = Reef::new("[attention]\nworker_after = \"2s\"\n", None);
    let home = &reef.home;
    std::fs::write(home.path("with-shell"), "").unwrap();
    home.git(&["remote", "add", "origin", home.path("remote.git").to_str().unwrap()]);
    home.git(&["fetch", "--quiet", "origin"]);
    let repository = home.repository();
    home.sluice(&["project", "add", repository.to_str().unwrap(), "--name", "shop"]).done();
    let recipe = "name: brew\nsteps:\n  - {name: look, type: script, role: taster, timeout: 1s, command: 'true'}\n";
    std::fs::write(repository.join("brew.yml"), recipe).unwrap();
    let run = home.sluice(&["start", "brew.yml", "--workers", "--detach"]).done().stdout.trim().to_owned();
    let step = show(home, &run)["steps"][0].take();
    assert_eq!(step["status"], "ready", "{step:#}");
    assert!(text(&step["error"]).contains("waits for a worker of"), "{step:#}");
    // By now its time would be over, if it counted.
    let waited = home.sluice(&["run", "wait", &run]);
    assert_eq!(waited.code, 10, "{waited:?}");
    assert!(waited.stderr.contains("(worker)") && waited.stderr.contains("`taster`"), "{waited:?}");
    let found = inbox(home);
    assert_eq!((&found[0]["reason"], &found[0]["run"]), (&"worker".into(), &run.as_str().into()), "{found:#?}");
    assert_eq!(options(&found[0]), ["cancel"]);
    // A worker of another role is none.
    let (_, secret) = token(home, &["--scope", "worker", "--project", "shop"]);
    let _ann = reef.hire_for("ann", "brewer", &secret, &["--project", "shop"]);
    assert_eq!(inbox(home).len(), 1);
    let _ben = reef.hire_for("ben", "taster", &secret, &["--project", "shop"]);
    let ended = settled(home, &run);
    assert_eq!((&ended["status"], &ended["steps"][0]["attempt"]), (&"completed".into(), &json!(1)), "{ended:#}");
    assert_eq!(inbox(home), [] as [Value; 0]);
}

#[test]
fn the_time_of_a_step_is_over_when_its_worker_takes_too_long() {
    let reef = Reef::new("", None);
    let home = &reef.home;
    std::fs::write(home.path("with-shell"), "").unwrap();
    home.git(&["remote", "add", "origin", home.path("remote.git").to_str().unwrap()]);
    home.git(&["fetch", "--quiet", "origin"]);
    let repository = home.repository();
    home.sluice(&["project", "add", repository.to_str().unwrap(), "--name", "shop"]).done();
    let recipe = "name: brew\nsteps:\n  - {name: look, type: script, timeout: 1s, command: 'exec sleep 1000'}\n";
    std::fs::write(repository.join("brew.yml"), recipe).unwrap();
    let (_, secret) = token(home, &["--scope", "worker", "--project", "shop"]);
    let _ann = reef.hire_for("ann", "any", &secret, &["--project", "shop"]);
    let run = home.sluice(&["start", "brew.yml", "--workers", "--detach"]).done().stdout.trim().to_owned();
    let ended = settled(home, &run);
    assert_eq!(ended["status"], "failed", "{ended:#}");
    assert_eq!(ended["steps"][0]["error"], "it took longer than its `timeout`", "{ended:#}");
}

#[test]
fn a_full_disk_ends_the_wait_for_what_needs_room_and_goes_by_itself() {
    let home = fresh();
    home.sluice(&["project", "add"]).done();
    let before = std::fs::read_to_string(home.place().join("config.toml")).unwrap();
    set(&home, "[workspaces]\nleast_free = \"999 TiB\"\n");
    let task = home.create("brew", "worker: work\nreviewer: review pass", &[]);
    grimoire(&home, "mine", "steps:\n  - {name: one, type: script, command: 'pwd'}\n");
    let run = begin(&home, &["mine"]);
    for words in [["task", "wait", task.as_str()], ["run", "wait", run.as_str()]] {
        let waited = home.sluice(&words);
        assert_eq!(waited.code, 10, "{waited:?}");
        assert!(waited.stderr.contains("(work_at_risk)") && waited.stderr.contains("low disk"), "{waited:?}");
    }
    let found = inbox(&home);
    let of = |key: &str, id: &str| found.iter().any(|it| it[key] == id && it["reason"] == "work_at_risk");
    assert!(of("task", &task) && of("run", &run), "{found:#?}");
    assert!(found.iter().any(|it| it["kind"] == "home" && it["reason"] == "work_at_risk"), "{found:#?}");
    std::fs::write(home.place().join("config.toml"), before).unwrap();
    home.until_status(&task, "reviewing");
    home.sluice(&["run", "wait", &run]).done();
    let left = inbox(&home);
    assert!(left.iter().all(|it| it["reason"] != "work_at_risk"), "{left:#?}");
}

/// Changes the checksum of what is stored of a task or run by so much.
fn spoil(home: &Home, id: &str, by: i64) {
    let sql = "UPDATE part SET sum = sum + ?1 WHERE what = 3 AND stream = (SELECT number FROM stream WHERE id LIKE ?2)";
    assert_eq!(home.store().execute(sql, (by, format!("%/{id}"))).unwrap(), 1);
}

#[test]
fn what_cannot_be_read_is_in_the_inbox_until_it_can_be() {
    let home = Home::new();
    let task = home.create("brew", "true", &["--no-spawn"]);
    grimoire(&home, "gated", "steps:\n  - {name: check, type: gate, command: 'exit 3'}\n");
    let run = begin(&home, &["gated"]);
    assert_eq!(home.sluice(&["run", "wait", &run]).code, 10);
    for (kind, id) in [("task", &task), ("run", &run)] {
        spoil(&home, id, 1);
        let waited = home.sluice(&[kind, "wait", id]);
        assert_eq!(waited.code, 10, "{waited:?}");
        assert!(waited.stderr.contains("(store)") && waited.stderr.contains("sluice restore"), "{waited:?}");
        let shown = home.sluice(&["inbox", "--json"]);
        assert_eq!(shown.code, 6, "what is shown lacks it: {shown:?}");
        let found = shown.json()["questions"].take();
        let is_it = |it: &Value| it["reason"] == "store" && text(&it["text"]).contains(id.as_str());
        assert!(found.as_array().unwrap().iter().any(is_it), "{found:#}");
        spoil(&home, id, -1);
        // What is looked at again is found whole.
        drop(home.sluice(&["inbox"]));
        home.sluice(&[kind, "show", id]).done();
        let left = inbox(&home);
        assert!(left.iter().all(|it| it["reason"] != "store"), "{left:#?}");
    }
}
