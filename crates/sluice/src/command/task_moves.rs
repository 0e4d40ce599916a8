//! The moves of a task as `sluice task show` prints them: what can be done now, by which command, and why the rest cannot.

use sluice_api::task::{MergeShown, MoveShown, Task};

use crate::table;

/// Longer reasons are cut.
const LONGEST: usize = 400;

/// What the asker can do with a task now, and what not.
pub(super) fn told(task: &Task) -> String {
    let moves = task.moves.as_deref().unwrap_or_default();
    let width = moves.iter().map(|it| it.to.chars().count()).max().unwrap_or_default();
    let line = |it: &MoveShown, text: &str| format!("  {:<width$}  {}\n", it.to, table::line(text, LONGEST));
    let (mut open, mut barred) = (String::new(), String::new());
    for it in moves {
        match &it.why {
            None => open.push_str(&line(it, &command(task, it))),
            Some(why) => {
                let why = why.strip_prefix("Transition not allowed: ").unwrap_or(why);
                barred.push_str(&line(it, &format!("because {why}{}", usual(it))));
            }
        }
    }
    let part = |head: &str, lines: String| if lines.is_empty() { lines } else { format!("\n{head}\n{lines}") };
    part("you can:", open) + &part("not open:", barred)
}

fn usual(it: &MoveShown) -> &'static str {
    match it.by {
        sluice_api::task::MoveBy::Person => "",
        sluice_api::task::MoveBy::Agent => " (an agent usually does it)",
        sluice_api::task::MoveBy::Engine => " (the engine does it)",
    }
}

fn command(task: &Task, it: &MoveShown) -> String {
    let id = &task.id;
    match (&it.merge, it.to.as_str()) {
        (Some(MergeShown { why: None, .. }), _) => format!("sluice task merge {id}"),
        (Some(MergeShown { why: Some(why), .. }), to) => {
            let why = why.strip_prefix("Merge not allowed: ").unwrap_or(why);
            format!("sluice task update {id} --status {to}, without a merge; no merge because {why}")
        }
        (None, "cancelled") => format!("sluice task cancel {id}"),
        (None, to) => format!("sluice task update {id} --status {to}{}", usual(it)),
    }
}
