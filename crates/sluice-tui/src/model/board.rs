//! The board as the dashboard holds it: rows by id, the order in which they are shown, and which one is chosen.
//!
//! The chosen row is known by its id. Rows come, change and go without moving the choice to another row: a key that a person is
//! about to press must not meet another row than the one that was looked at.

use std::collections::BTreeMap;

use sluice_api::attention::Attention;
use sluice_api::board::{Board, BoardCounts, BoardEngine, BoardGroup, BoardProject, BoardRow, BoardRows, SavedView};
use sluice_api::usage::UsageSum;

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BoardEntry {
    /// The head of a group, with how many rows of it pass the filter.
    Head(BoardGroup, usize),
    /// A row; one that belongs to the task above it is indented.
    Row {
        /// The id of the task or run.
        id: String,
        /// Whether it is the run of the task above it.
        nested: bool,
    },
}

/// Everything that the engine told about the board, and what the person looks at.
#[derive(Clone, Debug)]
pub(crate) struct BoardState {
    pub(crate) engine: BoardEngine,
    pub(crate) counts: BoardCounts,
    pub(crate) projects: Vec<BoardProject>,
    pub(crate) today: UsageSum,
    /// What the home itself needs a person for.
    pub(crate) home: Vec<Attention>,
    pub(crate) cut: Option<String>,
    /// The position in the log that the last whole board includes.
    cursor: u64,
    rows: BTreeMap<String, BoardRow>,
    /// The position in the log that the last answer about a row includes, where that is newer than the whole board. Answers
    /// overtake each other: an older one changes nothing.
    told: BTreeMap<String, u64>,
    /// The lines of the list, in order.
    pub(crate) entries: Vec<BoardEntry>,
    /// The id of the chosen row.
    pub(crate) chosen: Option<String>,
    /// Whether the chosen row is among those that are shown. Keys are about no row that the person does not see.
    is_chosen_shown: bool,
    /// Where it stands, or stood last, among the rows that are shown.
    pub(crate) place: usize,
    /// Which rows are shown: a view without a name.
    pub(crate) filter: SavedView,
    /// Whether runs of tasks and what has ended are shown.
    pub(crate) unfolded: bool,
}

impl BoardState {
    /// A new answer of the engine; what the person chose, filtered and unfolded stays.
    pub(crate) fn new(board: Board, before: Option<&BoardState>) -> BoardState {
        let Board { engine, cursor, counts, projects, today, home, rows, left_out: _, cut } = board;
        let mut state = BoardState {
            engine,
            counts,
            projects,
            today,
            home,
            cut,
            cursor,
            rows: rows.into_iter().map(|row| (row.id.clone(), row)).collect(),
            told: BTreeMap::new(),
            entries: before.map(|before| before.entries.clone()).unwrap_or_default(),
            chosen: before.and_then(|before| before.chosen.clone()),
            is_chosen_shown: false,
            place: before.map(|before| before.place).unwrap_or_default(),
            filter: before.map(|before| before.filter.clone()).unwrap_or_default(),
            unfolded: before.is_some_and(|before| before.unfolded),
        };
        state.arrange();
        state
    }

    /// The whole board anew. Rows of which a newer answer has come already stay.
    pub(crate) fn replace(&mut self, board: Board) {
        if board.cursor < self.cursor {
            return;
        }
        let mut told = std::mem::take(&mut self.told);
        told.retain(|_, cursor| *cursor > board.cursor);
        let newer: Vec<(String, Option<BoardRow>)> =
            told.keys().map(|id| (id.clone(), self.rows.get(id).cloned())).collect();
        *self = BoardState::new(board, Some(self));
        self.told = told;
        newer.into_iter().for_each(|(id, row)| self.put(id, row));
        self.arrange();
    }

    /// Rows that have changed. What is counted follows them; pools and costs come with the next whole board.
    pub(crate) fn renew(&mut self, news: BoardRows) {
        let BoardRows { cursor, rows, gone } = news;
        let there = rows.into_iter().map(|row| (row.id.clone(), Some(row)));
        for (id, row) in there.chain(gone.into_iter().map(|id| (id, None))) {
            if cursor >= self.told.get(&id).copied().unwrap_or(self.cursor) {
                self.told.insert(id.clone(), cursor);
                self.put(id, row);
            }
        }
        self.arrange();
    }

    /// The row with this id is this one now, or none; what is counted follows it.
    fn put(&mut self, id: String, row: Option<BoardRow>) {
        let group = row.as_ref().map(|row| row.group);
        let before = match row {
            Some(row) => self.rows.insert(id, row),
            None => self.rows.remove(&id),
        };
        group.into_iter().for_each(|group| self.count(group, true));
        before.into_iter().for_each(|row| self.count(row.group, false));
    }

    /// One more of a group, or one less.
    fn count(&mut self, group: BoardGroup, is_more: bool) {
        let count = match group {
            BoardGroup::NeedsYou => &mut self.counts.needs_you,
            BoardGroup::ReadyToMerge => &mut self.counts.ready_to_merge,
            BoardGroup::InReview => &mut self.counts.in_review,
            BoardGroup::Working => &mut self.counts.working,
            BoardGroup::Queued => &mut self.counts.queued,
            BoardGroup::Done => &mut self.counts.done_today,
        };
        let change: fn(usize, usize) -> usize = if is_more { usize::saturating_add } else { usize::saturating_sub };
        *count = change(*count, 1);
        if matches!(group, BoardGroup::NeedsYou | BoardGroup::ReadyToMerge) {
            self.counts.inbox = self.counts.inbox.map(|inbox| change(inbox, 1));
        }
    }

    /// The ids of rows whose agents are alive, at most so many.
    pub(crate) fn alive(&self, most: usize) -> Vec<String> {
        let alive = |id: &&str| self.rows.get(*id).is_some_and(|row| row.alive);
        self.listed().into_iter().filter(alive).take(most).map(str::to_owned).collect()
    }

    pub(crate) fn row(&self, id: &str) -> Option<&BoardRow> {
        self.rows.get(id)
    }

    /// The row that is chosen, if it is shown.
    pub(crate) fn chosen(&self) -> Option<&BoardRow> {
        self.chosen.as_ref().filter(|_| self.is_chosen_shown).and_then(|id| self.rows.get(id))
    }

    /// The next of the projects, and after the last of them all.
    pub(crate) fn next_project(&mut self) {
        let names: Vec<String> = self.projects.iter().map(|project| project.name.clone()).collect();
        let now = self.filter.project.take();
        let at = now.and_then(|now| names.iter().position(|name| *name == now)).map_or(0, |at| at + 1);
        self.filter.project = names.get(at).cloned();
        self.filtered();
    }

    /// Shows what a view shows.
    pub(crate) fn set_filter(&mut self, view: SavedView) {
        self.filter = SavedView { name: String::new(), ..view };
        self.filtered();
    }

    pub(crate) fn set_words(&mut self, words: &str) {
        self.filter.filter = words.to_owned();
        self.filtered();
    }

    /// The person wants to see other rows: one of them is chosen.
    fn filtered(&mut self) {
        self.arrange();
        let listed = self.listed();
        if !self.chosen.as_deref().is_some_and(|id| listed.contains(&id)) {
            self.chosen = listed.first().map(|id| (*id).to_owned());
            self.settle(false);
        }
    }

    pub(crate) fn fold(&mut self) {
        self.unfolded = !self.unfolded;
        self.arrange();
    }

    /// The ids of the rows that are shown, in order.
    pub(crate) fn listed(&self) -> Vec<&str> {
        self.entries.iter().filter_map(entry_id).collect()
    }

    /// Moves the choice by so many rows. From a row that is not shown any more it begins at what has come to its place.
    pub(crate) fn step(&mut self, by: isize) {
        let listed = self.listed();
        let last = listed.len().saturating_sub(1);
        let to = match self.chosen.as_ref().and_then(|id| listed.iter().position(|it| it == id)) {
            Some(at) => at.saturating_add_signed(by).min(last),
            None if by > 0 => self.place.saturating_add_signed(by - 1).min(last),
            None => self.place.saturating_add_signed(by).min(last),
        };
        self.chosen = listed.get(to).map(|id| (*id).to_owned());
        self.settle(false);
    }

    /// Chooses a row by its id, wherever it is.
    pub(crate) fn choose(&mut self, id: &str) {
        self.chosen = Some(id.to_owned());
        self.settle(false);
    }

    /// Moves the choice to the next row that waits for a person, around the end.
    pub(crate) fn next_need(&mut self) {
        let listed = self.listed();
        let at = self.chosen.as_ref().and_then(|id| listed.iter().position(|it| it == id));
        let after = at.map_or(0, |at| at + 1);
        let waits = |row: &BoardRow| matches!(row.group, BoardGroup::NeedsYou | BoardGroup::ReadyToMerge);
        let needs = |id: &&&str| self.rows.get(**id).is_some_and(waits);
        let found = listed.iter().skip(after).find(needs).or_else(|| listed.iter().find(needs));
        if let Some(id) = found.map(|id| (*id).to_owned()) {
            self.choose(&id);
        }
    }

    /// Puts the rows into the order in which they are shown.
    fn arrange(&mut self) {
        let was_empty = self.listed().is_empty();
        let mut runs: BTreeMap<&str, Vec<&BoardRow>> = BTreeMap::new();
        let mut groups: BTreeMap<BoardGroup, Vec<&BoardRow>> = BTreeMap::new();
        let is_filtered = !self.filter.shows_everything();
        let passes = |id: &&str| self.rows.get(*id).is_some_and(|row| self.filter.shows(row));
        for row in self.rows.values().filter(|row| self.filter.shows(row)) {
            // The run of a task that the filter hides stands for itself.
            match row.task.as_deref().filter(passes) {
                Some(task) => runs.entry(task).or_default().push(row),
                None => groups.entry(row.group).or_default().push(row),
            }
        }
        let mut entries = Vec::with_capacity(self.rows.len());
        for (group, mut rows) in groups {
            rows.sort_by(|a, b| a.since.cmp(&b.since).then_with(|| a.id.cmp(&b.id)));
            entries.push(BoardEntry::Head(group, rows.len()));
            if group == BoardGroup::Done {
                rows.reverse();
                if !self.unfolded && !self.filter.groups.contains(&group) {
                    continue;
                }
            }
            for row in rows {
                entries.push(BoardEntry::Row { id: row.id.clone(), nested: false });
                // What a filter asks for is shown, also where it would be folded.
                let nested = runs.get(row.id.as_str()).filter(|_| self.unfolded || is_filtered).into_iter().flatten();
                entries.extend(nested.map(|run| BoardEntry::Row { id: run.id.clone(), nested: true }));
            }
        }
        self.entries = entries;
        self.settle(was_empty);
    }

    /// Remembers where the chosen row stands. One that is not shown any more leaves nothing chosen, until the person moves or it is
    /// shown again.
    fn settle(&mut self, was_empty: bool) {
        let listed = self.listed();
        let place = self.chosen.as_deref().and_then(|id| listed.iter().position(|it| *it == id));
        let first = listed.first().filter(|_| was_empty && self.chosen.is_none()).map(|id| (*id).to_owned());
        let is_gone = self.chosen.as_ref().is_some_and(|id| !self.rows.contains_key(id));
        match (place, first) {
            (Some(place), _) => (self.place, self.is_chosen_shown) = (place, true),
            (None, Some(first)) => (self.chosen, self.place, self.is_chosen_shown) = (Some(first), 0, true),
            (None, None) if is_gone => (self.chosen, self.is_chosen_shown) = (None, false),
            (None, None) => self.is_chosen_shown = false,
        }
    }
}

fn entry_id(entry: &BoardEntry) -> Option<&str> {
    match entry {
        BoardEntry::Row { id, .. } => Some(id),
        BoardEntry::Head(..) => None,
    }
}
