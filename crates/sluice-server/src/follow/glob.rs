//! Patterns in which `*` stands for anything. Whether a text fits takes one look along the text, whatever the pattern.

use sluice_api::Problem;

/// The longest pattern, in bytes.
pub(crate) const LONGEST_PATTERN: usize = 200;

#[derive(Clone, Debug)]
pub(crate) struct Glob {
    /// What the text begins with; all of it when nothing else is there.
    start: String,
    /// What comes behind the first star: pieces between stars, and the end.
    rest: Option<(Vec<String>, String)>,
}

impl Glob {
    /// Reads a pattern, in which `*` stands for anything.
    pub(crate) fn read(pattern: &str) -> Result<Glob, Problem> {
        if pattern.len() > LONGEST_PATTERN {
            let message = format!("a pattern has at most {LONGEST_PATTERN} bytes, and this one has {}", pattern.len());
            return Err(Problem::bad_request(message).hint("say the beginning of a type and `*`: task.*"));
        }
        let mut pieces = pattern.split('*').map(str::to_owned);
        let start = pieces.next().unwrap_or_default();
        let mut pieces: Vec<String> = pieces.collect();
        let rest = pieces.pop().map(|end| (pieces.into_iter().filter(|piece| !piece.is_empty()).collect(), end));
        Ok(Glob { start, rest })
    }

    /// Whether a text fits. Each piece is taken where it first occurs: if it fits anywhere, it fits there.
    pub(crate) fn fits(&self, text: &str) -> bool {
        let Some((pieces, end)) = &self.rest else { return self.start == text };
        let Some(mut left) = text.strip_prefix(self.start.as_str()) else { return false };
        for piece in pieces {
            let Some(at) = left.find(piece.as_str()) else { return false };
            left = &left[at + piece.len()..];
        }
        left.ends_with(end.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, text: &str) -> bool {
        Glob::read(pattern).expect("a pattern").fits(text)
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, fit) in [
            ("task.*", "task.created", true),
            ("*", "", true),
            ("", "", true),
            ("", "x", false),
            ("*.created", "task.created", true),
            ("task.created", "task.created", true),
            ("task", "task.created", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
            ("a*a", "a", false),
            ("*ab*ab", "abab", true),
            ("*ab*ab", "aab", false),
            ("é*", "étage", true),
        ] {
            assert_eq!(fits(pattern, text), fit, "{pattern} {text}");
        }
    }

    #[test]
    fn it_agrees_with_the_plain_definition() {
        fn plain(pattern: &[u8], text: &[u8]) -> bool {
            match pattern.split_first() {
                None => text.is_empty(),
                Some((b'*', rest)) => (0..=text.len()).any(|at| plain(rest, &text[at..])),
                Some((letter, rest)) => text.split_first().is_some_and(|(it, left)| it == letter && plain(rest, left)),
            }
        }
        let words = |letters: &[u8], longest: u32| -> Vec<String> {
            let all =
                (0..=longest).flat_map(|length| (0..letters.len().pow(length)).map(move |number| (length, number)));
            let word = |(length, mut number): (u32, usize)| {
                let next = |_| {
                    let letter = letters[number % letters.len()];
                    number /= letters.len();
                    char::from(letter)
                };
                (0..length).map(next).collect()
            };
            all.map(word).collect()
        };
        let texts = words(b"ab", 5);
        for pattern in words(b"ab*", 5) {
            for text in &texts {
                assert_eq!(fits(&pattern, text), plain(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn a_pattern_has_a_limit() {
        assert!(Glob::read(&"*".repeat(LONGEST_PATTERN)).is_ok());
        assert!(Glob::read(&"*".repeat(LONGEST_PATTERN + 1)).is_err());
    }
}
