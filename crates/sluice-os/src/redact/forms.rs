//! Secrets that are known by their form alone.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use super::unseen::ShownBytes;

const LONGEST_CREDENTIALS: usize = 8 << 10;
/// The longest name of a user, password and host of an address.
const LONGEST_AUTHORITY: usize = 2 << 10;
const SHORTEST_JWT: usize = 20;
/// The longest line that begins a private key.
pub(super) const LONGEST_BEGIN: usize = 64;
const BEGIN: &[u8] = b"-----BEGIN ";
pub(super) const DASHES: &[u8] = b"-----";
const ADDRESS: &[u8] = b"://";

/// What a form begins with, and what makes it a secret.
struct SecretForm {
    begins: &'static [u8],
    rule: SecretRule,
}

enum SecretRule {
    /// So many letters follow at least.
    Letters(usize),
    /// The same; what it begins with is shown, in capitals or not.
    Shown(usize),
    Jwt,
    /// A name and a password in base64; what it begins with is shown, in capitals or not.
    Basic,
    Key,
}

/// What tokens begin with, by how many letters follow at least.
const TOKENS: [(usize, &[&str]); 5] = [
    (32, &["slu_"]),
    (30, &["AIza", "npm_", "hf_", "pypi-"]),
    (20, &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "sk-"]),
    (16, &["glpat-", "sk_live_", "rk_live_", "AKIA", "ASIA"]),
    (10, &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-"]),
];
const OTHERS: [SecretForm; 4] = [
    SecretForm { begins: b"Bearer ", rule: SecretRule::Shown(16) },
    SecretForm { begins: b"Basic ", rule: SecretRule::Basic },
    SecretForm { begins: b"eyJ", rule: SecretRule::Jwt },
    SecretForm { begins: BEGIN, rule: SecretRule::Key },
];

fn forms() -> impl Iterator<Item = SecretForm> {
    let token =
        |least: usize, begins: &'static str| SecretForm { begins: begins.as_bytes(), rule: SecretRule::Letters(least) };
    TOKENS.iter().flat_map(move |(least, all)| all.iter().map(move |begins| token(*least, begins))).chain(OTHERS)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretMatch {
    /// No secret begins here.
    Nothing,
    /// A secret of so many bytes, of which the first are shown.
    Secret { length: usize, shown: usize },
    /// The same, which goes on for as long as its letters do.
    Letters { length: usize, shown: usize },
    /// The beginning of a private key, of so many bytes.
    Key(usize),
    /// Perhaps a secret; more must come to tell.
    Perhaps,
}

/// The bytes that a form begins with.
pub(super) fn beginnings() -> [bool; 256] {
    let mut begins = [false; 256];
    for byte in forms().filter_map(|form| form.begins.first()) {
        begins[usize::from(*byte)] = true;
        begins[usize::from(byte.to_ascii_lowercase())] = true;
    }
    begins
}

/// What begins with some bytes where a word may begin.
pub(super) fn find(rest: &[u8], is_last: bool) -> SecretMatch {
    let mut perhaps = false;
    for form in forms() {
        match form.find(rest, is_last) {
            SecretMatch::Nothing => {}
            SecretMatch::Perhaps => perhaps = true,
            found @ (SecretMatch::Secret { .. } | SecretMatch::Letters { .. } | SecretMatch::Key(_)) => return found,
        }
    }
    if perhaps { SecretMatch::Perhaps } else { SecretMatch::Nothing }
}

/// Nothing more came: that may be all, or not yet all.
pub(super) fn out(is_last: bool) -> SecretMatch {
    if is_last { SecretMatch::Nothing } else { SecretMatch::Perhaps }
}

impl SecretForm {
    fn find(&self, rest: &[u8], is_last: bool) -> SecretMatch {
        let mut shown = ShownBytes::of(rest);
        let any_case = matches!(self.rule, SecretRule::Shown(_) | SecretRule::Basic);
        for wanted in self.begins {
            match shown.next() {
                Some(byte) if byte == *wanted || (any_case && byte.eq_ignore_ascii_case(wanted)) => {}
                Some(_) => return SecretMatch::Nothing,
                None => return out(is_last),
            }
        }
        let begins = shown.at();
        match self.rule {
            SecretRule::Letters(least) => letters(shown, 0, least, is_last),
            SecretRule::Shown(least) => letters(shown, begins, least, is_last),
            SecretRule::Jwt => jwt(shown, is_last),
            SecretRule::Basic => basic(shown, begins, is_last),
            SecretRule::Key => key(shown, is_last),
        }
    }
}

fn letters(mut rest: ShownBytes<'_>, shown: usize, least: usize, is_last: bool) -> SecretMatch {
    for _ in 0..least {
        match rest.next() {
            Some(byte) if is_of_secret(byte) => {}
            Some(_) => return SecretMatch::Nothing,
            None => return out(is_last),
        }
    }
    SecretMatch::Letters { length: rest.at(), shown }
}

fn jwt(mut rest: ShownBytes<'_>, is_last: bool) -> SecretMatch {
    let mut dots = 0;
    for count in 0..LONGEST_CREDENTIALS {
        match rest.next() {
            Some(b'.') => dots += 1,
            Some(byte) if is_of_secret(byte) => {}
            Some(_) => return SecretMatch::Nothing,
            None => return out(is_last),
        }
        if dots == 2 && count >= SHORTEST_JWT {
            return SecretMatch::Letters { length: rest.at(), shown: 0 };
        }
    }
    SecretMatch::Nothing
}

fn basic(mut rest: ShownBytes<'_>, shown: usize, is_last: bool) -> SecretMatch {
    let (mut letters, mut length) = (Vec::new(), shown);
    while letters.len() < LONGEST_CREDENTIALS {
        match rest.next() {
            Some(byte) if is_of_secret(byte) => {
                letters.push(byte);
                length = rest.at();
            }
            Some(_) => break,
            None if is_last => break,
            None => return SecretMatch::Perhaps,
        }
    }
    // With or without what fills the last group: "Basic principles" is two words, and no password.
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    match GeneralPurpose::new(&STANDARD, config).decode(&letters) {
        Ok(pair) if pair.contains(&b':') => SecretMatch::Secret { length, shown },
        Ok(_) | Err(_) => SecretMatch::Nothing,
    }
}

fn key(mut rest: ShownBytes<'_>, is_last: bool) -> SecretMatch {
    let mut name = Vec::new();
    while name.len() < LONGEST_BEGIN {
        match rest.next() {
            Some(byte) => name.push(byte),
            None => return out(is_last),
        }
        if let Some(name) = name.strip_suffix(DASHES) {
            let is_private = position(name, b"PRIVATE KEY").is_some();
            return if is_private { SecretMatch::Key(rest.at()) } else { SecretMatch::Nothing };
        }
    }
    SecretMatch::Nothing
}

/// Whoever an address says may come in, with the password: both are left out, as a token often stands in the place of the
/// name.
pub(super) fn in_address(bytes: &[u8], is_last: bool) -> SecretMatch {
    let mut rest = ShownBytes::of(bytes);
    for wanted in ADDRESS {
        match rest.next() {
            Some(byte) if byte == *wanted => {}
            Some(_) => return SecretMatch::Nothing,
            None => return out(is_last),
        }
    }
    let shown = rest.at();
    let (mut has_password, mut length) = (false, None);
    for _ in 0..LONGEST_AUTHORITY {
        let here = rest.at();
        match rest.next() {
            Some(b':') => has_password |= length.is_none(),
            // The last one counts: a password may have been written with one in it.
            Some(b'@') if has_password => length = Some(here),
            Some(byte) if byte.is_ascii_whitespace() || b"/?#\"'`<>\\".contains(&byte) => break,
            Some(_) => {}
            None if is_last => break,
            None => return SecretMatch::Perhaps,
        }
    }
    match length {
        Some(length) if length > shown + 1 => SecretMatch::Secret { length, shown },
        Some(_) | None => SecretMatch::Nothing,
    }
}

pub(super) fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

pub(super) fn is_of_secret(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~+/=".contains(&byte)
}
