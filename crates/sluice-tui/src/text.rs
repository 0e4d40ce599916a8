//! Text on its way to the terminal: made harmless, measured, cut; and times, amounts and money as people read them.
//!
//! Most of what a screen shows was written by agents. Nothing here lets a character through that a terminal obeys or that shows
//! the rest of a line in another order.

use jiff::Timestamp;
pub(crate) use sluice_api::usage::{dollars as money, short_tokens as amount};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The most characters that are kept of one line: more than any terminal is wide.
const LONGEST_LINE: usize = 2_000;

/// One line, harmless: what a terminal obeys, line ends and marks of direction become a blank, and a tab becomes two.
pub(crate) fn line(text: &str) -> String {
    let mut made = String::new();
    for letter in text.chars().take(LONGEST_LINE) {
        match letter {
            '\t' => made.push_str("  "),
            // Terminals disagree on how wide a character with one of these is.
            '\u{fe00}'..='\u{fe0f}' => {}
            letter if is_obeyed(letter) => made.push(' '),
            letter => made.push(letter),
        }
    }
    made.truncate(made.trim_end().len());
    made
}

/// Every line of a text, harmless; at most so many.
pub(crate) fn lines(text: &str, most: usize) -> Vec<String> {
    text.lines().take(most).map(line).collect()
}

/// Whether a terminal obeys it, or reorders what stands beside it.
fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}')
        || matches!(letter, '\u{e0000}'..='\u{e007f}' | '\u{fff9}'..='\u{fffb}')
}

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The text in at most so many columns; what is cut ends with an ellipsis.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut made = String::new();
    let mut used = 0;
    for letter in text.chars() {
        let more = letter.width().unwrap_or_default();
        if used + more + 1 > columns {
            break;
        }
        made.push(letter);
        used += more;
    }
    if columns > 0 {
        made.push('…');
    }
    made
}

/// The text in exactly so many columns.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let mut made = cut(text, columns);
    made.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(&made))));
    made
}

/// The same, at the right end.
pub(crate) fn right(text: &str, columns: usize) -> String {
    let made = cut(text, columns);
    format!("{}{made}", " ".repeat(columns.saturating_sub(width(&made))))
}

/// A text in lines of at most so many columns, broken between words.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut made = Vec::new();
    let mut now = String::new();
    for word in line(text).split(' ') {
        let needed = width(word) + usize::from(!now.is_empty());
        if width(&now) + needed > columns && !now.is_empty() {
            made.push(std::mem::take(&mut now));
        }
        if !now.is_empty() {
            now.push(' ');
        }
        now.push_str(word);
        while width(&now) > columns {
            let head = take_columns(&now, columns);
            let rest = now.split_off(head);
            made.push(std::mem::replace(&mut now, rest));
        }
    }
    if !now.is_empty() || made.is_empty() {
        made.push(now);
    }
    made
}

/// How many bytes of a text fit into so many columns; at least one character.
fn take_columns(text: &str, columns: usize) -> usize {
    let mut used = 0;
    for (at, letter) in text.char_indices() {
        used += letter.width().unwrap_or_default();
        if used > columns && at > 0 {
            return at;
        }
    }
    text.len()
}

/// How long ago a time (RFC 3339) was: `12s`, `4m`, `1h`, `3d`; empty if it is no time.
pub(crate) fn age(since: &str, now: Timestamp) -> String {
    since.parse::<Timestamp>().map(|since| span(now.as_second() - since.as_second())).unwrap_or_default()
}

/// How long it takes until a time (RFC 3339): the same, forwards.
pub(crate) fn until(time: &str, now: Timestamp) -> String {
    time.parse::<Timestamp>().map(|time| span(time.as_second() - now.as_second())).unwrap_or_default()
}

/// A length of time in its largest unit.
pub(crate) fn span(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..=59 => format!("{seconds}s"),
        seconds @ 60..=3_599 => format!("{}m", seconds / 60),
        seconds @ 3_600..=86_399 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// The time of day of a time (RFC 3339), as it was written.
pub(crate) fn clock(time: &str) -> String {
    time.split_once('T').map_or(time, |(_, clock)| clock).chars().take(8).collect()
}

/// So many of something: `1 file`, `4 files`.
pub(crate) fn count(count: usize, noun: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{end}")
}

/// A number of bytes: `812 B`, `3.4 MB`.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..=999 => format!("{count} B"),
        1_000..=999_999 => format!("{}.{} kB", count / 1_000, count % 1_000 / 100),
        1_000_000..=999_999_999 => format!("{}.{} MB", count / 1_000_000, count % 1_000_000 / 100_000),
        _ => format!("{}.{} GB", count / 1_000_000_000, count % 1_000_000_000 / 100_000_000),
    }
}

/// The text without anything that is no ASCII, for terminals that show nothing else.
pub(crate) fn plain(text: &str) -> String {
    let replaced = |letter: char| match letter {
        '…' => '~',
        '·' => '-',
        '−' | '–' | '—' | '─' => '-',
        '│' => '|',
        '┌' | '┐' | '└' | '┘' => '+',
        '“' | '”' => '"',
        '‘' | '’' => '\'',
        '→' => '>',
        '×' => 'x',
        letter if letter.is_ascii() => letter,
        _ => '?',
    };
    text.chars().flat_map(|letter| std::iter::repeat_n(replaced(letter), columns_of(letter))).collect()
}

/// As many `?` as the character had columns, so that what stands behind it stays where it is.
fn columns_of(letter: char) -> usize {
    if letter.is_ascii() { 1 } else { letter.width().unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::{age, amount, cut, fit, line, plain, right, span, width, wrap};

    #[test]
    fn nothing_that_a_terminal_obeys_comes_through() {
        assert_eq!(
            line("\u{1b}]0;owned\u{7}ok\r\n\tred\u{1b}[31m\u{9b}1m\u{7f}é\u{202e}x"),
            " ]0;owned ok    red [31m 1m é x"
        );
        assert_eq!(line("a\u{200b}b\u{2066}c\u{feff}"), "a b c");
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(width("日本"), 4);
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(fit("日本語", 4), "日… ");
        assert_eq!(right("語", 4), "  語");
        assert_eq!(fit("", 3), "   ");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(plain("日…a"), "??~a");
    }

    #[test]
    fn long_texts_are_broken_between_words_and_long_words_anywhere() {
        assert_eq!(wrap("ab cd ef", 5), ["ab cd", "ef"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("日本語", 3), ["日", "本", "語"]);
        assert_eq!(wrap("", 3), [""]);
    }

    #[test]
    fn times_and_amounts_are_short() {
        let now = "2026-11-18T12:00:00Z".parse().unwrap();
        assert_eq!(age("2026-11-18T11:56:00Z", now), "4m");
        assert_eq!(age("2026-11-18T12:00:05Z", now), "0s");
        assert_eq!(age("never", now), "");
        assert_eq!([span(3_600), span(200_000)], ["1h", "2d"]);
        assert_eq!([amount(999), amount(38_200), amount(1_250_000)], ["999", "38k", "1.2M"]);
    }
}
