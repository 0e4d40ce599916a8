//! How the page says things: times, numbers and addresses.

use jiff::Timestamp;
use sluice_api::board::BoardGroup;
use sluice_api::usage::UsageSum;
pub(super) use sluice_api::usage::{dollars as cost, short_tokens as tokens};

/// The most bytes of a text under a heading that surely stands there whole, also on a phone.
const LONGEST_STILL: usize = 200;

/// How long ago a time was, in one unit: `4m`, `2h`, `3d`.
pub(super) fn ago(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(then) => length(now.duration_since(then).as_secs()),
        Err(_) => String::new(),
    }
}

/// A length of time in one unit.
pub(super) fn length(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// The length between two times in two units, for bars.
pub(super) fn span(from: &str, to: &str) -> Option<i64> {
    let (from, to) = (from.parse::<Timestamp>().ok()?, to.parse::<Timestamp>().ok()?);
    i64::try_from(to.duration_since(from).as_millis()).ok()
}

/// Milliseconds in words: `840ms`, `12s`, `3m 20s`.
pub(super) fn took(millis: i64) -> String {
    match millis.max(0) {
        millis @ 0..1000 => format!("{millis}ms"),
        millis @ 1000..60_000 => format!("{}s", millis / 1000),
        millis @ 60_000..3_600_000 => format!("{}m {}s", millis / 60_000, millis % 60_000 / 1000),
        millis => format!("{}h {}m", millis / 3_600_000, millis % 3_600_000 / 60_000),
    }
}

/// A time of day and a date, as a person reads it (UTC).
pub(super) fn clock(time: &str) -> String {
    let (day, rest) = time.split_once('T').unwrap_or((time, ""));
    let minutes: String = rest.chars().take(8).collect();
    format!("{day} {minutes}").trim_end().to_owned()
}

/// A number of things, in words.
pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

pub(super) fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..1_048_576 => format!("{} KiB", count / 1024),
        1_048_576..1_073_741_824 => format!("{} MiB", count >> 20),
        _ => format!("{:.1} GiB", count as f64 / 1_073_741_824.0),
    }
}

/// What was used up, in few signs: `38k · $0.21`; what is not known is left out.
pub(super) fn used(sum: &UsageSum) -> String {
    let parts = [sum.total_tokens.map(tokens), sum.cost_usd.map(cost)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

pub(super) fn group(group: BoardGroup) -> &'static str {
    match group {
        BoardGroup::NeedsYou => "Needs you",
        BoardGroup::ReadyToMerge => "Ready to merge",
        BoardGroup::InReview => "In review",
        BoardGroup::Working => "Working",
        BoardGroup::Queued => "Queued",
        BoardGroup::Done => "Done today",
    }
}

/// A word of a lifecycle or an option, as a button says it: `request_changes` is `Request changes`.
pub(super) fn spoken(word: &str) -> String {
    let words = word.replace(['_', '-'], " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// An address with parameters.
pub(super) fn address(path: &str, pairs: &[(&str, &str)]) -> String {
    let query: Vec<String> = pairs.iter().map(|(key, value)| format!("{}={}", escape(key), escape(value))).collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}

/// A text as a part of an address.
pub(super) fn escape(text: &str) -> String {
    sluice_api::client::escape(text)
}

/// Whether a text is so long that it scrolls where it stands under a heading: then the keyboard must reach it.
pub(super) fn scrolls(text: &str) -> bool {
    text.len() > LONGEST_STILL
}

/// A text cut to so many letters, with a mark where it was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_are_short() {
        let now: Timestamp = "2026-11-18T12:00:00Z".parse().expect("a time");
        assert_eq!(ago("2026-11-18T11:59:18Z", now), "42s");
        assert_eq!(ago("2026-11-18T10:00:00Z", now), "2h");
        assert_eq!(ago("2026-11-18T12:00:05Z", now), "0s");
        assert_eq!(ago("yesterday", now), "");
        assert_eq!(took(200_000), "3m 20s");
        assert_eq!((tokens(999), tokens(38_400), tokens(1_250_000)), ("999".into(), "38k".into(), "1.2M".into()));
        assert_eq!(clock("2026-11-18T12:00:05.123Z"), "2026-11-18 12:00:05");
        assert_eq!(spoken("request_changes"), "Request changes");
        assert_eq!(cut("ünïcode", 3), "ünï…");
    }
}
