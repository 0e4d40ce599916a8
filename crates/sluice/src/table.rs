//! Tables for people: a line for each thing, a word above each column, and nothing that breaks a line.

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};

use crate::output;

/// Longer texts are cut in a table; a person who wants all of it shows the thing itself.
const LONGEST: usize = 60;

pub(crate) fn print(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(heads.iter().map(|head| head.to_uppercase()));
    for row in rows {
        table.add_row(row.iter().map(|text| line(text, LONGEST)));
    }
    let lines: String = table.to_string().lines().map(|line| format!("{}\n", line.trim_end())).collect();
    output::print(&lines);
}

/// The same, or this where there are no rows.
pub(crate) fn print_or(none: &str, heads: &[&str], rows: impl ExactSizeIterator<Item = Vec<String>>) {
    if rows.len() == 0 { output::say(none) } else { print(heads, rows) }
}

/// A text on one line, cut where it is too long; control letters do nothing to the terminal.
pub(crate) fn line(text: &str, longest: usize) -> String {
    let clean: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    match clean.char_indices().nth(longest) {
        None => clean,
        Some(_) => clean.chars().take(longest.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// That there is nothing to show of what is open, and how much has ended.
pub(crate) fn none(what: &str, ended: usize, and_more: bool, way: &str) -> String {
    match (ended, and_more) {
        (0, false) => format!("no {what}s; {way}"),
        (1, false) => format!("no open {what}s, and 1 that has ended: `sluice {what} list --all` shows it"),
        (ended, false) => {
            format!("no open {what}s, and {ended} that have ended: `sluice {what} list --all` shows them")
        }
        (ended, true) => {
            format!("no open {what}s, and more than {ended} that have ended: `sluice {what} list --all` shows them")
        }
    }
}
