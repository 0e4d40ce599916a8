//! `/`: what needs a person, as cards with buttons, and the board by whose turn it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use sluice_api::Problem;
use sluice_api::attention::Attention;
use sluice_api::board::{Board, BoardGroup, BoardRow, BoardRowKind, SavedView};

use super::asked;
use super::frame::{Frame, page};
use super::reply::{as_html, bare_problem, harmless};
use super::views::{ViewsShown, filter_of};
use super::wording::{ago, counted, cut, escape, group, scrolls, spoken, used};
use crate::app::App;

/// The most rows of a group that the page shows; the rest is counted, and found by the filter.
const MOST_ROWS: usize = 100;
/// The most cards of what waits; the rest is counted.
const MOST_CARDS: usize = 50;
/// The most letters of a text that a card shows.
const LONGEST_TEXT: usize = 2000;
/// The most letters of a line on the board.
const LONGEST_LINE: usize = 200;
/// The most lines of evidence on a card.
const MOST_LINES: usize = 12;

/// Options that end the work.
const GRAVE: [&str; 3] = ["cancel", "abort", "delete"];

/// The groups of the board, in the order of the page: whose turn it is, then what goes on by itself.
const GROUPS: [BoardGroup; 6] = [
    BoardGroup::NeedsYou,
    BoardGroup::ReadyToMerge,
    BoardGroup::InReview,
    BoardGroup::Working,
    BoardGroup::Queued,
    BoardGroup::Done,
];

#[derive(Template)]
#[template(path = "board.html")]
pub(super) struct BoardPage {
    frame: Frame,
    views: ViewsShown,
    cards: Vec<AttentionCard>,
    more_cards: usize,
    groups: Vec<GroupShown>,
    projects: Vec<ProjectChoice>,
    words: String,
    is_columns: bool,
    other_view: String,
    is_empty: bool,
    is_filtered: bool,
    today: String,
    working: usize,
    queued: usize,
    notes: Vec<String>,
    every_project: String,
}

/// A card of the inbox: a question with its buttons.
pub(super) struct AttentionCard {
    pub(super) id: String,
    /// The id of the card in the page.
    pub(super) anchor: String,
    pub(super) title: String,
    pub(super) link: String,
    pub(super) project: String,
    pub(super) reason: String,
    pub(super) text: String,
    pub(super) lines: Vec<String>,
    pub(super) options: Vec<OptionShown>,
    pub(super) since: String,
    pub(super) age: String,
    pub(super) deadline: Option<String>,
    pub(super) is_perhaps: bool,
    /// One of the options needs words.
    pub(super) must_say: bool,
}

pub(super) struct OptionShown {
    pub(super) word: String,
    pub(super) label: String,
    /// The first is what a person most often wants.
    pub(super) is_first: bool,
    /// What cannot be taken back is asked twice.
    pub(super) is_grave: bool,
}

struct GroupShown {
    word: &'static str,
    title: &'static str,
    count: usize,
    rows: Vec<RowShown>,
    more: usize,
    is_open: bool,
}

struct RowShown {
    anchor: String,
    link: String,
    name: String,
    glyph: &'static str,
    said: &'static str,
    project: String,
    status: String,
    text: String,
    program: String,
    used: String,
    since: String,
    age: String,
    bars: Vec<(usize, u8)>,
    size: String,
}

struct ProjectChoice {
    name: String,
    link: String,
    is_chosen: bool,
    pool: String,
}

/// Answers `GET /` of a browser.
pub(super) async fn show(State(app): State<Arc<App>>, frame: Frame) -> Response {
    match frame.shared_part() {
        // The views are those of a file, and not of the board.
        Some(key) if !frame.wants("views") => show_part(&app, frame, key).await,
        Some(_) | None => show_whole(&app, frame).await,
    }
}

/// A whole page is always made anew: what a form has just done must be on it. Hints tell of what comes later.
async fn show_whole(app: &Arc<App>, frame: Frame) -> Response {
    let project = frame.query.get("project").map(str::to_owned);
    let (shared, news) = (app.clone(), *app.news().borrow());
    let answer = asked(app, frame.visitor.who(), move |service, _| {
        Ok((shared.boards.get(service, project, news, false)?, service.views()))
    });
    match answer.await {
        Ok((made, saved)) => {
            let mut shown = BoardPage::new(frame, &made.board, &made.attention);
            match saved {
                Ok(saved) => shown.views = ViewsShown::new(saved, &shown.frame.query),
                // Views that cannot be read are no reason to show no board.
                Err(problem) => shown.notes.push(problem.message),
            }
            page(Ok(shown))
        }
        Err(problem) => page::<BoardPage>(Err((frame, problem))),
    }
}

/// Parts of the page, which all windows ask for at once when something happens: they are made once for all that show the
/// same.
async fn show_part(app: &Arc<App>, frame: Frame, key: String) -> Response {
    let (project, takes_gzip) = (frame.query.get("project").map(str::to_owned), frame.takes_gzip);
    let (shared, news, who) = (app.clone(), *app.news().borrow(), frame.visitor.who().clone());
    let answer = asked(app, &who, move |service, _| {
        shared.boards.get(service, project, news, true)?.part(key, |made| {
            let text = BoardPage::new(frame, &made.board, &made.attention).render();
            text.map(harmless).map_err(|error| Problem::fault(format!("the page cannot be rendered: {error}")))
        })
    });
    match answer.await {
        Ok(part) if takes_gzip => {
            let mut response = as_html(part.zipped.into_response());
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        }
        Ok(part) => as_html(part.text.into_response()),
        Err(problem) => bare_problem(&problem),
    }
}

impl BoardPage {
    fn new(mut frame: Frame, board: &Board, attention: &[Attention]) -> BoardPage {
        let now = board.engine.now.parse().unwrap_or_else(|_| Timestamp::now());
        let needs = board.counts.needs_you;
        frame = frame.titled(if needs > 0 { format!("({needs}) Board") } else { "Board".to_owned() }, "board");
        frame.cursor = board.cursor;
        let view = filter_of(&frame.query);
        let SavedView { project, groups: only, filter, .. } = view.clone();
        let words = cut(&filter, LONGEST_LINE);
        let is_columns = frame.query.get("view") == Some("columns");
        let is_filtered = !words.is_empty() || project.is_some() || !only.is_empty();
        let cards: Vec<&Attention> = attention
            .iter()
            .filter(|it| project.is_none() || it.project == project)
            .filter(|it| fits(&words, &[&it.title, &it.text, it.project.as_deref().unwrap_or_default()]))
            .collect();
        let more_cards = cards.len().saturating_sub(MOST_CARDS);
        let is_empty = board.rows.is_empty() && cards.is_empty() && !is_filtered;
        let projects = projects(&frame, board, project.as_deref());
        let mut groups = groups(board, &view, now);
        groups.retain(|group| only.is_empty() || only.iter().any(|only| only.word() == group.word));
        BoardPage {
            cards: cards.into_iter().take(MOST_CARDS).map(|it| AttentionCard::new(it.clone(), now)).collect(),
            more_cards,
            views: ViewsShown::default(),
            groups,
            projects,
            is_columns,
            other_view: frame.query.with("/", "view", (!is_columns).then_some("columns")),
            every_project: frame.query.with("/", "project", None),
            is_empty,
            is_filtered,
            today: used(&board.today),
            working: board.counts.working + board.counts.in_review,
            queued: board.counts.queued,
            notes: board.cut.iter().cloned().collect(),
            words,
            frame,
        }
    }
}

fn projects(frame: &Frame, board: &Board, chosen: Option<&str>) -> Vec<ProjectChoice> {
    let shown = |project: &sluice_api::board::BoardProject| ProjectChoice {
        link: frame.query.with("/", "project", Some(&project.name)),
        is_chosen: chosen == Some(project.name.as_str()),
        pool: format!("{}/{}", project.used, project.pool_size),
        name: project.name.clone(),
    };
    board.projects.iter().map(shown).collect()
}

/// Whether every word stands in one of these texts.
fn fits(words: &str, texts: &[&str]) -> bool {
    let has = |word: &str| texts.iter().any(|text| text.to_lowercase().contains(&word.to_lowercase()));
    words.split_whitespace().all(has)
}

fn groups(board: &Board, view: &SavedView, now: Timestamp) -> Vec<GroupShown> {
    let mut rows: BTreeMap<&str, Vec<&BoardRow>> = BTreeMap::new();
    for row in board.rows.iter().filter(|row| view.shows(row)) {
        rows.entry(row.group.word()).or_default().push(row);
    }
    let shown = |it: BoardGroup| {
        let rows = rows.remove(it.word()).unwrap_or_default();
        GroupShown {
            word: it.word(),
            title: group(it),
            count: rows.len(),
            more: rows.len().saturating_sub(MOST_ROWS),
            is_open: it != BoardGroup::Done,
            rows: rows.into_iter().take(MOST_ROWS).map(|row| RowShown::new(row, now)).collect(),
        }
    };
    GROUPS.into_iter().map(shown).collect()
}

impl AttentionCard {
    pub(super) fn new(it: Attention, now: Timestamp) -> AttentionCard {
        let link = match (&it.task, &it.run) {
            (Some(task), _) => format!("/tasks/{}", escape(task)),
            (None, Some(run)) => format!("/runs/{}", escape(run)),
            (None, None) => "/settings".to_owned(),
        };
        // Both are the end of what was printed; the first has it in lines already.
        let printed = it.printed.as_deref().filter(|_| it.evidence.is_empty()).unwrap_or_default();
        let printed = printed.lines().map(str::to_owned);
        let lines: Vec<String> = it.evidence.into_iter().chain(printed).map(|line| cut(&line, LONGEST_LINE)).collect();
        let first = lines.len().saturating_sub(MOST_LINES);
        let deadline = it.deadline.as_deref().zip(it.default.as_deref());
        AttentionCard {
            anchor: format!("card-{}", escape(&it.id)),
            link,
            project: it.project.unwrap_or_default(),
            reason: spoken(it.reason.word()),
            text: cut(&it.text, LONGEST_TEXT),
            lines: lines.into_iter().skip(first).collect(),
            must_say: it.options.iter().any(|option| option == "request-changes"),
            options: options(it.options),
            age: ago(&it.since, now),
            since: it.since,
            deadline: deadline
                .map(|(at, answer)| format!("`{answer}` is taken at {} (UTC)", super::wording::clock(at))),
            is_perhaps: it.said_by == sluice_api::attention::AttentionSource::Screen,
            title: cut(&it.title, LONGEST_LINE),
            id: it.id,
        }
    }
}

pub(super) fn options(words: Vec<String>) -> Vec<OptionShown> {
    let shown = |(index, word): (usize, String)| {
        let is_grave = GRAVE.contains(&word.as_str());
        OptionShown { label: spoken(&word), word, is_first: index == 0 && !is_grave, is_grave }
    };
    words.into_iter().enumerate().map(shown).collect()
}

impl RowShown {
    fn new(row: &BoardRow, now: Timestamp) -> RowShown {
        let (kind, link) = match row.kind {
            BoardRowKind::Task => ("task", format!("/tasks/{}", escape(&row.id))),
            BoardRowKind::Run => ("run", format!("/runs/{}", escape(&row.id))),
        };
        let (glyph, said) = glyph(row);
        let round = row.round.map(|round| match round.bound {
            Some(bound) => format!(" {}/{bound}", round.round),
            None => format!(" {}", round.round),
        });
        let program = [row.harness.as_deref(), row.model.as_deref()].into_iter().flatten().collect::<Vec<_>>();
        let size = row.diff.map(|size| format!("+{} −{}, {}", size.added, size.removed, counted(size.files, "file")));
        RowShown {
            anchor: format!("row-{kind}-{}", escape(&row.id)),
            link,
            glyph,
            said,
            name: cut(&row.name, LONGEST_LINE),
            project: row.project.clone().unwrap_or_default(),
            status: format!("{}{}", row.status, round.unwrap_or_default()),
            text: cut(if row.text.is_empty() { &row.summary } else { &row.text }, LONGEST_LINE),
            program: program.join(" "),
            used: row.usage.as_ref().map(used).unwrap_or_default(),
            age: ago(&row.since, now),
            since: row.since.clone(),
            bars: row.activity.iter().enumerate().map(|(place, height)| (place * 4, (*height).clamp(1, 8))).collect(),
            size: size.unwrap_or_default(),
        }
    }
}

/// The shape says whether something is alive, and a word says it to those who do not see it.
fn glyph(row: &BoardRow) -> (&'static str, &'static str) {
    match (row.group, row.alive) {
        (BoardGroup::NeedsYou, _) => ("▲", "needs you"),
        (BoardGroup::ReadyToMerge, _) => ("◆", "ready"),
        (BoardGroup::Done, _) => ("✓", "done"),
        (BoardGroup::Queued, _) => ("◌", "queued"),
        (BoardGroup::InReview | BoardGroup::Working, true) => ("●", "alive"),
        (BoardGroup::InReview | BoardGroup::Working, false) => ("○", "no agent"),
    }
}

#[cfg(test)]
mod tests {
    use sluice_api::attention::{AttentionCause, AttentionKind, AttentionSource};
    use sluice_api::board::{BoardCounts, BoardEngine, BoardProject, BoardRound, DiffSize};
    use sluice_api::usage::UsageSum;

    use super::*;

    const HOSTILE: &str = "<script>alert(1)</script>\" onmouseover=\"x \u{202e}rtl";

    fn attention(id: &str, options: &[&str]) -> Attention {
        Attention {
            id: format!("{id}/1"),
            kind: AttentionKind::Task,
            reason: AttentionCause::Review,
            task: Some(id.to_owned()),
            run: None,
            step: None,
            recipe: None,
            project: Some("coffee".to_owned()),
            title: HOSTILE.to_owned(),
            text: "the work is ready".to_owned(),
            since: "2026-11-18T11:56:00.000Z".to_owned(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            default: None,
            deadline: None,
            evidence: vec!["$ cargo test".to_owned(), HOSTILE.to_owned()],
            exit_code: None,
            printed: None,
            said_by: AttentionSource::Engine,
        }
    }

    fn row(id: &str, group: BoardGroup) -> BoardRow {
        BoardRow {
            kind: BoardRowKind::Task,
            id: id.to_owned(),
            name: "latte".to_owned(),
            summary: HOSTILE.to_owned(),
            project: Some("coffee".to_owned()),
            workflow: "default".to_owned(),
            group,
            status: "working".to_owned(),
            round: Some(BoardRound { round: 1, bound: Some(2) }),
            attention: None,
            text: String::new(),
            alive: true,
            harness: Some("claude".to_owned()),
            model: None,
            activity: vec![0, 3, 8],
            usage: Some(UsageSum { total_tokens: Some(38_000), cost_usd: Some(0.21), ..UsageSum::default() }),
            since: "2026-11-18T11:00:00.000Z".to_owned(),
            task: None,
            run: None,
            step: None,
            pr_url: None,
            diff: Some(DiffSize { files: 4, added: 120, removed: 8 }),
            actions: Vec::new(),
        }
    }

    fn board(rows: Vec<BoardRow>) -> Board {
        Board {
            engine: BoardEngine {
                version: "0.1.0".to_owned(),
                started_at: "2026-11-18T10:00:00.000Z".to_owned(),
                now: "2026-11-18T12:00:00.000Z".to_owned(),
            },
            cursor: 42,
            counts: BoardCounts { needs_you: 1, working: 1, ..BoardCounts::default() },
            projects: vec![BoardProject {
                name: "coffee".to_owned(),
                pool_size: 4,
                used: 1,
                waiting: Vec::new(),
                waiting_count: 0,
            }],
            today: UsageSum::default(),
            home: Vec::new(),
            rows,
            left_out: 0,
            cut: None,
        }
    }

    fn rendered(may_act: bool, query: &[(&str, &str)], board: Board, attention: Vec<Attention>) -> String {
        let frame = Frame::sample(may_act, query, &["inbox", "board"]);
        BoardPage::new(frame, &board, &attention).render().expect("it renders")
    }

    #[test]
    fn a_board_with_a_card_and_a_row() {
        let rows = vec![row("k3f9", BoardGroup::Working)];
        let page = rendered(true, &[], board(rows), vec![attention("k3f9", &["approve", "request-changes"])]);
        assert!(!page.contains("<script") && !page.contains("\" onmouseover"), "{page}");
        insta::assert_snapshot!(page);
    }

    #[test]
    fn a_reader_sees_the_same_without_a_form() {
        let page = rendered(false, &[], board(Vec::new()), vec![attention("k3f9", &["approve"])]);
        assert!(!page.contains("<form") && !page.contains("<button"), "{page}");
        assert!(page.contains("the work is ready"), "{page}");
    }

    #[test]
    fn an_empty_board_teaches_and_a_filter_says_that_it_hides() {
        let empty = Board { counts: BoardCounts::default(), projects: Vec::new(), ..board(Vec::new()) };
        let page = rendered(true, &[], empty.clone(), Vec::new());
        assert!(page.contains("sluice task create"), "{page}");
        let page = rendered(true, &[("q", "mocha")], board(vec![row("k", BoardGroup::Working)]), Vec::new());
        assert!(!page.contains("row-task-k") && page.contains("The filter may hide something"), "{page}");
    }

    #[test]
    fn a_long_group_is_cut_and_says_so() {
        let rows = (0..MOST_ROWS + 5).map(|number| row(&format!("t{number}"), BoardGroup::Queued)).collect();
        let page = rendered(true, &[], board(rows), Vec::new());
        assert_eq!(page.matches("<li id=").count(), MOST_ROWS);
        assert!(page.contains("5 more: narrow the board"), "{page}");
    }
}
