//! Hostile text in summaries, branches, names of projects and context reaches the agent as it is, and no shell. Hostile
//! settings of a repository decide nothing.

use std::path::{Path, PathBuf};

use super::home::{Home, run};
use super::recipes::{begin, grimoire, settled, step};

/// Everything that a shell, YAML, JSON, tmux or a terminal could take for something else.
const HOSTILE: &str = "-x \"quoted\" 'single' $(touch PWNED) `touch PWNED` ; touch PWNED & | > PWNED \\ \\n %s #{pane_id} \
                       ${HOME} {summary} {{context}} *?[a-z] ~ ! é ü 漢字 🦀 \u{202e}rtl \t tab --- : - [x]";

/// A harness that writes down what it was given, and says so.
fn dumping(home: &Home) -> (PathBuf, super::home::Pipe) {
    let folder = home.path("dump");
    std::fs::create_dir(&folder).unwrap();
    let told = home.pipe("told");
    let script = format!(
        "printf '%s' \"$1\" > {0}/prompt\ncp TASK.md {0}/TASK.md\nprintf '%s' \"$#\" > {0}/count\n: > {1}\nexec cat > /dev/null\n",
        folder.display(),
        told.path()
    );
    let path = home.path("dump.sh");
    std::fs::write(&path, script).unwrap();
    let words = format!("[\"sh\", \"{}\", \"{{prompt}}\"]", path.display());
    std::fs::create_dir_all(home.place()).unwrap();
    let config = format!("[harnesses.dump]\ninteractive = {words}\nheadless = {words}\n");
    std::fs::write(home.place().join("config.toml"), config).unwrap();
    (folder, told)
}

/// Nothing that the text asks a shell for has been done.
fn is_unharmed(home: &Home, workspace: &Path) {
    for folder in
        [home.repository(), home.place(), home.path("user"), home.path("dump"), workspace.to_owned(), "/".into()]
    {
        assert!(!folder.join("PWNED").exists(), "{}", folder.display());
    }
}

#[test]
fn hostile_text_reaches_the_agent_unchanged() {
    let home = Home::empty();
    let (dump, told) = dumping(&home);
    let project = "my \"$(touch PWNED)`touch PWNED`;'.:project é";
    home.sluice(&["project", "add", "--name", project]).done();
    let branch = "-not";
    let refused = home.sluice(&["task", "create", "--harness", "dump", "--", branch, "x"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("\"-not\" cannot be the name of a branch"), "{refused:?}");

    let branch = "fix.$(touch${IFS}PWNED);`id`'\"&|é漢";
    let context = format!("## Context\n\n{HOSTILE}\n\n```demo\ncrash\n```\n");
    let words = ["task", "create", "--harness", "dump", "--context", &context, "--json", "--", branch, HOSTILE];
    let answer = home.sluice(&words).done().json();
    told.hear();
    let task = &answer["task"];
    assert_eq!((&task["summary"], &task["branch"]), (&HOSTILE.into(), &branch.into()));
    assert_eq!(task["project"], project);
    let prompt = std::fs::read_to_string(dump.join("prompt")).unwrap();
    assert_eq!(std::fs::read_to_string(dump.join("count")).unwrap(), "1");
    let head = format!("# Task: {HOSTILE}\n\nProject: {project}\nBranch: {branch}\n\n");
    assert!(prompt.starts_with(&head), "{prompt}");
    let file = std::fs::read_to_string(dump.join("TASK.md")).unwrap();
    assert!(file.ends_with(&format!("---\n\n{context}")) || file.ends_with(&format!("---\n{context}")), "{file}");
    let workspace = PathBuf::from(task["workspace"].as_str().unwrap());
    let head = run(home.program("git").current_dir(&workspace).args(["symbolic-ref", "--short", "HEAD"])).done();
    assert_eq!(head.stdout.trim_end(), branch);
    is_unharmed(&home, &workspace);

    // What the record says is the name that tmux knows the session by.
    let id = task["id"].as_str().unwrap();
    let session = task["tmux_session"].as_str().unwrap();
    assert_eq!(home.windows(), [format!("{session}:worker")]);
    home.json(&["task", "cancel", id, "--yes"]);
    assert_eq!(home.windows(), Vec::<String>::new());
    is_unharmed(&home, &workspace);
}

#[test]
fn a_megabyte_reaches_the_agent_unchanged() {
    let home = Home::empty();
    let (dump, told) = dumping(&home);
    home.sluice(&["project", "add"]).done();
    let context: String = format!("## Context\n\n{HOSTILE}\n").repeat((1 << 20) / HOSTILE.len());
    let mut command =
        home.command(&["task", "create", "brew", "Brew", "--harness", "dump", "--context", "-", "--json"]);
    let file = home.path("context");
    std::fs::write(&file, &context).unwrap();
    run(command.stdin(std::fs::File::open(file).unwrap())).done();
    told.hear();
    let text = std::fs::read_to_string(dump.join("TASK.md")).unwrap();
    assert!(text.ends_with(&context), "{} of {}", text.len(), context.len());

    // More than one argument may hold: the prompt travels another way, or the start says why not.
    let summary = HOSTILE.repeat(100_000 / HOSTILE.len());
    let answer = home.sluice(&["task", "create", "--harness", "dump", "--json", "--", "tea", &summary]).done().json();
    told.hear();
    assert_eq!(answer["task"]["summary"], summary);
    let prompt = std::fs::read_to_string(dump.join("prompt")).unwrap();
    assert!(prompt.starts_with(&format!("# Task: {summary}\n")), "{}", prompt.len());
}

#[test]
fn lines_in_a_summary_and_nul_are_dealt_with() {
    let home = Home::empty();
    let (dump, told) = dumping(&home);
    home.sluice(&["project", "add"]).done();
    let answer = home.json(&["task", "create", "brew", "one\ntwo: x\n---\nstatus: done", "--harness", "dump"]);
    told.hear();
    let id = answer["task"]["id"].as_str().unwrap();
    assert_eq!(home.task(id)["summary"], "one\ntwo: x\n---\nstatus: done");
    assert_eq!(home.task(id)["status"], "working");
    let prompt = std::fs::read_to_string(dump.join("prompt")).unwrap();
    assert!(prompt.starts_with("# Task: one\ntwo: x\n---\nstatus: done\n"), "{prompt}");

    let file = home.path("nul");
    std::fs::write(&file, "before\0after").unwrap();
    let mut command = home.command(&["task", "create", "tea", "Tea", "--harness", "dump", "--context", "-", "--json"]);
    let ran = run(command.stdin(std::fs::File::open(file).unwrap()));
    let message = ran.json()["error"]["message"].take();
    assert_eq!((ran.refusal().as_str(), message), ("2 bad_request", "a summary or context cannot hold a NUL".into()));
}

/// Every session can write the repository's own configuration and attributes. What is merged is what git itself makes of
/// the two sides, or a driver of the person's own configuration.
#[test]
fn a_merge_driver_of_the_repository_does_not_decide_what_is_merged() {
    let home = Home::new();
    let id = home.create("brew", "worker: work\nreviewer: review pass", &[]);
    home.until_status(&id, "reviewing");
    let file = home.git(&["diff", "--name-only", "main", "brew"]);
    let mine = home.repository().join(&file);
    std::fs::create_dir_all(mine.parent().unwrap()).unwrap();
    std::fs::write(&mine, "mine\n").unwrap();
    std::fs::write(home.repository().join(".gitattributes"), "demo/** merge=own\n").unwrap();
    home.commit();
    std::fs::write(home.repository().join(".git/info/attributes"), "* merge=own\n").unwrap();
    let ran = home.path("ran");
    home.git(&["config", "merge.own.driver", &format!("echo evil > %A; touch {}", ran.display())]);
    let refused = home.sluice(&["task", "merge", &id, "--json"]);
    assert_eq!(refused.refusal(), "1 merge_conflict");
    let said = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(said.contains("the merge driver `own` stands only in the repository's own configuration"), "{said}");
    assert!(said.contains("`git config --global merge.own.driver COMMAND` makes it count"), "{said}");
    assert!(!ran.exists());
    home.git(&["config", "--global", "merge.own.driver", "echo both > %A"]);
    home.json(&["task", "merge", &id]);
    assert_eq!(std::fs::read_to_string(mine).unwrap(), "both\n");
    assert!(!ran.exists());
}

/// git opens some files of a checkout without a look at what they are.
#[test]
fn a_pipe_in_place_of_a_file_that_git_reads_holds_up_nobody() {
    let home = Home::new();
    let id = home.create("brew", "worker: hang", &[]);
    let folder =
        PathBuf::from(home.until(&id, "started", |task| task["session"] == "active")["workspace"].as_str().unwrap());
    let pipe = folder.join("demo/.gitignore");
    std::fs::create_dir_all(folder.join("demo")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let named = pipe.display().to_string();
    let doctor = home.sluice(&["doctor"]);
    assert!(format!("{}{}", doctor.stdout, doctor.stderr).contains(&named), "{doctor:?}");
    // The task ends; its worktree stays until somebody has looked.
    let cancelled = home.json(&["task", "cancel", &id, "--yes"]);
    assert_eq!(cancelled["task"]["status"], "cancelled", "{cancelled:#}");
    assert_eq!(home.task(&id)["session"], "inactive");
    std::fs::remove_file(&pipe).unwrap();
    home.json(&["workspace", "gc"]);
}

#[test]
fn an_agent_shows_the_next_one_no_other_work_than_it_did() {
    let home = Home::new();
    let mark = home.path("ran");
    let steps = format!(
        r#"steps:
  - name: deceive
    type: script
    command: |
      printf '#!/bin/sh\necho >> {mark}\n' > monitor; chmod +x monitor
      git config core.fsmonitor "$PWD/monitor"
      echo evil > run.sh; git add run.sh
      git -c user.name=A -c user.email=a@example.invalid commit -qm run
      git replace "$(git rev-parse HEAD:run.sh)" "$(echo good | git hash-object -w --stdin)"
      rm -f {mark}
  - name: look
    type: script
    needs: [deceive]
    command: git status --short > {mark}.status; git show HEAD:run.sh
"#,
        mark = mark.display()
    );
    grimoire(&home, "mine", &steps);
    let run = settled(&home, &begin(&home, &["mine"]));
    assert_eq!(step(&run, "look")["output"], "evil", "{run:#}");
    assert!(!mark.exists(), "git started the program of another agent");
}
