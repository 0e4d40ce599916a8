//! What a person notices who waits at a terminal: a bell and a message of the terminal's own, and what agents print as they print
//! it. `script` gives each command a terminal of its own, and its bytes as they come.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::Value;

use super::home::{Home, LONG, Ran, run};
use super::recipes::{begin, fresh, grimoire, text, until_status};

const REVIEW: &str = "worker: work\nreviewer: review pass";

/// `sluice` with these arguments at a terminal, in a shell line that may send some of it elsewhere.
fn at_terminal(home: &Home, line: &str) -> Command {
    let mut command = home.program("script");
    let line = line.replacen("sluice", env!("CARGO_BIN_EXE_sluice"), 1);
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("TERM", "xterm");
    command
}

fn ran_at_terminal(home: &Home, line: &str) -> Ran {
    run(&mut at_terminal(home, line))
}

fn rings(title: &str) -> String {
    format!("\u{1b}]9;{title}\u{1b}\\\u{7}")
}

fn reviewed(home: &Home, branch: &str) -> String {
    let id = home.create(branch, REVIEW, &["--workflow", "reviewed"]);
    home.until_event(&id, "attention.set", 1);
    id
}

#[test]
fn a_wait_at_a_terminal_rings_when_it_ends_with_something_for_a_person() {
    let home = Home::new();
    let id = reviewed(&home, "brew");
    let waited = ran_at_terminal(&home, &format!("sluice task wait {id}"));
    assert_eq!(waited.code, 10, "{waited:?}");
    assert!(waited.stdout.contains(&rings("brew needs you (review)")), "{waited:?}");
    // Inside tmux a message is handed on in its wrapping.
    let mut within = at_terminal(&home, &format!("sluice task wait {id}"));
    let waited = run(within.env("TMUX", "/tmp/none,1,0"));
    assert!(
        waited.stdout.contains("\u{1b}Ptmux;\u{1b}\u{1b}]9;brew needs you (review)\u{7}\u{1b}\\\u{7}"),
        "{waited:?}"
    );
    // Neither a pipe nor a file nor a program gets it.
    let is_silent = |ran: &Ran| !ran.stdout.contains('\u{7}') && !ran.stderr.contains('\u{7}');
    for line in ["sluice task wait ID > /dev/null", "sluice task wait ID 2> /dev/null", "sluice task wait ID --json"] {
        let waited = ran_at_terminal(&home, &line.replace("ID", &id));
        assert!(waited.code == 10 && is_silent(&waited), "{line}: {waited:?}");
    }
    assert!(is_silent(&home.sluice(&["task", "wait", &id])));
    // And a person can turn it off.
    home.sluice(&["config", "set", "notify.terminal", "false"]).done();
    let waited = ran_at_terminal(&home, &format!("sluice task wait {id}"));
    assert!(waited.code == 10 && is_silent(&waited), "{waited:?}");
}

#[test]
fn a_run_that_is_followed_at_a_terminal_rings_when_it_is_held() {
    let home = fresh();
    grimoire(&home, "gated", "steps:\n  - {name: check, type: gate, command: 'exit 3'}\n");
    let ran = ran_at_terminal(&home, "sluice start gated");
    assert!(ran.code == 10 && ran.stdout.contains(&rings("gated needs you")), "{ran:?}");
    let id = begin(&home, &["gated"]);
    until_status(&home, &id, "held");
    let waited = ran_at_terminal(&home, &format!("sluice run wait {id}"));
    assert!(waited.code == 10 && waited.stdout.contains(&rings("gated needs you (gate)")), "{waited:?}");
    grimoire(&home, "well", "steps:\n  - {name: one, type: script, command: 'true'}\n");
    let ran = ran_at_terminal(&home, "sluice start well");
    assert!(ran.code == 0 && !ran.stdout.contains('\u{7}'), "{ran:?}");
}

/// A command at a terminal, and what it has shown so far.
struct Shown {
    child: Child,
    _typed: ChildStdin,
    bytes: Receiver<u8>,
    seen: Vec<u8>,
}

impl Shown {
    fn of(mut command: Command) -> Shown {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, bytes) = channel();
        std::thread::spawn(move || {
            BufReader::new(output).bytes().map_while(Result::ok).try_for_each(|byte| sender.send(byte))
        });
        Shown { _typed: child.stdin.take().unwrap(), child, bytes, seen: Vec::new() }
    }

    /// Waits until this is shown.
    #[track_caller]
    fn until(&mut self, wanted: &str) {
        let give_up = Instant::now() + LONG;
        while !self.seen.windows(wanted.len()).any(|part| part == wanted.as_bytes()) {
            let left = give_up.saturating_duration_since(Instant::now());
            match self.bytes.recv_timeout(left) {
                Ok(byte) => self.seen.push(byte),
                Err(error) => panic!("{error}: no {wanted:?} in {:?}", String::from_utf8_lossy(&self.seen)),
            }
        }
    }

    fn has_rung(&self) -> bool {
        self.seen.contains(&7)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_inbox_that_is_watched_rings_for_what_is_new() {
    let home = Home::new();
    reviewed(&home, "brew");
    let mut shown = Shown::of(at_terminal(&home, "sluice inbox --watch"));
    shown.until("1 thing waits for you: 1 review");
    assert!(!shown.has_rung(), "what was there before is not new");
    reviewed(&home, "steep");
    shown.until(&rings("steep needs you (review)"));
    shown.until("2 things wait for you: 2 review");
}

/// The lines that a command prints, as they come.
struct Lines {
    child: Child,
    lines: Receiver<String>,
}

impl Lines {
    fn of(command: &mut Command) -> Lines {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Lines { child, lines }
    }

    #[track_caller]
    fn until(&self, wanted: &str) {
        while self.lines.recv_timeout(LONG).unwrap_or_else(|error| panic!("{error}: no {wanted}")) != wanted {}
    }

    /// What else it prints until it ends, and its exit code.
    #[track_caller]
    fn rest(mut self) -> (Vec<String>, Option<i32>) {
        let rest: Vec<String> = std::iter::from_fn(|| self.lines.recv_timeout(LONG).ok()).collect();
        (rest, self.child.wait().unwrap().code())
    }
}

#[test]
fn the_log_of_an_agent_is_followed_to_its_end() {
    let home = Home::new();
    let (here, go) = (home.pipe("here"), home.pipe("go"));
    let script = format!("worker: say one; tell {}; wait for {}; say two; say three; exit 3", here.path(), go.path());
    let id = home.create("brew", &script, &[]);
    here.hear();
    let lines = Lines::of(&mut home.command(&["task", "log", &id, "--follow"]));
    lines.until("one");
    go.let_go();
    lines.until("two");
    assert_eq!(lines.rest(), (vec!["three".to_owned()], Some(0)));
    // Of one that has ended there is nothing to wait for.
    let after = home.sluice(&["task", "log", &id, "--follow", "--lines", "1"]).done();
    assert_eq!(after.stdout, "three\n");
    let pieces = home.sluice(&["task", "log", &id, "--follow", "--json"]).done().stdout;
    let last: Value = serde_json::from_str(pieces.lines().last().unwrap()).unwrap();
    assert_eq!(last["ended"], true, "{pieces}");
}

#[test]
fn the_log_of_a_run_is_followed_to_its_end() {
    let home = fresh();
    let (here, go) = (home.pipe("here"), home.pipe("go"));
    let steps = format!(
        "steps:\n  - {{name: build, type: script, command: 'echo built'}}\n  - {{name: think, harness: shell, prompt: 'echo one; \
         echo x > {}; cat {}; echo two'}}\n  - {{name: end, type: script, command: 'echo ended'}}\n",
        here.path(),
        go.path()
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    here.hear();
    let lines = Lines::of(&mut home.command(&["run", "log", &id, "--follow"]));
    for line in ["==> build <==", "built", "==> think <==", "one"] {
        lines.until(line);
    }
    let only = Lines::of(&mut home.command(&["run", "log", &id, "end", "--follow"]));
    go.let_go();
    let rest = ["two", "==> end <==", "ended"].map(str::to_owned).to_vec();
    assert_eq!(lines.rest(), (rest, Some(0)));
    assert_eq!(only.rest(), (["==> end <==", "ended"].map(str::to_owned).to_vec(), Some(0)));
}

#[test]
fn the_log_of_a_living_agent_that_draws_is_its_screen() {
    let home = Home::empty();
    std::fs::create_dir(home.place()).unwrap();
    let here = home.pipe("here");
    let script = home.path("draws.sh");
    let text_of = "printf '\\033[2J\\033[Hold\\033[1;1HThe  screen\\033[3;1Hand more'";
    std::fs::write(&script, format!("#!/bin/sh\n{text_of}\necho > {}\nexec cat > /dev/null\n", here.path())).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let config = format!("[harnesses.draws]\ninteractive = [{script:?}, \"{{prompt}}\"]\n");
    std::fs::write(home.place().join("config.toml"), config).unwrap();
    home.sluice(&["project", "add"]).done();
    let id = text(&home.json(&["task", "create", "brew", "Do it", "--harness", "draws"])["task"]["id"]).to_owned();
    here.hear();
    let give_up = Instant::now() + LONG;
    let log = loop {
        // tmux has read what was printed a moment after it was.
        let log = home.json(&["task", "log", &id]);
        if text(&log["log"]).contains("and more") {
            break log;
        }
        assert!(Instant::now() < give_up, "{log:#}");
    };
    assert_eq!((&log["screen"], &log["alive"]), (&true.into(), &true.into()), "{log:#}");
    assert_eq!(text(&log["log"]), "The  screen\n\nand more\n");
    assert!(home.sluice(&["task", "log", &id]).done().stderr.contains("this is its screen"));
    home.json(&["task", "cancel", &id, "--yes"]);
    assert_eq!(home.json(&["task", "log", &id])["screen"], false);
}

/// A `git` that counts how often it is called.
fn counted(home: &Home) -> impl Fn() -> usize + use<> {
    let (programs, count) = (home.path("programs"), home.path("count"));
    std::fs::create_dir_all(&programs).unwrap();
    let real = run(home.program("sh").args(["-c", "command -v git"])).done().stdout.trim().to_owned();
    let script = format!("#!/bin/sh\necho \"$*\" >> {}\nexec {real} \"$@\"\n", count.display());
    std::fs::write(programs.join("git"), script).unwrap();
    std::fs::set_permissions(programs.join("git"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    move || std::fs::read_to_string(&count).unwrap_or_default().lines().count()
}

#[test]
fn a_wait_asks_git_nothing() {
    let home = Home::empty();
    let calls = counted(&home);
    home.sluice(&["project", "add"]).done();
    let id = home.create("brew", "worker: hang", &[]);
    home.until(&id, "at work", |task| task["session"] == "active");
    let during = |what: &mut dyn FnMut()| {
        let before = calls();
        what();
        calls() - before
    };
    let shown = during(&mut || drop(home.task(&id)));
    let changes = || {
        for word in ["cold", "hot", "iced", "sweet", "bitter"] {
            home.json(&["task", "update", &id, "--summary", word]);
        }
    };
    let alone = during(&mut || changes());
    let mut waiting = Lines::of(&mut home.command(&["task", "wait", &id, "--status", "done", "--json"]));
    let with_wait = during(&mut || changes());
    let ended = during(&mut || {
        home.json(&["task", "cancel", &id, "--yes"]);
        assert_eq!(waiting.child.wait().unwrap().code(), Some(1));
    });
    eprintln!(
        "git was called {shown} times by `task show`, {alone} times by five updates, {with_wait} with a wait beside them"
    );
    assert!(shown > 0 && ended > 0, "the counting works");
    assert_eq!(alone, with_wait);
    let over = during(&mut || assert_eq!(home.sluice(&["task", "wait", &id]).code, 1));
    assert_eq!(over, 0);
}
