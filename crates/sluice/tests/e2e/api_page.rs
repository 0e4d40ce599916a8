//! docs/api.md: every command on it is run, and what it answers is what the page shows. An `…` stands for anything; an id
//! or a time on the page for any other.

use std::fmt::Write;

use serde_json::Value;

use super::described::furnished;
use super::home::run;
use super::served::Served;

const PAGE: &str = include_str!("../../../../docs/api.md");
/// Stands before what a command prints.
const MARK: char = '\u{1}';
/// Stands for anything.
const ANYTHING: &str = "…";

/// A command, and what the page says it prints.
#[derive(Debug)]
struct Example {
    command: String,
    shown: String,
}

fn examples() -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let blocks = PAGE.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    for line in blocks.flat_map(str::lines) {
        if let Some(command) = line.strip_prefix("$ ") {
            examples.push(Example { command: command.to_owned(), shown: String::new() });
            continue;
        }
        let example = examples.last_mut().unwrap();
        match line.strip_prefix("> ") {
            Some(more) => write!(example.command, "\n{more}").unwrap(),
            None => writeln!(example.shown, "{line}").unwrap(),
        }
    }
    examples
}

#[test]
fn the_page_of_the_api_is_true() {
    let home = furnished();
    let prompts = home.repository().join("prompts").display().to_string();
    let served = Served::start(&home, &["--prompts", &prompts]);
    let examples = examples();
    assert!(examples.len() > 30, "{}", examples.len());
    let mut script = "set -o pipefail\n".to_owned();
    for Example { command, .. } in &examples {
        writeln!(script, "printf '\\1'\n{command}").unwrap();
    }
    let file = home.path("page.sh");
    std::fs::write(&file, script).unwrap();
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_sluice")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    // Longer than it takes, so that a page that waits for what never comes fails.
    let mut bash = home.program("timeout");
    let ran = run(bash.args(["120", "bash"]).arg(&file).env("URL", &served.url).env("PATH", path));
    let printed: Vec<&str> = ran.stdout.split(MARK).skip(1).collect();
    let mut wrong = String::new();
    for (example, printed) in examples.iter().zip(printed.iter().map(Some).chain(std::iter::repeat(None))) {
        let said = printed.copied().unwrap_or("(nothing: the shell had ended)");
        if !is_shown(&example.shown, said) {
            writeln!(wrong, "$ {}\n  the page: {}\n  it says:  {said}", example.command, example.shown).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}\n{}", ran.stderr);
    assert_eq!(ran.stderr, "");
}

fn is_shown(shown: &str, said: &str) -> bool {
    match (serde_json::from_str::<Value>(shown), serde_json::from_str::<Value>(said)) {
        (Ok(shown), Ok(said)) => is_like(&shown, &said),
        _ => shown.trim() == said.trim(),
    }
}

fn is_like(shown: &Value, said: &Value) -> bool {
    match (shown, said) {
        (Value::String(shown), _) if shown == ANYTHING => true,
        (Value::String(shown), Value::String(said)) => {
            let (one, other): (Vec<&str>, Vec<&str>) = (shown.split('.').collect(), said.split('.').collect());
            one.len() == other.len() && one.iter().zip(&other).all(|(one, other)| one == other || are_ids(one, other))
        }
        (Value::Number(shown), Value::Number(said)) => {
            let is_time = |number: &serde_json::Number| number.as_u64().is_some_and(|it| it > 1_000_000_000_000);
            shown == said || (is_time(shown) && is_time(said))
        }
        (Value::Array(shown), Value::Array(said)) => {
            shown.len() == said.len() && shown.iter().zip(said).all(|(shown, said)| is_like(shown, said))
        }
        (Value::Object(shown), Value::Object(said)) => {
            let has_all = shown.contains_key(ANYTHING) || shown.len() == said.len();
            let fits = |(key, value): (&String, &Value)| {
                key == ANYTHING || said.get(key).is_some_and(|said| is_like(value, said))
            };
            has_all && shown.iter().all(fits)
        }
        _ => shown == said,
    }
}

/// The page shows ids with a digit in them, so that no word is taken for one.
fn are_ids(shown: &str, said: &str) -> bool {
    let plain = |text: &str| text.len() == 10 && text.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit());
    plain(shown) && plain(said) && shown.contains(|it: char| it.is_ascii_digit())
}
