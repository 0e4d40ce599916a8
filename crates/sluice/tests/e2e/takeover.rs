//! Two engines on one PostgreSQL take the store over from each other, again and again: whoever has it is stopped or cut off
//! in the middle of scripts, agents and workers, and the other goes on with their work. No two processes are ever at the
//! same step at once, which the processes themselves write down.
//!
//! A short one runs with every test. The full one is `cargo xtask takeover`, which sets `TAKEOVER_TIMES` and
//! `TAKEOVER_SEED`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use sluice_store::testing::Cluster;

use super::fleet_under_fire::Chance;
use super::home::{Home, LONG};
use super::process;
use super::relay::Relay;
use super::served::token;

const SETTINGS: &str = "[engine]\nowner_seconds = 3\n\n[workers]\nlease_seconds = 4\nreconnect_seconds = 2\n\n\
[defaults]\nharness = \"shell\"\n\n[harnesses.shell]\nheadless = [\"sh\"]\noutput = \"text\"\n";
const PATIENCE: Duration = Duration::from_secs(120);
/// How often a process writes that it is at its step, and how often in all.
const PACE_NS: i64 = 25_000_000;
const TICKS: usize = 200;

/// What every script and agent is: it writes that it is at its step, by a clock that all of this machine share.
#[test]
#[ignore = "a process of the takeovers"]
fn at_work() {
    let Ok(log) = std::env::var("TAKEOVER_LOG") else { return };
    let name = std::env::var("TAKEOVER_NAME").unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(log).unwrap();
    let mut line = |word: &str| {
        let now = clock_gettime(ClockId::Monotonic);
        let nanos = now.tv_sec * 1_000_000_000 + now.tv_nsec;
        file.write_all(format!("{word} {name} {} {nanos}\n", std::process::id()).as_bytes()).unwrap();
    };
    line("begin");
    for _ in 0..TICKS {
        let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: PACE_NS }));
        line("tick");
    }
    line("end");
}

/// The file that runs it, for whoever is told to.
fn work(folder: &Path, log: &Path) -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let test = "e2e::takeover::at_work --exact --ignored --nocapture --test-threads=1";
    let text = format!(
        "TAKEOVER_LOG={} TAKEOVER_NAME=\"$SLUICE_RUN/$SLUICE_STEP\" {} {test} > /dev/null || exit 1\necho done\n",
        log.display(),
        program.display()
    );
    let path = folder.join("work.sh");
    std::fs::write(&path, text).unwrap();
    path
}

/// One process at one step: the first and the last time at which it was at it.
#[derive(Debug)]
struct Stay {
    pid: String,
    first: i64,
    last: i64,
    has_ended: bool,
    /// The longest time between two of its lines, and when that began: how long it was paused.
    rest: (i64, i64),
}

/// The stays at each step, in the order in which they began.
fn stays(log: &Path) -> BTreeMap<String, Vec<Stay>> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let mut found: BTreeMap<String, Vec<Stay>> = BTreeMap::new();
    for line in text.lines() {
        let [word, name, pid, at] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let at: i64 = at.parse().unwrap();
        let of_step = found.entry(name.to_owned()).or_default();
        match of_step.iter_mut().find(|stay| stay.pid == pid) {
            Some(stay) => {
                stay.rest = stay.rest.max((at - stay.last, stay.last));
                (stay.last, stay.has_ended) = (at, word == "end");
            }
            None => of_step.push(Stay { pid: pid.to_owned(), first: at, last: at, has_ended: false, rest: (0, at) }),
        }
    }
    found.values_mut().for_each(|stays| stays.sort_by_key(|stay| stay.first));
    found
}

/// Where two were at a step at once.
fn overlaps(stays: &BTreeMap<String, Vec<Stay>>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, of_step) in stays {
        for pair in of_step.windows(2).filter(|pair| pair[1].first <= pair[0].last) {
            found.push(format!("{name}: {pair:?}"));
        }
    }
    found
}

/// One of the two engines, with a home, a way to the store and a worker of its own.
struct Side {
    name: &'static str,
    home: Home,
    relay: Relay,
    listen: String,
    prompts: PathBuf,
    engine: Option<Child>,
    worker: Option<Child>,
    person: String,
}

impl Side {
    fn new(name: &'static str, database: &str) -> Side {
        let home = Home::empty();
        let prompts = home.path("prompts");
        [&home.place(), &prompts.join("workflows"), &prompts.join("do")]
            .into_iter()
            .for_each(|folder| std::fs::create_dir_all(folder).unwrap());
        std::fs::write(home.place().join("config.toml"), SETTINGS).unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Side {
            name,
            home,
            relay: Relay::to(database),
            listen: free.to_string(),
            prompts,
            engine: None,
            worker: None,
            person: String::new(),
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.listen)
    }

    /// What the engine said when it ended.
    fn last_words(&self) -> String {
        std::fs::read_to_string(self.home.path("engine.err")).unwrap_or_default()
    }

    /// Starts the engine. Whether it has the store.
    fn tries(&mut self) -> bool {
        let errors = std::fs::File::create(self.home.path("engine.err")).unwrap();
        let store = self.relay.store();
        let words = ["serve", "--listen", &self.listen, "--store", &store, "--prompts"];
        let mut command = self.home.command(&words);
        command.arg(&self.prompts).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        if lines.recv_timeout(LONG).is_err() {
            child.kill().unwrap();
            child.wait().unwrap();
            return false;
        }
        self.engine = Some(child);
        true
    }

    /// Tries until it has the store.
    #[track_caller]
    fn takes_over(&mut self) {
        let give_up = Instant::now() + PATIENCE;
        while !self.tries() {
            assert!(Instant::now() < give_up, "{} does not get the store: {}", self.name, self.last_words());
            // The owner may have been stopped in the middle of a transaction.
            let waits = ["owns the store", "kept waiting by another transaction"];
            let said = self.last_words();
            assert!(waits.iter().any(|word| said.contains(word)), "{}: {said}", self.name);
            pause(Duration::from_millis(100));
        }
        if self.person.is_empty() {
            self.person = token(&self.home, &["--scope", "person"]).1;
        }
    }

    /// A worker of this engine, on a machine of its own. It outlives its engine.
    fn hires(&mut self, colony: &str) {
        if self.worker.is_some() {
            return;
        }
        let machine = self.home.path("machine");
        std::fs::create_dir_all(&machine).unwrap();
        std::fs::write(machine.join("config.toml"), SETTINGS).unwrap();
        let secret = token(&self.home, &["--scope", "worker"]).1;
        let url = self.url();
        let words = ["worker", "--connect", &url, "--colony", colony, "--role", "any", "--name", self.name];
        let mut command = self.home.command(&words);
        command.env("SLUICE_HOME", &machine).env("SLUICE_TOKEN", secret).stdout(Stdio::null()).stderr(Stdio::null());
        self.worker = Some(command.spawn().unwrap());
    }

    fn pid(&self) -> Pid {
        Pid::from_child(self.engine.as_ref().unwrap())
    }

    /// Waits until the engine has noticed that it has lost the store, and has ended.
    #[track_caller]
    fn ends(&mut self) {
        let mut engine = self.engine.take().unwrap();
        process::until_gone(i32::try_from(engine.id()).unwrap());
        let status = engine.wait().unwrap();
        let said = self.last_words();
        assert!(!status.success() && said.contains("another engine has taken the store over"), "{status}: {said}");
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let answer = super::served::ask_at(&self.listen, method, path, &self.person, &body.to_string());
            if (200..300).contains(&answer.status) {
                return answer.json();
            }
            assert!(answer.status == 503 && Instant::now() < give_up, "{method} {path}: {answer:?}");
            pause(Duration::from_millis(100));
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        for child in self.engine.iter_mut().chain(&mut self.worker) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What befalls the owner.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Stopped,
    CutOff,
    HalfOpen,
}

impl Fate {
    fn befalls(self, side: &Side) {
        match self {
            Fate::Stopped => kill_process(side.pid(), Signal::STOP).unwrap(),
            Fate::CutOff => side.relay.is_cut(),
            Fate::HalfOpen => side.relay.is_half_open(),
        }
    }

    fn is_over(self, side: &Side) {
        match self {
            Fate::Stopped => kill_process(side.pid(), Signal::CONT).unwrap(),
            Fate::CutOff | Fate::HalfOpen => side.relay.is_mended(),
        }
    }
}

fn pause(time: Duration) {
    let (_never, quiet) = channel::<()>();
    let _ = quiet.recv_timeout(time);
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < give_up, "{what}");
        pause(Duration::from_millis(20));
    }
}

/// Two sides and what they share.
struct Both {
    owner: Side,
    other: Side,
    log: PathBuf,
    colony: String,
}

impl Both {
    fn new() -> Both {
        let database = Cluster::shared().database();
        let mut owner = Side::new("ann", &database);
        let mut other = Side::new("bob", &database);
        let prompts = owner.prompts.clone();
        other.prompts.clone_from(&prompts);
        let log = owner.home.path("work.log");
        let work = work(&owner.home.path(""), &log);
        let work = format!("sh {}", work.display());
        std::fs::write(prompts.join("do/agent.md"), &work).unwrap();
        let far = format!(
            "[workflow]\nname = \"far\"\ndescription = \"A test\"\nversion = \"1.0.0\"\n\n[[steps]]\nid = \"script\"\nrole = \"any\"\ntype = \"script\"\ncommand = \"{work}\"\n\n[[steps]]\nid = \"agent\"\nrole = \"any\"\nprompt_file = \"do/agent.md\"\ndepends_on = [\"script\"]\n"
        );
        std::fs::write(prompts.join("workflows/far.toml"), far).unwrap();
        for side in [&owner, &other] {
            let folder = side.home.path("user/.coven/grimoires");
            std::fs::create_dir_all(&folder).unwrap();
            for (name, kind) in [("script", "type: script, command"), ("agent", "type: agent, prompt")] {
                let text = format!(
                    "name: {name}\ndescription: A test\ntrigger: manual\nsteps:\n  - {{name: {name}, {kind}: '{work}'}}\n"
                );
                std::fs::write(folder.join(format!("{name}.yml")), text).unwrap();
            }
        }
        owner.takes_over();
        let remote = owner.home.path("remote.git");
        owner.home.git(&["clone", "--quiet", "--bare", ".", remote.to_str().unwrap()]);
        let founded = owner.ask("POST", "/v1/colonies", &json!({ "name": "reef", "repo": remote }));
        let colony = founded["colony_id"].as_str().unwrap().to_owned();
        Both { owner, other, log, colony }
    }

    /// Begins a run with a script, one with an agent, and a mission at the worker; waits until someone is at each.
    fn begin(&mut self) -> Vec<(&'static str, String)> {
        let owner = &mut self.owner;
        owner.hires(&self.colony);
        let mut begun = Vec::new();
        for name in ["script", "agent"] {
            // Outside of a repository, so that there is no worktree that only one of the two homes could have.
            let mut command = owner.home.command(&["start", name, "--detach", "--json"]);
            command.current_dir(owner.home.path("user"));
            let answer = super::home::run(&mut command).done().json();
            begun.push(("/workflows", answer["run"]["id"].as_str().unwrap().to_owned()));
        }
        let wanted = json!({ "colony_id": self.colony, "prompt": "Fix it", "workflow": "far" });
        let answer = owner.ask("POST", "/v1/missions", &wanted);
        begun.push(("/v1/missions", answer["mission_id"].as_str().unwrap().to_owned()));
        let is_begun =
            |(_, id): &(&str, String)| stays(&self.log).keys().any(|name| name.starts_with(&format!("{id}/")));
        until(&format!("{begun:?} do not begin: {:?}", stays(&self.log)), || begun.iter().all(is_begun));
        begun
    }

    /// Waits until these have ended, all as they should.
    fn ended(&self, runs: &[(&str, String)]) {
        for (kind, id) in runs {
            let path = format!("{kind}/{id}");
            until(&format!("{id} does not end"), || {
                let seen = self.owner.ask("GET", &path, &Value::Null);
                assert!(seen["status"] != "failed" && seen["status"] != "cancelled", "{seen:#}");
                seen["status"] == "completed"
            });
        }
    }

    /// The owner is hurt, the other goes on with its work, and the owner notices.
    fn change(&mut self, fate: Fate) {
        fate.befalls(&self.owner);
        self.other.takes_over();
        fate.is_over(&self.owner);
        self.owner.ends();
        std::mem::swap(&mut self.owner, &mut self.other);
        // The worker of the one before knows its address alone; what it had is given to a worker of the new owner.
        self.owner.hires(&self.colony);
    }
}

fn takeovers(times: u64, seed: u64) {
    let mut chance = Chance(seed);
    let mut both = Both::new();
    let mut fates: BTreeMap<String, usize> = BTreeMap::new();
    let began = Instant::now();
    for number in 0..times {
        let begun = both.begin();
        pause(Duration::from_millis(chance.below(600)));
        let fate = [Fate::Stopped, Fate::CutOff, Fate::HalfOpen][usize::try_from(chance.below(3)).unwrap()];
        *fates.entry(format!("{fate:?}")).or_default() += 1;
        both.change(fate);
        both.ended(&begun);
        let found = overlaps(&stays(&both.log));
        let logs = || {
            [&both.owner, &both.other].map(|side| std::fs::read_to_string(side.home.place().join("logs/engine.log")))
        };
        assert!(found.is_empty(), "seed {seed}, takeover {number} ({fate:?}): {found:#?}\n{:#?}", logs());
    }
    let stays = stays(&both.log);
    let all: usize = stays.values().map(Vec::len).sum();
    let cut_short = stays.values().flatten().filter(|stay| !stay.has_ended).count();
    let mut told = String::new();
    let _ = write!(told, "seed {seed}: {times} takeovers in {:?}, {fates:?}: {all} processes ", began.elapsed());
    let _ = write!(told, "at {} steps, {cut_short} cut short, 0 at once", stays.len());
    println!("{told}");
    assert!(cut_short > 0, "nobody was at work when the store changed hands: {told}");
    assert!(stays.values().all(|of_step| of_step.last().is_some_and(|stay| stay.has_ended)), "{stays:#?}");
}

/// Two machines may have one name, and a machine may be copied with everything on it. Nobody takes the store by that.
#[test]
fn a_copy_of_a_home_does_not_get_the_store() {
    let database = Cluster::shared().database();
    let (mut first, mut second) = (Side::new("ann", &database), Side::new("bob", &database));
    first.takes_over();
    std::fs::copy(first.home.place().join("home.id"), second.home.place().join("home.id")).unwrap();
    assert!(!second.tries(), "it was taken from its owner");
    assert!(second.last_words().contains("is a copy of the home"), "{}", second.last_words());
    first.ask("GET", "/v1/colonies", &Value::Null); // and it goes on
}

#[test]
fn no_two_are_at_a_step_at_once_when_the_store_changes_hands() {
    takeovers(3, 11);
}

#[test]
#[ignore = "it takes many minutes: cargo xtask takeover"]
fn as_many_takeovers_as_are_wanted() {
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    takeovers(number("TAKEOVER_TIMES", 100), number("TAKEOVER_SEED", 1));
}
