//! Lengths of time as people write them, wherever they write one: a definition, an option, a setting of the API.
//!
//! Numbers with units, the larger units first: `90s`, `5m`, `1h30m`, `1.5h`, `2 weeks`, `250ms`. jiff knows the units. A day
//! has 24 hours and a week seven days; months and years have no length of their own and are refused.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};

use crate::tree::{Node, NodeValue};

pub const FORMS: &str = "write `90s`, `5m`, `1h30m`, `7d`";

/// The longest time that a definition can ask for: a year.
pub(crate) const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Why a text says no length of time, or one that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationError {
    /// No number with a unit, or one after the other in falling order.
    Unreadable,
    Negative,
    TooLong {
        most: Duration,
    },
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DurationError::Unreadable => f.write_str("it is not a number with a unit"),
            DurationError::Negative => f.write_str("it is negative"),
            DurationError::TooLong { most } => write!(f, "it is longer than {} days", most.as_secs() / (24 * 3600)),
        }
    }
}

impl std::error::Error for DurationError {}

/// The length of time that a text says, which is at most so long.
pub fn read(text: &str, most: Duration) -> Result<Duration, DurationError> {
    // jiff also reads `PT5M`, clock times and words for the past, which no page tells of and no schema could describe.
    let begins = text.trim_start().trim_start_matches('-').starts_with(|it: char| it.is_ascii_digit());
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it.is_ascii_whitespace() || "-.µ".contains(it);
    if !begins || !text.chars().all(is_plain) {
        return Err(DurationError::Unreadable);
    }
    let span: Span = text.trim().parse().map_err(|_| DurationError::Unreadable)?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| DurationError::Unreadable)?;
    if length < SignedDuration::ZERO {
        return Err(DurationError::Negative);
    }
    within(length.unsigned_abs(), most)
}

/// The length of time that a node of a definition says: a text, or a whole number of seconds.
pub(crate) fn of(node: &Node) -> Result<Duration, DurationError> {
    match &node.value {
        NodeValue::Integer(seconds) => {
            within(Duration::from_secs(u64::try_from(*seconds).map_err(|_| DurationError::Negative)?), LONGEST)
        }
        NodeValue::Text(text) => read(&text.value, LONGEST),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Decimal(_) | NodeValue::List(_) | NodeValue::Table(_) => {
            Err(DurationError::Unreadable)
        }
    }
}

fn within(length: Duration, most: Duration) -> Result<Duration, DurationError> {
    if length > most { Err(DurationError::TooLong { most }) } else { Ok(length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write() {
        let cases = [
            ("90s", 90_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1h 5s", 3_605_000),
            ("1h  5s", 3_605_000),
            ("1d 0h 0m 05s 0ms", 86_405_000),
            (" 250ms ", 250),
            ("0s", 0),
            ("1.5h", 5_400_000),
            ("5 m", 300_000),
            ("2 hours 1 minute", 7_260_000),
            ("1d2h", 93_600_000),
            ("30d", 2_592_000_000),
            ("2w", 1_209_600_000),
            ("30000000000ms", 30_000_000_000),
        ];
        for (text, millis) in cases {
            assert_eq!(read(text, LONGEST), Ok(Duration::from_millis(millis)), "{text}");
        }
        let unreadable = [
            "",
            "soon",
            "5",
            "5x",
            "m",
            "30m1h",
            "99999999999999999999s",
            "5m5m",
            "1y",
            "1mo",
            "1é",
            "5 5m",
            "PT5M",
            "1:30:00",
        ];
        for text in unreadable {
            assert_eq!(read(text, LONGEST), Err(DurationError::Unreadable), "{text}");
        }
        assert_eq!(read("-5s", LONGEST), Err(DurationError::Negative));
        let told = read("400d", LONGEST).map_err(|error| error.to_string());
        assert_eq!(told, Err("it is longer than 366 days".into()));
    }
}
