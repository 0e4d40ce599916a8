//! Lengths of time as people write them: `90s`, `5m`, `1h30m`, or a whole number of seconds.

use std::time::Duration;

use crate::tree::{Node, Value};

/// The longest time that can be asked for: a year.
const LONGEST: u64 = 366 * 24 * 3600;

/// The length of time that a node says.
pub(crate) fn of(node: &Node) -> Result<Duration, String> {
    match &node.value {
        Value::Integer(seconds) => within(u64::try_from(*seconds).map_err(|_| "it is negative".to_owned())?, 0),
        Value::Text(text) => read(&text.value),
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
        let number: u64 = rest[..digits].parse().map_err(|_| "it does not start with a number".to_owned())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let word = &rest[..letters];
        let unit = UNITS[next_unit..].iter().position(|(name, _)| *name == word);
        let unit = next_unit
            + unit.ok_or_else(|| match word {
                "" => "it has no unit".to_owned(),
                _ => format!("`{}` is not a unit that can stand there", word.chars().take(20).collect::<String>()),
            })?;
        total =
            number.checked_mul(UNITS[unit].1).and_then(|millis| total.checked_add(millis)).ok_or("it is too long")?;
        next_unit = unit + 1;
        rest = rest[letters..].trim_start();
    }
    within(total / 1000, total % 1000)
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
        for text in ["", "soon", "5", "5x", "m", "30m1h", "-5s", "99999999999999999999s", "400d", "5m5m"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
