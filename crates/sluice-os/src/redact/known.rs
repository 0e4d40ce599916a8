//! A secret whose value is known, in the forms in which it is printed: as it is, in JSON, in an address, in hexadecimal
//! digits with or without blanks, and in base64 wherever it stands in what is written so.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::forms::{SecretMatch, out};
use super::unseen::ShownBytes;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KnownSecret {
    bytes: Vec<u8>,
    form: SecretEncoding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SecretEncoding {
    Plain,
    /// It may be broken into lines.
    Base64 {
        /// Its last bits stand in one more letter, which depends on what follows too.
        has_tail: bool,
    },
}

/// All forms of all secrets, by the byte that they begin with; the longest first.
pub(super) type KnownSecrets = BTreeMap<u8, Vec<KnownSecret>>;

pub(super) fn secrets<'a>(values: impl Iterator<Item = &'a str>) -> KnownSecrets {
    let mut secrets = KnownSecrets::new();
    for known in values.flat_map(forms) {
        if let Some(first) = known.bytes.first() {
            secrets.entry(*first).or_default().push(known);
        }
    }
    for forms in secrets.values_mut() {
        forms.sort_by(|one, other| other.bytes.len().cmp(&one.bytes.len()).then(one.cmp(other)));
        forms.dedup();
    }
    secrets
}

fn forms(value: &str) -> Vec<KnownSecret> {
    let plain = |bytes: Vec<u8>| KnownSecret { bytes: ShownBytes::of(&bytes).collect(), form: SecretEncoding::Plain };
    let mut forms = vec![plain(value.as_bytes().to_vec())];
    let json = serde_json::Value::from(value).to_string();
    let json = json.trim_matches('"');
    forms.push(plain(json.as_bytes().to_vec()));
    forms.push(plain(json.replace('/', "\\/").into_bytes()));
    forms.push(plain(escaped(value)));
    let address = String::from_utf8_lossy(&escaped(value)).into_owned();
    forms.push(plain(address.replace("%2F", "/").into_bytes()));
    forms.push(plain(address.replace("%20", "+").into_bytes()));
    let digits = |digit: fn(&u8) -> String| value.as_bytes().iter().map(digit).collect::<String>().into_bytes();
    forms.push(plain(digits(|byte| format!("{byte:02x}"))));
    forms.push(plain(digits(|byte| format!("{byte:02X}"))));
    forms.push(plain(digits(|byte| format!("%{byte:02x}"))));
    forms.push(plain(digits(|byte| format!("%{byte:02X}"))));
    forms.push(plain(digits(|byte| format!("\\u00{byte:02x}"))));
    forms.push(plain(digits(|byte| format!("{byte:02x} ")).trim_ascii_end().to_vec()));
    for before in 0..3 {
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let has_tail = !((before + value.len()) * 8).is_multiple_of(6);
            let bytes = base64_within(&engine, before, value.as_bytes());
            forms.push(KnownSecret { bytes, form: SecretEncoding::Base64 { has_tail } });
        }
    }
    forms
}

/// The letters of base64 that depend on a secret alone, when so many bytes stand before it in its group of three.
fn base64_within(engine: &impl Engine, before: usize, secret: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(secret);
    let (first, last) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    engine.encode(&bytes).into_bytes()[first..last].to_vec()
}

/// As in an address.
fn escaped(value: &str) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let one = |byte: u8| if plain(&byte) { vec![byte] } else { format!("%{byte:02X}").into_bytes() };
    value.bytes().flat_map(one).collect()
}

impl KnownSecret {
    /// Whether it stands at the beginning of some bytes.
    pub(super) fn seek(&self, bytes: &[u8], is_last: bool) -> SecretMatch {
        let mut shown = match self.form {
            SecretEncoding::Plain => ShownBytes::of(bytes),
            SecretEncoding::Base64 { .. } => ShownBytes::wrapped(bytes),
        };
        for wanted in &self.bytes {
            match shown.next() {
                Some(byte) if byte == *wanted => {}
                Some(_) => return SecretMatch::Nothing,
                None => return out(is_last),
            }
        }
        match self.form {
            SecretEncoding::Plain | SecretEncoding::Base64 { has_tail: false } => {
                SecretMatch::Secret { length: shown.at(), shown: 0 }
            }
            SecretEncoding::Base64 { has_tail: true } => with_tail(bytes, shown.at(), is_last),
        }
    }
}

/// What ends after so many bytes, with the letter that holds its last bits and what fills the group. They stand on the same
/// line: what the next begins with may be the next secret.
fn with_tail(bytes: &[u8], length: usize, is_last: bool) -> SecretMatch {
    let mut rest = ShownBytes::of(&bytes[length..]);
    let mut end = length;
    for place in 0..3 {
        match rest.next() {
            Some(byte) if byte == b'=' || (place == 0 && is_of_base64(byte)) => end = length + rest.at(),
            Some(_) => break,
            None if is_last => break,
            None => return SecretMatch::Perhaps,
        }
    }
    SecretMatch::Secret { length: end, shown: 0 }
}

fn is_of_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}
