//! Lengths of time and sizes, as a person writes them in `config.toml` and reads them.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// The units of sizes, the largest first, and how many bytes each is.
const UNITS: [(&str, u64); 5] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// The format of a length of time in the schema.
pub(super) const LENGTH: &str = "length of time";
/// The format of a size in the schema.
pub(super) const SIZE: &str = "size";

/// A number, or a text with a unit.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenAmount {
    Number(u64),
    Text(String),
}

/// A length of time: a text with units, or a whole number of days.
pub(super) fn length<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    let unreadable = || D::Error::custom("write a length of time like `7d` or `12h`, or a number of days");
    let days = |days: u64| days.checked_mul(86_400).map(Duration::from_secs);
    match WrittenAmount::deserialize(value).map_err(|_| unreadable())? {
        WrittenAmount::Number(number) => days(number).ok_or_else(unreadable),
        WrittenAmount::Text(text) => {
            let span: Span = text.trim().parse().map_err(|_| unreadable())?;
            let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| unreadable())?;
            Duration::try_from(length).map_err(|_| unreadable())
        }
    }
}

/// The same, where nothing at all means that it never comes to an end.
pub(super) fn optional_length<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Duration>, D::Error> {
    length(value).map(|length| Some(length).filter(|length| !length.is_zero()))
}

/// A size: a number with a unit, or of bytes.
pub(super) fn bytes<'de, D: Deserializer<'de>>(value: D) -> Result<u64, D::Error> {
    let unreadable = || D::Error::custom("write a size like `1 GiB` or `200 MiB`, or a number of bytes");
    match WrittenAmount::deserialize(value).map_err(|_| unreadable())? {
        WrittenAmount::Number(number) => Ok(number),
        WrittenAmount::Text(text) => size(&text).ok_or_else(unreadable),
    }
}

/// A length of time as it is read again: in the largest unit that says all of it.
pub(super) fn write_length<S: Serializer>(length: &Duration, out: S) -> Result<S::Ok, S::Error> {
    let seconds = length.as_secs();
    let units = [("d", 86_400), ("h", 3_600), ("m", 60)];
    let fitting = units.into_iter().find(|(_, unit)| seconds > 0 && seconds.is_multiple_of(*unit)).unwrap_or(("s", 1));
    out.serialize_str(&format!("{}{}", seconds / fitting.1, fitting.0))
}

/// The same, or nothing.
pub(super) fn write_optional_length<S: Serializer>(length: &Option<Duration>, out: S) -> Result<S::Ok, S::Error> {
    match length {
        Some(length) => write_length(length, out),
        None => out.serialize_none(),
    }
}

/// A size as it is read again: in the largest unit that says all of it.
pub(super) fn write_bytes<S: Serializer>(bytes: &u64, out: S) -> Result<S::Ok, S::Error> {
    let (word, unit) =
        UNITS.into_iter().find(|(_, unit)| *bytes > 0 && bytes.is_multiple_of(*unit)).unwrap_or(("B", 1));
    out.serialize_str(&format!("{} {word}", bytes / unit))
}

/// What an editor is told of a length of time.
pub(super) fn length_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "integer"], "format": LENGTH, "minimum": 0 })
}

/// What an editor is told of a size.
pub(super) fn bytes_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "integer"], "format": SIZE, "minimum": 0 })
}

fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (unit, number) = UNITS.iter().find_map(|(word, unit)| Some((unit, text.strip_suffix(word)?)))?;
    number.trim().parse::<u64>().ok()?.checked_mul(*unit)
}

/// A size for people: `1.5 GiB`.
pub fn written_size(bytes: u64) -> String {
    let (word, unit) = UNITS.into_iter().find(|(_, unit)| bytes >= *unit).unwrap_or(("B", 1));
    let (whole, tenth) = (bytes / unit, bytes % unit * 10 / unit);
    if unit == 1 || tenth == 0 { format!("{whole} {word}") } else { format!("{whole}.{tenth} {word}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        let read = ["1 GiB", "200MiB", "999 TiB", "7 B", "x GiB", "1 GB", "", "99999999999 TiB"].map(size);
        assert_eq!(read, [Some(1 << 30), Some(200 << 20), Some(999 << 40), Some(7), None, None, None, None]);
        let written = [0, 7, 1024, 1536, 3 << 30, (3 << 30) + (1 << 29)].map(written_size);
        assert_eq!(written, ["0 B", "7 B", "1 KiB", "1.5 KiB", "3 GiB", "3.5 GiB"]);
    }
}
