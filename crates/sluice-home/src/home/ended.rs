//! What has ended today, counted as it comes: what a board costs does not depend on how much that is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sluice_api::board::BOARD_DONE_ROWS;
use sluice_core::task::actions::TaskEnding;
use sluice_store::StreamId;

use crate::read::runs::RunSnapshot;
use crate::read::tasks::TaskSnapshot;

/// Something that ended today.
#[derive(Clone)]
pub(crate) struct EndedToday {
    /// The moment at which it ended.
    pub(crate) at: i64,
    pub(crate) how: TaskEnding,
    pub(crate) project: Option<String>,
    /// The task or run itself, of the newest ones.
    pub(crate) seen: Option<EndedSubject>,
}

#[derive(Clone)]
pub(crate) enum EndedSubject {
    Task(Arc<TaskSnapshot>),
    Run(RunSnapshot),
}

/// How many have ended, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndedCounts {
    pub(crate) all: usize,
    pub(crate) merged: usize,
    pub(crate) cancelled: usize,
}

impl EndedCounts {
    fn change(&mut self, how: TaskEnding, is_more: bool) {
        let change = |count: &mut usize| *count = if is_more { *count + 1 } else { count.saturating_sub(1) };
        change(&mut self.all);
        match how {
            TaskEnding::Merged => change(&mut self.merged),
            TaskEnding::Cancelled => change(&mut self.cancelled),
            TaskEnding::Other => {}
        }
    }
}

/// Everything that has ended today.
#[derive(Default)]
pub(crate) struct EndedList {
    all: BTreeMap<StreamId, EndedToday>,
    by_time: BTreeSet<(i64, StreamId)>,
    counts: BTreeMap<Option<String>, EndedCounts>,
}

impl EndedList {
    /// Notes that something has ended, or has not any more. The subject of what no board shows is let go.
    pub(crate) fn note(&mut self, stream: &StreamId, ended: Option<EndedToday>) {
        self.remove(stream);
        let Some(ended) = ended else { return };
        self.counts.entry(ended.project.clone()).or_default().change(ended.how, true);
        self.by_time.insert((ended.at, stream.clone()));
        self.all.insert(stream.clone(), ended);
        let old = self.by_time.iter().rev().nth(BOARD_DONE_ROWS).map(|(_, stream)| stream.clone());
        if let Some(old) = old.and_then(|old| self.all.get_mut(&old)) {
            old.seen = None;
        }
    }

    fn remove(&mut self, stream: &StreamId) {
        let Some(before) = self.all.remove(stream) else { return };
        self.by_time.remove(&(before.at, stream.clone()));
        if let Some(counts) = self.counts.get_mut(&before.project) {
            counts.change(before.how, false);
        }
    }

    /// Forgets what ended before this moment.
    pub(crate) fn forget_before(&mut self, moment: i64) {
        while let Some((_, stream)) = self.by_time.first().filter(|(at, _)| *at < moment).cloned() {
            self.remove(&stream);
        }
    }

    /// How many have ended, of one project or of all.
    pub(crate) fn counts(&self, project: Option<&str>) -> EndedCounts {
        let of = |(name, _): &(&Option<String>, &EndedCounts)| project.is_none_or(|it| name.as_deref() == Some(it));
        self.counts.iter().filter(of).fold(EndedCounts::default(), |sum, (_, counts)| EndedCounts {
            all: sum.all + counts.all,
            merged: sum.merged + counts.merged,
            cancelled: sum.cancelled + counts.cancelled,
        })
    }

    /// The newest, of one project or of all, as many as a board shows.
    pub(crate) fn newest(&self, project: Option<&str>) -> Vec<EndedSubject> {
        let newest = self.by_time.iter().rev().take(BOARD_DONE_ROWS).filter_map(|(_, stream)| self.all.get(stream));
        let of = newest.filter(|ended| project.is_none_or(|it| ended.project.as_deref() == Some(it)));
        of.filter_map(|ended| ended.seen.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(at: i64, how: TaskEnding, project: &str) -> Option<EndedToday> {
        Some(EndedToday { at, how, project: Some(project.to_owned()), seen: None })
    }

    #[test]
    fn what_ends_again_or_is_deleted_is_counted_once_or_not() {
        let mut list = EndedList::default();
        let (one, two) = (StreamId::new("task/one"), StreamId::new("task/two"));
        list.note(&one, ended(10, TaskEnding::Merged, "coffee"));
        list.note(&two, ended(20, TaskEnding::Other, "tea"));
        // A run that is retried ends twice.
        list.note(&one, ended(30, TaskEnding::Cancelled, "coffee"));
        assert_eq!(list.counts(None), EndedCounts { all: 2, merged: 0, cancelled: 1 });
        assert_eq!(list.counts(Some("tea")), EndedCounts { all: 1, merged: 0, cancelled: 0 });
        list.forget_before(25);
        assert_eq!(list.counts(None), EndedCounts { all: 1, merged: 0, cancelled: 1 });
        list.note(&one, None);
        assert_eq!(list.counts(None), EndedCounts::default());
    }
}
