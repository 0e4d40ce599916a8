//! What is heard of living agents: hooks, screens and silence. The agent is a script called `claude` on the PATH, which runs
//! the hooks of the file that `--settings` names, as the real one does.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::home::{Home, Pipe, run};
use super::notify::{Mailbox, hook_at};

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

/// What it logs in with: no pattern knows it, and no part of it is known.
const KEY: &str = "brewing-with-7Kq9x2Lm4Zt8";

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
        Signals::with_task(config, &["--harness", "claude", "--review-harness", "demo"])
    }

    fn with_task(config: &str, of: &[&str]) -> Signals {
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
        let create = [&["task", "create", "brew", "Do it", "--json"], of].concat();
        let id = run(&mut Signals::command(&home, &create)).done().json()["task"]["id"].as_str().unwrap().to_owned();
        Signals { home, id, done }
    }

    /// The same, where such a `claude` reviews what the scripted agent has done.
    fn of_reviewer() -> Signals {
        let context = "## Context\n\n```demo\nworker: work\n```\n";
        Signals::with_task("", &["--harness", "demo", "--review-harness", "claude", "--context", context])
    }

    /// `sluice` as a person calls it who has set claude up.
    fn command(home: &Home, arguments: &[&str]) -> std::process::Command {
        let mut command = home.command(arguments);
        command.env("ANTHROPIC_API_KEY", KEY).env("CLAUDE_CODE_SANDBOXED", "1");
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

/// A use of the shell, as hooks of claude tell of it.
fn bash(command: &str) -> Value {
    json!({ "tool_name": "Bash", "tool_input": { "command": command } })
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
    let beans = json!({ "tool_name": "Bash", "tool_input": { "command": "rm -rf \u{1b}[31mbeans" } });
    it.hook("PermissionRequest", beans.clone());
    it.until("dialog hook: the agent waits for you (permission): Bash: rm -rf beans");
    it.hook("PostToolUse", beans);
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
    it.hook("PermissionRequest", bash("ls"));
    it.until("dialog hook: the agent waits for you (permission): Bash: ls");
    // A screen says less than a hook, and hides nothing of it.
    it.step(&format!("show {}", it.home.path("trust").display()));
    it.step("print \\033[2J\\033[Hworking on it");
    it.hook("PostToolUse", bash("ls"));
    it.until("");
    assert_eq!(std::fs::read_to_string(it.home.path("typed")).unwrap(), "");
    assert_eq!(it.count("attention.set"), 2);
}

/// Whatever an agent prints, it is at most said to wait perhaps; and nothing is typed for it.
#[test]
fn every_known_dialog_that_an_agent_prints_raises_perhaps_at_most() {
    let it = Signals::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../sluice-os/tests/harness/screens");
    for what in ["trust", "other-bypass", "login", "network-retry", "limit", "permission", "question"] {
        it.step("print \\033[2J\\033[H");
        it.step(&format!("show {folder}/claude-2.1.326-{what}.txt"));
        let kind = what.split('-').next().unwrap();
        let perhaps = format!("dialog screen: the agent perhaps waits for you ({kind}): ");
        let task = it.home.until(&it.id, what, |task| attention(task).starts_with(&perhaps));
        assert_eq!(task["attention"]["choices"][0], "attach", "{task:#}");
        // The agent itself knows better.
        it.hook("PostToolUse", json!({ "tool_name": "Bash" }));
        it.until("");
    }
    assert_eq!(std::fs::read_to_string(it.home.path("typed")).unwrap(), "");
    assert_eq!(it.count("attention.set"), 7);
}

/// A person who has put right what the agent waited for starts it again with one command, in the environment of that command.
#[test]
fn an_agent_that_waits_is_started_again_when_a_person_says_so() {
    let it = Signals::new();
    assert_eq!(it.home.refused(&["task", "respawn", &it.id]), "1 session_alive");
    it.hook("StopFailure", json!({ "error": "authentication_failed", "last_assistant_message": "Please run /login" }));
    it.until("dialog hook: the agent waits for you (login): Please run /login");
    let inbox = it.home.sluice(&["inbox"]).done().stdout;
    assert!(inbox.contains(&format!("→ sluice task attach {}", it.id)) && inbox.contains(": respawn, "), "{inbox}");
    let mut answer = Signals::command(&it.home, &["answer", &format!("{}/1", it.id), "respawn", "--json"]);
    let answered = run(answer.env("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")).done().json();
    assert_eq!(answered["task"]["attention"], Value::Null, "{answered:#}");
    it.home.until_event(&it.id, "agent.respawned", 1);
    it.step("run printenv ANTHROPIC_BASE_URL");
    assert!(it.log().contains("ready\nhttp://127.0.0.1:1\nran 0\n"), "{}", it.log());
    let task = it.home.task(&it.id);
    assert_eq!((&task["crash_count"], &task["session"]), (&0.into(), &"active".into()), "{task:#}");
}

/// `sluice answer ID attach` shows the session in the terminal in which it is said.
#[test]
fn attach_is_an_answer_that_shows_the_session() {
    let it = Signals::new();
    it.step("print the-words-of-the-agent");
    it.hook("PermissionRequest", json!({ "tool_name": "Bash", "tool_input": { "command": "ls" } }));
    it.until("dialog hook: the agent waits for you (permission): Bash: ls");
    // Without a terminal it says how.
    let said = it.home.sluice(&["answer", &it.id, "attach"]).done();
    assert!(said.stderr.contains(&format!("`sluice task attach {}` shows the session", it.id)), "{said:?}");
    let socket = it.home.path("person.sock");
    let tmux = |arguments: &[&str]| run(it.home.program("tmux").arg("-S").arg(&socket).args(arguments));
    let command = format!("'{}' answer {} attach", env!("CARGO_BIN_EXE_sluice"), it.id);
    tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", &command]).done();
    let give_up = Instant::now() + super::home::LONG;
    let mut shown = String::new();
    while !shown.contains("the-words-of-the-agent") && Instant::now() < give_up {
        std::thread::park_timeout(Duration::from_millis(50));
        shown = tmux(&["capture-pane", "-p"]).stdout;
    }
    tmux(&["kill-server"]);
    assert!(shown.contains("the-words-of-the-agent"), "{shown}");
}

/// The reason for which a program ends is said wherever its end is said.
#[test]
fn a_program_that_ends_says_its_known_reason_with_its_end() {
    let it = Signals::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../sluice-os/tests/harness/screens");
    let reason = "It said (network): Unable to connect to Anthropic services";
    it.step(&format!("show {folder}/claude-2.1.326-network.txt"));
    let mut steps = std::fs::OpenOptions::new().write(true).open(it.home.path("steps")).unwrap();
    writeln!(steps, "exit").unwrap();
    drop(steps);
    let wanted = format!("crashed exit: the agent ended (exit code 0), and is not started again by itself. {reason}");
    it.until(&wanted);
    let task = it.home.task(&it.id);
    assert!(task["last_lines"].to_string().contains("Unable to connect"), "{task:#}");
    let inbox = it.home.sluice(&["inbox"]).done().stdout;
    assert!(inbox.contains(reason), "{inbox}");
    assert!(it.home.sluice(&["task", "show", &it.id]).done().stdout.contains(reason));
    let list = it.home.sluice(&["task", "list"]).done().stdout;
    assert!(list.contains("! crashed: (network): Unable to connect"), "{list}");
    let waited = it.home.sluice(&["task", "wait", &it.id]);
    assert!(waited.code == 10 && waited.stderr.contains(reason), "{waited:?}");
    let events = it.home.sluice(&["events", "--type", "agent.crashed", "--json"]).done().stdout;
    assert!(events.contains("Unable to connect"), "{events}");
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

/// Tools work at the same time: the end of one says nothing about the dialog of another.
#[test]
fn a_tool_that_ends_takes_back_no_dialog_of_another() {
    let it = Signals::new();
    it.until("");
    it.hook("PermissionRequest", bash("rm -rf beans"));
    it.hook("PostToolUse", json!({ "tool_name": "Read", "tool_input": { "file_path": "beans" } }));
    // What the agent itself asks Sluice for is done by one of its tools, too.
    it.step(&format!("run sluice task show {}", it.id));
    it.hook("PermissionRequest", bash("ls"));
    it.until("dialog hook: the agent waits for you (permission): Bash: ls");
    assert_eq!(it.count("session.works"), 0);
    it.hook("PostToolUse", bash("ls"));
    it.until("dialog hook: the agent waits for you (permission): Bash: rm -rf beans");
    it.hook("PostToolUse", bash("rm -rf beans"));
    it.until("");
    // A prompt of the person ends whatever stood open.
    it.hook("PermissionRequest", bash("rm -rf beans"));
    it.until("dialog hook: the agent waits for you (permission): Bash: rm -rf beans");
    it.hook("UserPromptSubmit", json!({ "prompt": "Leave them" }));
    it.until("");
}

/// That an agent works is told with every tool: it uses nothing up of what a session may say.
#[test]
fn a_dialog_after_many_tools_is_heard_of() {
    let it = Signals::new();
    let news = r#"{"hook_event_name":"PostToolUse","tool_name":"Read","tool_input":{"file_path":"x"}}"#;
    let many = r#"i=0; while [ $i -lt 200 ]; do i=$((i+1)); printf '%s' 'NEWS' | sluice hook claude ID.1 & done; wait"#;
    it.step(&format!("run {}", many.replace("NEWS", news).replace("ID", &it.id)));
    it.hook("PermissionRequest", bash("ls"));
    it.until("dialog hook: the agent waits for you (permission): Bash: ls");
}

/// The engine that comes next hears what was said while there was none.
#[test]
fn what_a_hook_says_while_no_engine_is_there_is_heard_of_later() {
    let it = Signals::new();
    it.until("");
    it.home.sluice(&["stop"]).done();
    it.hook("PermissionRequest", bash("ls"));
    it.hook("PostToolUse", json!({ "tool_name": "Read", "tool_input": { "file_path": "beans" } }));
    it.until("dialog hook: the agent waits for you (permission): Bash: ls");
    it.home.sluice(&["stop"]).done();
    it.hook("PostToolUse", bash("ls"));
    it.until("");
    it.home.sluice(&["stop"]).done();
    it.hook("Stop", json!({ "last_assistant_message": "Shall I pour it?", "background_tasks": [] }));
    it.until("dialog hook: the agent waits for you (question): Shall I pour it?");
    assert!(it.log().lines().skip(1).all(|line| line.ends_with(" 0")), "{}", it.log());
}

#[test]
fn the_end_of_a_turn_outlives_an_engine_that_is_killed_within_the_grace() {
    let it = Signals::new();
    it.until("");
    it.hook("Stop", json!({ "last_assistant_message": "Shall I pour it?", "background_tasks": [] }));
    it.home.kill_engine();
    it.until("dialog hook: the agent waits for you (question): Shall I pour it?");
    assert_eq!(it.count("attention.set"), 1);
}

/// An agent that begins and ends to wait again and again is told of once; the inbox shows each time, and other tasks are told of.
#[test]
fn an_agent_that_waits_again_and_again_floods_no_person() {
    let mailbox = Mailbox::new(true);
    let it = Signals::with(&format!("[notify]\ndesktop = false\n{}", hook_at(&mailbox.url, "json")));
    it.hook("PermissionRequest", bash("ls"));
    it.until("dialog hook: the agent waits for you (permission): Bash: ls");
    assert_eq!(mailbox.next().json()["task"], it.id.as_str());
    for branch in ["steep", "pour"] {
        it.hook("PostToolUse", bash("ls"));
        it.until("");
        it.hook("PermissionRequest", bash("ls"));
        it.until("dialog hook: the agent waits for you (permission): Bash: ls");
        // What waits longest is told first: the dialog would come before this.
        let context = "## Context\n\n```demo\nworker: exit 3\n```\n";
        let of = ["--harness", "demo", "--review-harness", "demo", "--context", context];
        let create = [&["task", "create", branch, "Do it", "--json"], of.as_slice()].concat();
        let other = run(&mut Signals::command(&it.home, &create)).done().json()["task"]["id"].take();
        assert_eq!(mailbox.next().json()["task"], other);
    }
    assert_eq!(it.count("attention.set"), 3);
}

/// While hooks of the lifecycle run, a person is not needed; when they have settled, the agent still waits.
#[test]
fn the_end_of_a_turn_is_told_when_the_hooks_of_the_lifecycle_have_settled() {
    let it = Signals::with_task("", &["--harness", "claude", "--review-harness", "demo", "--no-spawn"]);
    let go = it.home.pipe("go");
    let shown = it.home.sluice(&["workflow", "show", "default"]).done().stdout;
    let usual = "        permissions: full\n";
    let slow = format!("{usual}      - action: run_command\n        command: cat {}\n", go.path());
    let mine = shown.replace("name: default", "name: mine").replacen(usual, &slow, 1);
    std::fs::create_dir_all(it.home.place().join("workflows")).unwrap();
    std::fs::write(it.home.place().join("workflows/mine.yml"), mine).unwrap();
    let create =
        ["task", "create", "slow", "Do it", "--harness", "claude", "--workflow", "mine", "--no-spawn", "--json"];
    let id = run(&mut Signals::command(&it.home, &create)).done().json()["task"]["id"].as_str().unwrap().to_owned();
    let it = Signals { id, ..it };
    let mut spawning = Signals::command(&it.home, &["task", "spawn", &it.id]).spawn().unwrap();
    it.hook("Stop", json!({ "last_assistant_message": "Shall I pour it?", "background_tasks": [] }));
    assert_eq!(it.count("session.waits"), 0);
    go.let_go();
    assert!(spawning.wait().unwrap().success());
    it.until("dialog hook: the agent waits for you (question): Shall I pour it?");
}

/// A part of a secret is not known for one: texts are cut after the secrets are taken out.
#[test]
fn a_text_that_is_cut_holds_no_part_of_a_secret() {
    let it = Signals::new();
    it.until("");
    for before in ["word ".repeat(97), " ".repeat(3985)] {
        it.hook("StopFailure", json!({ "error": "rate_limit", "last_assistant_message": format!("{before}{KEY}") }));
        let task = it.home.until(&it.id, "at its limit", |task| attention(task).contains("(limit)"));
        assert!(!attention(&task).contains(&KEY[..10]), "{task:#}");
        it.hook("UserPromptSubmit", json!({}));
        it.until("");
    }
}

/// In `default` the reviewer takes the worker's place, and its program is another one.
#[test]
fn a_dialog_on_the_screen_of_a_reviewer_is_known_by_its_own_program() {
    let it = Signals::of_reviewer();
    it.home.until(&it.id, "reviewed", |task| task["status"] == "agent-review" && task["session"] == "active");
    std::fs::write(it.home.path("trust"), TRUST).unwrap();
    it.step(&format!("show {}", it.home.path("trust").display()));
    it.home.until(&it.id, "at its dialog", |task| {
        attention(task).starts_with("dialog screen: the agent perhaps waits for you (trust)")
    });
}
