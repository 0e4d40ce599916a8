//! One engine on a PostgreSQL that is restarted, stopped, cut off, left half-open, made read-only, and whose answers to
//! commits are lost. Every run that was accepted ends, and nothing is done twice.
//!
//! A short one runs with every test. The full one is `cargo xtask pg-chaos`, which sets `CHAOS_MINUTES` and `CHAOS_SEED`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::json;
use sluice_store::testing::Cluster;

use super::fleet_under_fire::Chance;
use super::home::Home;
use super::relay::Relay;
use super::served::{Served, ask_at, token};

/// Longer than anything here takes after the last fault; only a test that fails waits for it.
const PATIENCE: Duration = Duration::from_secs(180);

/// What befalls the server, or the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Restart,
    Stop,
    Cut,
    HalfOpen,
    ResetAfterCommit,
    ReadOnly,
}

const ALL: [Fault; 6] =
    [Fault::Restart, Fault::Stop, Fault::Cut, Fault::HalfOpen, Fault::ResetAfterCommit, Fault::ReadOnly];

fn pause(time: Duration) {
    let (_never, quiet) = channel::<()>();
    let _ = quiet.recv_timeout(time);
}

/// A server of its own, the way to it, and an engine on it.
struct Scene {
    cluster: Cluster,
    database: String,
    relay: Relay,
    home: Home,
    served: Served,
    person: String,
}

impl Scene {
    fn new() -> Scene {
        let cluster = Cluster::start();
        let database = cluster.database();
        let relay = Relay::to(&database);
        let home = Home::empty();
        std::fs::create_dir_all(home.place()).unwrap();
        std::fs::write(home.place().join("config.toml"), "[engine]\nowner_seconds = 6\n").unwrap();
        let folder = home.repository().join(".coven/grimoires");
        std::fs::create_dir_all(&folder).unwrap();
        let log = home.path("did.log");
        let step = |name: &str| {
            let line = format!("echo {name} $SLUICE_RUN >> {}", log.display());
            format!("  - {{name: {name}, type: script, command: '{line}'}}\n")
        };
        let text = format!("name: mine\ndescription: A test\ntrigger: manual\nsteps:\n{}{}", step("one"), step("two"));
        std::fs::write(folder.join("mine.yml"), text).unwrap();
        let served = Served::start(&home, &["--store", &relay.store()]);
        let person = token(&home, &["--scope", "person"]).1;
        home.sluice(&["project", "add"]).done();
        Scene { cluster, database, relay, home, served, person }
    }

    fn befalls(&self, fault: Fault, chance: &mut Chance) {
        let lasts = Duration::from_millis(500 + chance.below(4000));
        match fault {
            Fault::Restart => {
                self.cluster.halt();
                self.cluster.resume();
            }
            Fault::Stop => {
                self.cluster.halt();
                pause(lasts);
                self.cluster.resume();
            }
            Fault::Cut => {
                self.relay.is_cut();
                pause(lasts);
                self.relay.is_mended();
            }
            Fault::HalfOpen => {
                self.relay.is_half_open();
                pause(lasts);
                self.relay.is_mended();
            }
            Fault::ResetAfterCommit => {
                self.relay.loses_answers(1 + usize::try_from(chance.below(3)).unwrap());
                pause(lasts);
                self.relay.loses_answers(0);
            }
            Fault::ReadOnly => {
                self.read_only("on");
                pause(lasts);
                self.read_only("off");
            }
        }
    }

    fn read_only(&self, word: &str) {
        let sql = format!("ALTER SYSTEM SET default_transaction_read_only = {word}");
        self.cluster.execute(&self.database, &sql);
        self.cluster.execute(&self.database, "SELECT pg_reload_conf()");
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> super::served::Answer {
        ask_at(self.served.url.split("://").nth(1).unwrap(), method, path, &self.person, body)
    }

    /// Starts a run. Its id, if it was accepted.
    fn start(&self) -> Option<String> {
        let answer = self.ask("POST", "/workflows", &json!({ "grimoire": "mine", "project": "coffee" }).to_string());
        let told = (answer.status == 202).then(|| answer.json())?;
        // What could not be taken back in time is told by its id alone.
        told["workflow_id"].as_str().or(told["id"].as_str()).map(str::to_owned)
    }

    /// Waits for the end of a run.
    #[track_caller]
    fn ended(&self, id: &str) {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask("GET", &format!("/workflows/{id}"), "");
            if answer.status == 200 && answer.json()["status"] == "completed" {
                return;
            }
            let seen = format!("{answer:?}");
            assert!(!seen.contains("\"failed\"") && Instant::now() < give_up, "{id} was accepted, and is: {seen}");
            pause(Duration::from_millis(50));
        }
    }

    /// How often each step of each run was done.
    fn done(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.home.path("did.log")).unwrap_or_default();
        let mut counts = BTreeMap::new();
        text.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
        counts
    }
}

fn chaos(lasts: Duration, seed: u64, faults: &[Fault]) {
    let mut scene = Scene::new();
    let over = AtomicBool::new(false);
    let began = Instant::now();
    let (accepted, refused, befell) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let (mut accepted, mut refused) = (Vec::new(), 0);
            while !over.load(Ordering::Relaxed) {
                match scene.start() {
                    Some(id) => accepted.push(id),
                    None => refused += 1,
                }
                pause(Duration::from_millis(150));
            }
            (accepted, refused)
        });
        let mut chance = Chance(seed);
        let mut befell: BTreeMap<Fault, usize> = BTreeMap::new();
        let mut order = faults.iter().cycle();
        while began.elapsed() < lasts || befell.len() < faults.len() {
            pause(Duration::from_millis(500 + chance.below(2000)));
            let fault = *order.next().unwrap();
            *befell.entry(fault).or_default() += 1;
            scene.befalls(fault, &mut chance);
        }
        over.store(true, Ordering::Relaxed);
        let (accepted, refused) = asking.join().unwrap();
        (accepted, refused, befell)
    });
    accepted.iter().for_each(|id| scene.ended(id));
    let done = scene.done();
    let twice: Vec<_> = done.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "seed {seed}: done more than once: {twice:?}");
    for id in &accepted {
        let both = ["one", "two"].map(|step| done.contains_key(&format!("{step} {id}")));
        assert_eq!(both, [true, true], "seed {seed}: {id} has ended");
    }
    let (accepted, took) = (accepted.len(), began.elapsed());
    println!("seed {seed}: {took:?}, {befell:?}: {accepted} runs accepted and ended, {refused} not accepted, 0 twice");
    assert!(accepted > 0, "nothing was accepted");
    scene.served.terminate();
    assert_eq!(scene.served.ended(), Some(0));
}

#[test]
fn every_run_that_was_accepted_ends_and_none_is_done_twice() {
    chaos(Duration::from_secs(1), 5, &ALL);
}

#[test]
#[ignore = "it takes many minutes: cargo xtask pg-chaos"]
fn as_many_minutes_as_are_wanted() {
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    chaos(Duration::from_secs(60 * number("CHAOS_MINUTES", 30)), number("CHAOS_SEED", 1), &ALL);
}
