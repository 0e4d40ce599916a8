//! The agent, its shim or the tmux server is killed without warning: it is noticed, the rules are applied, nothing stays
//! behind. How long it took to notice is printed, not judged.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::Value;

use super::home::Home;
use super::process;

/// What the shim wrote when the agent of a session had been started.
fn started(home: &Home, id: &str, session: u32) -> Value {
    let path: PathBuf = home.place().join(format!("sessions/live/{id}.{session}/started.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Who is killed.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Agent,
    Shim,
    Tmux,
}

impl Victim {
    fn pid(self, started: &Value) -> i32 {
        let pid = match self {
            Victim::Agent => &started["agent"]["pid"],
            Victim::Shim => &started["shim"]["pid"],
            Victim::Tmux => &started["pane"]["server"]["pid"],
        };
        i32::try_from(pid.as_i64().unwrap()).unwrap()
    }
}

/// Kills somebody of a session that is at work, and waits until the engine knows. Gives the agent's process.
fn kill(home: &Home, id: &str, session: u32, victim: Victim, crashes: usize) -> i32 {
    let started = started(home, id, session);
    let began = Instant::now();
    process::kill(victim.pid(&started));
    home.until_event(id, "agent.crashed", crashes);
    println!("{victim:?} killed: noticed after {:?}", began.elapsed());
    Victim::Agent.pid(&started)
}

/// Two deaths lead to `stuck`, with a respawn between them.
fn dies_twice(victim: Victim) {
    let home = Home::new();
    let here = home.pipe("here");
    // What the agent leaves behind in a session of its own is ended with it.
    let daemon = home.path("daemon");
    let script = format!("leave daemon {}; tell {}; hang", daemon.display(), here.path());
    let id = home.create("brew", &script, &[]);
    here.hear();
    let agent = kill(&home, &id, 1, victim, 1);
    let task = home.until(&id, "crashed", |task| task["crash_count"] == 1);
    assert_eq!((&task["status"], &task["session"]), (&"working".into(), &"crashed".into()));
    assert!(!process::lives(agent), "{victim:?}: the agent lives");
    let daemon: i32 = std::fs::read_to_string(daemon).unwrap().trim().parse().unwrap();
    assert!(!process::lives(daemon), "{victim:?}: what the agent left behind lives");

    home.json(&["task", "respawn", &id]);
    here.hear();
    assert_eq!(home.task(&id)["session"], "active");
    let agent = kill(&home, &id, 2, victim, 2);
    let task = home.until_status(&id, "stuck");
    assert_eq!((&task["crash_count"], &task["session"]), (&0.into(), &"crashed".into()));
    assert!(!process::lives(agent), "{victim:?}: the second agent lives");
    let left: Vec<String> = process::of(&home.place())
        .into_iter()
        .filter(|pid| *pid != home.engine_pid())
        .map(process::words)
        .filter(|words| !words.starts_with("tmux"))
        .collect();
    assert!(left.is_empty(), "{victim:?}: {left:?}");
}

#[test]
fn an_agent_that_is_killed_is_a_crash() {
    dies_twice(Victim::Agent);
}

#[test]
fn a_shim_that_is_killed_is_a_crash_and_its_agent_ends() {
    dies_twice(Victim::Shim);
}

#[test]
fn a_tmux_server_that_is_killed_is_nobodys_crash_and_its_agents_start_again() {
    let home = Home::new();
    let here = home.pipe("here");
    let id = home.create("brew", &format!("tell {}; hang", here.path()), &[]);
    here.hear();
    // More often than crashes lead to `stuck`.
    for session in 1..=3 {
        let started = started(&home, &id, session);
        process::kill(Victim::Tmux.pid(&started));
        here.hear();
        let task = home.until(&id, "at work again", |task| task["session"] == "active");
        assert_eq!((&task["status"], &task["crash_count"]), (&"working".into(), &0.into()));
        assert!(!process::lives(Victim::Agent.pid(&started)), "the agent of the dead server lives");
    }
    // Not without end: a server that dies again and again is for a person to look at.
    process::kill(Victim::Tmux.pid(&started(&home, &id, 4)));
    let task = home.until(&id, "given up", |task| !task["attention"].is_null());
    assert!(task["attention"]["text"].as_str().unwrap().contains("respawn"), "{task:#}");
    assert_eq!((&task["status"], &task["crash_count"]), (&"working".into(), &0.into()));
    home.json(&["task", "respawn", &id]);
    here.hear();
}

/// A server that hangs is no outcome: what is to be started waits, says so, and begins when the server answers again.
#[test]
fn a_tmux_server_that_hangs_holds_up_nobody_and_what_waits_for_it_goes_on_by_itself() {
    let home = Home::new();
    let here = home.pipe("here");
    let script = format!("tell {}; hang", here.path());
    let first = home.create("first", &script, &[]);
    here.hear();
    let server = Victim::Tmux.pid(&started(&home, &first, 1));
    process::stop(server);
    let second = home.create("second", &script, &[]);
    let task = home.until(&second, "told what it waits for", |task| !task["attention"].is_null());
    assert!(task["attention"]["text"].as_str().unwrap().contains("has not answered"), "{task:#}");
    assert_eq!((&task["crash_count"], &task["needs_person"]), (&0.into(), &false.into()));
    // Whoever is at work can be ended.
    let answer = home.json(&["task", "cancel", &first, "--yes"]);
    assert_eq!((&answer["task"]["status"], &answer["task"]["session"]), (&"cancelled".into(), &"inactive".into()));
    // So can whoever waits to begin.
    let third = home.create("third", &script, &[]);
    let answer = home.json(&["task", "cancel", &third, "--yes"]);
    assert_eq!((&answer["task"]["status"], &answer["task"]["session"]), (&"cancelled".into(), &"inactive".into()));
    process::go_on(server);
    here.hear();
    // What it waited for is told until its start is stored, a moment after it lives.
    let is_at_work = |task: &Value| task["session"] == "active" && task["attention"].is_null();
    assert_eq!(home.until(&second, "at work", is_at_work)["crash_count"], 0);
}

#[test]
fn a_program_that_cannot_start_is_said_and_is_no_crash() {
    let home = Home::empty();
    std::fs::create_dir(home.place()).unwrap();
    let script = home.path("agent.sh");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    let config = format!(
        "[harnesses.missing]\ninteractive = [\"no-such-program\", \"{{prompt}}\"]\n\
         [harnesses.plain]\ninteractive = [{script:?}, \"{{prompt}}\"]\n"
    );
    std::fs::write(home.place().join("config.toml"), config).unwrap();
    home.sluice(&["project", "add", "--pool-size", "3"]).done();
    let create = |branch: &str, harness: &str| {
        let answer = home.json(&["task", "create", branch, "Do it", "--harness", harness]);
        answer["task"].clone()
    };
    for (branch, harness) in [("one", "missing"), ("two", "plain")] {
        let task = create(branch, harness);
        let said = task["attention"]["text"].as_str().unwrap_or_default();
        assert!(said.contains("cannot be started") && said.contains("task respawn"), "{task:#}");
        assert_eq!((&task["status"], &task["crash_count"]), (&"working".into(), &0.into()));
    }
    // One that is there and cannot be run is found out by its start, and is no crash either.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let task = create("three", "plain");
    let id = task["id"].as_str().unwrap();
    home.until(id, "told that it does not start", |task| task["attention"].is_object());
    let task = home.task(id);
    assert_eq!((&task["status"], &task["crash_count"]), (&"working".into(), &0.into()));
}

#[test]
fn the_first_look_after_everything_died_does_not_take_the_dead_for_living() {
    let home = Home::new();
    let here = home.pipe("here");
    let id = home.create("brew", &format!("tell {}; hang", here.path()), &[]);
    here.hear();
    let started = started(&home, &id, 1);
    home.kill_engine();
    process::kill(Victim::Shim.pid(&started));
    process::kill(Victim::Agent.pid(&started));
    assert_eq!(home.task(&id)["session"], "crashed");
}

#[test]
fn a_worker_that_dies_beside_a_reviewer_is_seen() {
    let home = Home::new();
    let here = home.pipe("here");
    let script = format!("worker: work\nreviewer: tell {}; hang", here.path());
    let id = home.create("brew", &script, &["--workflow", "persistent"]);
    here.hear();
    home.until_status(&id, "agent-review");
    process::kill(Victim::Agent.pid(&started(&home, &id, 1)));
    let task = home.until(&id, "seen", |task| !task["attention"].is_null());
    assert!(task["attention"]["text"].as_str().unwrap().starts_with("the worker ended"), "{task:#}");
    assert_eq!((&task["status"], &task["session"]), (&"agent-review".into(), &"active".into()));
}

#[test]
fn an_agent_that_died_while_no_engine_ran_is_a_crash_for_the_next_one() {
    let home = Home::new();
    let here = home.pipe("here");
    let id = home.create("brew", &format!("tell {}; hang", here.path()), &[]);
    here.hear();
    home.kill_engine();
    process::kill(Victim::Agent.pid(&started(&home, &id, 1)));
    home.until_event(&id, "agent.crashed", 1);
    let task = home.task(&id);
    assert_eq!((&task["crash_count"], &task["session"]), (&1.into(), &"crashed".into()));
}

#[test]
fn an_agent_that_wrote_its_handoff_before_it_was_killed_has_handed_over() {
    let home = Home::new();
    let here = home.pipe("here");
    let script =
        format!("worker: commit; write Handoff \"DONE: all\"; tell {}; hang\nreviewer: review pass", here.path());
    let id = home.create("brew", &script, &[]);
    here.hear();
    process::kill(Victim::Shim.pid(&started(&home, &id, 1)));
    let task = home.until_status(&id, "reviewing");
    assert_eq!(task["crash_count"], 0);
}

/// Somebody wrote the verdict, and then the reviewer was killed: that is no judgement, and the reviewer's crash.
#[test]
fn a_reviewer_that_is_killed_has_not_judged_whatever_stands_in_the_file() {
    for (workflow, verdict) in [("default", "PASS"), ("persistent", "Verdict: PASS")] {
        let home = Home::new();
        let here = home.pipe("here");
        let script = format!("worker: work\nreviewer: tell {}; hang", here.path());
        let id = home.create("brew", &script, &["--workflow", workflow]);
        here.hear();
        home.until_status(&id, "agent-review");
        let file = home.worktree_file(&id);
        let body = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{body}\n## Review\n\n{verdict}\n")).unwrap();
        process::kill(Victim::Agent.pid(&started(&home, &id, 2)));
        home.until_event(&id, "agent.crashed", 1);
        let history = home.history(&id);
        let to = |event: &&Value| event["data"]["to"] == "reviewing";
        assert_eq!(history.iter().find(to), None, "{workflow}");
    }
}
