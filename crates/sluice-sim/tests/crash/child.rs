//! The child: an engine that starts runs and tasks, and goes round until it is killed.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sluice_core::lifecycle::Lifecycle;
use sluice_core::machine::Moment;
use sluice_core::run::{RunMode, RunOrigin, RunParameters, RunPlan};
use sluice_engine::host::{EngineClock, Host, HostParts, NoObserver};
use sluice_engine::loader::{Definitions, pin};
use sluice_engine::reactor::{ReactorAnswer, ReactorMessage};
use sluice_engine::run_actor::RunActor;
use sluice_engine::workers::{WorkerId, WorkerOffer};
use sluice_store::{Store, StreamId};

use crate::hands::Hands;
use crate::people::Person;
use crate::{PINNED_RECIPE, lifecycle, plan};

pub(crate) struct WallClock;

impl EngineClock for WallClock {
    fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

struct Both(Arc<RunPlan>, Arc<Lifecycle>);

impl Definitions for Both {
    fn plan(&self, _: &[u8]) -> Result<Arc<RunPlan>, String> {
        Ok(self.0.clone())
    }

    fn lifecycle(&self, _: &[u8]) -> Result<Arc<Lifecycle>, String> {
        Ok(self.1.clone())
    }
}

/// A line for the parent. It must be out before anything else happens.
pub(crate) fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdout.flush());
}

pub(crate) fn live(address: &str) {
    let starts: usize = std::env::var("SLUICE_CRASH_STARTS").map_or(0, |text| text.parse().unwrap());
    let (plan, lifecycle) = (plan(), lifecycle());
    let mut person = Person::new(Store::open(address).unwrap().reader().unwrap(), lifecycle.clone());
    // Before the engine runs: what it starts itself is not lost.
    let lost = person.sessions();
    let host = Host::start(HostParts {
        store: Store::open(address).unwrap(),
        owner: "crash".into(),
        clock: Arc::new(WallClock),
        executor: Box::new(Hands::new()),
        definitions: Arc::new(Both(plan.clone(), lifecycle)),
        observer: Box::new(NoObserver),
        keep: None,
    })
    .unwrap();
    let offer = WorkerOffer {
        id: WorkerId("own".into()),
        role: "any".into(),
        group: "g".into(),
        knows_scratch: true,
        capacity: 50,
        lease: None,
    };
    host.handle().send(ReactorMessage::Joined(offer));
    say("ready");
    person.reports(&host, lost);
    let to_the_end = std::env::var("SLUICE_CRASH_TO_THE_END").is_ok_and(|text| !text.is_empty());
    for number in 0..starts {
        start_run(&host, &plan, number);
        person.creates(&host, number);
        if number == 0 {
            person.sees_to_everything(&host);
        }
    }
    if to_the_end {
        while person.sees_to_everything(&host) {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        return host.stop().unwrap();
    }
    // Goes round until it is killed.
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}

fn start_run(host: &Host, plan: &Arc<RunPlan>, number: usize) {
    let id = format!("run-{}-{number}", std::process::id());
    let given = RunParameters {
        id: id.parse().expect("an id"),
        mode: RunMode::Engine,
        inputs: Vec::new(),
        prompt: String::new(),
        workspace: String::new(),
        scratch: String::new(),
        work_order: String::new(),
        origin: RunOrigin::default(),
    };
    let (actor, change) =
        RunActor::create(plan.clone(), pin(PINNED_RECIPE).to_string(), "g".into(), given, WallClock.now());
    let stream = StreamId::new(id);
    let answer = host.ask(|token| ReactorMessage::Create {
        token: Some(token),
        stream: stream.clone(),
        actor: Box::new(actor),
        change,
        blobs: vec![(pin(PINNED_RECIPE), PINNED_RECIPE.to_vec())],
    });
    if matches!(answer.recv(), Ok(ReactorAnswer::Done(_))) {
        say(&format!("promised {stream}"));
    }
}
