//! Everything goes wrong at once: 15 tasks and six runs in three projects need a person for every reason there is. Each is in
//! the inbox as soon as the engine knows it, ends `wait` with 10, and is solved from there by one command.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::home::{Home, LONG, Ran, run};
use super::recipes::{begin, fresh, grimoire, text, until_status};
use super::served::{Served, token};

/// A `claude` that plays what the test has written for its branch: hooks as the real one runs them, screens, silence.
const CLAUDE: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "2.1.326 (Claude Code)"; exit 0; }
while [ "$1" != --settings ]; do shift; done
settings="$2"
hook() {
    line=$(sed -n 's/.*"'"$1"'":\[{"hooks":\[{"command":"\([^"]*\)".*/\1/p' "$settings")
    printf '%s' "$2" | sh -c "$line"
}
. OUT/plays/$(git branch --show-current)
"#;

/// What claude 2.1.326 shows in a folder that it does not trust, and where it is not logged in.
const TRUST: &str = include_str!("../../../sluice-os/tests/harness/screens/claude-2.1.326-trust.txt");
const LOGIN: &str = include_str!("../../../sluice-os/tests/harness/screens/claude-2.1.326-login.txt");

/// How a shell says what an arbiter decides.
const ANSWER: &str = "answer() { printf '```json\\n%s\\n```\\n' \"$1\"; }";

const REVIEW: &str = "worker: work\nreviewer: review pass";

/// Something that needs a person, and how it is solved.
struct Trouble {
    /// `task` or `run`, and its id.
    of: (&'static str, String),
    reason: &'static str,
    /// A part of what is said about it.
    words: &'static str,
    /// The event that is its cause; of a run, whatever happened before the question.
    cause: &'static str,
    /// What a person answers, and what they have to do first.
    answer: &'static [&'static str],
    first: fn(&Home),
}

impl Trouble {
    fn task(id: String, reason: &'static str, words: &'static str, cause: &'static str) -> Trouble {
        Trouble { of: ("task", id), reason, words, cause, answer: &["dismiss"], first: |_| {} }
    }

    fn run(id: String, reason: &'static str, words: &'static str) -> Trouble {
        Trouble { of: ("run", id), reason, words, cause: "", answer: &["skip"], first: |_| {} }
    }

    fn answered(self, answer: &'static [&'static str]) -> Trouble {
        Trouble { answer, ..self }
    }

    fn after(self, first: fn(&Home)) -> Trouble {
        Trouble { first, ..self }
    }

    /// What the inbox has about it.
    #[track_caller]
    fn found(&self, inbox: &Value) -> Value {
        let (of, id) = &self.of;
        let mut entries = inbox["questions"].as_array().unwrap().iter();
        let found = entries.find(|it| it[of] == id.as_str());
        found.unwrap_or_else(|| panic!("{of} {id} ({}) is not there: {inbox:#}", self.reason)).clone()
    }

    /// Waits until it is raised, and finds it in the inbox then: there is nothing to wait for any more.
    #[track_caller]
    fn raised(&self, home: &Home) -> Value {
        let (of, id) = &self.of;
        let kind = if *of == "task" { "attention.set" } else { "workflow.intervention.required" };
        let event = home.until_event(id, kind, 1);
        let found = self.found(&home.json(&["inbox"]));
        assert_eq!(text(&found["reason"]), self.reason, "{found:#}");
        assert!(text(&found["text"]).contains(self.words), "{found:#}");
        let project = if *of == "run" { "coffee" } else { text(&found["project"]) };
        assert!(["coffee", "tea", "cocoa"].contains(&project) && found["project"] == project, "{found:#}");
        if *of == "task" {
            assert_eq!(found["id"], event["data"]["id"], "{event:#}");
        }
        found
    }

    /// How long it took from its cause to the moment since which it waits, as the log has both, in milliseconds.
    #[track_caller]
    fn delay(&self, home: &Home, found: &Value) -> i64 {
        let (_, id) = &self.of;
        let log = home.sluice(&["events", "--json", "--correlation", id]).done().stdout;
        let log: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let raises = |event: &&Value| {
            event["data"]["id"] == found["id"] || text(&event["type"]) == "workflow.intervention.required"
        };
        let set = log.iter().position(|event| raises(&event)).unwrap_or_else(|| panic!("{log:#?}"));
        let is_cause = |event: &&Value| self.cause.is_empty() || text(&event["type"]) == self.cause;
        let cause = log[..set].iter().rev().find(is_cause);
        let cause = cause.unwrap_or_else(|| panic!("no {} before {}: {log:#?}", self.cause, log[set]));
        let at = |time: &Value| text(time).parse::<jiff::Timestamp>().unwrap().as_millisecond();
        at(&log[set]["time"]).max(at(&found["since"])) - at(&cause["time"])
    }
}

/// A home with three projects, an engine that serves it, and everything that is needed to go wrong.
struct Scenario {
    home: Home,
    served: Served,
    reader: String,
    troubles: Vec<Trouble>,
}

fn executable(path: &Path, script: &str) {
    std::fs::write(path, script).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

fn config(home: &Home, more: &str) {
    let own = "[defaults]\nharness = \"demo\"\n[harnesses.shell]\nheadless = [\"sh\"]\noutput = \"text\"\n\
               [harnesses.codex]\ninteractive = [\"codex\", \"-\"]\n[harnesses.copilot]\ninteractive = [\"copilot\", \"-\"]\n";
    std::fs::write(home.place().join("config.toml"), format!("{own}{more}")).unwrap();
}

impl Scenario {
    fn new() -> Scenario {
        let home = Home::empty();
        std::fs::create_dir(home.place()).unwrap();
        config(&home, "");
        let programs = home.path("programs");
        std::fs::create_dir_all(home.path("plays")).unwrap();
        std::fs::create_dir(&programs).unwrap();
        executable(&programs.join("claude"), &CLAUDE.replace("OUT", home.path("").to_str().unwrap()));
        // No scripts: those would be taken for ones that may set up what is missing.
        for name in ["codex", "copilot"] {
            symlink("/bin/cat", programs.join(name)).unwrap();
        }
        for name in ["tea", "cocoa"] {
            let from = home.repository();
            run(home.program("git").args(["clone", "--quiet"]).arg(from).arg(home.path(name))).done();
        }
        let (_, reader) = token(&home, &["--scope", "read"]);
        home.sluice(&["stop"]).done();
        let served = Served::start(&home, &[]);
        home.sluice(&["project", "add", "--pool-size", "10"]).done();
        for (name, size) in [("tea", "1"), ("cocoa", "10")] {
            let path = home.path(name);
            home.sluice(&["project", "add", path.to_str().unwrap(), "--name", name, "--pool-size", size]).done();
        }
        Scenario { home, served, reader, troubles: Vec::new() }
    }

    /// A task of an agent program other than the scripted one.
    #[track_caller]
    fn create(&self, branch: &str, project: &str, harness: &str) -> String {
        let words = ["task", "create", branch, "Do it", "--project", project, "--harness", harness];
        text(&self.home.json(&[&words, &["--review-harness", "demo"][..]].concat())["task"]["id"]).to_owned()
    }

    /// A task of a claude that does this.
    #[track_caller]
    fn claude(&self, branch: &str, project: &str, play: &str) -> String {
        std::fs::write(self.home.path("plays").join(branch), play).unwrap();
        self.create(branch, project, "claude")
    }

    /// Tasks of the scripted agent that need their person, and of programs that cannot be started.
    fn states_and_starts(&mut self) {
        let home = &self.home;
        let review = home.create("review", REVIEW, &["--workflow", "reviewed", "--project", "coffee"]);
        let crashed = home.create("crash", "worker 1: say \"no such bean\"; exit 3\nworker: hang", &[]);
        let stuck =
            home.create("stuck", "worker: update stuck; wait for notification; hang", &["--workflow", "reviewed"]);
        let asks = "worker: write Questions \"hot or cold?\"; update clarification; wait for notification; hang";
        let unclear = home.create("unclear", asks, &[]);
        let hooked = "name: hooked\nversion: 1\nstates: {pending: {}, working: {}, cancelled: {terminal: true}}\n\
            transitions:\n  - {from: pending, to: working, hooks: [{action: acquire_workspace}, {action: run_command, \
            command: 'exit 9'}, {action: spawn_agent, prompt: worker}]}\n  - {from: working, to: cancelled, by: agent}\n\
            exit_monitoring:\n  rules: [{status: working, action: mark_dead}]\nprompts:\n  worker: Do it.\n";
        std::fs::create_dir_all(home.place().join("workflows")).unwrap();
        std::fs::write(home.place().join("workflows/hooked.yml"), hooked).unwrap();
        let hook = home.create("hook", "worker: hang", &["--workflow", "hooked", "--project", "cocoa"]);
        let (goose, codex) = (self.create("goose", "coffee", "goose"), self.create("codex", "coffee", "codex"));
        let copilot = self.create("copilot", "coffee", "copilot");
        let cannot = |id, words| Trouble::task(id, "cannot_start", words, "hook.failed").answered(&["retry"]);
        self.troubles.extend([
            Trouble::task(review, "review", "the work is ready", "turn.settled").answered(&["approve"]),
            Trouble::task(crashed, "crashed", "exit code 3", "agent.crashed").answered(&["respawn"]),
            Trouble::task(stuck, "stuck", "decide how it goes on", "turn.settled").answered(&[
                "request-changes",
                "--message",
                "Try it cold",
            ]),
            Trouble::task(unclear, "clarification", "not clear", "turn.settled").answered(&["working"]),
            Trouble::task(hook, "hook_failed", "run_command failed", "hook.failed"),
            cannot(goose, "goose").after(|home| executable(&home.path("programs/goose"), "#!/bin/sh\nexec cat\n")),
            cannot(codex, "it is not logged in").after(|home| {
                std::fs::create_dir(home.path("user/.codex")).unwrap();
                std::fs::write(home.path("user/.codex/auth.json"), "{}").unwrap();
            }),
            cannot(copilot, "it does not trust").answered(&["setup"]),
        ]);
    }

    /// An agent that is silent for long. Others may be silent for longer than that.
    fn silence(&mut self) {
        config(&self.home, "[attention]\nquiet_after = \"1s\"\n");
        let id = self.claude("silent", "cocoa", "exec cat > /dev/null");
        let silent = Trouble::task(id, "quiet", "has printed nothing for", "session.quiet");
        silent.raised(&self.home);
        config(&self.home, "[attention]\npool_full_after = \"0s\"\n");
        self.troubles.push(silent);
    }

    /// Agents that live and wait: dialogs by hook and by screen, a limit, an end of turn; and a pool that is full.
    fn dialogs(&mut self) {
        let show = |name: &str, screen: &str| {
            std::fs::write(self.home.path(name), screen).unwrap();
            format!("cat {}; exec cat", self.home.path(name).display())
        };
        let (login, trust) = (show("login.txt", LOGIN), show("trust.txt", TRUST));
        let hook = |event: &str, input: Value| {
            let mut input = input;
            input["hook_event_name"] = event.into();
            format!("hook {event} '{input}'")
        };
        let permission = hook("PermissionRequest", json!({ "tool_name": "Bash", "tool_input": { "command": "ls" } }));
        let allowed = hook("PostToolUse", json!({ "tool_name": "Bash", "tool_input": { "command": "ls" } }));
        let limit = hook("StopFailure", json!({ "error": "rate_limit", "last_assistant_message": "429: later" }));
        let turn = hook("Stop", json!({ "last_assistant_message": "Shall I pour it?", "background_tasks": [] }));
        let login = self.claude("login", "cocoa", &login);
        let trust = self.claude("trust", "cocoa", &trust);
        let permission = self.claude("permission", "cocoa", &format!("{permission}; read key; {allowed}; exec cat"));
        let limit = self.claude("limit", "cocoa", &format!("{limit}; exec cat"));
        let asks = self.claude("asks", "tea", &format!("{turn}; exec cat"));
        let waits = self.home.create("waits", "worker: hang", &["--project", "tea"]);
        let dialog = |id, words| Trouble::task(id, "dialog", words, "session.waits");
        self.troubles.extend([
            dialog(login, "perhaps waits for you (login)"),
            dialog(trust, "perhaps waits for you (trust)"),
            dialog(permission, "waits for you (permission): Bash: ls").answered(&["attach"]),
            dialog(limit, "waits for you (limit): 429: later"),
            dialog(asks, "waits for you (question): Shall I pour it?"),
            Trouble::task(waits, "pool_full", "pool full", "task.created").answered(&[]),
        ]);
    }

    /// Runs that need their person.
    fn runs(&mut self) {
        let home = &self.home;
        let (here, go) = (home.pipe("here"), home.pipe("go"));
        grimoire(home, "gated", "steps:\n  - {name: check, type: gate, command: 'echo cold; exit 3'}\n");
        grimoire(home, "slow", "steps:\n  - {name: check, type: gate, timeout: 1s, command: 'tail -f /dev/null'}\n");
        let judged = |answer: &str| {
            format!(
                "steps:\n  - name: loop\n    type: agent-loop\n    harness: shell\n    max_iterations: 2\n    \
                 on_max_iterations: block\n    prompt: echo work\n    arbiter_prompt: |\n      {ANSWER}\n      answer \
                 '{{\"result\": \"{answer}\"}}'; exit 0\n"
            )
        };
        grimoire(home, "loops", &judged("actionable"));
        grimoire(home, "torn", &judged("perhaps"));
        let ask = "answer=$(sluice step ask 'Hot or cold?' --option hot --option cold); echo $answer";
        grimoire(home, "asking", &format!("steps:\n  - {{name: ask, harness: shell, prompt: \"{ask}\"}}\n"));
        let both = format!(
            "steps:\n  - name: both\n    type: parallel-agents\n    harness: shell\n    on_failure: continue\n    for_each: [0, 1]\n    \
             prompt: |\n      echo ${{item}} > same.txt\n      if test ${{item}} = 0; then echo > {}; cat {}; fi\n",
            here.path(),
            go.path()
        );
        grimoire(home, "both", &both);
        let conflict = begin(home, &["both"]);
        here.hear();
        home.until_event(&conflict, "workflow.step.part.started", 2);
        go.let_go();
        let started = |name: &str| begin(home, &[name]);
        self.troubles.extend([
            Trouble::run(conflict, "conflict", "conflict: its work is on").answered(&["continue"]),
            Trouble::run(started("gated"), "gate", "exit code 3"),
            Trouble::run(started("slow"), "timeout", "longer than its `timeout`"),
            Trouble::run(started("loops"), "loop_exhausted", "after 2 turns").answered(&["continue"]),
            Trouble::run(started("torn"), "question", "neither `done` nor `actionable`").answered(&["continue"]),
            Trouble::run(started("asking"), "question", "Hot or cold?").answered(&["hot"]),
        ]);
    }

    /// Every way to learn of it says the same.
    fn told_everywhere(&self, trouble: &Trouble, found: &Value) {
        let (of, id) = &trouble.of;
        let waited = self.home.sluice(&[of, "wait", id]);
        assert_eq!(waited.code, 10, "{}: {waited:?}", trouble.reason);
        assert!(waited.stderr.contains(&format!("({})", trouble.reason)), "{waited:?}");
        let listed = self.home.sluice(&[of, "list"]).done().stdout;
        let line = listed.lines().find(|line| line.contains(id.as_str())).unwrap_or_else(|| panic!("{listed}"));
        assert!(line.contains(&format!("! {}: ", trouble.reason)), "{line}");
        let path = format!("/v1/attention/{}", text(&found["id"]));
        assert_eq!(self.served.ask("GET", &path, Some(&self.reader), "").json(), *found);
    }

    /// One command solves it, and then it waits no more.
    #[track_caller]
    fn solved(&self, trouble: &Trouble, found: &Value) {
        let (home, id) = (&self.home, text(&found["id"]));
        (trouble.first)(home);
        let ran: Ran = match trouble.answer {
            // What the inbox prints for a pool, with a number.
            [] => home.sluice(&["project", "update", text(&found["project"]), "--pool-size", "2"]),
            ["attach"] => self.attached(&trouble.of.1),
            // What the text says: it also starts the agent again.
            ["setup"] => home.sluice(&["harness", "setup", "copilot", "--project", "coffee", "--yes"]),
            answer => home.sluice(&[&["answer", id], answer].concat()),
        };
        assert_eq!(ran.code, 0, "{} {id}: {ran:?}", trouble.reason);
        // Only what an agent or the next in line does itself comes a little later.
        if trouble.answer.is_empty() || [["attach"], ["setup"]].iter().any(|it| trouble.answer == it) {
            home.until(&trouble.of.1, "solved", |task| task["attention"]["id"] != id);
        }
        let inbox = home.json(&["inbox"]);
        let mut left = inbox["questions"].as_array().unwrap().iter().filter(|it| text(&it["id"]) == id);
        assert!(left.next().is_none(), "{} is not gone: {inbox:#}", trouble.reason);
    }

    /// What a person sees at a terminal of 80 columns: whole lines, no colour where none is wanted, and everything in its place.
    fn is_readable(&self) {
        let shown = |variable: &str, value: &str| {
            run(self.home.command(&["inbox"]).env("COLUMNS", "80").env(variable, value)).done()
        };
        let plain = shown("NO_COLOR", "1");
        eprintln!("{}{}", plain.stdout, plain.stderr);
        assert!(!plain.stdout.contains('\u{1b}'), "{plain:?}");
        let all = plain.stdout.lines().chain(plain.stderr.lines());
        let broken: Vec<&str> = all.filter(|line| line.chars().count() > 80).collect();
        assert_eq!(broken, Vec::<&str>::new());
        assert!(shown("CLICOLOR_FORCE", "1").stdout.contains("\u{1b}["), "colour where it is wanted");
    }

    /// A person at a terminal attaches to the session, presses a key, and leaves.
    #[track_caller]
    fn attached(&self, id: &str) -> Ran {
        let home = &self.home;
        let socket = home.path("person.sock");
        let tmux = |words: &[&str]| run(home.program("tmux").arg("-S").arg(&socket).args(words));
        let binary = env!("CARGO_BIN_EXE_sluice");
        tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", binary, "task", "attach", id]).done();
        // What is pressed before the session is shown is lost.
        let give_up = Instant::now() + LONG;
        let pressed = loop {
            let pressed = tmux(&["send-keys", "1", "Enter"]);
            if pressed.code != 0 || home.task(id)["attention"].is_null() {
                break pressed;
            }
            assert!(Instant::now() < give_up, "{}", tmux(&["capture-pane", "-p"]).stdout);
        };
        tmux(&["kill-server"]);
        pressed
    }
}

#[test]
fn everything_goes_wrong_at_once_and_each_is_solved_by_one_command() {
    let mut it = Scenario::new();
    it.silence();
    it.states_and_starts();
    it.dialogs();
    it.runs();
    let found: Vec<Value> = it.troubles.iter().map(|trouble| trouble.raised(&it.home)).collect();
    let tasks = it.troubles.iter().filter(|trouble| trouble.of.0 == "task").count();
    assert_eq!((tasks, it.troubles.len()), (15, 21));

    for (trouble, found) in it.troubles.iter().zip(&found) {
        it.told_everywhere(trouble, found);
        let delay = trouble.delay(&it.home, found);
        eprintln!("{:<15} {:>5} ms after its cause  {}", trouble.reason, delay, text(&found["text"]));
        assert!((0..1000).contains(&delay), "{} waits {delay} ms after its cause", trouble.reason);
    }
    let metrics = it.served.ask("GET", "/metrics", Some(&it.reader), "").body;
    let list = it.served.ask("GET", "/v1/attention", Some(&it.reader), "").json();
    assert_eq!(list["attention"].as_array().unwrap().len(), 21, "{list:#}");
    for reason in found.iter().map(|found| text(&found["reason"])) {
        let count = found.iter().filter(|it| text(&it["reason"]) == reason).count();
        assert!(metrics.contains(&format!("sluice_attention{{reason=\"{reason}\"}} {count}\n")), "{reason}: {metrics}");
    }
    it.is_readable();
    let shown = it.home.sluice(&["inbox"]).done();
    assert!(shown.stderr.contains("21 things wait for you"), "{shown:?}");
    for (trouble, found) in it.troubles.iter().zip(&found) {
        let id = text(&found["id"]);
        assert!(shown.stdout.contains(id) || trouble.answer.is_empty(), "{} {id}: {}", trouble.reason, shown.stdout);
    }
    for (trouble, found) in it.troubles.iter().zip(&found) {
        it.solved(trouble, found);
    }
}

/// A disk does not become empty by itself: what waits for room waits for a person, until there is room.
#[test]
fn what_waits_for_room_on_a_disk_is_told_and_goes_on_when_there_is_room() {
    let home = fresh();
    let before = std::fs::read_to_string(home.place().join("config.toml")).unwrap();
    let short = "\n[workspaces]\nleast_free = \"1000000 GiB\"\nlow_disk = \"1000001 GiB\"\n";
    std::fs::write(home.place().join("config.toml"), format!("{before}{short}")).unwrap();
    grimoire(&home, "mine", "steps:\n  - {name: one, type: script, command: 'true'}\n");
    home.commit();
    let id = begin(&home, &["mine"]);
    let give_up = Instant::now() + LONG;
    // That something is tried again is no event: it is looked for, as `run wait` does.
    let found = loop {
        let inbox = home.json(&["inbox"]);
        let mut entries = inbox["questions"].as_array().unwrap().iter();
        if let Some(found) = entries.find(|it| it["run"] == id.as_str()) {
            break found.clone();
        }
        assert!(Instant::now() < give_up, "{inbox:#}");
    };
    assert_eq!(text(&found["reason"]), "work_at_risk", "{found:#}");
    let waited = home.sluice(&["run", "wait", &id]);
    assert!(waited.code == 10 && waited.stderr.contains("(work_at_risk)"), "{waited:?}");
    let shown = home.sluice(&["inbox"]).done();
    assert!(shown.stdout.contains("low disk") && shown.stderr.contains("work_at_risk"), "{shown:?}");
    std::fs::write(home.place().join("config.toml"), before).unwrap();
    until_status(&home, &id, "completed");
    assert_eq!(home.json(&["inbox"])["questions"], json!([]));
}
