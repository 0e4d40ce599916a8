//! Secrets in what programs print. They are taken out before anything is stored: by their value where it is known, and by
//! their form where it is a common one; with colours between their letters or not.
//!
//! A value is known from the environment that a program was given. What comes in pieces is held back at the end of a piece
//! only as far as a secret may have begun there.

mod forms;
mod known;
mod unseen;

use std::path::Path;

use forms::{DASHES, LONGEST_BEGIN, SecretMatch, is_of_secret, position};
use known::KnownSecrets;
use unseen::{ShownBytes, WordBoundary, colours, spread};

pub const REDACTED: &str = "[redacted]";
/// The shortest value that is taken for a secret because of its variable's name; a shorter one is a word.
const SHORTEST: usize = 8;
const LONGEST_KEY: usize = 64 << 10;
/// Parts of the names of variables that hold secrets.
const TELLING: [&str; 9] =
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "PRIVATE_KEY", "ACCESS_KEY", "CREDENTIAL"];
const TELLING_ENDS: [&str; 3] = ["_KEY", "_PAT", "_AUTH"];
const END: &[u8] = b"-----END ";

#[derive(Clone, Debug)]
pub struct Redactor {
    known: KnownSecrets,
    /// The bytes that one of them begins with.
    begins_known: [bool; 256],
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
        let secrets = environment.into_iter().filter(|(name, value)| is_secret(name, value));
        let known = known::secrets(secrets.map(|(_, value)| value));
        let mut begins_known = [false; 256];
        known.keys().for_each(|byte| begins_known[usize::from(*byte)] = true);
        Self { known, begins_known, begins_form: forms::beginnings() }
    }

    pub fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    pub fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut flow = RedactionFlow::new(self.clone());
        let mut clean = flow.push(bytes);
        clean.extend(flow.finish());
        clean
    }
}

/// A text without what looks like a secret, where nothing is known of an environment.
pub fn redacted(text: &str) -> String {
    Redactor::default().text(text)
}

/// What a person sees of some bytes on a terminal: without what only the terminal obeys.
pub fn shown_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&ShownBytes::of(&spread(bytes)).collect::<Vec<u8>>()).into_owned()
}

/// Whether the value of a variable is a secret: its name says so, and the value is no short word and no file.
pub fn is_secret(name: &str, value: &str) -> bool {
    value.len() >= SHORTEST && is_telling(name) && !(value.starts_with('/') && Path::new(value).exists())
}

fn is_telling(name: &str) -> bool {
    // How many tokens a model may use is no secret.
    let name = name.to_ascii_uppercase().replace("TOKENS", "");
    TELLING.iter().any(|part| name.contains(part)) || TELLING_ENDS.iter().any(|end| name.ends_with(end))
}

#[derive(Debug)]
pub(crate) struct RedactionFlow {
    redactor: Redactor,
    /// What may be the beginning of a secret.
    held: Vec<u8>,
    before: WordBoundary,
    leaves_out: Option<OngoingSecret>,
}

#[derive(Clone, Copy, Debug)]
enum OngoingSecret {
    /// For as long as its letters do.
    Letters,
    /// A private key, of which so much has been left out.
    Key(usize),
}

impl RedactionFlow {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self { redactor, held: Vec::new(), before: WordBoundary::nothing(), leaves_out: None }
    }

    /// What can be told of the next piece.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.turn(bytes, false)
    }

    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.turn(&[], true)
    }

    fn turn(&mut self, bytes: &[u8], is_last: bool) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let mut clean = Vec::with_capacity(all.len());
        let mut at = 0;
        while at < all.len() {
            let rest = &all[at..];
            let passed = match self.leaves_out {
                Some(OngoingSecret::Letters) => self.leave_out_letters(rest, is_last, &mut clean),
                Some(OngoingSecret::Key(so_far)) => self.leave_out_key(so_far, rest, is_last),
                None => self.pass(rest, is_last, &mut clean),
            };
            match passed {
                Some(length) => at += length,
                None => break,
            }
        }
        self.held = all.split_off(at.min(all.len()));
        clean
    }

    /// Passes what is no secret, and what is one; how many bytes that is, if it can be told.
    fn pass(&mut self, rest: &[u8], is_last: bool, clean: &mut Vec<u8>) -> Option<usize> {
        let plain = self.plain(rest);
        clean.extend_from_slice(&rest[..plain]);
        let rest = &rest[plain..];
        let Some(first) = rest.first() else { return Some(plain) };
        let found = self.find(rest, is_last);
        let (length, shown) = match found {
            SecretMatch::Nothing => {
                clean.push(*first);
                self.before.pass(*first);
                return Some(plain + 1);
            }
            // What was passed is not looked at again.
            SecretMatch::Perhaps => return (plain > 0).then_some(plain),
            SecretMatch::Secret { length, shown } | SecretMatch::Letters { length, shown } => (length, shown),
            SecretMatch::Key(length) => (length, 0),
        };
        self.leaves_out = match found {
            SecretMatch::Letters { .. } => Some(OngoingSecret::Letters),
            SecretMatch::Key(_) => Some(OngoingSecret::Key(0)),
            SecretMatch::Nothing | SecretMatch::Perhaps | SecretMatch::Secret { .. } => None,
        };
        clean.extend_from_slice(&rest[..shown]);
        clean.extend_from_slice(REDACTED.as_bytes());
        clean.extend(colours(&rest[shown..length]));
        self.before = WordBoundary::left_out();
        Some(plain + length)
    }

    /// How many bytes begin no secret for sure.
    fn plain(&mut self, rest: &[u8]) -> usize {
        let Redactor { begins_known, begins_form, .. } = &self.redactor;
        for (at, byte) in rest.iter().enumerate() {
            let place = usize::from(*byte);
            if begins_known[place] || *byte == b':' || (begins_form[place] && self.before.is_border()) {
                return at;
            }
            self.before.pass(*byte);
        }
        rest.len()
    }

    fn find(&self, rest: &[u8], is_last: bool) -> SecretMatch {
        let mut perhaps = false;
        for known in rest.first().and_then(|first| self.redactor.known.get(first)).into_iter().flatten() {
            match known.seek(rest, is_last) {
                SecretMatch::Nothing => {}
                SecretMatch::Perhaps => perhaps = true,
                // What may become a longer one is not taken for a shorter one.
                SecretMatch::Secret { .. } | SecretMatch::Letters { .. } | SecretMatch::Key(_) if perhaps => break,
                found @ (SecretMatch::Secret { .. } | SecretMatch::Letters { .. } | SecretMatch::Key(_)) => {
                    return found;
                }
            }
        }
        if perhaps {
            return SecretMatch::Perhaps;
        }
        match rest.first() {
            Some(b':') => forms::in_address(rest, is_last),
            Some(_) if self.before.is_border() => forms::find(rest, is_last),
            Some(_) | None => SecretMatch::Nothing,
        }
    }

    /// Leaves out the letters of a secret; how much that is, if it can be told.
    fn leave_out_letters(&mut self, rest: &[u8], is_last: bool, clean: &mut Vec<u8>) -> Option<usize> {
        let mut shown = ShownBytes::of(rest);
        let mut length = 0;
        loop {
            match shown.next() {
                Some(byte) if is_of_secret(byte) => length = shown.at(),
                // What is not shown may stand within it, or behind it.
                None if !is_last => break,
                Some(_) | None => {
                    self.leaves_out = None;
                    break;
                }
            }
        }
        clean.extend(colours(&rest[..length]));
        (length > 0 || self.leaves_out.is_none()).then_some(length)
    }

    /// Leaves out what belongs to a private key; how much of it that is, if it can be told.
    fn leave_out_key(&mut self, so_far: usize, rest: &[u8], is_last: bool) -> Option<usize> {
        if let Some(end) = position(rest, END)
            && let Some(dashes) = position(&rest[end + END.len()..], DASHES)
        {
            self.leaves_out = None;
            return Some(end + END.len() + dashes + DASHES.len());
        }
        // The last line may be cut.
        let length = if is_last { rest.len() } else { rest.len().saturating_sub(LONGEST_BEGIN) };
        let so_far = so_far + length;
        self.leaves_out = (so_far < LONGEST_KEY).then_some(OngoingSecret::Key(so_far));
        (length > 0).then_some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        let set =
            [("DEPLOY_TOKEN", "correct horse"), ("PAGER", "less is more"), ("PIN_SECRET", "1234"), ("HOME_KEY", "/")];
        Redactor::of(set)
    }

    /// As claude 2.1.326 drew it.
    #[test]
    fn words_that_are_drawn_apart_stay_apart() {
        let drawn =
            b"\x1b[31mUnable\x1b[1Cto\x1b[Cconnect\x1b[39m\r\r\n\x1b[1CFailed\x1b[12Gto\x1b[5;3Hnext\x1b[2Kline\x1b[3";
        assert_eq!(shown_of(drawn), "Unable to connect\n Failed to\nnextline");
        assert_eq!(shown_of(b"\x1b[99999999C.").len(), 501);
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
    fn a_secret_is_found_in_other_clothes() {
        let letters = "x".repeat(36);
        let text = format!(
            "\u{1b}[1mghp_\u{1b}[31m{letters}\u{1b}[0m cor\u{1b}[4mrect\u{1b}]0;title\u{7} horse\u{1b}[m.\n\
             {{\"text\":\"here:\\nghp_{letters} and \\u001b[32mgh\\u001b[0mo_{letters}\"}}\n\
             Y29ycmVjdCBob3JzZQ== aTpjb3JyZWN0IGhvcnNl b246Y29ycmVjdCBob3JzZTo= 636f727265637420686f727365 correct%20horse\n\
             Authorization: Basic b246c2VzYW1l, basic dTpw and Basic principles\n\
             eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl not eyJhIjoxfQ==\n\
             postgres://me:open@sesame@db:5432/a https://ghp_{letters}:x@github.com/a http://h:80/@b ssh://git@host/a\n\
             cor\u{1b}[3",
        );
        insta::assert_snapshot!(redactor().text(&text).replace('\u{1b}', "^["), @r#"
        ^[[1m[redacted]^[[31m^[[0m [redacted]^[[4m^[[m.
        {"text":"here:\n[redacted] and [redacted]\u001b[32m\u001b[0m"}
        [redacted] aTp[redacted] b246[redacted]o= [redacted] [redacted]
        Authorization: Basic [redacted], basic [redacted] and Basic principles
        [redacted] not eyJhIjoxfQ==
        postgres://[redacted]@db:5432/a https://[redacted]@github.com/a http://h:80/@b ssh://git@host/a
        cor^[[3
        "#);
    }

    #[test]
    fn what_hides_a_secret_does_not_show_the_next() {
        let value = "awsSecretValue/With+Chars123";
        let redactor = Redactor::of([("AWS_SECRET_ACCESS_KEY", value)]);
        for before in ["", "x", "xy", "xyz"] {
            use base64::Engine;
            let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{before}{value}"));
            let clean = redactor.text(&format!("A:{encoded}\n{value}\n"));
            assert!(
                clean.ends_with("[redacted]\n[redacted]\n") || clean.ends_with("[redacted]==\n[redacted]\n"),
                "{clean}"
            );
        }
        let every = |form: fn(u8) -> String| value.bytes().map(form).collect::<String>();
        for text in [
            value.replace('/', "\\/"),
            every(|byte| format!("%{byte:02x}")),
            every(|byte| format!("\\u{byte:04x}")),
            every(|byte| format!("{byte:02x} ")),
        ] {
            assert_eq!(redactor.text(&text).trim_end(), "[redacted]", "{text}");
        }
    }

    #[test]
    fn pieces_of_any_size_give_what_the_whole_gives() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----";
        let text = format!(
            "x correct horse y correct hors! xoxb-{} z\n{key} sk-\u{1b}[31m{}\u{1b}[0m Y29ycmVjdCBo\nb3JzZQ== u://a:b@c \
             Basic b246c2VzYW1l eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl -----BEGIN it. Bearer",
            "1".repeat(20),
            "2".repeat(20),
        );
        let whole = redactor().bytes(text.as_bytes());
        assert_eq!(String::from_utf8_lossy(&whole).matches(REDACTED).count(), 8);
        for size in 1..text.len() {
            let mut flow = RedactionFlow::new(redactor());
            let mut clean: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| flow.push(piece)).collect();
            clean.extend(flow.finish());
            assert_eq!(String::from_utf8_lossy(&clean), String::from_utf8_lossy(&whole), "{size}");
        }
    }

    #[test]
    fn what_cannot_begin_a_secret_is_not_held_back() {
        let mut flow = RedactionFlow::new(redactor());
        assert_eq!(flow.push(b"what now? "), b"what now? ");
        assert_eq!(flow.push(b"{\"type\":\"result\"}\n"), b"{\"type\":\"result\"}\n");
    }
}
