//! Who is taken for whom: an agent tries, from its session, from what the engine runs for it and from what it leaves behind,
//! to do what only a person may. All of it is refused and written down.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use super::home::{Home, Pipe, run};
use super::recipes::{begin, fresh, grimoire, settled, show, until_status, write};

/// What an impostor tries, as a script of the shell: `sh try NAME` tells in a file what came of it.
const TRY: &str = r#"
ask() {
    what=$1; shift
    said=$(sluice "$@" --json </dev/null 2>/dev/null); code=$?
    word=$(printf %s "$said" | tr -d ' \n' | sed -n 's/.*"code":"\([a-z_]*\)".*/\1/p')
    echo "$what: $code $word"
}
{
    ask "answers a gate" answer $HELD skip
    ask "makes a token" token create --scope person
    ask "moves another task" task update $OTHER --status stuck
    ask "renames a branch" task update $OTHER --branch stolen
    ask "cancels another task" task cancel $OTHER --yes
    ask "merges" task merge $OTHER --local
    ask "starts a run" start plain --detach
    ask "speaks for a step" step complete --result PASS
    ask "adds a project" project add
    ask "stops the engine" stop
} > $STAGE/$1.part 2>&1
mv $STAGE/$1.part $STAGE/$1
: > $STAGE/$1.done
"#;

/// What came of it, wherever it was tried; only what it may say about its own step depends on what it is.
fn refused(speaks: &str) -> String {
    let tried = TRY.lines().filter_map(|line| line.trim().strip_prefix("ask \"")?.split('"').next());
    let told = |what: &str| if what == "speaks for a step" { speaks.to_owned() } else { "4 not_yours".to_owned() };
    tried.map(|what| format!("{what}: {}\n", told(what))).collect()
}

/// A home in which something waits for a person, and a script that tries to be one.
struct Stage {
    home: Home,
    held: String,
    other: String,
}

impl Stage {
    fn new() -> Stage {
        let home = fresh();
        home.sluice(&["project", "add"]).done();
        grimoire(&home, "plain", "steps:\n  - {name: one, type: script, command: 'true'}\n");
        grimoire(&home, "guarded", "steps:\n  - {name: check, type: gate, command: 'false', message: 'Really?'}\n");
        let held = begin(&home, &["guarded"]);
        until_status(&home, &held, "held");
        let other = home.create("other", "worker: hang", &[]);
        home.until(&other, "active", |task| task["session"] == "active");
        let stage = Stage { home, held, other };
        let program = Path::new(env!("CARGO_BIN_EXE_sluice")).parent().unwrap();
        let values = format!(
            "HELD={} OTHER={} STAGE={}\nexport SLUICE_HOME={} PATH={}:$PATH\n",
            stage.held,
            stage.other,
            stage.path("").display(),
            stage.home.place().display(),
            program.display()
        );
        std::fs::write(stage.path("try"), values + TRY).unwrap();
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path(name)
    }

    /// The command that tries under a name.
    fn tries(&self, name: &str) -> String {
        format!("sh {} {name}", self.path("try").display())
    }

    /// A pipe whose other end somebody opens when they have tried under this name.
    fn expects(&self, name: &str) -> Pipe {
        self.home.pipe(&format!("{name}.done"))
    }

    /// A script that waits until it is let go, and then tries under a name.
    fn waits<'a>(&self, name: &'a str, go: &mut Vec<(&'a str, Pipe, Pipe)>) -> String {
        let (pipe, tried) = (self.home.pipe(&format!("{name}.go")), self.expects(name));
        write(&self.home, &format!("{name}.sh"), &format!("read x < {}\n{}\n", pipe.path(), self.tries(name)));
        go.push((name, pipe, tried));
        self.home.repository().join(format!("{name}.sh")).display().to_string()
    }

    /// What came of a try that is over.
    #[track_caller]
    fn told(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs a recipe of one step to its end.
    #[track_caller]
    fn play(&self, name: &str, step: &str) -> Value {
        grimoire(&self.home, name, step);
        let id = begin(&self.home, &[name]);
        settled(&self.home, &id)
    }

    /// Nothing of what was tried has happened, and all of it is written down as somebody's.
    #[track_caller]
    fn is_unharmed(&self, who: &str) {
        let run = show(&self.home, &self.held);
        assert_eq!(run["status"], "held", "{run:#}");
        let task = self.home.task(&self.other);
        assert_eq!((&task["status"], &task["branch"]), (&"working".into(), &"other".into()), "{task:#}");
        assert_eq!(self.home.git(&["branch", "--list", "stolen"]), "");
        assert_eq!(self.home.json(&["token", "list"])["tokens"].as_array().unwrap().len(), 0);
        let denied = self.home.sluice(&["events", "--type", "access.denied", "--json"]).done().stdout;
        let denied: Vec<Value> = denied.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of: Vec<&Value> = denied.iter().filter(|it| it["data"]["who"].as_str().unwrap().starts_with(who)).collect();
        assert!(of.len() >= 9, "of {who}: {denied:#?}");
        let paths: Vec<&str> = of.iter().filter_map(|it| it["data"]["path"].as_str()).collect();
        assert!(paths.contains(&"/v1/tokens") && paths.contains(&"/v1/stop"), "{paths:?}");
    }
}

#[test]
fn a_script_a_gate_and_a_hook_are_no_person() {
    let stage = Stage::new();
    let (script, gate, hook) = (stage.tries("script"), stage.tries("gate"), stage.tries("hook"));
    let tried = stage.expects("hook");
    let steps = format!(
        "steps:\n  - {{name: one, type: script, command: {script}}}\n  - {{name: two, type: gate, command: {gate}}}\n\
         on_complete:\n  - {{action: run_command, command: {hook}}}\n"
    );
    assert_eq!(stage.play("tries", &steps)["status"], "completed");
    tried.hear();
    // Of a command its exit code speaks, and nothing else.
    for (name, speaks) in [("script", "1 not_ready"), ("gate", "1 not_ready"), ("hook", "4 not_yours")] {
        assert_eq!(stage.told(name), refused(speaks), "{name}");
    }
    stage.is_unharmed("step:");
    stage.is_unharmed("nobody");
}

#[test]
fn what_a_script_leaves_behind_is_nobody_also_without_environment_and_after_a_restart() {
    let stage = Stage::new();
    let bare = "(setsid env -i PATH=\"$PATH\" SLUICE_HOME=\"$SLUICE_HOME\" ";
    let left = [("daemon", "(setsid "), ("bare", bare), ("restarted", "(setsid "), ("bare-restarted", bare)];
    let mut go = Vec::new();
    for (name, begins) in left {
        // The script waits until what it leaves has left its process group, which ends with it.
        let (file, there) = (stage.waits(name, &mut go), stage.path(&format!("{name}.there")).display().to_string());
        // The run is held: what a script leaves behind lives as long as its run.
        let stays = format!("sh -c \"cd /; echo > {there}; exec sh {file}\" >/dev/null 2>&1 &)");
        let command = format!("mkfifo {there}; {begins}{stays}; read x < {there}");
        let steps = format!(
            "  - {{name: leave, type: script, command: '{command}'}}\n  - {{name: hold, type: gate, command: 'false'}}\n"
        );
        let run = stage.play(name, &format!("steps:\n{steps}"));
        assert_eq!(run["status"], "held", "{run:#}");
    }
    // Of our tmux server, which outlives the engine: with and without a window.
    for (name, by) in [("run-shell", "run-shell"), ("new-window", "new-window")] {
        let file = stage.waits(name, &mut go);
        let mut tmux = stage.home.program("tmux");
        tmux.arg("-S").arg(stage.home.place().join("tmux.sock")).arg(by);
        tmux.arg(format!("trap '' HUP; (setsid env -i PATH=\"$PATH\" sh {file} >/dev/null 2>&1 &)"));
        assert!(tmux.status().unwrap().success());
    }
    let mut is_restarted = false;
    for (name, pipe, tried) in go {
        if name == "restarted" && !is_restarted {
            stage.home.kill_engine();
            stage.home.sluice(&["task", "list"]).done();
            is_restarted = true;
        }
        pipe.let_go();
        tried.hear();
        assert_eq!(stage.told(name), refused("4 not_yours"), "{name}");
    }
    stage.is_unharmed("nobody");
}

/// Where no engine runs, the command asks who it is by itself. The next engine tells of it.
#[test]
fn what_is_left_behind_neither_serves_nor_restores_a_home_whose_engine_is_gone() {
    let stage = Stage::new();
    let copy = stage.path("copy.db").display().to_string();
    stage.home.sluice(&["backup", &copy]).done();
    let (go, tried) = (stage.home.pipe("late.go"), stage.expects("late"));
    let program = Path::new(env!("CARGO_BIN_EXE_sluice"));
    let script = format!(
        "read x < {}\nexport SLUICE_HOME={}\n\
         for what in 'serve --listen 127.0.0.1:0' 'restore {copy}' 'config set retention.days 1'; do\n\
         timeout 60 {} $what >/dev/null 2>&1 </dev/null; echo \"$what: $?\"\ndone > {late}\n: > {late}.done\n",
        go.path(),
        stage.home.place().display(),
        program.display(),
        late = stage.path("late").display(),
    );
    write(&stage.home, "late.sh", &script);
    let file = stage.home.repository().join("late.sh");
    let command = format!("(setsid env -i PATH=\"$PATH\" sh {} >/dev/null 2>&1 &)", file.display());
    stage.play("leave", &format!("steps:\n  - {{name: leave, type: script, command: '{command}'}}\n"));
    stage.home.sluice(&["stop"]).done();
    go.let_go();
    tried.hear();
    let told = format!("serve --listen 127.0.0.1:0: 4\nrestore {copy}: 4\nconfig set retention.days 1: 4\n");
    assert_eq!(stage.told("late"), told);
    let denied = stage.home.sluice(&["events", "--type", "access.denied", "--json"]).done().stdout;
    let denied: Vec<Value> = denied.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let asked: Vec<_> =
        denied.iter().map(|it| (&it["data"]["who"], &it["data"]["path"], it["data"]["at"].is_string())).collect();
    let nobody: Value = "nobody".into();
    let (serve, restore, set): (Value, Value, Value) = ("serve".into(), "restore".into(), "config set".into());
    assert_eq!(asked, [&serve, &restore, &set].map(|command| (&nobody, command, true)));
    // A person may.
    stage.home.sluice(&["stop"]).done();
    stage.home.sluice(&["restore", &copy]).done();
}

#[test]
fn an_agent_a_window_of_our_tmux_a_hook_and_a_filter_of_git_are_no_person() {
    let stage = Stage::new();
    let agent = format!("steps:\n  - {{name: one, harness: shell, prompt: {}}}\n", stage.tries("agent"));
    stage.play("agent", &agent);
    // A step's agent may speak for its step, and for nothing else.
    assert_eq!(stage.told("agent"), refused("0 "));
    stage.is_unharmed("step:");
    // The server was started by the engine, and an agent can open windows in it.
    let tried = stage.expects("window");
    let socket = stage.home.place().join("tmux.sock");
    let mut tmux = stage.home.program("tmux");
    tmux.arg("-S").arg(socket).args(["new-window", "-d", &stage.tries("window")]);
    assert!(tmux.status().unwrap().success());
    tried.hear();
    assert_eq!(stage.told("window"), refused("4 not_yours"));
    // An agent can write a hook of the repository.
    let remote = stage.path("remote.git");
    stage.home.git(&["init", "--quiet", "--bare", remote.to_str().unwrap()]);
    stage.home.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    let hook = stage.home.repository().join(".git/hooks/pre-push");
    std::fs::write(&hook, format!("#!/bin/sh\n{}\n", stage.tries("git"))).unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // A forge that knows no pull request and makes none: the branch is pushed before that.
    write(&stage.home, "bin/gh", "#!/bin/sh\necho '[]'\n");
    let gh = stage.home.repository().join("bin/gh");
    std::fs::set_permissions(&gh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    stage.home.sluice(&["stop"]).done();
    let path = format!("{}:{}", gh.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let _ = run(stage.home.command(&["task", "create-pr", &stage.other]).env("PATH", path));
    assert_eq!(stage.told("git"), refused("4 not_yours"));
    // And a filter, which git runs when it makes a worktree.
    let filter = format!("{} > /dev/null; cat", stage.tries("filter"));
    stage.home.git(&["config", "filter.own.smudge", &filter]);
    let file = stage.home.git(&["ls-files"]).lines().next().unwrap().to_owned();
    std::fs::write(stage.home.repository().join(".git/info/attributes"), format!("{file} filter=own\n")).unwrap();
    let id = stage.home.create("filtered", "worker: hang", &[]);
    stage.home.until(&id, "active", |task| task["session"] == "active");
    assert_eq!(stage.told("filter"), refused("4 not_yours"));
    stage.is_unharmed("nobody");
}

#[test]
fn a_person_who_attaches_runs_nothing_for_an_agent() {
    let stage = Stage::new();
    let tried = stage.expects("locked");
    // A tmux client runs what its server tells it to, and an agent can tell the server.
    let mut tmux = stage.home.program("tmux");
    tmux.arg("-S").arg(stage.home.place().join("tmux.sock"));
    tmux.args(["set-option", "-g", "lock-command", &stage.tries("locked"), ";"]);
    tmux.args(["set-hook", "-g", "client-attached", "lock-server"]);
    assert!(tmux.status().unwrap().success());
    let attach = format!("{} task attach {}", env!("CARGO_BIN_EXE_sluice"), stage.other);
    let mut terminal = stage.home.program("script");
    terminal.args(["-qec", &attach, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::null());
    let mut terminal = terminal.spawn().unwrap();
    tried.hear();
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    assert_eq!(stage.told("locked"), refused("4 not_yours"));
    stage.is_unharmed("nobody");
}

#[test]
fn a_step_that_says_so_acts_for_a_person_while_it_runs() {
    let stage = Stage::new();
    let answer = format!("sluice answer {} skip", stage.held);
    let acts = format!("steps:\n  - {{name: say-yes, type: script, command: {answer}, acts_as: person}}\n");
    let run = stage.play("acts", &acts);
    assert_eq!(run["status"], "completed", "{run:#}");
    until_status(&stage.home, &stage.held, "completed");
    let file = stage.home.repository().join(".coven/grimoires/acts.yml");
    let checked = stage.home.sluice(&["check", file.to_str().unwrap()]).done();
    assert!((checked.stdout + &checked.stderr).contains("S0910"));
    let agent = "steps:\n  - {name: one, prompt: hello, acts_as: person}\n";
    grimoire(&stage.home, "never", agent);
    assert_eq!(stage.home.sluice(&["check", ".coven/grimoires/never.yml"]).code, 1);
}

/// What hides from another home has no environment, no parent of Sluice's, and its own engine is dead; and it may start the
/// other home's engine itself.
#[test]
fn what_hides_from_another_home_is_nobody_there_whoever_starts_its_engine() {
    let (stage, other) = (Stage::new(), Home::new());
    other.sluice(&["task", "list"]).done();
    let program = Path::new(env!("CARGO_BIN_EXE_sluice"));
    let out = stage.path("hidden");
    let ask = format!("SLUICE_HOME={} {} token create --scope read --json", other.place().display(), program.display());
    let (go, asked) = (stage.home.pipe("hidden.go"), stage.home.pipe("hidden.done"));
    let script =
        format!("for turn in 1 2; do read x < {}; {ask} > {}; : > {}; done\n", go.path(), out.display(), asked.path());
    write(&stage.home, "hidden.sh", &script);
    let file = stage.home.repository().join("hidden.sh");
    let leave = format!("(setsid env -i PATH=\"$PATH\" sh {} >/dev/null 2>&1 &)", file.display());
    stage.play("hides", &format!("steps:\n  - {{name: leave, type: script, command: '{leave}'}}\n"));
    stage.home.kill_engine();
    for turn in ["the other engine lives", "it starts the other engine"] {
        if turn == "it starts the other engine" {
            other.sluice(&["stop"]).done();
        }
        go.let_go();
        asked.hear();
        let told: Value = serde_json::from_str(&stage.told("hidden")).unwrap();
        assert_eq!(told["error"]["code"], "not_yours", "{turn}: {told}");
    }
    // A person is one there all the same.
    other.sluice(&["token", "create", "--scope", "read"]).done();
}

#[test]
fn a_process_of_one_home_is_no_person_to_another_unless_that_lives_inside_it() {
    let stage = Stage::new();
    // An engine that a person started.
    let other = Home::new();
    let there = |home: &Path| format!("SLUICE_HOME={} sluice token create --scope read --json", home.display());
    let inner = stage.path("inner");
    let command = format!(
        "{} > {out}/theirs; {} > {out}/own; true",
        there(&other.place()),
        there(&inner),
        out = stage.path("").display()
    );
    let run = stage.play("two-homes", &format!("steps:\n  - {{name: one, type: script, command: '{command}'}}\n"));
    assert_eq!(run["status"], "completed", "{run:#}");
    let told = |name: &str| -> Value { serde_json::from_str(&stage.told(name)).unwrap() };
    assert_eq!(told("theirs")["error"]["code"], "not_yours");
    assert!(told("own")["token"]["secret"].is_string(), "{}", told("own"));
}
