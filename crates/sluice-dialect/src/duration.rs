//! Lengths of time as people write them: `90s`, `5m`, `1h30m`, or a whole number of seconds.

use std::time::Duration;

use crate::tree::{Node, NodeValue};

/// The longest time that can be asked for: a year.
pub(crate) const LONGEST: u64 = 366 * 24 * 3600;

/// The length of time that a node says.
pub(crate) fn of(node: &Node) -> Result<Duration, String> {
    match &node.value {
        NodeValue::Integer(seconds) => within(u64::try_from(*seconds).map_err(|_| "it is negative".to_owned())?, 0),
        NodeValue::Text(text) => read(&text.value),
        other => Err(format!("{other:?}")),
    }
}

fn within(seconds: u64, millis: u64) -> Result<Duration, String> {
    match seconds <= LONGEST {
        true => Ok(Duration::from_millis(seconds * 1000 + millis)),
        false => Err("it is longer than a year".into()),
    }
}

/// Reads `1h30m`; units are `ms`, `s`, `m`, `h` and `d`, each at most once and in falling order.
fn read(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
    let mut rest = text.trim();
    let (mut total, mut next_unit) = (0u64, 0);
    if rest.is_empty() {
        return Err("it is empty".into());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (word, after) = after.split_at(letters);
        if number.is_empty() || word.is_empty() {
            return Err(misread(number, after));
        }
        let unit = UNITS[next_unit..].iter().position(|(name, _)| *name == word);
        let unit = next_unit
            + unit.ok_or_else(|| {
                format!("`{}` is not a unit that can stand there", word.chars().take(20).collect::<String>())
            })?;
        let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(UNITS[unit].1));
        total = millis.and_then(|millis| total.checked_add(millis)).ok_or("it is too long")?;
        next_unit = unit + 1;
        rest = after.trim_start();
    }
    within(total / 1000, total % 1000)
}

/// Why there is no unit behind `number`, or no number at all, when `after` follows.
fn misread(number: &str, after: &str) -> String {
    let fraction = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    match after.strip_prefix(['.', ',']) {
        Some(rest) if fraction(rest) => return "write whole numbers: `1h30m`".into(),
        Some(_) | None => {}
    }
    let unit_follows = after.trim_start().starts_with(|c: char| c.is_ascii_alphabetic());
    match (number.is_empty(), after.starts_with(char::is_whitespace) && unit_follows) {
        (true, _) => "it does not start with a number".into(),
        (false, true) => "no blank may stand between a number and its unit".into(),
        (false, false) => "it has no unit".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write() {
        let cases = [("90s", 90_000), ("5m", 300_000), ("1h30m", 5_400_000), ("1h 5s", 3_605_000), ("250ms", 250)];
        for (text, millis) in cases {
            assert_eq!(read(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        let told = [
            ("1.5h", "write whole numbers: `1h30m`"),
            ("1,5h", "write whole numbers: `1h30m`"),
            (".5h", "write whole numbers: `1h30m`"),
            ("5 m", "no blank may stand between a number and its unit"),
            ("1h 5 m", "no blank may stand between a number and its unit"),
            ("99999999999999999999h", "it is too long"),
            ("9999999999999999h", "it is too long"),
            ("400d", "it is longer than a year"),
            ("soon", "it does not start with a number"),
            ("-5s", "it does not start with a number"),
            ("5", "it has no unit"),
            ("5 5m", "it has no unit"),
            ("5m 3x", "`x` is not a unit that can stand there"),
        ];
        for (text, reason) in told {
            assert_eq!(read(text), Err(reason.into()), "{text}");
        }
        for text in ["", "soon", "5", "5x", "m", "30m1h", "-5s", "99999999999999999999s", "400d", "5m5m"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
