//! Lists of many: what waits for a person is never cut off, and what has ended comes in pages.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::BTreeSet;

use sluice_api::run::StartRun;
use sluice_home::ask::{KeyedId, PageQuery, Requester, Service};
use sluice_home::id::RunId;
use sluice_home::read::runs::RunSnapshot;
use sluice_home::settings::places::HomePaths;

const HELD: &str = "name: ask\nsteps:\n  - {name: sure, type: gate, command: 'false', message: Sure?}\n";
const TEMPLATE: &str = "name: by-hand\nsteps:\n  - {name: a, type: script, command: 'true'}\n";

/// More than any page has.
const MANY: usize = 1_100;

fn open(folder: &std::path::Path) -> Service {
    let places = HomePaths::new(folder.join("home"));
    std::fs::create_dir_all(places.home()).unwrap();
    Service::open(places, Some("memory:".into()), std::env::current_exe().unwrap()).unwrap()
}

#[test]
fn a_question_behind_a_thousand_newer_runs_is_still_asked() {
    let folder = tempfile::tempdir().unwrap();
    let service = open(folder.path());
    for (name, text) in [("ask.yml", HELD), ("by-hand.yml", TEMPLATE)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let start = |recipe: &str, by_hand: bool| {
        let cwd = folder.path().display().to_string();
        let wanted = StartRun { recipe: recipe.into(), cwd, by_hand, ..StartRun::default() };
        service.start(&Requester::person("somebody"), &KeyedId::default(), &wanted).unwrap()
    };
    let asks = start("ask.yml", false).id;
    let held = || service.home().tasks.load_run(&asks).unwrap().unwrap().state.question().is_some();
    service.home().tasks.wait(std::time::Duration::from_secs(60), || held().then_some(())).unwrap();
    let many: Vec<RunSnapshot> = (0..MANY).map(|_| start("by-hand.yml", true)).collect();
    let inbox = service.attention().unwrap();
    assert_eq!(inbox.len(), 1);
    assert_eq!(inbox[0].run.as_deref(), Some(asks.as_str()));
    let all = PageQuery::default();
    assert_eq!(service.list_runs(None, false, &all).unwrap().items.len(), MANY + 1);
    assert_eq!(service.list_runs(Some("held"), false, &all).unwrap().items.len(), 1);
    assert_eq!(service.list_processes(false).unwrap().len(), MANY);
    assert_eq!(service.census().unwrap().runs["running"], i64::try_from(MANY).unwrap());
    // What has ended comes in pages, each once, and never hides what is open.
    for seen in &many {
        let step = seen.step("a").unwrap();
        assert_eq!(step.0, 0);
        service
            .by_hand(
                &Requester::person("somebody"),
                seen,
                "a",
                sluice_home::ask::by_hand("complete", None, None).unwrap(),
            )
            .unwrap();
        service.close_run(&Requester::person("somebody"), &seen.id, String::new()).unwrap();
    }
    let first = service.list_runs(None, true, &all).unwrap();
    assert_eq!((first.items.len(), first.items[0].id.as_str()), (1_001, asks.as_str()));
    let mut found: BTreeSet<RunId> = first.items.iter().map(|seen| seen.id.clone()).collect();
    let second = service.list_runs(None, true, &PageQuery { limit: Some(40), after: first.next }).unwrap();
    assert_eq!(second.items.len(), 40);
    found.extend(second.items.iter().map(|seen| seen.id.clone()));
    let last = service.list_runs(None, true, &PageQuery { limit: None, after: second.next }).unwrap();
    assert_eq!((last.items.len(), last.next), (60, None));
    found.extend(last.items.iter().map(|seen| seen.id.clone()));
    assert_eq!(found.len(), MANY + 1);
    service.close().unwrap();
}
