//! Homes of every released engine, kept as they were left: today's engine opens each of them, finds everything that was
//! answered then, and goes on with what was open.
//!
//! A home knows its own path, so all of them are made and opened in one folder, by one test at a time on a machine. `cargo
//! xtask golden-home --name COMMIT [--program PATH]` makes a new one, by this `sluice` or an earlier one; one that is there
//! is never changed.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::archive;
use super::home::Home;
use super::recipes::{begin, grimoire, question, settled, show, standing, text, until, until_status};
use super::served::{Served, token};

/// Where a home is while it is made or looked at.
const FOLDER: &str = "/tmp/sluice-golden";
/// Nothing of a golden home is old enough to be forgotten.
const SETTINGS: &str = "[defaults]\nharness = \"demo\"\n\n[retention]\ndays = 36500\n";
/// What may be otherwise when it is asked for later.
const PASSING: [&str; 6] = ["version", "idle_seconds", "session", "tmux_session", "next_turn_at", "updated_at"];

/// The one folder, held for as long as this is.
struct Turn {
    home: Home,
    _lock: File,
}

impl Turn {
    fn take(binary: PathBuf) -> Turn {
        let lock = File::create(format!("{FOLDER}.lock")).unwrap();
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let _ = std::fs::remove_dir_all(FOLDER); // of a test that was killed
        let (parent, name) = FOLDER.rsplit_once('/').unwrap();
        let folder = tempfile::Builder::new().prefix(name).rand_bytes(0).tempdir_in(parent).unwrap();
        Turn { home: Home::in_folder(folder, binary), _lock: lock }
    }
}

/// Where the golden homes are kept.
fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/homes")
}

/// Everything that a person can ask about a home, as it is answered.
fn answers(home: &Home, secret: &str) -> Value {
    let all = |words: &[&str], key: &str| home.json(words)[key].as_array().unwrap().clone();
    let ids = |list: &[Value]| -> Vec<String> { list.iter().map(|it| text(&it["id"]).to_owned()).collect() };
    let (tasks, runs) = (all(&["task", "list", "--all"], "tasks"), all(&["run", "list", "--all"], "runs"));
    let said =
        |words: &[&str], id: &str| (id.to_owned(), Value::from(home.sluice(&[words, &[id]].concat()).done().stdout));
    let files: serde_json::Map<String, Value> = ids(&tasks).iter().map(|id| said(&["task", "file"], id)).collect();
    let logs: serde_json::Map<String, Value> = ids(&runs).iter().map(|id| said(&["run", "log"], id)).collect();
    let shown: Vec<Value> = ids(&runs).iter().map(|id| show(home, id)).collect();
    let line = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        ["seq", "id", "type", "time", "actor"].map(|key| event[key].to_string()).join(" ").replace('"', "")
    };
    let events: Vec<String> = home.sluice(&["events", "--json"]).done().stdout.lines().map(line).collect();
    home.sluice(&["stop"]).done();
    let served = Served::start(home, &[]);
    let asked = |path: &str| served.ask("GET", path, Some(secret), "").json();
    let answers = json!({
        "secret": secret,
        "projects": all(&["project", "list"], "projects"),
        "tasks": tasks,
        "files": files,
        "runs": shown,
        "logs": logs,
        "questions": all(&["inbox"], "questions"),
        "tokens": all(&["token", "list"], "tokens"),
        "colonies": asked("/v1/colonies"),
        "missions": asked("/v1/missions"),
        "events": events,
    });
    // It gives the store up, which one that is killed does not.
    home.sluice(&["stop"]).done();
    answers
}

/// Everything that was answered then is answered now; there may be more.
#[track_caller]
fn is_within(then: &Value, now: &Value, path: &str) {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            for (key, value) in then.iter().filter(|(key, _)| !PASSING.contains(&key.as_str())) {
                // What waits has its reason in one word now, and its sentence beside it.
                let key_now = if key == "reason" && now.contains_key("text") { "text" } else { key };
                is_within(value, now.get(key_now).unwrap_or(&Value::Null), &format!("{path}.{key}"));
            }
        }
        // What follows from where a task stands was not said then.
        (Value::Null, Value::Object(now)) if path.ends_with(".attention") => assert!(now.contains_key("reason")),
        (then, Value::Object(now)) if path.ends_with(".attention") => is_within(then, &now["text"], path),
        (Value::Array(then), Value::Array(now)) => {
            for (index, value) in then.iter().enumerate() {
                // What has an id is found by it, wherever it stands.
                let same = |it: &&Value| !value["id"].is_null() && it["id"] == value["id"];
                let found = now.iter().find(same).or_else(|| now.get(index)).unwrap_or(&Value::Null);
                is_within(value, found, &format!("{path}[{index}]"));
            }
        }
        _ => assert_eq!(then, now, "{path} is not what it was"),
    }
}

/// What is left of a person's work: tasks and runs in every state that lasts.
fn live(home: &Home) {
    std::fs::create_dir_all(home.place().join("workflows")).unwrap();
    std::fs::write(home.place().join("config.toml"), SETTINGS).unwrap();
    let on_done = "name: on-done\ntrigger: {event: status.changed, where: \"to == 'done'\"}\ninput: [{name: task_id}]\nsteps:\n  - {name: tell, type: script, command: 'echo ${input.task_id}'}\n";
    std::fs::write(home.place().join("workflows/on-done.yml"), on_done).unwrap();
    home.sluice(&["project", "add"]).done();

    home.create("pending", "true", &["--no-spawn"]);
    let cancelled = home.create("cancelled", "true", &["--no-spawn"]);
    home.sluice(&["task", "cancel", &cancelled, "--yes"]).done();
    let script = "worker: work\nreviewer: review fail once, then pass";
    let [merged, reviewed] = ["merged", "reviewed"].map(|branch| {
        let id = home.create(branch, script, &[]);
        home.until_status(&id, "reviewing");
        id
    });
    assert_ne!(merged, reviewed);
    let mut ended = home.follow(&["--type", "run.completed"]);
    home.sluice(&["task", "merge", &merged]).done();
    ended.next(std::time::Instant::now() + super::home::LONG).unwrap();

    let one = "steps:\n  - {name: one, type: script, command: 'echo fine'}\n";
    let more = |more: &str| format!("{one}{more}");
    grimoire(home, "two", &more("  - {name: two, type: script, command: 'echo ${one.output} again'}\n"));
    grimoire(home, "fails", &more("  - {name: two, type: script, command: 'echo no >&2; exit 3'}\n"));
    grimoire(
        home,
        "asks",
        &more(
            "  - {name: tests, type: gate, command: 'test -e fine'}\n  - {name: after, type: script, command: 'echo ${one.output} after'}\n",
        ),
    );
    let go = home.path("go").display().to_string();
    grimoire(
        home,
        "open",
        &more(&format!(
            "  - {{name: waits, type: script, command: 'cat {go}; echo went'}}\n  - {{name: after, type: script, command: 'echo ${{waits.output}} after'}}\n"
        )),
    );
    grimoire(home, "patrol", &format!("repeat: {{every: 365d, keep: 2}}\n{one}"));
    let agent = "steps:\n  - {name: think, type: agent, prompt: 'Think about coffee.'}\n";
    grimoire(home, "agent", agent);
    for (name, status) in
        [("two", "completed"), ("fails", "failed"), ("asks", "held"), ("agent", "completed"), ("patrol", "completed")]
    {
        let id = begin(home, &[name]);
        until_status(home, &id, status);
    }
    home.pipe("go");
    let at_work = || {
        let id = begin(home, &["open"]);
        until(home, &id, |run| standing(run) == "one completed, waits running, after waiting");
        id
    };
    home.sluice(&["run", "cancel", &at_work()]).done();
    at_work();
}

/// The same seen from outside: tokens, a colony, a mission that nobody works on. Gives the secret of a token.
fn serve(home: &Home) -> String {
    let (_, secret) = token(home, &["--name", "laptop"]);
    token(home, &["--scope", "read", "--name", "dashboard"]);
    token(home, &["--scope", "worker", "--name", "crab"]);
    let (revoked, _) = token(home, &["--name", "lost"]);
    home.sluice(&["token", "revoke", &revoked]).done();
    home.sluice(&["stop"]).done();
    let served = Served::start(home, &[]);
    let colony = served.ask("POST", "/v1/colonies", Some(&secret), r#"{"name":"reef"}"#).json();
    let idea = json!({ "colony_id": colony["colony_id"], "prompt": "One day" }).to_string();
    assert_eq!(served.ask("POST", "/v1/missions", Some(&secret), &idea).status, 200);
    home.sluice(&["stop"]).done();
    secret
}

#[test]
#[ignore = "it makes a golden home; `cargo xtask golden-home` says how"]
fn as_a_golden_home_is_made() {
    let name = std::env::var("GOLDEN_NAME").expect("--name: the commit or version of the engine");
    let program = std::env::var_os("GOLDEN_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_sluice").into(), PathBuf::from);
    let folder = kept().join(&name);
    assert!(!folder.exists(), "{name} is there, and is never changed");
    // Sessions write down which program it was: one in the folder, which every machine has.
    let own = Path::new(FOLDER).join("sluice");
    let turn = Turn::take(own.clone());
    std::fs::copy(program, own).unwrap();
    turn.home.furnish();
    live(&turn.home);
    let secret = serve(&turn.home);
    let answers = answers(&turn.home, &secret);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("store.sql"), archive::dump(&turn.home.place().join("store.db"))).unwrap();
    std::fs::write(folder.join("files.txt"), archive::pack(Path::new(FOLDER))).unwrap();
    std::fs::write(folder.join("answers.json"), format!("{answers:#}\n")).unwrap();
}

/// Opens a home, and compares what it answers.
fn opened(folder: &Path) {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let turn = Turn::take(env!("CARGO_BIN_EXE_sluice").into());
    let home = &turn.home;
    archive::unpack(&read("files.txt"), Path::new(FOLDER));
    archive::fill(&home.place().join("store.db"), &read("store.sql"));
    let then: Value = serde_json::from_str(&read("answers.json")).unwrap();
    let doctor = home.sluice(&["doctor", "--deep", "--json"]);
    assert!(doctor.stdout.contains("every checksum is correct"), "{doctor:?}");

    let runs = then["runs"].as_array().unwrap();
    let id_of = |is_it: &dyn Fn(&Value) -> bool| text(&runs.iter().find(|it| is_it(it)).unwrap()["id"]).to_owned();
    let (held, open) = (id_of(&|it| it["status"] == "held"), id_of(&|it| it["status"] == "running"));
    let go = home.pipe("go");
    let now = answers(home, text(&then["secret"]));
    is_within(&then, &now, "home");

    // The question is still open, and its answer still leads on.
    let workspace = PathBuf::from(text(&show(home, &held)["workspace"]));
    assert_eq!(text(&question(home, &held)["kind"]), "gate");
    std::fs::write(workspace.join("fine"), "").unwrap();
    home.json(&["answer", &held, "retry"]);
    assert_eq!(standing(&until_status(home, &held, "completed")), "one completed, tests completed, after completed");
    // What was at work goes on to its end.
    go.let_go();
    let run = settled(home, &open);
    assert_eq!(standing(&run), "one completed, waits completed, after completed", "{run:#}");
    assert_eq!(run["steps"][2]["output"], "went after");
    // The task that waited for a person is merged.
    let tasks = then["tasks"].as_array().unwrap();
    let reviewed = tasks.iter().find(|it| it["status"] == "reviewing").unwrap();
    home.sluice(&["task", "merge", text(&reviewed["id"])]).done();
    let doctor = home.sluice(&["doctor", "--deep", "--json"]);
    assert!(doctor.stdout.contains("every checksum is correct"), "{doctor:?}");
}

#[test]
fn homes_of_every_released_engine_open_and_go_on() {
    let mut homes: Vec<PathBuf> = std::fs::read_dir(kept()).unwrap().map(|it| it.unwrap().path()).collect();
    homes.sort();
    assert!(homes.len() >= 2, "{homes:?}");
    for folder in homes {
        println!("{}", folder.display());
        opened(&folder);
    }
}
