//! The screens of dialogs that agent programs are known to show, and which of them stands on a terminal.
//!
//! A screen shows what was printed, whichever program printed it: what is found here may be wrong, so it raises a question
//! for a person at most. Nothing here types, and nothing concludes from a screen that an agent works.

use std::sync::LazyLock;

use serde::Deserialize;

use super::stream::HarnessFormat;

const TABLE: &str = include_str!("screens.toml");

/// Lines of a screen that are looked at, from its end; a terminal has fewer.
const MOST_LINES: usize = 500;

/// What stands in a pattern for any words of the same line.
const GAP: &str = " … ";

/// What a dialog of an agent program is about, by the words of `screens.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentDialog {
    Trust,
    Login,
    Permission,
    Question,
    Update,
    Limit,
    Network,
    Other,
}

impl AgentDialog {
    pub fn word(self) -> &'static str {
        match self {
            AgentDialog::Trust => "trust",
            AgentDialog::Login => "login",
            AgentDialog::Permission => "permission",
            AgentDialog::Question => "question",
            AgentDialog::Update => "update",
            AgentDialog::Limit => "limit",
            AgentDialog::Network => "network",
            AgentDialog::Other => "other",
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScreenTable {
    screen: Vec<ScreenRow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScreenRow {
    programs: Vec<HarnessFormat>,
    what: AgentDialog,
    /// Each stands on some line.
    all: Vec<String>,
    /// None of them stands on any line.
    #[serde(default)]
    none: Vec<String>,
}

static ROWS: LazyLock<ScreenTable> =
    LazyLock::new(|| toml::from_str(TABLE).expect("the table of screens is ours and is tested"));

/// A dialog that seems to stand on a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownDialog {
    pub what: AgentDialog,
    /// The line by which it was known.
    pub line: String,
}

impl ShownDialog {
    /// The dialog of a program that stands on a screen, if it is known.
    pub fn find(format: HarnessFormat, screen: &str) -> Option<ShownDialog> {
        let mut lines: Vec<&str> = screen.lines().rev().take(MOST_LINES).map(bare).collect();
        lines.reverse();
        let line_with = |wanted: &String| lines.iter().find(|line| fits(line, wanted));
        ROWS.screen.iter().filter(|row| row.programs.contains(&format)).find_map(|row| {
            let is_there = row.all.iter().all(|wanted| line_with(wanted).is_some());
            let is_excluded = row.none.iter().any(|unwanted| line_with(unwanted).is_some());
            let line = row.all.first().and_then(line_with)?;
            (is_there && !is_excluded).then(|| ShownDialog { what: row.what, line: (*line).to_owned() })
        })
    }

    /// Whether screens of this program are known.
    pub fn are_known(format: HarnessFormat) -> bool {
        ROWS.screen.iter().any(|row| row.programs.contains(&format))
    }
}

/// Whether a line holds these words. Between words that a gap separates anything may stand.
fn fits(line: &str, wanted: &str) -> bool {
    let after = |rest: &str, part: &str| rest.find(part).map(|at| at + part.len());
    wanted.split(GAP).try_fold(line, |rest, part| after(rest, part).and_then(|at| rest.get(at..))).is_some()
}

/// A line without the frame that is drawn around it.
fn bare(line: &str) -> &str {
    line.trim_matches(|it: char| it.is_whitespace() || ('\u{2500}'..='\u{259f}').contains(&it))
}
