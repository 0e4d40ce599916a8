//! The engine on SQLite, beside the floor in the same run on the same disk: bare commits with `synchronous=FULL`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should say where")]

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sluice_core::lifecycle::Lifecycle;
use sluice_core::machine::Moment;
use sluice_core::run::{Given, Mode, Origin, Outcome, Plan, Report};
use sluice_dialect::prompts::NoPrompts;
use sluice_dialect::{Definition, Source, Sources, load};
use sluice_engine::actor::Outcome as Done;
use sluice_engine::host::{Clock, Executor, Host, Parts, Reporter, Unobserved};
use sluice_engine::loader::{Definitions, pin};
use sluice_engine::reactor::{Assignment, Message};
use sluice_engine::run_actor::RunActor;
use sluice_engine::workers::{Offer, WorkerId};
use sluice_store::{Store, StreamId};

struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Everything is done at once, and nothing is.
struct NoOp {
    done: Sender<()>,
}

impl Executor for NoOp {
    fn perform(&mut self, it: Assignment, report: &Reporter) {
        let outcome = match it.effect.kind.as_str() {
            "perform" => Done::Run(Report::Completed(Outcome::default())),
            _ => Done::Done,
        };
        let _ = self.done.send(());
        report.send(Message::Ended { stream: it.stream, effect: it.effect.id, dispatch: it.dispatch, outcome });
    }
}

struct Recipes(String);

impl Definitions for Recipes {
    fn plan(&self, _: &[u8]) -> Result<Arc<Plan>, String> {
        Ok(plan(&self.0))
    }

    fn lifecycle(&self, _: &[u8]) -> Result<Arc<Lifecycle>, String> {
        Err("no task is measured here".into())
    }
}

fn plan(recipe: &str) -> Arc<Plan> {
    let source = Source { path: "bench.yml", bytes: recipe.as_bytes() };
    let loaded = load(&source, &mut NoPrompts, &mut Sources::new());
    match loaded.definition {
        Some(Definition::Recipe(recipe)) => Arc::new(Plan::new(recipe)),
        _ => panic!("not a recipe: {:?}", loaded.problems.first()),
    }
}

fn steps(count: usize) -> String {
    let mut recipe = String::from("name: bench\nsteps:\n");
    for step in 0..count {
        recipe.push_str(&format!("  - {{name: s{step}, type: script, command: 'true'}}\n"));
    }
    recipe
}

fn fan(count: usize) -> String {
    let mut recipe =
        String::from("name: bench\nmax_parallel: 1000\nsteps:\n  - {name: a, type: script, needs: [], command: a}\n");
    let names: Vec<String> = (0..count).map(|step| format!("s{step}")).collect();
    for name in &names {
        recipe.push_str(&format!("  - {{name: {name}, type: script, needs: [a], command: 'true'}}\n"));
    }
    recipe.push_str(&format!("  - {{name: join, type: script, needs: [{}], command: 'true'}}\n", names.join(", ")));
    recipe
}

struct Bench {
    host: Host,
    done: Receiver<()>,
    plan: Arc<Plan>,
    next: usize,
}

impl Bench {
    fn new(folder: &Path, recipe: &str) -> Bench {
        let store = Store::open(&format!("sqlite:{}", folder.join("bench.db").display())).unwrap();
        let (sender, done) = channel();
        let host = Host::start(Parts {
            store,
            owner: "bench".into(),
            clock: Arc::new(WallClock),
            executor: Box::new(NoOp { done: sender }),
            definitions: Arc::new(Recipes(recipe.to_owned())),
            observer: Box::new(Unobserved),
            keep: None,
        })
        .unwrap();
        host.reporter().send(Message::Joined(Offer {
            id: WorkerId("local".into()),
            role: "any".into(),
            group: "bench".into(),
            capacity: 1_000_000,
            lease: None,
        }));
        Bench { host, done, plan: plan(recipe), next: 0 }
    }

    /// Starts `runs` runs and waits until `each` steps of each have been performed.
    fn run(&mut self, runs: usize, each: usize) -> Duration {
        let begun = Instant::now();
        for _ in 0..runs {
            self.next += 1;
            let id = format!("run-{:08}", self.next);
            let given = Given {
                id: id.clone(),
                mode: Mode::Engine,
                inputs: Vec::new(),
                prompt: String::new(),
                workspace: String::new(),
                work_order: String::new(),
                origin: Origin::default(),
            };
            let digest = pin(b"bench");
            let (actor, change) =
                RunActor::create(self.plan.clone(), digest.to_string(), "bench".into(), given, WallClock.now());
            self.host.reporter().send(Message::Create {
                token: None,
                stream: StreamId::new(id),
                actor: Box::new(actor),
                change,
                blobs: vec![(digest, b"bench".to_vec())],
            });
        }
        for _ in 0..runs * each {
            self.done.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        begun.elapsed()
    }
}

/// Commits of one small row each, with nothing around them.
fn bare_commits(folder: &Path, count: usize) -> Duration {
    let database = rusqlite::Connection::open(folder.join("bare.db")).unwrap();
    database
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE log (data BLOB);")
        .unwrap();
    let mut insert = database.prepare("INSERT INTO log VALUES (?1)").unwrap();
    let begun = Instant::now();
    for _ in 0..count {
        insert.execute([&[1u8; 200][..]]).unwrap();
    }
    begun.elapsed() / u32::try_from(count).unwrap()
}

fn main() {
    let folder = tempfile::tempdir_in(
        std::env::current_dir().unwrap().join("target").canonicalize().unwrap_or_else(|_| std::env::temp_dir()),
    )
    .unwrap();
    let fresh = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    // The disk's mood changes from second to second, so floor and chain take turns, and the middle ratio counts.
    let mut chain = Bench::new(&fresh("chain"), &steps(100));
    chain.run(1, 100);
    let mut rounds: Vec<(f64, Duration, Duration)> = (0..9)
        .map(|round| {
            let bare = bare_commits(&fresh(&format!("bare-{round}")), 100);
            let step = chain.run(1, 100) / 100;
            (step.as_secs_f64() / bare.as_secs_f64(), bare, step)
        })
        .collect();
    chain.host.stop().unwrap();
    rounds.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (ratio, bare, alone) = rounds[rounds.len() / 2];
    println!("bare SQLite commit, synchronous=FULL        {bare:>10.1?}");
    println!(
        "chain: a step of 100, one after the other   {alone:>10.1?}   {ratio:>6.2} × a bare commit (aim: at most 1.5)"
    );

    let mut many = Bench::new(&fresh("many"), &steps(5));
    many.run(100, 5);
    let took = many.run(1000, 5);
    many.host.stop().unwrap();
    println!(
        "many: 1,000 runs of 5 steps                 {took:>10.1?}   {:>6.0} durable steps/s (aim: 25,000)",
        5000.0 / took.as_secs_f64()
    );

    let mut wide = Bench::new(&fresh("fan"), &fan(1000));
    wide.run(1, 1002);
    let took = wide.run(1, 1002);
    wide.host.stop().unwrap();
    println!("fan-out: 1 to 1,000 and join                {took:>10.1?}   (aim: under 100 ms)");

    let mut long = Bench::new(&fresh("long"), &steps(10_000));
    let took = long.run(1, 10_000);
    long.host.stop().unwrap();
    println!(
        "history: one run of 10,000 steps            {:>10.1?} a step  {:>6.2} × a step of 100",
        took / 10_000,
        (took / 10_000).as_secs_f64() / alone.as_secs_f64()
    );
}
