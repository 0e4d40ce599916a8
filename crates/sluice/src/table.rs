//! Tables for people: a line for each thing, a word above each column, and nothing that breaks a line.

use std::io::IsTerminal;

use anstyle::Style;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use jiff::Timestamp;

use crate::output;

/// Longer texts are cut in a table; a person who wants all of it shows the thing itself.
const LONGEST: usize = 60;
/// The narrowest that a column is made so that a table fits its terminal, and the narrowest terminal that it is made for.
const NARROWEST: usize = 6;
const NARROW: usize = 20;
/// What stands around each cell.
const PADDING: usize = 2;

pub(crate) fn print(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    print_coloured(heads, "", rows.into_iter().map(|row| (Style::new(), row)));
}

/// The same, with the cells of one column in the colour of their row.
pub(crate) fn print_coloured(heads: &[&str], column: &str, rows: impl IntoIterator<Item = (Style, Vec<String>)>) {
    let (styles, rows): (Vec<Style>, Vec<Vec<String>>) = rows.into_iter().unzip();
    let coloured = heads.iter().position(|head| *head == column).map(|at| (at, styles.as_slice()));
    output::print_coloured(&laid_out(heads, &rows, width(), coloured));
}

/// How wide a table may be: what `COLUMNS` says, else the terminal. What goes into a file is as wide as it is.
pub(crate) fn width() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse::<usize>().ok());
    let stdout = std::io::stdout();
    let terminal = || terminal_size::terminal_size_of(&stdout).filter(|_| stdout.is_terminal());
    said.or_else(|| terminal().map(|(width, _)| usize::from(width.0))).map(|width| width.max(NARROW))
}

fn laid_out(heads: &[&str], rows: &[Vec<String>], most: Option<usize>, coloured: Option<(usize, &[Style])>) -> String {
    let heads: Vec<String> = heads.iter().map(|head| head.to_uppercase()).collect();
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|text| line(&output::harmless(text), LONGEST)).collect()).collect();
    let widths = widths(&heads, &rows, most);
    let cut = |row: &Vec<String>| -> Vec<String> {
        row.iter().zip(&widths).map(|(text, width)| line(text, *width)).collect()
    };
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(cut(&heads));
    table.add_rows(rows.iter().map(cut));
    let text = table.to_string();
    // Where the text of a column begins in a line, after the padding of all columns up to it.
    let begins = |at: usize| widths[..at].iter().map(|width| width + PADDING).sum::<usize>() + 1;
    let mut shown = String::new();
    for (index, plain) in text.lines().enumerate() {
        let plain = plain.trim_end();
        let style = coloured.and_then(|(at, styles)| Some((at, *styles.get(index.checked_sub(1)?)?)));
        let word = style.and_then(|(at, _)| cut(&rows[index - 1]).into_iter().nth(at)).unwrap_or_default();
        let place = style.and_then(|(at, _)| plain.char_indices().nth(begins(at))).map(|(place, _)| place);
        // Letters that are wider than one column move what stands behind them; then it stays without its colour.
        match (style, place.filter(|place| !word.is_empty() && plain[*place..].starts_with(&word))) {
            (Some((_, style)), Some(place)) => {
                let (before, after) = (&plain[..place], &plain[place + word.len()..]);
                shown.push_str(&format!("{before}{style}{word}{style:#}{after}\n"));
            }
            (Some(_) | None, _) => shown.push_str(&format!("{plain}\n")),
        }
    }
    shown
}

/// The width of each column; the widest give way until all of them fit.
fn widths(heads: &[String], rows: &[Vec<String>], most: Option<usize>) -> Vec<usize> {
    let longest = |at: usize| {
        let texts = rows.iter().filter_map(|row| row.get(at)).chain(heads.get(at));
        texts.map(|text| text.chars().count()).max().unwrap_or_default()
    };
    let mut widths: Vec<usize> = (0..heads.len()).map(longest).collect();
    let Some(most) = most else { return widths };
    while widths.iter().map(|width| width + PADDING).sum::<usize>() > most {
        match widths.iter_mut().max() {
            Some(widest) if *widest > NARROWEST => *widest -= 1,
            Some(_) | None => break,
        }
    }
    widths
}

/// How long ago something was, in one number: `12s`, `4m`, `2h`, `3d`.
pub(crate) fn ago(time: &str) -> String {
    time.parse::<Timestamp>()
        .map_or_else(|_| time.to_owned(), |then| since(Timestamp::now().as_second() - then.as_second()))
}

fn since(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
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

/// A text in lines of this width, each behind the indent, broken between words; one line where there is no width.
pub(crate) fn wrapped(text: &str, width: Option<usize>, indent: &str) -> Vec<String> {
    let most = width.map_or(usize::MAX, |width| width.saturating_sub(indent.len()).max(NARROW));
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        let used = line.chars().count();
        if used > 0 && used + 1 + word.chars().count() > most {
            lines.push(word.to_owned());
        } else {
            line.push_str(if used > 0 { " " } else { "" });
            line.push_str(word);
        }
    }
    lines.into_iter().map(|line| format!("{indent}{line}")).collect()
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

#[cfg(test)]
mod tests {
    use anstyle::{AnsiColor, Style};

    use super::{laid_out, since, wrapped};

    #[test]
    fn a_long_text_is_broken_between_words() {
        assert_eq!(wrapped("one two  three", None, "  "), ["  one two three"]);
        let lines = wrapped("it waits for a person who reads it at a terminal", Some(26), "  ");
        assert_eq!(lines, ["  it waits for a person", "  who reads it at a", "  terminal"]);
        assert_eq!(wrapped("", Some(30), "> "), ["> "]);
    }

    #[test]
    fn a_table_fits_and_never_wraps() {
        let rows = [vec!["k3f9".to_owned(), "reviewing".to_owned(), "a summary that is long, and longer".to_owned()]];
        let heads = ["id", "status", "summary"];
        let wide = laid_out(&heads, &rows, None, None);
        assert_eq!(wide, " ID    STATUS     SUMMARY\n k3f9  reviewing  a summary that is long, and longer\n");
        let narrow = laid_out(&heads, &rows, Some(40), None);
        assert_eq!(narrow, " ID    STATUS     SUMMARY\n k3f9  reviewing  a summary that is lo…\n");
        assert!(narrow.lines().all(|line| line.chars().count() <= 40));
        let tiny = laid_out(&heads, &rows, Some(20), None);
        assert!(tiny.lines().count() == 2 && tiny.contains("k3f9"), "{tiny}");
    }

    #[test]
    fn one_column_is_coloured_and_nothing_else() {
        let rows = [vec!["x".to_owned(), "held".to_owned()], vec!["held".to_owned(), "done".to_owned()]];
        let styles = [AnsiColor::Yellow.on_default(), Style::new()];
        let text = laid_out(&["id", "status"], &rows, None, Some((1, &styles)));
        assert_eq!(text, " ID    STATUS\n x     \u{1b}[33mheld\u{1b}[0m\n held  done\n");
    }

    #[test]
    fn ages_have_one_number() {
        let ages: Vec<String> = [-5, 0, 59, 60, 3_599, 3_600, 86_399, 86_400, 900_000].map(since).to_vec();
        assert_eq!(ages, ["0s", "0s", "59s", "1m", "59m", "1h", "23h", "1d", "10d"]);
    }
}
