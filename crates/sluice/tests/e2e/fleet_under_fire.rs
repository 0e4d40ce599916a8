//! A fleet under fire: many missions, several workers, one engine, and a hand that kills them at random and starts them
//! again. At the end everything is there, in order and once.
//!
//! A small one runs with every test. The full one is `cargo xtask fleet`, which sets these variables:
//! `FLEET_MISSIONS`, `FLEET_STORE` (sqlite or postgres), `FLEET_SEED`, `FLEET_PACE_MS` (between two kills, at most).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sluice_store::StreamId;
use sluice_store::testing::Cluster;

use super::home::Pipe;
use super::reef::{Hired, Reef, standing, text};

/// How many missions, and what befalls them.
struct Wanted {
    missions: usize,
    store: Option<String>,
    seed: u64,
    /// At most so long between two kills.
    pace: Duration,
    /// Longer than it all takes; only a fleet that fails waits for it.
    limit: Duration,
}

const CREW: [(&str, &str); 5] =
    [("ann", "planner"), ("bob", "worker"), ("cid", "reviewer"), ("dan", "any"), ("eve", "any")];

/// What every agent does: it says that it begins, works until it is let go, does what the scripted agent is told, and says
/// that it ends.
fn prompt(log: &Path, pipe: &Pipe, script: &str) -> String {
    let line = |word: &str| format!("echo \"{word} $SLUICE_RUN $SLUICE_STEP $SLUICE_ATTEMPT\" >> {}\n", log.display());
    let work = format!("read go < {}\n{script}\n\"$SLUICE_BIN\" demo-agent go || exit 1\n", pipe.path());
    format!("{}{work}{}", line("begin"), line("end"))
}

fn says(script: &str) -> String {
    format!("export SLUICE_DEMO='{script}'")
}

/// A colony whose agents are scripts of the shell around the scripted agent. In `dev-task-fail` the first review fails.
fn prepared(store: Option<String>) -> (Reef, Pipe) {
    let reef = Reef::new("[workers]\nreconnect_seconds = 3\n", store);
    std::fs::write(reef.home.path("with-shell"), "").unwrap();
    let (log, pipe) = (reef.home.path("agents.log"), reef.home.pipe("go"));
    let manifest = std::fs::read_to_string(reef.home.path("prompts/workflows/dev-task.toml")).unwrap();
    let strict = manifest.replace("\"dev-task\"", "\"dev-task-fail\"").replace("do/review.md", "do/strict.md");
    reef.workflow("dev-task-fail", &strict);
    let commit = says("commit \"'$SLUICE_STEP'\"");
    let judge =
        "verdict=fail; git log --format=%s | grep -qx fix && verdict=pass\nexport SLUICE_DEMO=\"review $verdict\"";
    let scripts = [("plan", commit.as_str()), ("implement", &commit), ("strict", judge), ("pr", &commit)];
    for (name, script) in scripts.into_iter().chain([("review", says("review pass").as_str())]) {
        reef.prompt(name, &prompt(&log, &pipe, script));
    }
    (reef, pipe)
}

/// Numbers from a seed (splitmix64).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most.max(1)
    }
}

/// Lets agents go that wait, again and again, until it is dropped. This is what makes them last a little.
struct Letting(Sender<()>);

impl Letting {
    fn go(pipe: &Pipe) -> Letting {
        let (sender, end): (_, Receiver<()>) = channel();
        let path = pipe.path().to_owned();
        std::thread::spawn(move || {
            while end.recv_timeout(Duration::from_millis(150)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let Ok(mut file) = std::fs::OpenOptions::new().write(true).open(&path) else { return };
                let _ = std::io::Write::write_all(&mut file, b"go\ngo\ngo\ngo\ngo\n");
            }
        });
        Letting(sender)
    }
}

impl Drop for Letting {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// What the hand did.
#[derive(Debug, Default)]
struct Killed {
    engine: usize,
    workers: usize,
}

/// Kills at random until all missions have ended.
fn fire(reef: &mut Reef, wanted: &Wanted, missions: &[String]) -> Killed {
    let mut chance = Chance(wanted.seed);
    let mut crew: Vec<Hired> = CREW.iter().map(|(name, role)| reef.hire(name, role)).collect();
    let (mut killed, began) = (Killed::default(), Instant::now());
    let (_never, quiet): (Sender<()>, Receiver<()>) = channel();
    let pause = |chance: &mut Chance, most: Duration| {
        let most = u64::try_from(most.as_millis()).unwrap();
        let _ = quiet.recv_timeout(Duration::from_millis(chance.below(most)));
    };
    loop {
        let all = reef.ask("GET", "/v1/missions", &Value::Null);
        let all = all.as_array().or(all["missions"].as_array()).unwrap().clone();
        let open: Vec<&Value> = all.iter().filter(|it| it["status"] == "running").collect();
        if open.is_empty() && all.len() == missions.len() {
            return killed;
        }
        if began.elapsed() > wanted.limit {
            let standing: Vec<String> =
                open.iter().map(|it| format!("{:#}", reef.look(&text(it, "mission_id")))).collect();
            panic!("seed {}: {} missions do not end: {}", wanted.seed, open.len(), standing.join("\n"));
        }
        pause(&mut chance, wanted.pace);
        if chance.below(10) < 3 {
            reef.kill_engine();
            killed.engine += 1;
            pause(&mut chance, Duration::from_millis(500));
            reef.serve();
        } else {
            let which = usize::try_from(chance.below(CREW.len() as u64)).unwrap();
            let (name, role) = CREW[which];
            crew.remove(which).kill();
            killed.workers += 1;
            // Mostly it is back at once; sometimes its work has been given to another by then.
            let away = if chance.below(8) == 0 { Duration::from_secs(8) } else { Duration::from_secs(1) };
            pause(&mut chance, away);
            crew.insert(which, reef.hire(name, role));
        }
    }
}

fn fleet(wanted: &Wanted) {
    let (mut reef, pipe) = prepared(wanted.store.clone());
    let _letting = Letting::go(&pipe);
    let workflow = |index: usize| if index.is_multiple_of(4) { "dev-task-fail" } else { "dev-task" };
    let missions: Vec<String> = (0..wanted.missions).map(|index| reef.mission(workflow(index))).collect();
    let began = Instant::now();
    let killed = fire(&mut reef, wanted, &missions);
    let took = began.elapsed();
    let mut wrong = Vec::new();
    let agents = agents(&reef);
    wrong.extend(at_once(&reef));
    wrong.extend(begun_twice(&agents));
    let events = reef.events(&[]);
    for (index, mission) in missions.iter().enumerate() {
        let fails = workflow(index) == "dev-task-fail";
        let own: Vec<&Value> = events.iter().filter(|event| event["correlation_id"] == mission.as_str()).collect();
        let found = of_mission(&reef, mission, fails, &own);
        wrong.extend(found.into_iter().map(|what| format!("mission {mission}: {what}")));
    }
    let lost = events.iter().filter(|event| event["type"] == "step.retried").count();
    println!(
        "seed {}: {} missions in {took:?}; killed: engine {}, workers {}; agents {}; attempts that were lost {lost}",
        wanted.seed,
        wanted.missions,
        killed.engine,
        killed.workers,
        agents.len(),
    );
    assert!(wrong.is_empty(), "seed {}:\n{}", wanted.seed, wrong.join("\n"));
}

/// `run step attempt` of every agent that began.
fn agents(reef: &Reef) -> Vec<String> {
    let log = std::fs::read_to_string(reef.home.path("agents.log")).unwrap();
    log.lines().filter_map(|line| line.strip_prefix("begin ")).map(str::to_owned).collect()
}

/// Attempts that had more than one agent.
fn begun_twice(agents: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    agents.iter().filter(|agent| !seen.insert(*agent)).map(|agent| format!("{agent} began twice")).collect()
}

/// Agents of one step that were alive at the same moment, by the records of their sessions on all machines.
fn at_once(reef: &Reef) -> Vec<String> {
    let mut lives: BTreeMap<String, Vec<(i64, i64, String)>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (name, _) in CREW {
        for session in std::fs::read_dir(reef.place(name).join("sessions/live")).into_iter().flatten().flatten() {
            let read = |file: &str| -> Option<Value> {
                serde_json::from_slice(&std::fs::read(session.path().join(file)).ok()?).ok()
            };
            let id = session.file_name().into_string().unwrap();
            let Some(_started) = read("started.json") else { continue };
            let Some(exit) = read("exit.json") else {
                wrong.push(format!("{id} at {name} has no end"));
                continue;
            };
            let end = exit["at_ms"].as_i64().unwrap_or_else(|| panic!("{exit}"));
            let begin = end - exit["duration_ms"].as_i64().unwrap();
            let step: Vec<&str> = id.split('.').take(2).collect();
            lives.entry(step.join(".")).or_default().push((begin, end, format!("{id} at {name}")));
        }
    }
    for of_step in lives.values_mut() {
        of_step.sort();
        for pair in of_step.windows(2) {
            if pair[1].0 < pair[0].1 {
                wrong.push(format!("at once: {pair:?}"));
            }
        }
    }
    wrong
}

/// What is not as it should be about the log of a mission: every number is in the store, and whatever is not only about
/// leases is told to those who ask.
fn log_of_mission(reef: &Reef, mission: &str, told: &[&Value]) -> Option<String> {
    let stream = format!("run/{mission}");
    let stored = reef.reader().history(&StreamId::new(stream.clone()), 0, 100_000).unwrap();
    let has_gaps = stored.iter().zip(1..).any(|((number, _), expected)| *number != expected);
    let own = told.iter().filter_map(|event| event["id"].as_str()?.strip_prefix(&format!("{stream}:")));
    let told: Vec<u64> = own.map(|number| number.parse().unwrap()).collect();
    let public = stored.iter().filter(|(_, event)| !event.kind.starts_with("effect."));
    let public: Vec<u64> = public.map(|(number, _)| *number).collect();
    (stored.is_empty() || has_gaps || told != public).then(|| format!("its events are {stored:?}, told are {told:?}"))
}

/// What is not as it should be about a mission.
fn of_mission(reef: &Reef, mission: &str, fails: bool, events: &[&Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    let seen = reef.look(mission);
    if seen["status"] != "completed" {
        wrong.push(format!("{}: {}", standing(&seen), seen["error"]));
    }
    let commits = reef.commits(mission);
    let expected: &[&str] = if fails { &["plan", "implement", "fix", "pr"] } else { &["plan", "implement", "pr"] };
    if commits != expected {
        wrong.push(format!("its commits are {commits:?}"));
    }
    wrong.extend(log_of_mission(reef, mission, events));
    let mut completed = BTreeSet::new();
    for event in events {
        let step = event["data"]["step_id"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap_or_default() {
            "step.completed" => drop(completed.insert(step.to_owned())),
            "run.looped" => completed.clear(),
            "step.started" if completed.contains(step) => wrong.push(format!("{step} began again: {event}")),
            _ => {}
        }
    }
    wrong
}

fn small(store: Option<String>) -> Wanted {
    let pace = Duration::from_millis(600);
    Wanted { missions: 12, store, seed: 6, pace, limit: Duration::from_secs(240) }
}

#[test]
fn nothing_is_lost_and_nothing_done_twice_on_sqlite() {
    fleet(&small(None));
}

#[test]
fn nothing_is_lost_and_nothing_done_twice_on_postgresql() {
    fleet(&small(Some(Cluster::shared().database())));
}

#[test]
#[ignore = "it takes many minutes: cargo xtask fleet"]
fn as_many_as_are_wanted() {
    let set = |name: &str| std::env::var(name).ok();
    let number = |name: &str, usual: u64| set(name).map_or(usual, |text| text.parse().unwrap());
    let store = match set("FLEET_STORE").as_deref() {
        None | Some("sqlite") => None,
        Some("postgres") => Some(Cluster::shared().database()),
        Some(other) => panic!("FLEET_STORE={other}: sqlite or postgres"),
    };
    let missions = usize::try_from(number("FLEET_MISSIONS", 200)).unwrap();
    let (seed, pace) = (number("FLEET_SEED", 1), Duration::from_millis(number("FLEET_PACE_MS", 3000)));
    println!("{}", json!({ "missions": missions, "seed": seed, "postgres": store.is_some() }));
    let limit = Duration::from_secs(60 + 20 * missions as u64);
    fleet(&Wanted { missions, store, seed, pace, limit });
}
