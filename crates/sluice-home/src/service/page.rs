//! Lists in pages. What is open is always shown whole: nothing that waits for somebody is cut off. What has ended comes after
//! it, as much as is wanted, and the answer says where to go on.

use sluice_api::Problem;
use sluice_store::{PageKey, Query, StreamId, Summary};

use crate::tasks::Tasks;

/// How much of what has ended a list shows, unless more or less is wanted.
const USUAL: usize = 1000;
/// The most that one list shows of it.
const MOST: usize = 10_000;

/// Which part of a list.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// At most so many of those that have ended; 1,000 unless given.
    pub limit: Option<usize>,
    /// Those that come after, as `next` of the list before says; without those that are open.
    pub after: Option<String>,
}

/// A part of a list.
#[derive(Clone, Debug)]
pub struct Part<T> {
    /// What is in it.
    pub items: Vec<T>,
    /// Where to go on, if there is more.
    pub next: Option<String>,
}

impl Wanted {
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
        tasks: &Tasks,
        query: &Query,
        mut fits: impl FnMut(&Summary) -> Result<Option<T>, Problem>,
    ) -> Result<Part<T>, Problem> {
        let (limit, place) = (self.limit()?, self.place()?);
        let mut items = Vec::new();
        if query.open != Some(false) && place.is_none() {
            tasks.walk(Query { open: Some(true), limit: USUAL, ..query.clone() }, |summary| {
                items.extend(fits(&summary)?);
                Ok(true)
            })?;
        }
        if query.open == Some(true) {
            return Ok(Part { items, next: None });
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
        Ok(Part { items, next: stopped.map(|key| written(&key)) })
    }
}

fn written(key: &PageKey) -> String {
    format!("{}:{}", key.created, key.stream)
}

fn read(text: &str) -> Option<PageKey> {
    let (created, stream) = text.split_once(':')?;
    Some(PageKey { created: created.parse().ok()?, stream: StreamId::new(stream) })
}
