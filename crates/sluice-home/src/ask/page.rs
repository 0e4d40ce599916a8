//! Lists in pages. What is open is always shown whole: nothing that waits for somebody is cut off. What has ended comes after
//! it, as much as is wanted, and the answer says where to go on.

use sluice_api::Problem;
use sluice_store::{PageKey, Query, StreamId, StreamSummary};

use crate::read::tasks::ReadModel;

/// How much of what has ended a list shows, unless more or less is wanted.
const USUAL: usize = 1000;
/// The most that one list shows of it.
const MOST: usize = 10_000;

#[derive(Clone, Debug, Default)]
pub struct PageQuery {
    /// At most so many of those that have ended; 1,000 unless given.
    pub limit: Option<usize>,
    /// Those that come after, as `next` of the list before says; without those that are open.
    pub after: Option<String>,
}

#[derive(Clone, Debug)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    /// Where to go on, if there is more.
    pub next: Option<String>,
}

impl PageQuery {
    fn limit(&self) -> Result<usize, Problem> {
        match self.limit {
            None => Ok(USUAL),
            Some(limit) if (1..=MOST).contains(&limit) => Ok(limit),
            Some(limit) => Err(Problem::bad_request(format!("a list shows 1 to {MOST}, not {limit}"))),
        }
    }

    fn place(&self) -> Result<Option<PageKey>, Problem> {
        let wrong = |text: &str| Problem::bad_request(format!("`{text}` is no place in a list")).hint("see `next`");
        self.after.as_deref().map(|text| read(text).ok_or_else(|| wrong(text))).transpose()
    }

    /// Those of a query that fit: the open ones first, all of them, and then those that have ended. `open` says that only
    /// one of both is asked for.
    pub(super) fn gather<T>(
        &self,
        tasks: &ReadModel,
        query: &Query,
        mut fits: impl FnMut(&StreamSummary) -> Result<Option<T>, Problem>,
    ) -> Result<ListPage<T>, Problem> {
        let (limit, place) = (self.limit()?, self.place()?);
        let mut items = Vec::new();
        if query.open != Some(false) && place.is_none() {
            tasks.walk(Query { open: Some(true), limit: USUAL, ..query.clone() }, |summary| {
                items.extend(fits(&summary)?);
                Ok(true)
            })?;
        }
        if query.open == Some(true) {
            return Ok(ListPage { items, next: None });
        }
        let mut left = limit;
        let ended = Query { open: Some(false), limit: limit.min(USUAL), after: place, ..query.clone() };
        let stopped = tasks.walk(ended, |summary| {
            if let Some(item) = fits(&summary)? {
                items.push(item);
                left -= 1;
            }
            Ok(left > 0)
        })?;
        Ok(ListPage { items, next: stopped.map(|key| written(&key)) })
    }
}

/// The newest that have ended, of all of these queries together, in no order.
pub(super) fn newest<T>(
    tasks: &ReadModel,
    queries: impl IntoIterator<Item = Query>,
    mut fits: impl FnMut(&StreamSummary) -> Result<Option<T>, Problem>,
    when: impl Fn(&T) -> (i64, String),
) -> Result<Vec<T>, Problem> {
    let mut found = Vec::new();
    for query in queries {
        found.extend(PageQuery::default().gather(tasks, &Query { open: Some(false), ..query }, &mut fits)?.items);
    }
    found.sort_by_cached_key(|item| std::cmp::Reverse(when(item)));
    found.truncate(USUAL);
    Ok(found)
}

fn written(key: &PageKey) -> String {
    format!("{}:{}", key.created, key.stream)
}

fn read(text: &str) -> Option<PageKey> {
    let (created, stream) = text.split_once(':')?;
    Some(PageKey { created: created.parse().ok()?, stream: StreamId::new(stream) })
}

#[cfg(test)]
mod tests {

    use std::time::Duration;

    use sluice_api::run::StartRun;
    use sluice_core::run::RunKind;
    use sluice_store::Store;

    use super::super::{Requester, Service};
    use crate::settings::places::HomePaths;
    use crate::start::{EngineStart, start_as};

    #[test]
    fn a_list_reads_the_runs_that_are_in_it_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let recipe = "name: by-hand\nsteps:\n  - {name: a, type: script, command: 'true'}\n";
        std::fs::write(folder.path().join("by-hand.yml"), recipe).expect("written");
        let places = HomePaths::new(folder.path().join("home"));
        std::fs::create_dir_all(places.home()).expect("a home");
        let program = std::env::current_exe().expect("this test");
        let open = || Service::open(places.clone(), None, program.clone()).expect("a home");
        let service = open();
        let cwd = folder.path().display().to_string();
        let wanted = StartRun { recipe: "by-hand.yml".into(), cwd, by_hand: true, ..StartRun::default() };
        let one = |kind: RunKind| {
            let started = EngineStart { kind: Some(kind), ..EngineStart::default() };
            let seen = start_as(service.home(), &wanted, started).expect("started");
            service.cancel_run(&Requester::person("somebody"), seen.id.as_str(), String::new()).expect("ended");
        };
        (0..60).for_each(|_| one(RunKind::Run));
        (0..3).for_each(|_| one(RunKind::Workflow));
        one(RunKind::Mission);
        service.close().expect("closed");
        drop(service);
        // Nothing is remembered of before. The follower of the log finds nothing to read, and no evidence whose run it looks at.
        let _ = std::fs::remove_dir_all(places.home().join("evidence"));
        let store = Store::open(&places.store()).expect("a store");
        let (mut writer, mut reader) = (store.writer().expect("a writer"), store.reader().expect("a reader"));
        writer.own("a test", Duration::from_secs(60)).expect("owned");
        writer.follow(reader.end().expect("an end")).expect("followed");
        writer.release().expect("released");
        drop((writer, reader, store));
        let service = open();
        let lists = (
            service.workflows().expect("a list").len(),
            service.missions(&Requester::person("somebody")).expect("a list").len(),
            service.list_processes(true).expect("a list").len(),
            service.attention().expect("a list").len(),
        );
        assert_eq!(lists, (3, 1, 0, 0));
        assert_eq!(service.home().tasks.looks.count(), 4, "of 64 runs");
        service.close().expect("closed");
    }
}
