//! The terminal's own notification, for a person who waits at it: a bell, and a message for terminals that show one (OSC 9).
//!
//! It is for commands that follow something in the foreground. Nothing but a terminal ever gets it.

use std::io::{IsTerminal, Write};

use sluice_home::settings::config::ConfigFile;

use crate::engine;
use crate::output::CliOutput;
use crate::table;

/// Characters of the message: a desktop shows one line.
const LONGEST: usize = 200;

/// Rings, and shows the message where the terminal can, if a person is at it and has not turned it off.
pub(super) fn ring(output: CliOutput, message: &str) {
    let is_seen = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    if output == CliOutput::People && is_seen && is_wanted() {
        let within_tmux = std::env::var_os("TMUX").is_some_and(|value| !value.is_empty());
        let mut terminal = std::io::stderr().lock();
        let _ = terminal.write_all(sequence(message, within_tmux).as_bytes()).and_then(|()| terminal.flush());
    }
}

/// `[notify] terminal`. A file that cannot be read is told of elsewhere.
fn is_wanted() -> bool {
    let file = engine::places().ok().map(|places| places.config());
    file.and_then(|file| ConfigFile::open(file).ok()).is_none_or(|file| file.config().notify.terminal)
}

/// What the terminal obeys. A tmux hands a message on only in a wrapping of its own; a bell it understands itself.
fn sequence(message: &str, within_tmux: bool) -> String {
    let message = table::line(message, LONGEST);
    match within_tmux {
        false => format!("\u{1b}]9;{message}\u{1b}\\\u{7}"),
        true => format!("\u{1b}Ptmux;\u{1b}\u{1b}]9;{message}\u{7}\u{1b}\\\u{7}"),
    }
}

#[cfg(test)]
mod tests {
    use super::sequence;

    #[test]
    fn a_message_cannot_end_its_own_sequence() {
        assert_eq!(sequence("brew needs you\u{7}\u{1b}]0;x", false), "\u{1b}]9;brew needs you  ]0;x\u{1b}\\\u{7}");
        assert_eq!(sequence("brew", true), "\u{1b}Ptmux;\u{1b}\u{1b}]9;brew\u{7}\u{1b}\\\u{7}");
        assert!(sequence(&"x".repeat(1000), false).chars().count() < 220);
    }
}
