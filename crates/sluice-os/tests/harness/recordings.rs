//! What is made of what the programs really printed. Each was started with the words of our table against a scripted
//! model; of the lines, what nobody reads was left out. A file is called after the program, its version and what happened.

use sluice_os::harness::stream::{HarnessExit, HarnessFormat};

use super::streams::read;

const RECORDED: [(&str, HarnessFormat, HarnessExit); 31] = [
    ("claude-2.1.326-done", HarnessFormat::Claude, HarnessExit::Code(0)),
    ("codex-0.169.0-done", HarnessFormat::Codex, HarnessExit::Code(0)),
    ("claude-2.1.325-done", HarnessFormat::Claude, HarnessExit::Code(0)),
    ("claude-2.1.325-no-key", HarnessFormat::Claude, HarnessExit::Code(1)),
    ("claude-2.1.325-limit", HarnessFormat::Claude, HarnessExit::Code(1)),
    ("claude-2.1.325-overloaded", HarnessFormat::Claude, HarnessExit::Code(1)),
    ("claude-2.1.325-unfinished", HarnessFormat::Claude, HarnessExit::Signal(15)),
    ("codex-0.166.0-done", HarnessFormat::Codex, HarnessExit::Code(0)),
    ("codex-0.166.0-no-key", HarnessFormat::Codex, HarnessExit::Code(1)),
    ("codex-0.166.0-limit", HarnessFormat::Codex, HarnessExit::Code(1)),
    ("codex-0.166.0-cut", HarnessFormat::Codex, HarnessExit::Code(1)),
    ("gemini-0.61.0-done", HarnessFormat::Gemini, HarnessExit::Code(0)),
    ("gemini-0.61.0-no-key", HarnessFormat::Gemini, HarnessExit::Code(145)),
    ("gemini-0.61.0-cut", HarnessFormat::Gemini, HarnessExit::Code(1)),
    ("opencode-1.18.33-done", HarnessFormat::Opencode, HarnessExit::Code(0)),
    ("opencode-1.18.33-limit", HarnessFormat::Opencode, HarnessExit::Code(1)),
    ("opencode-1.18.33-cut", HarnessFormat::Opencode, HarnessExit::Code(1)),
    ("qwen-0.24.4-done", HarnessFormat::Qwen, HarnessExit::Code(0)),
    ("qwen-0.24.4-no-key", HarnessFormat::Qwen, HarnessExit::Code(1)),
    ("qwen-0.24.4-cut", HarnessFormat::Qwen, HarnessExit::Code(1)),
    ("qwen-0.24.4-unfinished", HarnessFormat::Qwen, HarnessExit::Signal(15)),
    ("pi-0.87.1-done", HarnessFormat::Pi, HarnessExit::Code(0)),
    ("pi-0.87.1-no-key", HarnessFormat::Pi, HarnessExit::Code(0)),
    ("pi-0.87.1-broken", HarnessFormat::Pi, HarnessExit::Code(0)),
    ("copilot-1.0.102-done", HarnessFormat::Copilot, HarnessExit::Code(0)),
    ("copilot-1.0.102-no-key", HarnessFormat::Copilot, HarnessExit::Code(1)),
    ("copilot-1.0.102-limit", HarnessFormat::Copilot, HarnessExit::Code(1)),
    ("copilot-1.0.102-cut", HarnessFormat::Copilot, HarnessExit::Code(1)),
    ("aider-0.86.2-done", HarnessFormat::Aider, HarnessExit::Code(0)),
    ("aider-0.86.2-no-key", HarnessFormat::Aider, HarnessExit::Code(0)),
    ("aider-0.86.2-limit", HarnessFormat::Aider, HarnessExit::Code(0)),
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
    let mut reader = sluice_os::harness::stream::HarnessReader::new(HarnessFormat::Pi);
    let mut finals = Vec::new();
    for line in lines.lines() {
        reader.feed(format!("{line}\n").as_bytes());
        if line.contains("auto_retry_start") || line.contains("agent_settled") {
            finals.push(reader.is_final());
        }
    }
    assert_eq!(finals, [false, false, false, true]);
}
