//! Agent programs before their start: what is looked at, refused and cured, set up once, and tried out.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::home::{Home, LONG, Ran, run};
use super::recipes::{begin, grimoire, settled, step, text};

/// A program of this name that fails at once: a shell does not know the options of agents. It is no script, which would be
/// taken for one that may set up what is missing.
fn with_program(home: &Home, name: &str) {
    std::fs::create_dir_all(home.path("programs")).unwrap();
    symlink("/bin/sh", home.path("programs").join(name)).unwrap();
}

/// Runs `sluice` in a shell with these variables.
fn sluice_with(home: &Home, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    run(home.command(arguments).envs(variables.iter().copied()))
}

fn config(home: &Home, text: &str) {
    std::fs::create_dir_all(home.place()).unwrap();
    std::fs::write(home.place().join("config.toml"), text).unwrap();
}

#[test]
fn a_program_without_a_login_is_refused_with_the_cure_and_is_no_crash() {
    let home = Home::new();
    with_program(&home, "codex");
    let task = home.json(&["task", "create", "brew", "Brew it", "--harness", "codex"])["task"].take();
    let id = text(&task["id"]).to_owned();
    let why = format!(
        "`codex` cannot be started: it is not logged in: ~/.codex/auth.json is not there. Run `sluice harness setup codex` \
         in {} to log in, or `printenv OPENAI_API_KEY | codex login --with-api-key`; then `sluice task respawn {id}`",
        home.repository().display()
    );
    assert!(text(&task["attention"]["text"]).ends_with(&why), "{task:#}");
    assert_eq!((&task["status"], &task["crash_count"]), (&"working".into(), &0.into()));
    assert!(home.sluice(&["task", "show", &id]).done().stdout.contains(&why));
    assert!(home.sluice(&["task", "list"]).done().stdout.contains("cannot_start"));
    assert!(home.sluice(&["task", "history", &id]).done().stdout.contains("cannot be started"));
    let said = home.sluice(&["task", "respawn", &id]);
    assert!(said.stderr.contains(&why), "{said:?}");
    // Nothing was spawned: there is no session that could have printed anything.
    assert_eq!(home.windows(), Vec::<String>::new());
    let entries =
        std::fs::read_dir(home.place().join("sessions/live")).unwrap().map(|entry| entry.unwrap().file_name());
    let sessions: Vec<_> = entries.filter(|name| name.to_string_lossy().starts_with(&id)).collect();
    assert_eq!(sessions, Vec::<std::ffi::OsString>::new());
    assert!(home.history(&id).iter().all(|event| event["type"] != "agent.crashed"));

    // After the cure it starts, and what it does from then on is counted.
    std::fs::create_dir(home.path("user/.codex")).unwrap();
    std::fs::write(home.path("user/.codex/auth.json"), "{}").unwrap();
    home.sluice(&["task", "respawn", &id]);
    let crashed = home.until_event(&id, "agent.crashed", 1);
    let lines = crashed["data"]["last_lines"].as_array().unwrap();
    assert!(lines.iter().any(|line| text(line).contains("option")), "{crashed:#}");
    let logged = home.sluice(&["events", "--type", "agent.crashed", "--json"]).done().stdout;
    assert!(logged.contains("\"last_lines\""), "{logged}");
    let list = run(home.command(&["task", "list"]).env("COLUMNS", "200")).done().stdout;
    let last = text(lines.last().unwrap()).trim().chars().take(20).collect::<String>();
    assert!(list.contains(&format!("! crashed: {last}")), "{list}");
    assert!(home.sluice(&["inbox"]).done().stdout.contains("  | "));
    let task = home.task(&id);
    assert_eq!(task["crash_count"], 1);
    assert!(task["last_lines"].as_array().unwrap().iter().any(|line| text(line).contains("option")), "{task:#}");
}

#[test]
fn a_step_of_a_run_is_refused_with_the_cure_too() {
    let home = Home::new();
    with_program(&home, "codex");
    grimoire(&home, "brew", "steps:\n  - {name: brew, type: agent, prompt: brew it, harness: codex}\n");
    let id = begin(&home, &["brew"]);
    let run = settled(&home, &id);
    let brew = step(&run, "brew");
    let why = text(&brew["error"]);
    assert!(why.contains("`codex` cannot be started: it is not logged in"), "{run:#}");
    assert!(why.ends_with(&format!("then `sluice run retry {id} brew`")), "{why}");
    assert!(home.sluice(&["run", "show", &id]).done().stdout.contains("cannot be started"));
    // With a login it starts, and what it says is shown.
    std::fs::create_dir(home.path("user/.codex")).unwrap();
    std::fs::write(home.path("user/.codex/auth.json"), "{}").unwrap();
    home.sluice(&["run", "retry", &id, "brew"]).done();
    let run = settled(&home, &id);
    assert!(!text(&step(&run, "brew")["error"]).contains("cannot be started"), "{run:#}");
    let shown = home.sluice(&["run", "show", &id]).done().stdout;
    assert!(shown.contains("brew printed") && shown.contains("exec"), "{shown}");
}

#[test]
fn a_look_can_be_turned_off_and_a_script_is_given_the_benefit_of_the_doubt() {
    let home = Home::new();
    with_program(&home, "codex");
    config(&home, "[harnesses.codex]\npreflight = [\"installed\"]\n");
    let id = text(&home.json(&["task", "create", "brew", "Brew it", "--harness", "codex"])["task"]["id"]).to_owned();
    home.until_event(&id, "agent.crashed", 1);
    config(&home, "[harnesses.codex]\npreflight = [\"luck\"]\n");
    let said = home.sluice(&["doctor"]);
    assert!(said.stdout.contains("`preflight` must be true, false, or a list of installed, user, login"), "{said:?}");
    // A script in the program's place may set the key itself.
    config(&home, "");
    std::fs::remove_file(home.path("programs/codex")).unwrap();
    std::fs::write(home.path("programs/codex"), "#!/bin/sh\necho wrapped\nexit 3\n").unwrap();
    std::fs::set_permissions(home.path("programs/codex"), PermissionsExt::from_mode(0o755)).unwrap();
    let id = text(&home.json(&["task", "create", "tea", "Tea", "--harness", "codex"])["task"]["id"]).to_owned();
    let crashed = home.until_event(&id, "agent.crashed", 1);
    assert_eq!(crashed["data"]["last_lines"], json!(["wrapped"]));
    let list = home.json(&["harness", "list"]);
    let codex = list["harnesses"].as_array().unwrap().iter().find(|it| it["name"] == "codex").unwrap();
    assert_eq!(look(codex, "login"), ("unknown", "`codex` is a shell script, which may set up what is missing"));
}

fn look<'a>(harness: &'a Value, look: &str) -> (&'a str, &'a str) {
    let looks = harness["looks"].as_array().unwrap();
    let found = looks.iter().find(|it| it["look"] == look).unwrap();
    (text(&found["answer"]), text(&found["why"]))
}

const SANDBOX: [(&str, &str); 2] = [("IS_SANDBOX", "1"), ("ANTHROPIC_AUTH_TOKEN", "secret")];

#[test]
fn setup_does_once_what_can_be_done_and_keeps_everything_else() {
    let home = Home::new();
    with_program(&home, "claude");
    // What is set up does not depend on what is looked at before a start.
    config(&home, "[harnesses.claude]\npreflight = [\"installed\", \"dialogs\", \"trust\"]\n");
    let state = home.path("user/.claude.json");
    let before = json!({ "numStartups": 5, "odd": { "b": 1.5, "a": [null, "é"] }, "projects": {
        "/elsewhere": { "hasTrustDialogAccepted": false } }, "last": "me" });
    std::fs::write(&state, before.to_string()).unwrap();
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o600)).unwrap();
    let create = ["task", "create", "brew", "Brew it", "--harness", "claude", "--json"];
    let task = sluice_with(&home, &SANDBOX, &create).done().json()["task"].take();
    let why = text(&task["attention"]["text"]);
    for part in ["does not trust", "without permissions", "first start", "`sluice harness setup claude`"] {
        assert!(why.contains(part), "{why}");
    }
    assert_eq!(why.matches("sluice harness setup").count(), 1, "one cure is said once: {why}");
    assert!(why.ends_with(", which starts it again"), "{why}");
    let id = text(&task["id"]).to_owned();

    let asked = sluice_with(&home, &SANDBOX, &["harness", "setup", "claude", "--json"]);
    assert_eq!(asked.refusal(), "2 not_confirmed");
    assert_eq!(std::fs::read_to_string(&state).unwrap(), before.to_string());

    let said = sluice_with(&home, &SANDBOX, &["harness", "setup", "claude", "--yes"]).done();
    let repository = home.repository().display().to_string();
    assert!(said.stdout.contains(&format!("+ projects › {repository} › hasTrustDialogAccepted: true")), "{said:?}");
    // The task that waited for it is started again.
    assert!(said.stderr.contains(&format!("task {id} starts again")), "{said:?}");
    home.until_event(&id, "agent.crashed", 1);
    let mut wanted = before.clone();
    wanted["projects"][&repository]["hasTrustDialogAccepted"] = true.into();
    wanted["hasCompletedOnboarding"] = true.into();
    let read = |path: &PathBuf| serde_json::from_str::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(read(&state), wanted);
    assert_eq!(state.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(read(&home.path("user/.claude/settings.json")), json!({ "skipDangerousModePermissionPrompt": true }));
    let again = sluice_with(&home, &SANDBOX, &["harness", "setup", "claude", "--yes", "--json"]).done().json();
    assert_eq!(again, json!({ "changed": [], "left": [], "started": [] }));
}

/// Where there is a person at a terminal, the program's own login is part of the setup, and the task goes on after it.
#[test]
fn setup_offers_the_login_of_the_program_and_starts_what_waited_for_it() {
    let home = Home::new();
    with_program(&home, "codex");
    let id = text(&home.json(&["task", "create", "brew", "Brew it", "--harness", "codex"])["task"]["id"]).to_owned();
    assert_eq!(home.task(&id)["attention"]["reason"], "cannot_start");
    // `codex login` is `sh login` here.
    let login = format!("mkdir -p {0}/.codex; echo '{{}}' > {0}/.codex/auth.json", home.path("user").display());
    std::fs::write(home.repository().join("login"), login).unwrap();
    let socket = home.path("person.sock");
    let tmux = |arguments: &[&str]| run(home.program("tmux").arg("-S").arg(&socket).args(arguments));
    let command = format!("'{}' harness setup codex", env!("CARGO_BIN_EXE_sluice"));
    tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "30", &command]).done();
    let give_up = Instant::now() + LONG;
    while !tmux(&["capture-pane", "-p"]).stdout.contains("Run `codex login` now?") && Instant::now() < give_up {
        std::thread::park_timeout(Duration::from_millis(50));
    }
    tmux(&["send-keys", "y", "Enter"]).done();
    home.until_event(&id, "agent.crashed", 1);
    tmux(&["kill-server"]);
    assert_eq!(std::fs::read_to_string(home.path("user/.codex/auth.json")).unwrap(), "{}\n");
}

/// A program in a terminal that calls its hooks, as claude does, and ends.
const HOOKED: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo 1.2.3; exit 0; }
for event in UserPromptSubmit PermissionRequest Stop; do
    line=$(sed -n 's/.*"'"$event"'":\[{"hooks":\[{"command":"\([^"]*\)".*/\1/p' "$1")
    printf '{"hook_event_name":"%s","tool_name":"Bash","tool_input":{"command":"ls"}}' "$event" | sh -c "$line"
done
echo done
"#;

#[test]
fn a_check_tells_which_hooks_came_and_when() {
    let home = Home::new();
    let program = home.path("hooked");
    std::fs::write(&program, HOOKED).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let words = format!("[\"{}\", \"{{hooks}}\", \"{{prompt}}\"]", program.display());
    config(&home, &format!("[harnesses.hooked]\ninteractive = {words}\noutput = \"claude\"\n"));
    let report = home.sluice(&["harness", "check", "hooked", "--json"]).done().json();
    let signals = report["runs"][0]["signals"].as_array().unwrap();
    let by_hook = signals.iter().filter(|it| it["channel"] == "hook");
    let told: Vec<_> = by_hook.map(|it| (text(&it["signal"]), it["ms"].is_u64())).collect();
    assert_eq!(told, [("works", true), ("waits (permission)", true), ("turn ended", true)], "{report:#}");
    let said = home.sluice(&["harness", "check", "hooked"]).done().stdout;
    assert!(said.contains("· turn ended") && said.contains("seen by hook after "), "{said}");
}

#[test]
fn setup_leaves_alone_what_it_does_not_understand_and_says_what_is_left_to_a_person() {
    let home = Home::new();
    with_program(&home, "claude");
    let state = home.path("user/.claude.json");
    std::fs::write(&state, "{ not json").unwrap();
    let said = home.sluice(&["harness", "setup", "claude", "--yes", "--json"]);
    assert_eq!(said.refusal(), "1 setup_failed");
    assert_eq!(std::fs::read_to_string(&state).unwrap(), "{ not json");
    std::fs::remove_file(&state).unwrap();
    // A login is a person's.
    let said =
        sluice_with(&home, &[("IS_SANDBOX", "1")], &["harness", "setup", "claude", "--project", "coffee", "--yes"]);
    assert_eq!(said.code, 10, "{said:?}");
    assert!(said.stderr.contains("it is not logged in") && said.stderr.contains("in a terminal"), "{said:?}");
    assert!(!said.stderr.contains("sluice harness setup"), "it does not name itself: {said:?}");
    assert_eq!(state.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(home.refused(&["harness", "setup", "nothing-such"]), "3 not_found");
    assert_eq!(home.refused(&["harness", "setup", "claude", "--project", "nothing-such"]), "3 not_found");
    // The same facts in the list and from the doctor.
    let list = home.sluice(&["harness", "list"]).done();
    assert!(list.stdout.contains("claude") && list.stderr.contains("it is not logged in"), "{list:?}");
    let doctor = home.sluice(&["doctor"]).stdout;
    assert!(doctor.contains("it is not logged in"), "{doctor}");
}

#[test]
fn a_program_is_tried_out_and_nothing_is_left_behind() {
    let home = Home::new();
    let scratch = home.path("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let there = scratch.display().to_string();
    let record = home.path("recorded").display().to_string();
    let check = ["harness", "check", "demo", "--record", &record, "--json"];
    let report = sluice_with(&home, &[("TMPDIR", &there)], &check).done().json();
    let runs = report["runs"].as_array().unwrap();
    let facts: Vec<_> = runs.iter().map(|run| (text(&run["place"]), &run["result_read"])).collect();
    assert_eq!(facts, [("headless", &true.into()), ("terminal", &true.into())]);
    assert_eq!(text(&runs[0]["ended"]), "exit code 0");
    assert!(runs[1]["signals"].as_array().unwrap().iter().any(|it| it["signal"] == "answer" && it["seen"] == true));
    assert!(std::fs::read_dir(&scratch).unwrap().next().is_none(), "it leaves nothing");
    let version = text(&report["version"]);
    let printed = std::fs::read_to_string(home.path("recorded").join(format!("demo-{version}-done.txt"))).unwrap();
    assert!(printed.contains("heard-"), "{printed}");

    // One that fails says so, with its last words; one that is not there cannot be tried.
    config(&home, "[harnesses.bad]\nheadless = [\"/bin/sh\", \"-c\", \"echo no luck; exit 3\"]\n");
    let report = sluice_with(&home, &[("TMPDIR", &there)], &["harness", "check", "bad", "--json"]);
    assert_eq!(report.code, 1, "{report:?}");
    let report = report.json();
    assert_eq!((&report["model"], &report["runs"][0]["last_lines"]), (&"none".into(), &json!(["no luck"])));
    assert!(text(&report["runs"][0]["fails"][0]).contains("exit status 3"), "{report:#}");
    assert_eq!(home.refused(&["harness", "check", "goose"]), "3 not_found");
    assert!(std::fs::read_dir(&scratch).unwrap().next().is_none(), "it leaves nothing");
}
