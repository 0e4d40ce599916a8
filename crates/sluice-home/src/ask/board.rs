//! The board: every open task and run in one answer, with what has ended today, and single rows of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use sluice_api::attention::Attention;
use sluice_api::board::{
    BOARD_DONE_ROWS, BOARD_IDS, BOARD_ROWS, Board, BoardCounts, BoardEngine, BoardGroup, BoardProject, BoardRow,
    BoardRows,
};
use sluice_api::problem::Problem;
use sluice_core::task::state::TaskAttention;
use sluice_engine::host::EngineClock;
use sluice_engine::run_actor::RunActor;
use sluice_engine::task_actor::TaskActor;
use sluice_store::{Cursor, Query};

use super::Service;
use crate::home::attention::of_home;
use crate::home::daybook::day_of;
use crate::home::ended::{EndedCounts, EndedSubject};
use crate::home::rows::RowMaker;
use crate::home::sizes::ChangeSizes;
use crate::read::runs::{self, RunSnapshot};
use crate::read::tasks::{self, TaskSnapshot, had};
use crate::read::usage::UsageTally;
use crate::settings::clock::written;
use crate::settings::projects::shown;

/// Cards of runs that are read at a time.
const CARDS_AT_A_TIME: usize = 1000;
/// Tasks that a project names as waiting for a worktree.
const WAITING_NAMED: usize = 100;
/// Changes that are measured for one answer, before it is given.
const MEASURED: usize = 8;

/// What is known of a day when a board is made.
struct BoardDay {
    cursor: Cursor,
    ended: EndedCounts,
    newest: Vec<EndedSubject>,
    today: UsageTally,
}

impl Service {
    /// What every task and run does now, of one project or of all.
    pub fn board(&self, project: Option<&str>) -> Result<Board, Problem> {
        project.map_or(Ok(()), |project| self.home.projects.get(project).map(drop))?;
        let day = self.home.daybook.look(&self.home, |pages, cursor| BoardDay {
            cursor,
            ended: pages.ended.counts(project),
            newest: pages.ended.newest(project),
            today: pages.used_today(project),
        })?;
        let used = |id: &str| self.home.daybook.used(id);
        let maker = RowMaker::new(&self.home);
        let (tasks, runs) = self.open_work(project, &maker)?;
        ChangeSizes::look_later(&self.home, in_review(&tasks));
        let projects = self.board_projects(project, &tasks);
        let mut rows: Vec<BoardRow> = tasks.iter().map(|seen| maker.task(seen, used(seen.id.as_str()))).collect();
        rows.extend(runs.iter().map(|seen| maker.run(seen, used(seen.id.as_str()))));
        rows.sort_by(|one, other| (one.group, &one.since, &one.id).cmp(&(other.group, &other.since, &other.id)));
        let counts = BoardCounts { inbox: Some(self.inbox_count(project)?), ..counts(&rows, day.ended) };
        let all = rows.len() + day.ended.all;
        let ended = day.newest.iter().map(|seen| match seen {
            EndedSubject::Task(seen) => maker.task(seen, used(seen.id.as_str())),
            EndedSubject::Run(seen) => maker.run(seen, used(seen.id.as_str())),
        });
        // Those that wait for a person stand first, and are never left out.
        let asking = rows.iter().take_while(|row| waits(row)).count();
        rows.truncate(BOARD_ROWS.max(asking));
        rows.extend(ended.take(BOARD_ROWS.saturating_sub(rows.len())));
        let left_out = all - rows.len();
        Ok(Board {
            engine: self.board_engine(),
            cursor: day.cursor.0,
            counts,
            projects,
            today: day.today.shown(),
            home: self.home_attention(),
            left_out,
            cut: (left_out > 0).then(|| {
                format!(
                    "{left_out} rows are not shown: a board has at most {BOARD_ROWS}, and {BOARD_DONE_ROWS} of what has \
                     ended today; ask for one project, or list tasks and runs in pages"
                )
            }),
            rows,
        })
    }

    /// Single rows of the board, as they are now.
    pub fn board_rows(&self, ids: &[String]) -> Result<BoardRows, Problem> {
        if ids.is_empty() || ids.len() > BOARD_IDS {
            let message = format!("1 to {BOARD_IDS} rows can be asked for, not {}", ids.len());
            return Err(Problem::bad_request(message).hint("`id=ID,ID` names them; `/v1/board` has all of them"));
        }
        let cursor = self.home.daybook.look(&self.home, |_, cursor| cursor)?;
        let maker = RowMaker::new(&self.home);
        let (mut rows, mut gone, mut measured) = (Vec::new(), Vec::new(), 0);
        for id in ids {
            match self.board_row(&maker, id, &mut measured)? {
                Some(row) => rows.push(row),
                None => gone.push(shown(id)),
            }
        }
        Ok(BoardRows { cursor: cursor.0, rows, gone })
    }

    fn board_row(&self, maker: &RowMaker<'_>, id: &str, measured: &mut usize) -> Result<Option<BoardRow>, Problem> {
        let today = day_of(self.home.clock.now().0);
        let task = id.parse().map_or(Ok(None), |id| {
            let read = self.home.tasks.since(&id, 0);
            self.home.tasks.unless_damaged(&tasks::stream(&id), read)
        })?;
        if let Some(seen) = task.filter(|seen| seen.card.status != TaskActor::DELETED) {
            if is_reviewed(&seen) && *measured < MEASURED {
                *measured += 1;
                self.home.sizes.look(&self.home, &seen);
            }
            let is_on_it = seen.card.open || seen.state.visit.since.0 >= today;
            return Ok(is_on_it.then(|| maker.task(&seen, self.home.daybook.used(id))));
        }
        let run = id.parse().map_or(Ok(None), |id| {
            let read = self.home.tasks.load_run(&id);
            self.home.tasks.unless_damaged(&runs::stream(&id), read)
        })?;
        let run = run.filter(|seen| seen.card.status != RunActor::DELETED);
        let run = run.filter(|seen| seen.card.open || seen.card.updated >= today);
        Ok(run.map(|seen| maker.run(&seen, self.home.daybook.used(id))))
    }

    /// How many things the inbox has, of one project or of all: every face that counts what needs a person tells this.
    fn inbox_count(&self, project: Option<&str>) -> Result<usize, Problem> {
        let is_of = |it: &Attention| project.is_none_or(|project| it.project.as_deref() == Some(project));
        Ok(self.attention()?.into_iter().filter(is_of).count())
    }

    /// The open tasks and runs, of one project or of all.
    fn open_work(
        &self,
        project: Option<&str>,
        maker: &RowMaker<'_>,
    ) -> Result<(Vec<Arc<TaskSnapshot>>, Vec<RunSnapshot>), Problem> {
        let mut tasks = self.home.tasks.open();
        tasks.retain(|seen| project.is_none_or(|project| seen.state.about.project == project));
        let kind = Some(RunActor::KIND.into());
        let query = Query { kind, open: Some(true), limit: CARDS_AT_A_TIME, ..Query::default() };
        let mut found = Vec::new();
        self.home.tasks.walk(query, |summary| {
            let Some(id) = runs::id_of(&summary.stream) else { return Ok(true) };
            let read = self.home.tasks.run_of(&id, &summary);
            let seen = self.home.tasks.unless_damaged(&summary.stream, read)?;
            // A run whose last effects are being settled has ended, and is shown with those.
            let is_wanted =
                |seen: &RunSnapshot| project.is_none_or(|project| maker.project_of(seen).as_deref() == Some(project));
            found.extend(seen.filter(|seen| seen.card.open && is_wanted(seen)));
            Ok(true)
        })?;
        Ok((tasks, found))
    }

    /// The pools of one project or of all.
    pub(super) fn board_projects(&self, project: Option<&str>, tasks: &[Arc<TaskSnapshot>]) -> Vec<BoardProject> {
        let mut used: BTreeMap<&str, usize> = BTreeMap::new();
        for seen in tasks.iter().filter(|seen| had(&seen.state.workspace).is_some()) {
            *used.entry(&seen.state.about.project).or_default() += 1;
        }
        let mut waiting: BTreeMap<String, Vec<(i64, String)>> = BTreeMap::new();
        for seen in self.home.tasks.waiting() {
            let since = seen.state.attention.as_ref().map_or(seen.card.created, |raised| raised.since.0);
            waiting.entry(seen.state.about.project.clone()).or_default().push((since, seen.id.to_string()));
        }
        let all = self.home.projects.list().into_iter();
        let wanted = all.filter(|it| project.is_none_or(|project| it.name == project));
        let pool = |it: sluice_api::project::Project| {
            let mut of_it = waiting.remove(&it.name).unwrap_or_default();
            of_it.sort();
            BoardProject {
                pool_size: it.pool_size,
                used: used.get(it.name.as_str()).copied().unwrap_or_default(),
                waiting_count: of_it.len(),
                waiting: of_it.into_iter().take(WAITING_NAMED).map(|(_, id)| id).collect(),
                name: it.name,
            }
        };
        let mut projects: Vec<BoardProject> = wanted.map(pool).collect();
        projects.sort_by(|one, other| one.name.cmp(&other.name));
        projects
    }

    fn board_engine(&self) -> BoardEngine {
        BoardEngine {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: written(self.home.began),
            now: written(self.home.clock.now().0),
        }
    }

    fn home_attention(&self) -> Vec<Attention> {
        of_home(&self.home, &self.faults(), None)
    }
}

/// Whether a row waits for a person.
fn waits(row: &BoardRow) -> bool {
    match row.group {
        BoardGroup::NeedsYou | BoardGroup::ReadyToMerge => true,
        BoardGroup::InReview | BoardGroup::Working | BoardGroup::Queued | BoardGroup::Done => false,
    }
}

fn is_reviewed(seen: &TaskSnapshot) -> bool {
    seen.state.raised(&seen.lifecycle).is_some_and(|raised| raised.why == TaskAttention::Review)
}

fn in_review(tasks: &[Arc<TaskSnapshot>]) -> Vec<Arc<TaskSnapshot>> {
    tasks.iter().filter(|seen| is_reviewed(seen)).cloned().collect()
}

fn counts(rows: &[BoardRow], ended: EndedCounts) -> BoardCounts {
    let mut counts = BoardCounts::default();
    for row in rows {
        let count = match row.group {
            BoardGroup::NeedsYou => &mut counts.needs_you,
            BoardGroup::ReadyToMerge => &mut counts.ready_to_merge,
            BoardGroup::InReview => &mut counts.in_review,
            BoardGroup::Working => &mut counts.working,
            BoardGroup::Queued => &mut counts.queued,
            // It ends at this moment, and is counted when it has.
            BoardGroup::Done => continue,
        };
        *count += 1;
    }
    BoardCounts { done_today: ended.all, merged_today: ended.merged, cancelled_today: ended.cancelled, ..counts }
}
