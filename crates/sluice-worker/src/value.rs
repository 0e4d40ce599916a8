//! Values as programs print them and JSON has them, and texts that are cut to a length.

use serde_json::{Number, Value};
use sluice_core::recipe::Data;

pub fn data(value: &serde_json::Value) -> Data {
    match value {
        Value::Null => Data::Null,
        Value::Bool(it) => Data::Bool(*it),
        Value::Number(number) => Data::Number(number.to_string()),
        Value::String(text) => Data::Text(text.clone()),
        Value::Array(items) => Data::List(items.iter().map(data).collect()),
        Value::Object(table) => Data::Table(table.iter().map(|(key, value)| (key.clone(), data(value))).collect()),
    }
}

pub fn plain(data: &Data) -> Value {
    match data {
        Data::Null => Value::Null,
        Data::Bool(it) => Value::Bool(*it),
        Data::Number(text) => text.parse::<Number>().map_or_else(|_| Value::String(text.clone()), Value::Number),
        Data::Text(text) => Value::String(text.clone()),
        Data::List(items) => Value::Array(items.iter().map(plain).collect()),
        Data::Table(fields) => Value::Object(fields.iter().map(|(key, value)| (key.clone(), plain(value))).collect()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a double holds every cost below nine billion dollars exactly")]
pub fn dollars(millionths: u64) -> f64 {
    millionths as f64 / 1e6
}

/// A text of at most so many bytes, and a little more: what is left out of its middle is counted.
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most / 2);
    let tail = text.ceil_char_boundary(text.len() - most / 2);
    format!("{}\n[{} bytes left out]\n{}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("abcdefghij", 4), "ab\n[6 bytes left out]\nij");
        assert_eq!(cut("ééééé", 5), "é\n[6 bytes left out]\né");
    }
}
