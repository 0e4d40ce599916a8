//! aider: plain text, and exit status 0 whatever happened. What a model answered is followed by a line that counts its
//! tokens; words that no such line follows are about the program and not the answer.

use super::HarnessUsage;
use super::state::{HarnessStreamState, sum};

/// What it says about itself before the answer.
const PREAMBLE: [&str; 10] = [
    "Aider v",
    "Main model:",
    "Model:",
    "Editor model:",
    "Weak model:",
    "Git repo:",
    "Repo-map:",
    "Warning:",
    "Newer aider version",
    "https://aider.chat/",
];

pub(super) fn line(line: &str, state: &mut HarnessStreamState) {
    let line = line.trim_end();
    if line.starts_with("litellm.") {
        state.complain(line);
        state.forget();
    } else if line.starts_with("Retrying in ") {
        state.forget();
    } else if line.starts_with("Aider v") {
        // What came before is the noise of its libraries.
        state.forget();
        state.trouble = None;
    } else if let Some(usage) = tokens(line) {
        state.trouble = None;
        state.used(usage);
        state.new_message();
    } else if line.starts_with("Applied edit to ") || line.starts_with("Commit ") {
        state.forget();
        state.tool("edit");
    } else if state.has_begun() || !is_preamble(line) {
        state.say(&format!("{line}\n"));
    }
}

fn is_preamble(line: &str) -> bool {
    let adds_a_file = line.starts_with("Added ") && line.ends_with(" to the chat.");
    line.is_empty() || adds_a_file || PREAMBLE.iter().any(|words| line.starts_with(words))
}

/// There is no final line, so it is judged when nothing more comes.
pub(super) fn finish(state: &mut HarnessStreamState) {
    state.forget();
    state.end(match state.trouble.clone() {
        None if state.has_answered() => Ok(()),
        None => Err("it ended without an answer from a model".to_owned()),
        Some(trouble) => Err(trouble),
    });
}

/// `Tokens: 2.3k sent, 18 received. Cost: $0.0012 message, $0.0034 session.`
fn tokens(line: &str) -> Option<HarnessUsage> {
    let (sent, rest) = line.strip_prefix("Tokens: ")?.split_once(" sent")?;
    let received = rest.rsplit_once(" received")?.0.rsplit(' ').next()?;
    let (input, output) = (number(sent), number(received));
    let cost = line.split_once("Cost: $").and_then(|(_, rest)| rest.split(' ').next()?.parse::<f64>().ok());
    let cost = cost.filter(|cost| cost.is_finite() && *cost >= 0.0).map(|cost| (cost * 1e6).round() as u64);
    Some(HarnessUsage { input, cached: None, output, total: sum([input, output]), cost })
}

fn number(word: &str) -> Option<u64> {
    let (digits, times) = match (word.strip_suffix('k'), word.strip_suffix('M')) {
        (Some(digits), _) => (digits, 1e3),
        (None, Some(digits)) => (digits, 1e6),
        (None, None) => (word, 1.0),
    };
    let number = digits.replace(',', "").parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)?;
    Some((number * times).round() as u64)
}
