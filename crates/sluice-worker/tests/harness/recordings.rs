//! What is made of what the programs really printed. Each was started with the words of our table against a scripted
//! model; of the lines, what nobody reads was left out. A file is called after the program, its version and what happened.

use sluice_worker::harness::stream::{Exit, Output};

use super::streams::read;

const RECORDED: [(&str, Output, Exit); 29] = [
    ("claude-2.1.325-done", Output::Claude, Exit::Code(0)),
    ("claude-2.1.325-no-key", Output::Claude, Exit::Code(1)),
    ("claude-2.1.325-limit", Output::Claude, Exit::Code(1)),
    ("claude-2.1.325-overloaded", Output::Claude, Exit::Code(1)),
    ("claude-2.1.325-unfinished", Output::Claude, Exit::Signal(15)),
    ("codex-0.166.0-done", Output::Codex, Exit::Code(0)),
    ("codex-0.166.0-no-key", Output::Codex, Exit::Code(1)),
    ("codex-0.166.0-limit", Output::Codex, Exit::Code(1)),
    ("codex-0.166.0-cut", Output::Codex, Exit::Code(1)),
    ("gemini-0.61.0-done", Output::Gemini, Exit::Code(0)),
    ("gemini-0.61.0-no-key", Output::Gemini, Exit::Code(145)),
    ("gemini-0.61.0-cut", Output::Gemini, Exit::Code(1)),
    ("opencode-1.18.33-done", Output::Opencode, Exit::Code(0)),
    ("opencode-1.18.33-limit", Output::Opencode, Exit::Code(1)),
    ("opencode-1.18.33-cut", Output::Opencode, Exit::Code(1)),
    ("qwen-0.24.4-done", Output::Qwen, Exit::Code(0)),
    ("qwen-0.24.4-no-key", Output::Qwen, Exit::Code(1)),
    ("qwen-0.24.4-cut", Output::Qwen, Exit::Code(1)),
    ("qwen-0.24.4-unfinished", Output::Qwen, Exit::Signal(15)),
    ("pi-0.87.1-done", Output::Pi, Exit::Code(0)),
    ("pi-0.87.1-no-key", Output::Pi, Exit::Code(0)),
    ("pi-0.87.1-broken", Output::Pi, Exit::Code(0)),
    ("copilot-1.0.102-done", Output::Copilot, Exit::Code(0)),
    ("copilot-1.0.102-no-key", Output::Copilot, Exit::Code(1)),
    ("copilot-1.0.102-limit", Output::Copilot, Exit::Code(1)),
    ("copilot-1.0.102-cut", Output::Copilot, Exit::Code(1)),
    ("aider-0.86.2-done", Output::Aider, Exit::Code(0)),
    ("aider-0.86.2-no-key", Output::Aider, Exit::Code(0)),
    ("aider-0.86.2-limit", Output::Aider, Exit::Code(0)),
];

fn recorded(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/harness/recorded");
    std::fs::read_to_string(format!("{folder}/{name}.txt")).unwrap()
}

#[test]
fn what_programs_printed_is_understood() {
    let mut page = String::new();
    for (name, output, exit) in RECORDED {
        page.push_str(&format!("{name}\n{}\n\n", read(output, exit, &recorded(name))));
    }
    insta::assert_snapshot!(page);
}

/// pi says that it has ended before it tries again. Whoever ends programs that stay after their last words must not
/// end it in the pause.
#[test]
fn a_pause_before_the_next_attempt_is_no_end() {
    let lines = recorded("pi-0.87.1-broken");
    let mut reader = sluice_worker::harness::stream::Reader::new(Output::Pi);
    let mut finals = Vec::new();
    for line in lines.lines() {
        reader.feed(format!("{line}\n").as_bytes());
        if line.contains("auto_retry_start") || line.contains("agent_settled") {
            finals.push(reader.is_final());
        }
    }
    assert_eq!(finals, [false, false, false, true]);
}
