//! Secrets in what programs print. They are taken out before anything is stored: by their value where it is known, and by
//! their form where it is a common one.
//!
//! A value is known from the environment that a program was given. What comes in pieces is held back at the end of a piece
//! only as far as a secret may have begun there.

use std::path::Path;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";
/// The shortest value that is taken for a secret because of its variable's name; a shorter one is a word.
const SHORTEST: usize = 8;
/// The longest secret of a form that is waited for at the end of a piece.
const LONGEST: usize = 8 << 10;
/// The longest private key.
const LONGEST_KEY: usize = 64 << 10;
/// The longest line that begins a private key.
const LONGEST_BEGIN: usize = 64;
/// Parts of the names of variables that hold secrets.
const TELLING: [&str; 9] =
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "PRIVATE_KEY", "ACCESS_KEY", "CREDENTIAL"];
/// Ends of such names.
const TELLING_ENDS: [&str; 3] = ["_KEY", "_PAT", "_AUTH"];
const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";

/// A common form: what it begins with, how many letters follow at least, and whether what it begins with is shown.
struct Form {
    begins: &'static [u8],
    least: usize,
    shown: bool,
}

const fn form(begins: &'static [u8], least: usize) -> Form {
    Form { begins, least, shown: false }
}

const FORMS: [Form; 24] = [
    form(b"slu_", 32),
    form(b"ghp_", 20),
    form(b"gho_", 20),
    form(b"ghu_", 20),
    form(b"ghs_", 20),
    form(b"ghr_", 20),
    form(b"github_pat_", 20),
    form(b"glpat-", 16),
    form(b"sk-", 20),
    form(b"sk_live_", 16),
    form(b"rk_live_", 16),
    form(b"xoxb-", 10),
    form(b"xoxp-", 10),
    form(b"xoxa-", 10),
    form(b"xoxr-", 10),
    form(b"xoxs-", 10),
    form(b"AKIA", 16),
    form(b"ASIA", 16),
    form(b"AIza", 30),
    form(b"npm_", 30),
    form(b"hf_", 30),
    form(b"pypi-", 30),
    Form { begins: b"Bearer ", least: 16, shown: true },
    Form { begins: b"bearer ", least: 16, shown: true },
];

/// Takes secrets out.
#[derive(Clone, Debug)]
pub struct Redactor {
    /// Values that are secrets, the longest first.
    known: Vec<Vec<u8>>,
    /// The bytes that one of them begins with.
    begins_known: [bool; 256],
    /// The bytes that a form begins with.
    begins_form: [bool; 256],
}

impl Default for Redactor {
    fn default() -> Self {
        Self::of([])
    }
}

impl Redactor {
    /// One that knows the secrets of an environment: the values of variables whose names say so.
    pub fn of<'a>(environment: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let is_secret = |(name, value): &(&str, &str)| {
            value.len() >= SHORTEST && is_telling(name) && !(value.starts_with('/') && Path::new(value).exists())
        };
        let secrets = environment.into_iter().filter(is_secret);
        let mut known: Vec<Vec<u8>> = secrets.map(|(_, value)| value.as_bytes().to_vec()).collect();
        known.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        known.dedup();
        let mut begins_known = [false; 256];
        known.iter().filter_map(|value| value.first()).for_each(|byte| begins_known[usize::from(*byte)] = true);
        let mut begins_form = [false; 256];
        let forms = FORMS.iter().map(|form| form.begins).chain([BEGIN]);
        forms.filter_map(|begins| begins.first()).for_each(|byte| begins_form[usize::from(*byte)] = true);
        Self { known, begins_known, begins_form }
    }

    /// A text without the secrets in it.
    pub fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    /// The same for bytes.
    pub fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut flow = Flow::new(self.clone());
        let mut clean = flow.push(bytes);
        clean.extend(flow.finish());
        clean
    }
}

/// A text without what looks like a secret, where nothing is known of an environment.
pub fn redacted(text: &str) -> String {
    Redactor::default().text(text)
}

fn is_telling(name: &str) -> bool {
    // How many tokens a model may use is no secret.
    let name = name.to_ascii_uppercase().replace("TOKENS", "");
    TELLING.iter().any(|part| name.contains(part)) || TELLING_ENDS.iter().any(|end| name.ends_with(end))
}

/// What comes in pieces.
#[derive(Debug)]
pub(crate) struct Flow {
    redactor: Redactor,
    /// What may be the beginning of a secret.
    held: Vec<u8>,
    /// The byte before that.
    before: u8,
    /// How much of a private key has been left out, while one is under way.
    key: Option<usize>,
}

/// What is at a place.
enum Found {
    /// Nothing: this byte is shown.
    Nothing,
    /// A secret of so many bytes, of which the first are shown.
    Secret { length: usize, shown: usize },
    /// The beginning of a private key, of so many bytes.
    Key(usize),
    /// Perhaps a secret; more must come to tell.
    Perhaps,
}

impl Flow {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self { redactor, held: Vec::new(), before: b' ', key: None }
    }

    /// What can be told of the next piece.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.turn(bytes, false)
    }

    /// The rest.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.turn(&[], true)
    }

    fn turn(&mut self, bytes: &[u8], is_last: bool) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let mut clean = Vec::with_capacity(all.len());
        let mut at = 0;
        while at < all.len() {
            if self.key.is_none() {
                let plain = self.plain(&all[at..]);
                clean.extend_from_slice(&all[at..at + plain]);
                at += plain;
            }
            let rest = &all[at..];
            if rest.is_empty() {
                break;
            }
            if self.key.is_some() {
                match self.leave_out(rest, is_last) {
                    Some(length) => at += length,
                    None => break,
                }
                continue;
            }
            match self.find(rest, is_last) {
                Found::Nothing => {
                    clean.push(rest[0]);
                    self.before = rest[0];
                    at += 1;
                }
                Found::Secret { length, shown } => {
                    clean.extend_from_slice(&rest[..shown]);
                    clean.extend_from_slice(REDACTED.as_bytes());
                    self.before = b']';
                    at += length;
                }
                Found::Key(length) => {
                    clean.extend_from_slice(REDACTED.as_bytes());
                    self.before = b']';
                    self.key = Some(0);
                    at += length;
                }
                Found::Perhaps => break,
            }
        }
        self.held = all.split_off(at.min(all.len()));
        clean
    }

    /// How many bytes begin no secret for sure.
    fn plain(&mut self, rest: &[u8]) -> usize {
        let Redactor { begins_known, begins_form, .. } = &self.redactor;
        let mut before = self.before;
        let begins = |byte: &u8| {
            let place = usize::from(*byte);
            let may = begins_known[place] || (begins_form[place] && !before.is_ascii_alphanumeric());
            before = if may { before } else { *byte };
            may
        };
        let plain = rest.iter().position(begins).unwrap_or(rest.len());
        self.before = before;
        plain
    }

    fn find(&self, rest: &[u8], is_last: bool) -> Found {
        let mut perhaps = false;
        for known in &self.redactor.known {
            if rest.starts_with(known) {
                return Found::Secret { length: known.len(), shown: 0 };
            }
            perhaps |= known.starts_with(rest);
        }
        if self.before.is_ascii_alphanumeric() {
            return if perhaps && !is_last { Found::Perhaps } else { Found::Nothing };
        }
        for form in &FORMS {
            if let Some(follows) = rest.strip_prefix(form.begins) {
                let run = follows.iter().take(LONGEST).take_while(|byte| is_of_secret(**byte)).count();
                if run == follows.len() && !is_last {
                    return Found::Perhaps;
                }
                if run >= form.least {
                    let shown = if form.shown { form.begins.len() } else { 0 };
                    return Found::Secret { length: form.begins.len() + run, shown };
                }
            }
            perhaps |= form.begins.starts_with(rest);
        }
        match begun_key(rest) {
            Found::Nothing if BEGIN.starts_with(rest) => perhaps = true,
            Found::Perhaps => perhaps = true,
            found @ Found::Key(_) => return found,
            Found::Nothing | Found::Secret { .. } => {}
        }
        if perhaps && !is_last { Found::Perhaps } else { Found::Nothing }
    }

    /// Leaves out what belongs to a private key; how much of it that is, if it can be told.
    fn leave_out(&mut self, rest: &[u8], is_last: bool) -> Option<usize> {
        let so_far = self.key.unwrap_or_default();
        if let Some(end) = position(rest, END)
            && let Some(dashes) = position(&rest[end + END.len()..], DASHES)
        {
            self.key = None;
            return Some(end + END.len() + dashes + DASHES.len());
        }
        // The last line may be cut.
        let length = if is_last { rest.len() } else { rest.len().saturating_sub(LONGEST_BEGIN) };
        self.key = (so_far + length < LONGEST_KEY).then_some(so_far + length);
        (length > 0).then_some(length)
    }
}

/// The line that begins a private key.
fn begun_key(rest: &[u8]) -> Found {
    let Some(named) = rest.strip_prefix(BEGIN) else { return Found::Nothing };
    match position(&named[..named.len().min(LONGEST_BEGIN)], DASHES) {
        Some(end) if position(&named[..end], b"PRIVATE KEY").is_some() => Found::Key(BEGIN.len() + end + DASHES.len()),
        None if named.len() < LONGEST_BEGIN => Found::Perhaps,
        Some(_) | None => Found::Nothing,
    }
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn is_of_secret(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~+/=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        let set =
            [("DEPLOY_TOKEN", "correct horse"), ("PAGER", "less is more"), ("PIN_SECRET", "1234"), ("HOME_KEY", "/")];
        Redactor::of(set)
    }

    #[test]
    fn known_values_and_common_forms_are_taken_out_and_the_rest_stays() {
        let secret = format!("slu_brew.1~{}", "0a".repeat(32));
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\nbnNz\n-----END OPENSSH PRIVATE KEY-----";
        let text = format!(
            "a correct horse, less is more 1234\nSLUICE_TOKEN={secret}\nghp_{} task-list-of-everything-there-is\n\
             Authorization: Bearer {}\n{key}\n-----BEGIN CERTIFICATE-----\nAKIAIOSFODNN7EXAMPLE sk-short",
            "x".repeat(36),
            "y".repeat(20),
        );
        let clean = redactor().text(&text);
        insta::assert_snapshot!(clean, @r"
        a [redacted], less is more 1234
        SLUICE_TOKEN=[redacted]
        [redacted] task-list-of-everything-there-is
        Authorization: Bearer [redacted]
        [redacted]
        -----BEGIN CERTIFICATE-----
        [redacted] sk-short
        ");
    }

    #[test]
    fn pieces_of_any_size_give_what_the_whole_gives() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----";
        let text = format!("x correct horse y correct hors! xoxb-{} z\n{key} -----BEGIN it. Bearer", "1".repeat(20));
        let whole = redactor().bytes(text.as_bytes());
        for size in 1..text.len() {
            let mut flow = Flow::new(redactor());
            let mut clean: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| flow.push(piece)).collect();
            clean.extend(flow.finish());
            assert_eq!(String::from_utf8_lossy(&clean), String::from_utf8_lossy(&whole), "{size}");
        }
    }

    #[test]
    fn what_cannot_begin_a_secret_is_not_held_back() {
        let mut flow = Flow::new(redactor());
        assert_eq!(flow.push(b"what now? "), b"what now? ");
        assert_eq!(flow.push(b"{\"type\":\"result\"}\n"), b"{\"type\":\"result\"}\n");
    }
}
