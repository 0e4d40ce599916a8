//! What `task merge` does with work that is not where it should be: one row for each case. Every refusal changes nothing,
//! says what lies where, and has a way out; what is merged is the commit that was judged; nothing is ever lost.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::home::{Home, run};

/// A task whose work is committed, and whose review has passed.
const PASSES: &str = "worker: work\nreviewer: review pass";

/// Runs a script as an agent or a person would.
#[track_caller]
pub(crate) fn sh(home: &Home, folder: &Path, script: &str) -> String {
    let mut command = home.program("sh");
    for (name, value) in [("NAME", "Agent"), ("EMAIL", "agent@example.invalid")] {
        command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    run(command.current_dir(folder).args(["-ec", script])).done().stdout.trim().to_owned()
}

fn workspace(home: &Home, id: &str) -> PathBuf {
    PathBuf::from(home.task(id)["workspace"].as_str().unwrap())
}

/// The event of the merge.
#[track_caller]
fn merged(home: &Home, id: &str) -> Value {
    let events = home.history(id);
    let mut found = events.into_iter().filter(|event| event["type"] == "task.merged");
    let event = found.next().unwrap_or_else(|| panic!("{id} is not merged"));
    assert!(found.next().is_none(), "{id} is merged twice");
    event["data"].clone()
}

/// A task at the end of its review, and a picture of everything that a refusal must not change.
fn reviewed(home: &Home, branch: &str, script: &str, more: &[&str]) -> String {
    let id = home.create(branch, script, more);
    home.until_status(&id, "reviewing");
    id
}

fn picture(home: &Home, id: &str) -> String {
    let refs = home.git(&["for-each-ref"]);
    let checkout = home.git(&["status", "--porcelain=v2", "--branch", "--untracked-files=all"]);
    let task = home.task(id);
    let files = sh(home, &workspace(home, id), "find . -type f ! -path './.git/*' ! -name TASK.md | sort");
    format!("{refs}\n{checkout}\n{files}\n{} {}", task["status"], task["workspace"])
}

/// Every case of one workspace, in one table: what is done there, what a merge says, with force, and the way out.
/// What would be confused with the default branch is no branch of a task.
#[test]
fn the_default_branch_is_no_tasks() {
    let home = Home::new();
    for name in ["main", "refs/heads/main", "HEAD"] {
        let said = home.sluice(&["task", "create", name, "x", "--harness", "demo"]);
        assert_eq!(said.code, 1, "{said:?}");
    }
}

#[test]
fn work_that_is_not_in_the_judged_commit_is_never_closed_over() {
    let home = Home::new();
    home.json(&["project", "update", "coffee", "--pool-size", "8"]);
    // name, what happens after the PASS, `task merge`, `task merge --force`, what mends it, then
    let rows = [
        ("uncommitted", "echo x > forgotten", "1 uncommitted", "done", "", ""),
        ("changed", "echo x >> $(git ls-files demo)", "1 uncommitted", "done", "", ""),
        (
            "elsewhere",
            "git checkout -q -b other; echo x > forgotten; git add -A; git commit -qm other",
            "1 not_on_branch",
            "1 not_on_branch",
            "git switch -q elsewhere",
            "done",
        ),
        (
            "detached",
            "git checkout -q --detach; echo x > forgotten; git add -A; git commit -qm detached",
            "1 not_on_branch",
            "1 not_on_branch",
            "git switch -q -C detached",
            "1 stale_verdict",
        ),
        ("later", "echo x > forgotten; git add -A; git commit -qm later", "1 stale_verdict", "done", "", ""),
        (
            "unreadable",
            "cp $(git rev-parse --git-dir)/index ../saved; echo damaged > $(git rev-parse --git-dir)/index",
            "1 not_ready",
            "1 not_ready",
            "mv ../saved $(git rev-parse --git-dir)/index",
            "done",
        ),
    ];
    let ids: Vec<String> = rows.iter().map(|row| home.create(row.0, PASSES, &[])).collect();
    for ((name, script, plain, forced, mends, then), id) in rows.iter().zip(&ids) {
        home.until_status(id, "reviewing");
        let folder = workspace(&home, id);
        let judged = sh(&home, &folder, "git rev-parse HEAD");
        sh(&home, &folder, script);
        let before = picture(&home, id);
        assert_eq!(home.refused(&["task", "merge", id]), *plain, "{name}");
        assert_eq!(picture(&home, id), before, "{name}");
        let merge = |more: &[&str]| {
            let ran = home.sluice(&[&["task", "merge", id][..], more, &["--json"]].concat());
            if ran.code == 0 { "done".to_owned() } else { ran.refusal() }
        };
        assert_eq!(merge(&["--force"]), *forced, "{name}");
        if *forced != "done" {
            assert_eq!(picture(&home, id), before, "{name}");
            sh(&home, &folder, mends);
            assert_eq!(merge(&[]), *then, "{name}");
            if *then != "done" {
                assert_eq!(merge(&["--force"]), "done", "{name}");
            }
        }
        assert_eq!(home.task(id)["status"], "done", "{name}");
        let event = merged(&home, id);
        assert_eq!(event["forced"], *forced == "done" || *then != "done", "{name}: {event}");
        // What was merged is in the default branch; what was judged, too.
        home.git(&["merge-base", "--is-ancestor", event["commit"].as_str().unwrap(), "main"]);
        home.git(&["merge-base", "--is-ancestor", &judged, "main"]);
        assert_eq!(home.git(&["status", "--porcelain"]), "", "{name}");
    }
    // Nothing is lost: on its own branch, in the default branch, or kept.
    assert_eq!(home.git(&["log", "-1", "--format=%s", "other"]), "other");
    let subjects = home.git(&["log", "--format=%s", "main"]);
    assert!(subjects.contains("detached") && subjects.contains("later") && !subjects.contains("other\n"), "{subjects}");
    for name in ["uncommitted", "changed"] {
        let id = &ids[rows.iter().position(|row| row.0 == name).unwrap()];
        let kept = home.git(&["for-each-ref", "--format=%(refname)", &format!("refs/sluice/keep/{id}")]);
        assert!(!kept.is_empty(), "{name} is kept");
    }
}

/// A branch is moved without a look at what its commit holds, and the worktree with the only copy is given back.
#[test]
fn a_commit_of_which_something_is_missing_or_damaged_is_not_merged() {
    let object =
        |of: &str| format!("f=$(git rev-parse --git-common-dir)/objects/$(git rev-parse {of} | sed 's,^..,&/,')");
    let rows = [
        (
            "emptied",
            "HEAD:$(git diff --name-only main HEAD)",
            "cp $f ../kept; chmod u+w $f; : > $f",
            "cp -f ../kept $f",
        ),
        ("removed", "HEAD:$(git diff --name-only main HEAD)", "mv $f ../kept", "mv ../kept $f"),
        ("exchanged", "HEAD:demo", "cp $f ../kept; chmod u+w $f; cp $(dirname $f)/../../HEAD $f", "cp -f ../kept $f"),
        ("folder", "HEAD:demo", "mv $f ../kept", "mv ../kept $f"),
        ("earlier", "HEAD~1", "mv $f ../kept", "mv ../kept $f"),
    ];
    for (name, of, damage, mend) in rows {
        let home = Home::new();
        // So that nothing of the work is checked out by the merge.
        home.git(&["switch", "-q", "-c", "mine"]);
        let id = home.create(name, "worker: commit \"one\" then work\nreviewer: review pass", &[]);
        home.until_status(&id, "reviewing");
        let folder = workspace(&home, &id);
        let before = home.git(&["rev-parse", "main"]);
        sh(&home, &folder, &format!("{}; echo $f > ../object; {damage}", object(of)));
        for more in [&[][..], &["--force"]] {
            let ran = home.sluice(&[&["task", "merge", &id, "--json"][..], more].concat());
            assert_eq!((ran.code, ran.refusal().as_str()), (1, "1 not_ready"), "{name}: {ran:?}");
        }
        assert_eq!(home.git(&["rev-parse", "main"]), before, "{name}");
        assert_eq!(std::fs::read_dir(home.place().join("merging")).map_or(0, Iterator::count), 0, "{name} is begun");
        sh(&home, &folder, &format!("f=$(cat ../object); {mend}"));
        assert_eq!(home.json(&["task", "merge", &id])["task"]["status"], "done", "{name}");
        home.git(&["rev-list", "--objects", "main"]);
    }
}

#[test]
fn what_lies_there_is_committed_if_a_person_says_so_and_nobody_has_judged_that() {
    let home = Home::new();
    let id = reviewed(&home, "brew", PASSES, &[]);
    let folder = workspace(&home, &id);
    sh(&home, &folder, "echo x > forgotten");
    let refused = home.sluice(&["task", "merge", &id, "--commit"]);
    let commit = sh(&home, &folder, "git rev-parse HEAD");
    assert!(refused.stderr.contains(&format!("has committed the uncommitted files as {commit}")), "{}", refused.stderr);
    assert!(refused.stderr.contains("sluice workflow explain stale_verdict"), "{}", refused.stderr);
    assert!(refused.stderr.contains("no transition leads from `reviewing` back to a review"), "{}", refused.stderr);
    // Asked again there is nothing left to commit, and nothing to tell of it.
    assert!(!home.sluice(&["task", "merge", &id, "--commit"]).stderr.contains("has committed the uncommitted files"));
    assert_eq!(home.refused(&["task", "merge", &id, "--commit"]), "1 stale_verdict");
    assert_eq!(sh(&home, &folder, "git status --porcelain; git show --format= --name-only"), "forgotten");
    assert_eq!(home.json(&["task", "merge", &id, "--commit", "--force"])["task"]["status"], "done");
    assert_eq!(home.git(&["show", "main:forgotten"]), "x");
    assert_eq!(merged(&home, &id)["forced"], true);
    // Where nothing was judged, there is nothing to be stale. Nothing is committed for a task that cannot be merged.
    let id = home.create("tea", "worker: wait for notification", &["--workflow", "minimal"]);
    let folder = workspace(&home, &id);
    sh(&home, &folder, "echo tea > tea");
    assert_eq!(home.refused(&["task", "merge", &id, "--commit"]), "1 no_transition");
    assert_eq!(sh(&home, &folder, "git status --porcelain"), "?? tea");
}

#[test]
fn work_on_another_branch_is_the_tasks_once_a_person_names_it() {
    let home = Home::new();
    let id = reviewed(&home, "brew", PASSES, &[]);
    sh(&home, &workspace(&home, &id), "git checkout -q -b better");
    let said = home.sluice(&["task", "merge", &id, "--json"]).json();
    let way_out = format!("`sluice task update {id} --branch better`");
    assert!(said["error"]["hint"].as_str().unwrap().contains(&way_out), "{said}");
    home.json(&["task", "update", &id, "--branch", "better"]);
    // The same commit as the one that was judged.
    assert_eq!(home.json(&["task", "merge", &id])["task"]["status"], "done");
    assert_eq!(home.git(&["rev-parse", "main"]), home.git(&["rev-parse", "better"]));
}

/// What the hint of a refused merge says.
#[track_caller]
fn hint(home: &Home, id: &str) -> String {
    let said = home.sluice(&["task", "merge", id, "--json"]).json();
    assert_eq!(said["error"]["code"], "not_on_branch", "{said}");
    said["error"]["hint"].as_str().unwrap().to_owned()
}

#[test]
fn a_judged_commit_that_no_branch_has_any_more_is_kept_and_told() {
    let home = Home::new();
    let more = "echo x > other; git add -A; git commit -qm other";
    // name, what happens before the branch is put there, how the task ends
    let rows = [
        ("cancelled", "", vec!["task", "cancel", "--yes"]),
        ("merged", more, vec!["task", "merge", "--force"]),
        ("deleted", "", vec!["task", "delete", "--yes"]),
    ];
    for (name, before, ends) in rows {
        let id = reviewed(&home, name, PASSES, &[]);
        let folder = workspace(&home, &id);
        let judged = sh(&home, &folder, "git rev-parse HEAD");
        sh(&home, &folder, &format!("git switch -q --detach HEAD~1; {before}"));
        let (hint, there) = (hint(&home, &id), folder.display());
        assert!(!hint.contains("switch -C") && hint.contains(&format!("`git switch {name}`")), "{hint}");
        assert!(
            hint.contains(&format!("`git switch -c NEW` in {there} and `sluice task update {id} --branch NEW`")),
            "{hint}"
        );
        sh(&home, &folder, &format!("git switch -q -C {name}"));
        assert_eq!(home.refused(&["task", "merge", &id]), "1 stale_verdict");
        let said = home.sluice(&[&ends[..2], &[&id], &ends[2..]].concat()).done();
        let told = format!("kept: commits; `sluice workspace restore {id} --number 1 --into FOLDER` brings it back");
        assert!(said.stderr.contains(&told), "{name}: {said:?}");
        let back = home.path(&format!("back-{name}"));
        home.json(&["workspace", "restore", &id, "--number", "1", "--into", back.to_str().unwrap()]);
        assert_eq!(sh(&home, &back, "git rev-parse HEAD"), judged, "{name}");
    }
}

/// What git was told not to see lies in the workspace all the same, and was judged with it.
#[test]
fn changes_that_git_does_not_show_are_not_committed() {
    let home = Home::new();
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let id = reviewed(&home, &format!("brew{flag}"), PASSES, &[]);
        let hide = format!("file=$(git ls-files | head -n 1); git update-index {flag} $file; echo hidden >> $file");
        sh(&home, &workspace(&home, &id), &hide);
        assert_eq!(home.refused(&["task", "merge", &id]), "1 uncommitted", "{flag}");
    }
}

#[test]
fn whoever_restores_one_thing_hears_that_more_is_kept() {
    let home = Home::new();
    let id = reviewed(&home, "brew", PASSES, &[]);
    let folder = workspace(&home, &id);
    let judged = sh(&home, &folder, "git rev-parse HEAD");
    sh(&home, &folder, "git reset -q --hard HEAD~1; echo x > forgotten");
    let said = home.sluice(&["task", "cancel", &id, "--yes"]).done();
    assert_eq!(said.stderr.matches("kept: ").count(), 2, "{said:?}");
    let back = home.path("back");
    let said = home.sluice(&["workspace", "restore", &id, "--into", back.to_str().unwrap()]).done();
    assert!(said.stderr.contains("the newest of 2 that are kept"), "{said:?}");
    assert_eq!(sh(&home, &back, "cat forgotten"), "x");
    let first = home.path("first");
    home.sluice(&["workspace", "restore", &id, "--number", "1", "--into", first.to_str().unwrap()]).done();
    assert_eq!(sh(&home, &first, "git rev-parse HEAD"), judged);
}

#[test]
fn a_detached_head_becomes_the_tasks_work_as_the_hint_says_and_nothing_is_dropped() {
    let home = Home::new();
    let id = reviewed(&home, "brew", PASSES, &[]);
    let folder = workspace(&home, &id);
    let judged = sh(&home, &folder, "git rev-parse HEAD");
    sh(&home, &folder, "git switch -q --detach HEAD~1; echo x > other; git add -A; git commit -qm other");
    sh(&home, &folder, "git switch -q -c better");
    home.json(&["task", "update", &id, "--branch", "better"]);
    assert_eq!(home.refused(&["task", "merge", &id]), "1 stale_verdict");
    assert_eq!(home.json(&["task", "merge", &id, "--force"])["task"]["status"], "done");
    assert_eq!(home.git(&["rev-parse", "brew"]), judged);
}

#[test]
fn in_the_middle_of_a_rebase_the_hint_is_about_that() {
    let home = Home::new();
    let id = reviewed(&home, "brew", PASSES, &[]);
    let folder = workspace(&home, &id);
    sh(&home, &folder, "! git rebase -q --force-rebase --exec false main");
    let hint = hint(&home, &id);
    assert!(hint.contains("`git rebase --continue`") && hint.contains("`git rebase --abort`"), "{hint}");
    assert!(!hint.contains("switch"), "{hint}");
    sh(&home, &folder, "git rebase --abort");
    assert_eq!(home.json(&["task", "merge", &id])["task"]["status"], "done");
}

#[test]
fn a_branch_without_work_is_not_merged_and_one_merged_by_hand_is() {
    let home = Home::new();
    home.git(&["branch", "empty"]);
    let empty = home.json(&["task", "create", "empty", "Nothing", "--status", "reviewing", "--harness", "demo"]);
    let empty = empty["task"]["id"].as_str().unwrap().to_owned();
    let nowhere = home.json(&["task", "create", "nowhere", "Nothing", "--status", "reviewing", "--harness", "demo"]);
    for id in [&empty, &nowhere["task"]["id"].as_str().unwrap().to_owned()] {
        for more in [&[][..], &["--force"]] {
            assert_eq!(home.refused(&[&["task", "merge", id][..], more].concat()), "1 nothing_to_merge");
        }
        assert_eq!(home.task(id)["status"], "reviewing");
    }
    let id = reviewed(&home, "brew", PASSES, &[]);
    home.git(&["merge", "--quiet", "--ff-only", "brew"]);
    assert_eq!(home.json(&["task", "merge", &id])["task"]["status"], "done");
    assert_eq!(merged(&home, &id)["commit"], home.git(&["rev-parse", "main"]).as_str());
}

#[test]
fn a_fail_is_no_licence() {
    let home = Home::new();
    let id = home.create("brew", "worker 1: work\nreviewer: review fail", &["--workflow", "persistent"]);
    home.until_status(&id, "stuck");
    home.json(&["task", "update", &id, "--status", "reviewing"]);
    let before = home.git(&["rev-parse", "main"]);
    assert_eq!(home.refused(&["task", "merge", &id]), "1 failed_verdict");
    assert_eq!((home.git(&["rev-parse", "main"]), &home.task(&id)["status"]), (before, &"reviewing".into()));
    assert_eq!(home.json(&["task", "merge", &id, "--force"])["task"]["status"], "done");
    assert_eq!(merged(&home, &id)["forced"], true);
}

#[test]
fn merging_one_task_is_no_leak_of_another_session() {
    let home = Home::new();
    let (here, on) = (home.pipe("here"), home.pipe("on"));
    let other = home.create("other", &format!("worker: tell {}; wait for {}; hang", here.path(), on.path()), &[]);
    here.hear();
    let id = reviewed(&home, "brew", PASSES, &[]);
    home.json(&["task", "merge", &id]);
    home.json(&["task", "cancel", &other, "--yes"]);
    home.until_status(&other, "cancelled");
    let leaks = |id: &str| home.history(id).into_iter().filter(|event| event["type"] == "checkout.leaked").count();
    assert_eq!((leaks(&other), leaks(&id)), (0, 0));
    // What an agent does there itself is one still.
    let there = home.pipe("there");
    let repository = home.repository();
    let script = format!("worker: git -C {} checkout -q -b mine; tell {}; hang", repository.display(), there.path());
    let leaking = home.create("leaking", &script, &[]);
    there.hear();
    assert_eq!(home.git(&["branch", "--show-current"]), "mine");
    home.json(&["task", "cancel", &leaking, "--yes"]);
    home.until_status(&leaking, "cancelled");
    assert_eq!(leaks(&leaking), 1);
}

/// Both bring the judged commit's content into the default branch; the commits themselves stay on the task's branch.
#[test]
fn work_is_merged_as_one_commit_or_commit_by_commit_if_a_person_says_so() {
    let home = Home::new();
    for strategy in ["squash", "rebase"] {
        sh(&home, &home.repository(), "echo base > shared; git add shared; git commit -qm base --allow-empty");
        let id = reviewed(&home, strategy, PASSES, &["--status", "reviewing"]);
        sh(
            &home,
            &home.repository(),
            &format!(
                "git branch {strategy} 2>/dev/null || true; git worktree add -q ../{strategy} {strategy}; cd ../{strategy}; \
                 for n in 1 2; do echo $n > {strategy}-$n; git add .; git commit -qm \"{strategy} $n\"; done; \
                 cd ../coffee; git worktree remove ../{strategy}; echo {strategy} > meanwhile; git add .; git commit -qm meanwhile"
            ),
        );
        let (before, work) = (home.git(&["rev-parse", "main"]), home.git(&["rev-parse", strategy]));
        assert_eq!(home.json(&["task", "merge", &id, "--strategy", strategy])["task"]["status"], "done");
        let made = home.git(&["log", "--reverse", "--format=%s by %an", &format!("{before}..main")]);
        match strategy {
            "squash" => assert_eq!(made.lines().count(), 1, "{made}"),
            _ => assert_eq!(made, "rebase 1 by Agent\nrebase 2 by Agent"),
        }
        assert_eq!(home.git(&["show", &format!("main:{strategy}-2")]), "2");
        assert_eq!(home.git(&["status", "--porcelain"]), "");
        assert_eq!(merged(&home, &id)["commit"], work.as_str());
        assert_eq!(home.git(&["for-each-ref", "refs/sluice/merged"]), "");
    }
}

/// Every worktree can write every reference of the repository: none of them says what was merged.
#[test]
fn an_agent_cannot_have_its_task_closed_as_merged_already() {
    let home = Home::new();
    let id = reviewed(&home, "brew", PASSES, &[]);
    sh(&home, &workspace(&home, &id), "git update-ref refs/sluice/merged/$(git rev-parse HEAD) main");
    let work = home.git(&["rev-parse", "brew"]);
    assert_eq!(home.json(&["task", "merge", &id])["task"]["status"], "done");
    assert_eq!(home.git(&["rev-parse", "main"]), work);
    assert_eq!(merged(&home, &id)["commit"], work.as_str());
}

/// A `git` that moves the default branch and then says that it has failed, as every one after it does: nobody knows then
/// whether it was merged.
const FAILING: &str = r#"#!/bin/sh
here=$(dirname "$0")
if [ -e "$here/armed" ]; then
    case "$*" in *update-ref*refs/heads/main*) "$here/real" "$@"; mv "$here/armed" "$here/broken"; exit 1 ;; esac
fi
[ ! -e "$here/broken" ] || { echo 'cannot fork' >&2; exit 128; }
exec "$here/real" "$@"
"#;

#[test]
fn a_merge_of_which_nobody_knows_whether_it_was_made_is_finished_by_the_next_look() {
    let home = Home::empty();
    let bin = home.path("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("git"), FAILING).unwrap();
    sh(&home, &bin, "chmod +x git; ln -s \"$(command -v git)\" real");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    run(home.command(&["project", "add"]).env("PATH", path)).done();
    for (branch, strategy) in [("brew", "ff"), ("pour", "squash")] {
        // A branch of whose moves nothing is known.
        let script = "blob=$(echo x | git hash-object -w --stdin); \
                      tree=$(printf '100644 blob %s\\tNAME\\n' $blob | git mktree); \
                      git update-ref refs/heads/NAME $(git commit-tree -p main -m NAME $tree)";
        sh(&home, &home.repository(), &script.replace("NAME", branch));
        let answer = home.json(&["task", "create", branch, branch, "--status", "reviewing", "--harness", "demo"]);
        let id = answer["task"]["id"].as_str().unwrap().to_owned();
        let (before, work) = (home.git(&["rev-parse", "main"]), home.git(&["rev-parse", branch]));
        std::fs::write(bin.join("armed"), "").unwrap();
        let said = home.sluice(&["task", "merge", &id, "--strategy", strategy, "--json"]);
        assert!(said.code != 0 && said.stdout.contains("finished by itself"), "{said:?}");
        std::fs::remove_file(bin.join("broken")).unwrap();
        assert_eq!(home.json(&["task", "merge", &id])["task"]["status"], "done");
        assert_eq!(home.git(&["status", "--porcelain"]), "");
        assert_eq!(home.git(&["log", "--format=%s", &format!("{before}..main")]), branch);
        assert_eq!(merged(&home, &id)["commit"], work.as_str());
    }
}

#[test]
fn a_merge_that_cannot_be_made_says_why_by_its_code_and_where() {
    let home = Home::new();
    let id = home.create("brew", "worker: work\nreviewer: review pass", &[]);
    let folder = home.until_status(&id, "reviewing")["workspace"].as_str().unwrap().to_owned();
    let file = home.git(&["diff", "--name-only", "main", "brew"]);
    let mine = home.repository().join(&file);
    std::fs::create_dir_all(mine.parent().unwrap()).unwrap();
    std::fs::write(mine, "mine").unwrap();
    let refused = |more: &[&str], code: &str, hint: &str| {
        let ran = home.sluice(&[&["task", "merge", &id, "--json"], more].concat());
        assert_eq!(ran.refusal(), format!("1 {code}"), "{ran:?}");
        let error = &ran.json()["error"];
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error:#}");
        error["message"].as_str().unwrap().to_owned()
    };
    let said = refused(&[], "checkout_changed", "status");
    assert!(said.contains("in the way); move or rename what is in the way"), "{said}");
    home.commit();
    refused(&["--strategy", "ff"], "not_fast_forward", &format!("git -C {folder} rebase main"));
    refused(&[], "merge_conflict", &format!("git -C {folder} merge main"));
}

/// What is left behind when a task ends is told, with the way to get it back.
#[test]
fn who_ends_a_task_hears_what_was_kept_and_what_is_not_merged() {
    let home = Home::new();
    for (branch, words) in [
        ("cancelled", &["cancel", "ID", "--yes"] as &[&str]),
        ("closed", &["update", "ID", "--status", "done"]),
        ("forced", &["merge", "ID", "--force"]),
    ] {
        let id = home.create(branch, "worker: work\nreviewer: review pass", &[]);
        let folder = home.until_status(&id, "reviewing")["workspace"].as_str().unwrap().to_owned();
        std::fs::write(std::path::Path::new(&folder).join("untracked"), "x").unwrap();
        let words: Vec<&str> = words.iter().map(|word| if *word == "ID" { id.as_str() } else { word }).collect();
        let answer = home.json(&[&["task"], words.as_slice()].concat());
        let notes = answer["notes"].to_string();
        let way = format!("kept: new files; `sluice workspace restore {id} --number 1 --into FOLDER` brings it back");
        assert!(notes.contains(&way), "{branch}: {answer:#}");
        let is_unmerged = notes.contains(&format!("1 commit on `{branch}` is not merged"));
        assert_eq!(is_unmerged, branch != "forced", "{branch}: {answer:#}");
        let into = home.path(branch);
        home.sluice(&["workspace", "restore", &id, "--number", "1", "--into", into.to_str().unwrap()]).done();
        assert_eq!(std::fs::read_to_string(into.join("untracked")).unwrap(), "x");
    }
}
