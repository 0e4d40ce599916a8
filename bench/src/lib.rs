//! Large definitions to measure with.

use std::fmt::Write;

/// A recipe of `count` scripts, one after the other.
pub fn sequence(count: usize) -> String {
    let mut file = String::from("name: long\nsteps:\n");
    for step in 0..count {
        let before = step.saturating_sub(1);
        let _ = writeln!(file, "  - name: step-{step}\n    type: script\n    output: out_{step}");
        match step {
            0 => file.push_str("    command: echo start\n"),
            _ => drop(writeln!(file, "    command: echo ${{step-{before}.output}} \"${{out_{before}}}\"")),
        }
    }
    file
}

/// A recipe of `count` agents in a graph: each needs up to five earlier ones and reads two of them in its condition.
pub fn graph(count: usize) -> String {
    let mut file = String::from("name: wide\nmax_parallel: 8\nsteps:\n");
    for step in 0..count {
        let needs: Vec<String> = [1usize, 2, 3, 50, 700]
            .iter()
            .filter_map(|back| step.checked_sub(*back))
            .map(|it| format!("s{it}"))
            .collect();
        let _ = writeln!(
            file,
            "  - name: s{step}\n    needs: [{}]\n    prompt: \"Do part {step} of ${{run.prompt}}\"",
            needs.join(", ")
        );
        if let [first, .., last] = needs.as_slice() {
            let _ = writeln!(file, "    when: \"{first}.result != 'FAIL' || {last}.status == 'completed'\"");
        }
    }
    file
}

/// A lifecycle of `count` states in a row, each with a review, a bounded way back, and a way to the end.
pub fn lifecycle(count: usize) -> String {
    let mut file = String::from("name: vast\nversion: 1\nstates:\n  pending: {}\n");
    for state in 0..count {
        let _ = writeln!(file, "  s{state}: {{respawn_prompt: worker}}");
    }
    file.push_str("  stuck: {}\n  done: {terminal: true}\n  cancelled: {terminal: true}\ntransitions:\n");
    let spawn = "{action: spawn_agent, prompt: worker, increment: review_round}";
    let _ = writeln!(file, "  - {{from: pending, to: s0, hooks: [{{action: acquire_workspace}}, {spawn}]}}");
    let end = "{action: kill_session}, {action: release_workspace}";
    for state in 0..count {
        let next = if state + 1 == count { "done".to_owned() } else { format!("s{}", state + 1) };
        let after = if state + 1 == count { end } else { "{action: kill_session}" };
        let gate = |verdict: &str| format!("gate: {{section: \"## Review\", verdict: {verdict}}}");
        let _ = writeln!(file, "  - {{from: s{state}, to: {next}, {}, hooks: [{after}]}}", gate("PASS"));
        let back = state.saturating_sub(1);
        let _ = writeln!(
            file,
            "  - {{from: s{state}, to: s{back}, {}, when: \"review_round < 3\", hooks: [{spawn}]}}",
            gate("FAIL")
        );
        let _ = writeln!(file, "  - {{from: s{state}, to: stuck, {}, when: \"review_round >= 3\"}}", gate("FAIL"));
        let _ = writeln!(file, "  - {{from: s{state}, to: cancelled, hooks: [{end}]}}");
    }
    let _ = writeln!(file, "  - {{from: stuck, to: cancelled, hooks: [{end}]}}");
    file.push_str("prompts:\n  worker: \"Do {summary}\"\n");
    file
}

#[cfg(test)]
mod tests {
    use sluice_dialect::prompts::NoPrompts;
    use sluice_dialect::{Source, Sources, load};

    #[test]
    fn they_are_definitions() {
        for file in [super::sequence(50), super::graph(800), super::lifecycle(50)] {
            let source = Source { path: "x.yml", bytes: file.as_bytes() };
            let loaded = load(&source, &mut NoPrompts, &mut Sources::new());
            assert!(loaded.is_usable(), "{:#?}", loaded.problems.first());
        }
    }
}
