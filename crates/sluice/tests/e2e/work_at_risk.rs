//! Work that is nowhere but in a worktree survives cancel, merge, gc and delete, and comes back byte for byte.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::home::{Home, run};

/// Every file below a folder with its kind, mode and bytes; what is git's own or the engine's is left out.
fn tree(folder: &Path) -> BTreeMap<PathBuf, (String, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = path.strip_prefix(folder).unwrap().to_owned();
            if name == Path::new(".git") || name == Path::new("TASK.md") {
                continue;
            }
            let about = path.symlink_metadata().unwrap();
            if about.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                found.insert(name, ("link".into(), target.as_os_str().as_bytes().to_vec()));
            } else if about.is_dir() {
                folders.push(path);
            } else {
                let mode = if about.mode() & 0o100 == 0 { "file" } else { "program" };
                found.insert(name, (mode.into(), std::fs::read(&path).unwrap()));
            }
        }
    }
    found
}

/// A task at work whose agent waits, and its worktree.
fn at_work(home: &Home) -> (String, PathBuf) {
    let id = home.create("brew", "wait for notification", &[]);
    let workspace = PathBuf::from(home.task(&id)["workspace"].as_str().unwrap());
    (id, workspace)
}

/// Runs git in a worktree as its agent would.
fn git(home: &Home, workspace: &Path, words: &[&str]) -> String {
    let who = ["-c", "user.name=Agent", "-c", "user.email=agent@example.invalid"];
    run(home.program("git").current_dir(workspace).args(who).args(words)).done().stdout.trim_end().to_owned()
}

fn write(folder: &Path, name: impl AsRef<OsStr>, bytes: &[u8]) {
    let path = folder.join(name.as_ref());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Files of every kind, in every state that git has for them.
fn make_a_mess(home: &Home, workspace: &Path) {
    write(workspace, "committed", b"kept by a commit\n");
    git(home, workspace, &["add", "-A"]);
    git(home, workspace, &["commit", "--quiet", "-m", "work that nobody else has"]);
    write(workspace, "README.md", b"changed and staged\n");
    write(workspace, "staged", b"staged");
    git(home, workspace, &["add", "-A"]);
    write(workspace, "README.md", b"staged and changed again\r\n");
    write(workspace, "untracked", &(0..=255).collect::<Vec<u8>>());
    for name in
        ["with space", "with\nnewline", "with\ttab", "\"quoted\"", "-dash", "$(touch PWNED)", "é漢🦀", ":(glob)*", "*"]
    {
        write(workspace, Path::new("odd").join(name), name.as_bytes());
    }
    write(workspace, OsStr::from_bytes(b"odd/not-\xff-utf8"), b"x");
    write(workspace, "empty", b"");
    write(workspace, "deep/er/and/deep/er", b"deep");
    write(workspace, "program", b"#!/bin/sh\n");
    std::fs::set_permissions(workspace.join("program"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("nowhere/at all", workspace.join("link")).unwrap();
}

/// Brings back what is kept of a task, and compares it with what was there.
#[track_caller]
fn comes_back(home: &Home, id: &str, before: &BTreeMap<PathBuf, (String, Vec<u8>)>) -> PathBuf {
    let into = home.path("rescued");
    home.json(&["workspace", "restore", id, "--into", into.to_str().unwrap()]);
    let after = tree(&into);
    let names = |tree: &BTreeMap<PathBuf, (String, Vec<u8>)>| tree.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(before));
    assert_eq!(&after, before);
    into
}

#[test]
fn every_kind_of_work_survives_a_cancel() {
    let home = Home::new();
    let (id, workspace) = at_work(&home);
    make_a_mess(&home, &workspace);
    let before = tree(&workspace);
    home.json(&["task", "cancel", &id, "--yes"]);
    assert!(!workspace.join("untracked").exists(), "the worktree is clean for the next task");
    comes_back(&home, &id, &before);
}

/// A damaged index or HEAD blocks no worktree, and what lay there is kept.
#[test]
fn a_damaged_worktree_is_given_back_and_lent_again() {
    for damaged in ["index", "HEAD"] {
        let home = Home::new();
        let (id, workspace) = at_work(&home);
        write(&workspace, "work.txt", b"work\n");
        let admin = git(&home, &workspace, &["rev-parse", "--absolute-git-dir"]);
        write(Path::new(&admin), damaged, b"garbage\n");
        home.json(&["task", "cancel", &id, "--yes"]);
        let kept = git(&home, &home.repository(), &["for-each-ref", "--format=%(refname)", "refs/sluice/keep"]);
        assert_eq!(git(&home, &home.repository(), &["show", &format!("{kept}:work.txt")]), "work", "{damaged}");
        let (next, again) = at_work(&home);
        assert_eq!(again, workspace, "{next}");
        assert!(!again.join("work.txt").exists());
    }
}

/// Where git knows nothing of a worktree any more, its files are moved away as they are, and the task says where to.
#[test]
fn a_worktree_that_git_forgot_is_set_aside_and_told() {
    let home = Home::new();
    let (id, workspace) = at_work(&home);
    write(&workspace, "work.txt", b"work\n");
    let admin = git(&home, &workspace, &["rev-parse", "--absolute-git-dir"]);
    std::fs::remove_dir_all(admin).unwrap();
    let told = home.json(&["task", "cancel", &id, "--yes"]);
    let aside = workspace.parent().unwrap().join("aside/lost-1");
    assert_eq!(std::fs::read(aside.join("work.txt")).unwrap(), b"work\n");
    let place = aside.display().to_string();
    let task = home.task(&id);
    assert!(task["attention"].to_string().contains(&place), "{task:#}\n{told:#}");
    let (_, again) = at_work(&home);
    assert_eq!(again, workspace);
}

#[test]
fn work_survives_cancel_gc_and_delete_in_turn() {
    let home = Home::new();
    let (id, workspace) = at_work(&home);
    make_a_mess(&home, &workspace);
    let before = tree(&workspace);
    let commit = git(&home, &workspace, &["rev-parse", "HEAD"]);
    home.json(&["task", "cancel", &id, "--yes"]);
    home.json(&["workspace", "gc"]);
    assert!(!workspace.exists(), "gc removes what no task has");
    home.json(&["task", "delete", &id, "--yes"]);
    let into = comes_back(&home, &id, &before);
    let log = git(&home, &into, &["log", "--format=%H"]);
    assert!(log.lines().any(|line| line == commit), "{log}");
}

#[test]
fn work_that_git_does_not_show_survives() {
    let home = Home::new();
    let (id, workspace) = at_work(&home);
    // A repository inside that was added as a commit's id, files that only this branch ignores, and changes that git was
    // told not to see: for `git status` there is nothing.
    let inside = workspace.join("inside");
    std::fs::create_dir(&inside).unwrap();
    git(&home, &inside, &["init", "--quiet"]);
    write(&inside, "found", b"a repository of the agent's\n");
    git(&home, &inside, &["add", "-A"]);
    git(&home, &inside, &["commit", "--quiet", "-m", "nobody else has it"]);
    write(&workspace, ".gitignore", b"secret/\n");
    git(&home, &workspace, &["add", "-A"]);
    git(&home, &workspace, &["commit", "--quiet", "-m", "a link and rules"]);
    write(&workspace, "secret/key", b"ignored by this branch alone\n");
    git(&home, &workspace, &["update-index", "--assume-unchanged", "README.md"]);
    write(&workspace, "README.md", b"changed, and not seen\n");
    assert_eq!(git(&home, &workspace, &["status", "--porcelain", "--untracked-files=all"]), "");
    let before = tree(&workspace);
    home.json(&["task", "cancel", &id, "--yes"]);
    assert_eq!(tree(&workspace).len(), 1, "the worktree is clean for the next task");
    home.json(&["workspace", "gc"]);
    comes_back(&home, &id, &before);
}

#[test]
fn a_task_file_of_the_project_stays_as_it_is() {
    let home = Home::new();
    std::fs::write(home.repository().join("TASK.md"), "what the project has to do\n").unwrap();
    home.git(&["add", "TASK.md"]);
    home.git(&["commit", "--quiet", "-m", "a file of that name"]);
    let id = home.create("brew", "worker: git add -A; work\nreviewer: review pass", &[]);
    home.until_status(&id, "reviewing");
    let workspace = PathBuf::from(home.task(&id)["workspace"].as_str().unwrap());
    let own = std::fs::read_to_string(workspace.join(".sluice-task.md")).unwrap();
    assert!(own.contains("Verdict: PASS") && own.contains("status: reviewing"), "{own}");
    assert_eq!(own, std::fs::read_to_string(home.home_file(&id)).unwrap());
    home.json(&["task", "merge", &id]);
    home.until_status(&id, "done");
    assert_eq!(std::fs::read_to_string(home.repository().join("TASK.md")).unwrap(), "what the project has to do\n");
    assert_eq!(home.git(&["log", "--format=%s", "--", "TASK.md", ".sluice-task.md"]), "a file of that name");
}

#[test]
fn a_task_file_that_was_deleted_passes_no_gate() {
    let home = Home::new();
    let (written, on) = (home.pipe("written"), home.pipe("on"));
    let work = format!("commit; write Handoff \"DONE: all\"; tell {}; wait for {}", written.path(), on.path());
    let id = home.create("brew", &format!("worker: {work}\nreviewer: review pass"), &[]);
    let file = home.worktree_file(&id);
    written.hear();
    // Whoever asks for its text has it kept, in the home too once the task is moved.
    home.json(&["task", "file", &id]);
    std::fs::copy(&file, home.home_file(&id)).unwrap();
    std::fs::remove_file(&file).unwrap();
    let refused = home.refused(&["task", "update", &id, "--status", "agent-review"]);
    assert_eq!(refused, "1 gate_failed");
    assert_eq!(home.task(&id)["status"], "working");
}

#[test]
fn a_detached_head_survives() {
    let home = Home::new();
    let (id, workspace) = at_work(&home);
    git(&home, &workspace, &["checkout", "--quiet", "--detach"]);
    write(&workspace, "detached", b"on no branch\n");
    git(&home, &workspace, &["add", "-A"]);
    git(&home, &workspace, &["commit", "--quiet", "-m", "on no branch"]);
    write(&workspace, "loose", b"and not committed\n");
    let before = tree(&workspace);
    home.json(&["task", "delete", &id, "--yes"]);
    home.json(&["workspace", "gc"]);
    comes_back(&home, &id, &before);
}

#[test]
fn a_renamed_branch_survives() {
    let home = Home::new();
    let (id, workspace) = at_work(&home);
    git(&home, &workspace, &["branch", "-m", "another-name"]);
    write(&workspace, "renamed", b"on another branch\n");
    git(&home, &workspace, &["add", "-A"]);
    git(&home, &workspace, &["commit", "--quiet", "-m", "on another branch"]);
    write(&workspace, "loose", b"and not committed\n");
    let before = tree(&workspace);
    home.json(&["task", "delete", &id, "--yes"]);
    home.json(&["workspace", "gc"]);
    comes_back(&home, &id, &before);
}

#[test]
fn a_conflicted_merge_survives() {
    let home = Home::new();
    let (id, workspace) = at_work(&home);
    write(&workspace, "README.md", b"ours\n");
    git(&home, &workspace, &["commit", "--quiet", "-am", "ours"]);
    git(&home, &workspace, &["checkout", "--quiet", "-b", "theirs", "HEAD~1"]);
    write(&workspace, "README.md", b"theirs\n");
    git(&home, &workspace, &["commit", "--quiet", "-am", "theirs"]);
    git(&home, &workspace, &["checkout", "--quiet", "brew"]);
    let merge = ["-c", "user.name=A", "-c", "user.email=a@example.invalid", "merge", "--quiet", "theirs"];
    assert_ne!(run(home.program("git").current_dir(&workspace).args(merge)).code, 0);
    write(&workspace, "loose", b"beside the conflict\n");
    let before = tree(&workspace);
    assert!(String::from_utf8_lossy(&before[Path::new("README.md")].1).contains("<<<<<<<"));
    home.json(&["task", "cancel", &id, "--yes"]);
    comes_back(&home, &id, &before);
}

#[test]
fn work_that_was_not_committed_before_the_merge_survives_it() {
    let home = Home::new();
    let id = home.create("brew", "reviewer: review pass", &[]);
    home.until_status(&id, "reviewing");
    let workspace = PathBuf::from(home.task(&id)["workspace"].as_str().unwrap());
    write(&workspace, "forgotten", b"not committed\n");
    write(&workspace, "README.md", b"changed, not committed\n");
    let before = tree(&workspace);
    let merged = home.sluice(&["task", "merge", &id, "--json"]);
    if merged.code != 0 {
        println!("a merge says: {}", merged.stdout);
        home.json(&["task", "merge", &id, "--force"]);
    }
    home.until_status(&id, "done");
    comes_back(&home, &id, &before);
}

/// A `sluice` that may not look into every folder. What root may do whatever a folder's mode says is taken from it.
fn without_privileges(home: &Home, arguments: &[&str]) {
    let plain = home.command(arguments);
    match rustix::process::getuid().is_root() {
        true => {
            let less = "-dac_override,-dac_read_search";
            let mut command = home.program("setpriv");
            command.args([format!("--bounding-set={less}"), format!("--inh-caps={less}")]).arg(plain.get_program());
            run(command.args(plain.get_args())).done();
        }
        false => drop(home.sluice(arguments).done()),
    }
}

#[test]
fn a_folder_that_cannot_be_looked_into_is_not_taken_for_an_empty_one() {
    let home = Home::empty();
    without_privileges(&home, &["project", "add", "--workflow", "reviewed"]);
    let id = home.create("brew", "worker: work\nreviewer: review pass", &[]);
    home.until_status(&id, "reviewing");
    let workspace = PathBuf::from(home.task(&id)["workspace"].as_str().unwrap());
    let may = |mode| std::fs::set_permissions(workspace.join("out"), PermissionsExt::from_mode(mode)).unwrap();
    write(&workspace, "out/precious", b"nowhere else\n");
    may(0o000);
    for more in [&[][..], &["--force"]] {
        assert_eq!(home.refused(&[&["task", "merge", &id][..], more].concat()), "1 not_ready");
    }
    home.sluice(&["task", "cancel", &id, "--yes"]).done();
    home.sluice(&["workspace", "gc"]);
    may(0o755);
    assert_eq!(std::fs::read(workspace.join("out/precious")).unwrap(), b"nowhere else\n");
    // Now it can be kept.
    home.sluice(&["workspace", "gc"]).done();
    let back = home.path("back");
    home.sluice(&["workspace", "restore", &id, "--into", back.to_str().unwrap()]).done();
    assert_eq!(std::fs::read(back.join("out/precious")).unwrap(), b"nowhere else\n");
}

#[test]
fn a_worktree_that_became_a_link_leads_into_no_other_folder() {
    for of_project in [false, true] {
        let home = Home::new();
        let (id, workspace) = at_work(&home);
        let other = if of_project { home.repository() } else { home.path("other") };
        write(&other, "mine", b"a person's\n");
        let before = tree(&other);
        std::fs::rename(&workspace, home.path("moved")).unwrap();
        symlink(&other, &workspace).unwrap();
        assert_eq!(home.refused(&["task", "merge", &id, "--force"]).split(' ').next(), Some("1"));
        // No agent is started there, and the file of the task is not written there.
        home.sluice(&["task", "update", &id, "--summary", "another"]);
        super::process::kill(super::served::agent(&home, &id));
        home.until(&id, "without its agent", |task| task["session"] != "active");
        assert!(!other.join("TASK.md").exists());
        home.sluice(&["task", "cancel", &id, "--yes"]).done();
        assert!(!other.join("TASK.md").exists());
        home.sluice(&["workspace", "gc"]).done();
        assert_eq!(tree(&other), before);
        assert_eq!(other.join(".git").is_dir(), of_project);
        // The next task gets a worktree of its own.
        let next = home.create("next", "wait for notification", &[]);
        assert!(home.task(&next)["workspace"].as_str().is_some(), "{:#}", home.task(&next));
        assert_eq!(tree(&other), before);
    }
}

#[test]
fn a_branch_that_is_another_name_of_a_branch_takes_that_one_with_it_never() {
    let home = Home::new();
    home.git(&["branch", "release"]);
    for aim in ["main", "release"] {
        let (id, workspace) = at_work(&home);
        let stood = home.git(&["rev-parse", aim]);
        git(&home, &workspace, &["symbolic-ref", "refs/heads/brew", &format!("refs/heads/{aim}")]);
        home.sluice(&["task", "delete", &id, "--yes"]);
        assert_eq!(home.git(&["rev-parse", aim]), stood);
        drop(run(home.program("git").args(["symbolic-ref", "--delete", "refs/heads/brew"])));
    }
}

#[test]
fn commits_of_a_branch_whose_reference_is_lost_are_kept() {
    let losses: [&[&[&str]]; 4] = [
        &[&["update-ref", "-d", "refs/heads/brew"]],
        &[&["checkout", "-q", "--detach", "main"], &["branch", "-q", "-D", "brew"]],
        &[&["symbolic-ref", "refs/heads/brew", "refs/heads/main"]],
        &[&["symbolic-ref", "refs/heads/brew", "refs/heads/main"], &["reset", "-q", "--hard"]],
    ];
    for lost in losses.into_iter().map(Some).chain([None]) {
        let home = Home::new();
        let (id, workspace) = at_work(&home);
        for text in ["one", "two"] {
            write(&workspace, "work", text.as_bytes());
            git(&home, &workspace, &["add", "work"]);
            git(&home, &workspace, &["commit", "--quiet", "-m", text]);
        }
        let commit = git(&home, &workspace, &["rev-parse", "HEAD"]);
        match lost {
            None => std::fs::write(home.repository().join(".git/refs/heads/brew"), "").unwrap(),
            Some(words) => words.iter().for_each(|words| drop(git(&home, &workspace, words))),
        }
        home.sluice(&["task", "cancel", &id, "--yes"]).done();
        home.sluice(&["workspace", "gc"]).done();
        let holds = home.git(&["for-each-ref", "--contains", &commit, "--format=%(refname)"]);
        assert!(holds.starts_with("refs/sluice/keep/"), "{lost:?}: {holds:?}");
    }
}
