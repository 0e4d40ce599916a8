//! What is heard of living agents: hooks, screens and silence. The agent is a script called `claude` on the PATH, which runs
//! the hooks of the file that `--settings` names, as the real one does.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::home::{Home, Pipe, run};

/// Runs a hook when it is told so through a pipe, or prints something. Each line of its log is a hook and its exit code.
const CLAUDE: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "2.1.326 (Claude Code)"; exit 0; }
while [ "$1" != --settings ]; do shift; done
settings="$2"
hook() {
    line=$(sed -n 's/.*"'"$1"'":\[{"hooks":\[{"command":"\([^"]*\)".*/\1/p' "$settings")
    [ -n "$line" ] || { echo "$1 is not hooked" >> OUT/log; return; }
    printf '%s' "$2" | sh -c "$line"
    echo "$1 $?" >> OUT/log
}
(cat <&3 > OUT/typed) 3<&0 &
echo ready >> OUT/log
while IFS= read -r step < OUT/steps; do
    case "$step" in
        hook\ *) rest="${step#hook }"; hook "${rest%% *}" "${rest#* }" ;;
        show\ *) cat "${step#show }" ;;
        print\ *) printf "${step#print }\n" ;;
        run\ *) sh -c "${step#run }" >> OUT/log 2>&1; echo "ran $?" >> OUT/log ;;
        exit) exit 0 ;;
    esac
    echo > OUT/done
done
"#;

/// A home with such a `claude`, and a task that it works on.
struct Signals {
    home: Home,
    id: String,
    done: Pipe,
}

impl Signals {
    fn new() -> Signals {
        Signals::with("")
    }

    /// The same with these settings.
    fn with(config: &str) -> Signals {
        let home = Home::empty();
        std::fs::create_dir(home.place()).unwrap();
        std::fs::write(home.place().join("config.toml"), config).unwrap();
        let programs = home.path("programs");
        std::fs::create_dir(&programs).unwrap();
        let program = programs.join("claude");
        std::fs::write(&program, CLAUDE.replace("OUT", home.path("").to_str().unwrap())).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        home.pipe("steps");
        let done = home.pipe("done");
        run(&mut Signals::command(&home, &["project", "add"])).done();
        let create = ["task", "create", "brew", "Do it", "--harness", "claude", "--review-harness", "demo", "--json"];
        let id = run(&mut Signals::command(&home, &create)).done().json()["task"]["id"].as_str().unwrap().to_owned();
        Signals { home, id, done }
    }

    /// `sluice` as a person calls it who has set claude up.
    fn command(home: &Home, arguments: &[&str]) -> std::process::Command {
        let mut command = home.command(arguments);
        command.env("ANTHROPIC_API_KEY", "scripted").env("CLAUDE_CODE_SANDBOXED", "1");
        command
    }

    /// The agent does this, and has done it.
    #[track_caller]
    fn step(&self, step: &str) {
        let mut steps = std::fs::OpenOptions::new().write(true).open(self.home.path("steps")).unwrap();
        writeln!(steps, "{step}").unwrap();
        drop(steps);
        self.done.hear();
    }

    /// The agent program runs a hook with this input.
    #[track_caller]
    fn hook(&self, event: &str, input: Value) {
        let mut input = input;
        input["hook_event_name"] = event.into();
        self.step(&format!("hook {event} {input}"));
    }

    /// Waits until the task has this attention: `reason said_by: text`; "" if it has none. How long that took.
    #[track_caller]
    fn until(&self, wanted: &str) -> Duration {
        let began = Instant::now();
        self.home.until(&self.id, wanted, |task| attention(task) == wanted);
        began.elapsed()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.path("log")).unwrap()
    }

    fn count(&self, kind: &str) -> usize {
        self.home.history(&self.id).iter().filter(|event| event["type"] == kind).count()
    }
}

fn attention(task: &Value) -> String {
    let attention = &task["attention"];
    let word = |key: &str| attention[key].as_str().unwrap_or_default().to_owned();
    if attention.is_null() {
        String::new()
    } else {
        format!("{} {}: {}", word("reason"), word("said_by"), word("text"))
    }
}

#[test]
fn hooks_tell_what_the_agent_waits_for_and_that_it_works_again() {
    let it = Signals::new();
    it.until("");
    it.hook("UserPromptSubmit", json!({ "prompt": "Do it" }));
    it.hook("PermissionRequest", json!({ "tool_name": "Bash", "tool_input": { "command": "rm -rf \u{1b}[31mbeans" } }));
    it.until("dialog hook: the agent waits for you (permission): Bash: rm -rf beans");
    it.hook("PostToolUse", json!({ "tool_name": "Bash" }));
    it.until("");
    let question = json!({ "tool_name": "AskUserQuestion", "tool_input": { "questions": [{ "question": "Which?" }] } });
    it.hook("PreToolUse", question.clone());
    it.until("dialog hook: the agent waits for you (question): Which?");
    // The program calls two hooks for one question: it is told once.
    it.hook("PermissionRequest", question);
    it.hook("PostToolUse", json!({ "tool_name": "AskUserQuestion" }));
    it.until("");
    assert_eq!(it.count("attention.set"), 2);
    let secret = format!("sk-ant-api03-{}", "x7Kq".repeat(20));
    it.hook("StopFailure", json!({ "error": "rate_limit", "last_assistant_message": format!("429 for {secret}") }));
    let task = it.home.until(&it.id, "at its limit", |task| attention(task).contains("(limit)"));
    assert!(!task.to_string().contains(&secret), "{task}");
    it.hook("UserPromptSubmit", json!({}));
    it.until("");
    it.hook("Stop", json!({ "last_assistant_message": "Shall I pour it?", "background_tasks": [] }));
    it.until("dialog hook: the agent waits for you (question): Shall I pour it?");
    it.hook("UserPromptSubmit", json!({ "prompt": "Yes" }));
    it.until("");
    assert!(
        !it.log().contains("not hooked") && it.log().lines().skip(1).all(|line| line.ends_with(" 0")),
        "{}",
        it.log()
    );
}

#[test]
fn an_agent_that_goes_on_within_the_grace_does_not_wait() {
    let it = Signals::new();
    it.hook("Stop", json!({ "last_assistant_message": "Done.", "background_tasks": [] }));
    it.hook("UserPromptSubmit", json!({ "prompt": "Go on" }));
    it.hook("Stop", json!({ "last_assistant_message": "Waiting for tests.", "background_tasks": [{ "id": 1 }] }));
    it.hook("Stop", json!({ "last_assistant_message": "Really done.", "background_tasks": [] }));
    it.until("dialog hook: the agent waits for you (question): Really done.");
    assert_eq!(it.count("attention.set"), 1);
}

#[test]
fn no_other_process_speaks_for_a_session_and_a_flood_is_bounded() {
    let it = Signals::new();
    let (home, id) = (&it.home, &it.id);
    let other = home.create("other", "worker: hang", &[]);
    home.until(&other, "active", |task| task["session"] == "active");
    let news = r#"{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"x"}}"#;
    let tell = |session: &str| format!("printf '%s' '{news}' | sluice hook claude {session}.1");
    // A hook never fails, whatever the engine answers.
    it.step(&format!("run {}", tell(&other)));
    assert!(it.log().ends_with("ran 0\n"), "{}", it.log());
    // A person is not the session either.
    let mut person = home.program("sh");
    let binary = env!("CARGO_BIN_EXE_sluice");
    person.arg("-c").arg(tell(id).replace("sluice", binary));
    run(&mut person).done();
    let denied = home.sluice(&["events", "--type", "access.denied", "--json"]).done().stdout;
    let denied: Vec<String> = denied
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["data"].take())
        .map(|data| ["reason", "path", "who"].map(|key| data[key].as_str().unwrap().to_owned()).join(" "))
        .collect();
    let from = |who: String| format!("not_yours /v1/lifecycle/signal {who}");
    let user = run(home.program("id").arg("-un")).done().stdout.trim().to_owned();
    assert_eq!(denied, [from(format!("session:{id}.1")), from(format!("person:{user}"))]);
    assert_eq!((attention(&home.task(id)), attention(&home.task(&other))), (String::new(), String::new()));
    // 300 different dialogs: only so many are taken.
    let flood = r#"i=0; while [ $i -lt 300 ]; do i=$((i+1)); printf '%s' 'NEWS' | sed "s/\"x\"/\"$i\"/" | sluice hook claude ID.1 & done; wait"#;
    it.step(&format!("run {}", flood.replace("NEWS", news).replace("ID", id)));
    let told = it.count("session.waits");
    assert!((1..=200).contains(&told), "{told}");
}

/// What claude 2.1.326 shows in a folder that it does not trust.
const TRUST: &str = include_str!("../../../sluice-os/tests/harness/screens/claude-2.1.326-trust.txt");

/// A screen may have been printed by anything: it raises, and clears nothing; and nothing types, whatever it asks for.
#[test]
fn a_screen_of_a_dialog_raises_perhaps_and_is_never_answered() {
    let it = Signals::new();
    std::fs::write(it.home.path("trust"), TRUST).unwrap();
    it.step(&format!("show {}", it.home.path("trust").display()));
    let line = "Quick safety check: Is this a project you created or one you trust? (Like your own code, a well-known open \
                source";
    let waits = format!("dialog screen: the agent perhaps waits for you (trust): {line}");
    it.until(&waits);
    // The screen is another one now: that clears nothing.
    it.step("print \\033[2J\\033[Hworking on it");
    it.step("print and on");
    it.hook("PermissionRequest", json!({ "tool_name": "Bash", "tool_input": { "command": "ls" } }));
    it.until("dialog hook: the agent waits for you (permission): Bash: ls");
    // A screen says less than a hook, and hides nothing of it.
    it.step(&format!("show {}", it.home.path("trust").display()));
    it.hook("PostToolUse", json!({ "tool_name": "Bash" }));
    it.until("");
    assert_eq!(std::fs::read_to_string(it.home.path("typed")).unwrap(), "");
    assert_eq!(it.count("attention.set"), 2);
}

#[test]
fn an_agent_that_has_been_silent_for_long_is_told_until_it_prints_again() {
    let it = Signals::with("[attention]\nquiet_after = \"1s\"\n");
    let is_quiet = |task: &Value| attention(task).starts_with("quiet engine: the agent has printed nothing for ");
    it.home.until(&it.id, "quiet", is_quiet);
    it.step("print hello");
    it.until("");
    it.home.until(&it.id, "quiet again", is_quiet);
    // It is silent because it waits: that says more.
    it.hook("PermissionRequest", json!({ "tool_name": "Bash", "tool_input": { "command": "ls" } }));
    it.until("dialog hook: the agent waits for you (permission): Bash: ls");
}
