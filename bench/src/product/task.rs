//! From `sluice task create` until the agent runs, beside git and tmux alone.

use std::process::Command;
use std::time::{Duration, Instant};

use super::pipe::Pipe;
use super::repository::Repository;
use super::served::{ServedHome, Wished};
use super::{Stage, median};
use crate::line::field;
use crate::machine::run;

/// Tasks in fresh worktrees, and then in those that the first tasks have given back.
pub fn measure(stage: &Stage) {
    let pipes = tempfile::tempdir_in(stage.disk()).unwrap();
    let pipe = Pipe::new(pipes.path());
    // The agent says that it is there, and waits for its end.
    let script = pipes.path().join("agent.sh");
    std::fs::write(&script, format!("{}\nread -r line\n", pipe.command())).unwrap();
    let agent = script.display().to_string();
    let config = format!("[harnesses.stamp]\ninteractive = [\"/bin/sh\", {agent:?}, \"{{prompt}}\"]\n");
    let served = ServedHome::start(&stage.program, stage.disk(), &Wished { config, ..Wished::default() });
    let (count, files) = (stage.scale.tasks, stage.scale.files[1]);
    let repository = Repository::new(stage.disk(), files, &[]);
    served.add(&repository, &["--pool-size", &count.to_string()]);

    let socket = pipes.path().join("tmux.sock");
    let tmux = || {
        let mut command = Command::new("tmux");
        command.env_remove("TMUX").arg("-S").arg(&socket);
        command
    };
    let floor: Vec<(Duration, Duration)> = (0..count)
        .map(|_| {
            let made = repository.worktree().0;
            let began = Instant::now();
            run(tmux().args(["new-session", "-d", "/bin/sh"]).arg(&script)).unwrap();
            (made, pipe.next() - began)
        })
        .collect();
    let _ = run(tmux().arg("kill-server"));
    let session = median(&floor.iter().map(|(_, session)| *session).collect::<Vec<_>>());
    let made = median(&floor.iter().map(|(made, _)| *made).collect::<Vec<_>>());

    let fresh = create(&served, &repository, &pipe, "fresh", count);
    let row = format!("task create to agent, fresh worktree, {files} files / git worktree add, tmux");
    stage.table.times(&row, fresh, made + session, "");
    let again = create(&served, &repository, &pipe, "again", count);
    stage.table.times("task create to agent, worktree given back before / tmux", again, session, "");
}

/// Creates so many tasks, one after the other, and cancels all of them. Gives the median until the agent runs.
fn create(served: &ServedHome, repository: &Repository, pipe: &Pipe, name: &str, count: usize) -> Duration {
    let (mut took, mut ids) = (Vec::new(), Vec::new());
    for number in 0..count {
        let branch = format!("{name}-{number}");
        let mut command = served.sluice();
        command.args([
            "task",
            "create",
            &branch,
            "Measure it",
            "--harness",
            "stamp",
            "--project",
            &repository.name,
            "--json",
        ]);
        let began = Instant::now();
        let created = run(command.current_dir(repository.folder())).unwrap();
        took.push(pipe.next() - began);
        ids.push(field(&created, "id").expect("no task"));
    }
    for id in ids {
        served.done(&["task", "cancel", &id, "--yes"]);
    }
    median(&took)
}
