//! The version in what a program answers to `--version`.

/// The first thing in `answer` that looks like a version: `2.1.45 (Claude Code)`, `codex-cli 0.98.0`, `v1.2.3-rc1`.
pub fn read_version(answer: &str) -> Option<String> {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | ';' | '"' | '\'');
    let is_version = |word: &&str| {
        let mut numbers = word.split('.');
        let first = numbers.next().is_some_and(|number| !number.is_empty() && number.bytes().all(is_digit));
        first && numbers.next().is_some_and(|rest| rest.bytes().next().is_some_and(is_digit))
    };
    let words = answer.split(is_end).map(|word| word.strip_prefix('v').unwrap_or(word));
    let versions = words.map(|word| word.trim_end_matches(['.', ':'])).filter(|word| word.len() <= LONGEST_VERSION);
    versions.filter(is_version).map(str::to_owned).next()
}

/// Bytes of a version that is worth recording.
const LONGEST_VERSION: usize = 64;

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::read_version;

    #[test]
    fn versions_are_found_where_programs_put_them() {
        for (answer, version) in [
            ("2.1.45 (Claude Code)\n", "2.1.45"),
            ("codex-cli 0.98.0\n", "0.98.0"),
            (" 1.6.0\n", "1.6.0"),
            ("aider 0.86.1", "0.86.1"),
            ("2025.09.18-7ae6800", "2025.09.18-7ae6800"),
            ("GitHub Copilot CLI 1.0.17.\nRun 'copilot update'", "1.0.17"),
            ("amp v0.0.1758 (released 2h ago)", "0.0.1758"),
            ("3 warnings\nv1.2.3-rc.1", "1.2.3-rc.1"),
        ] {
            assert_eq!(read_version(answer).as_deref(), Some(version), "{answer}");
        }
        for nonsense in ["", "command not found", "see 127.", "a.b.c", &"1.".repeat(100)] {
            assert_eq!(read_version(nonsense), None, "{nonsense}");
        }
    }
}
