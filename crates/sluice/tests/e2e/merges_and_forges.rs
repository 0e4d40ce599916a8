//! Merges with a remote and a forge: pull requests are never bypassed, the worker that goes on committing loses nothing,
//! and a colleague's commit stays where it is. A scripted `gh` plays the forge.

use std::path::PathBuf;

use serde_json::Value;

use super::home::{Home, Ran, run};
use super::merges::sh;

const PASSES: &str = "worker: work\nreviewer: review pass";

/// A `gh` that answers `pr list` with the file `list`, and first runs the script `before`, if there is one.
const GH: &str = r#"#!/bin/sh
here=$(dirname "$0")
[ ! -e "$here/before" ] || . "$here/before"
case "$1 $2" in
"pr list") cat "$here/list" ;;
"pr create") echo https://forge/1 ;;
*) exit 1 ;;
esac
"#;

/// A home with a remote, and an engine that finds the scripted `gh`.
struct Forge {
    home: Home,
    bin: PathBuf,
}

impl Forge {
    fn new() -> Forge {
        let home = Home::empty();
        let bin = home.path("bin");
        std::fs::create_dir(&bin).unwrap();
        std::fs::write(home.path("gh.text"), GH).unwrap();
        // Another process writes it: one that is forked here meanwhile would keep it from being run.
        sh(&home, &home.path(""), "cp gh.text bin/gh; chmod 755 bin/gh; echo '[]' > bin/list");
        sh(
            &home,
            &home.repository(),
            "git clone -q --bare . ../remote.git; git remote add origin \"$(cd ../remote.git; pwd)\"; git fetch -q",
        );
        let forge = Forge { home, bin };
        forge.sluice(&["project", "add"]).done();
        forge
    }

    /// The engine is started by such a command, and finds `gh` on its path.
    fn sluice(&self, arguments: &[&str]) -> Ran {
        let mut path = std::ffi::OsString::from(&self.bin);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        run(self.home.command(arguments).env("PATH", path))
    }

    /// The pull requests of a branch.
    fn list(&self, branch: &str, state: &str, base: &str) {
        let head = self.home.git(&["rev-parse", branch]);
        let text = format!(
            r#"[{{"url":"https://forge/1","state":"{state}","headRefOid":"{head}","headRefName":"{branch}","baseRefName":"{base}","isCrossRepository":false}}]"#
        );
        std::fs::write(self.bin.join("list"), text).unwrap();
    }

    /// The pull request has another newest commit.
    fn has_head(&self, old: &str, new: &str) {
        let list = std::fs::read_to_string(self.bin.join("list")).unwrap();
        std::fs::write(self.bin.join("list"), list.replace(old, new)).unwrap();
    }

    fn remote(&self, words: &str) -> String {
        sh(&self.home, &self.home.path("remote.git"), words)
    }

    fn picture(&self, id: &str) -> String {
        let status = self.home.task(id)["status"].to_string();
        format!("{status}\n{}\n{}", self.home.git(&["for-each-ref"]), self.remote("git for-each-ref"))
    }
}

#[test]
fn a_pull_request_is_never_bypassed() {
    let forge = Forge::new();
    let home = &forge.home;
    let id = home.create("brew", PASSES, &[]);
    home.until_status(&id, "reviewing");
    forge.list("brew", "OPEN", "main");
    // It is known from now on.
    assert_eq!(home.json(&["task", "create-pr", &id])["task"]["pr_url"], "https://forge/1");
    let before = forge.picture(&id);
    for (state, base, expected) in [
        ("OPEN", "main", "1 pr_open"),
        ("OPEN", "develop", "1 pr_open"),
        ("CLOSED", "main", "1 pr_elsewhere"),
        ("MERGED", "develop", "1 pr_elsewhere"),
    ] {
        forge.list("brew", state, base);
        for more in [&[][..], &["--force"]] {
            assert_eq!(home.refused(&[&["task", "merge", &id][..], more].concat()), expected, "{state} {base}");
            assert_eq!(forge.picture(&id), before, "{state} {base}");
        }
    }
    // With a pull request that is known, a forge that cannot be asked is no forge without one.
    for list in ["no JSON", "[]"] {
        std::fs::write(forge.bin.join("list"), list).unwrap();
        let ran = home.sluice(&["task", "merge", &id, "--json"]);
        assert_ne!(ran.code, 0, "{ran:?}");
        assert_eq!(forge.picture(&id), before, "{list}");
    }
    std::fs::remove_file(forge.bin.join("list")).unwrap();
    assert_ne!(home.sluice(&["task", "merge", &id]).code, 0);
    assert_eq!(forge.picture(&id), before);
    // Squashed into the default branch there: the task is closed, and the default branch here follows.
    sh(
        home,
        &home.path(""),
        "git clone -q remote.git theirs; cd theirs; git merge -q --squash origin/brew; git commit -qm squashed; git push -q origin main",
    );
    forge.list("brew", "MERGED", "main");
    assert_eq!(home.json(&["task", "merge", &id])["task"]["status"], "done");
    assert_eq!(home.git(&["log", "-1", "--format=%s", "main"]), "squashed");
    // All of it is merged, so the branch there is gone.
    assert_eq!(forge.remote("git branch --format='%(refname:short)'"), "main");
}

/// A colleague adds to the pull request there, or its forge brings it up to date, before it is merged.
#[test]
fn a_pull_request_that_was_merged_with_more_than_the_work_has_merged_it() {
    for (is_known, merges) in [
        (true, "git merge -q --no-ff -m merged brew; git push -q origin brew main"),
        (true, "git merge -q --squash brew; git commit -qm merged; git push -q origin brew main"),
        (false, "git merge -q --squash brew; git commit -qm merged; git push -q origin brew main"),
        (
            false,
            "git push -q origin brew; git merge -q --squash brew; git commit -qm merged; git push -q origin main :brew",
        ),
    ] {
        let forge = Forge::new();
        let home = &forge.home;
        let id = home.create("brew", PASSES, &[]);
        home.until_status(&id, "reviewing");
        forge.list("brew", "OPEN", "main");
        match is_known {
            true => drop(home.json(&["task", "create-pr", &id])),
            false => drop(home.git(&["push", "-q", "origin", "brew"])),
        }
        let add = "git clone -q -b brew remote.git theirs; cd theirs; git rm -q README.md; git commit -qm more";
        let more = format!("{add}; git switch -q main; {{ {merges}; }} > ../told; git rev-parse brew");
        let added = sh(home, &home.path(""), &more);
        forge.list("brew", "MERGED", "main");
        forge.has_head(&home.git(&["rev-parse", "brew"]), &added);
        let answer = home.json(&["task", "merge", &id]);
        assert!(answer["notes"].to_string().contains("merged by https://forge/1"), "{merges}: {answer:#}");
        // What the colleague took away stays away.
        assert_eq!(home.git(&["log", "-1", "--format=%s", "main"]), "merged", "{merges}");
        assert_eq!(forge.remote("git log -1 --format=%s main"), "merged", "{merges}");
    }
}

/// A branch name is used again: the pull request of the earlier branch merged nothing of the new one.
#[test]
fn an_old_pull_request_closes_no_task_that_has_no_work() {
    for merges in ["git merge -q --no-ff -m merged brew", "git merge -q --ff-only brew"] {
        for is_pulled in [false, true] {
            let forge = Forge::new();
            let home = &forge.home;
            sh(
                home,
                &home.repository(),
                "git switch -qc brew; echo old > old; git add old; git commit -qm old; git push -q origin brew; git switch -q main",
            );
            forge.list("brew", "MERGED", "main");
            let there = "git clone -q -b main remote.git theirs; cd theirs; git branch -q brew origin/brew";
            sh(home, &home.path(""), &format!("{there}; {merges}; git push -q origin main :brew"));
            home.git(&["branch", "-qD", "brew"]);
            if is_pulled {
                home.git(&["pull", "-q", "--ff-only", "origin", "main"]);
            }
            home.git(&["branch", "brew"]);
            let made = home.json(&["task", "create", "brew", "Anew", "--status", "reviewing", "--harness", "demo"]);
            let id = made["task"]["id"].as_str().unwrap();
            for more in [&[][..], &["--force"]] {
                let refused = home.refused(&[&["task", "merge", id][..], more].concat());
                assert!(
                    ["1 nothing_to_merge", "1 pr_elsewhere"].contains(&refused.as_str()),
                    "{refused}: {merges} {is_pulled}"
                );
            }
            assert_eq!(home.task(id)["status"], "reviewing");
        }
    }
}

#[test]
fn a_person_merges_here_whatever_a_pull_request_says() {
    let forge = Forge::new();
    let home = &forge.home;
    let id = home.create("brew", PASSES, &[]);
    home.until_status(&id, "reviewing");
    forge.list("brew", "OPEN", "main");
    assert_eq!(home.refused(&["task", "merge", &id]), "1 pr_open");
    assert_eq!(home.json(&["task", "merge", &id, "--local"])["task"]["status"], "done");
    assert_eq!(forge.remote("git rev-parse main"), home.git(&["rev-parse", "brew"]));
}

/// Between the check and the merge, and before the engine knows of it: the forge is asked in between.
#[test]
fn a_worker_that_goes_on_committing_gets_nothing_in_and_loses_nothing() {
    let forge = Forge::new();
    let home = &forge.home;
    let id = home.create("brew", PASSES, &[]);
    let folder = PathBuf::from(home.until_status(&id, "reviewing")["workspace"].as_str().unwrap());
    let judged = sh(home, &folder, "git rev-parse HEAD");
    let before = format!(
        "cd {}; echo late > late; git add late; git -c user.name=A -c user.email=a@example.invalid commit -qm late; echo more > more; cd - > /dev/null",
        folder.display()
    );
    std::fs::write(forge.bin.join("before"), before).unwrap();
    let answer = home.json(&["task", "merge", &id]);
    assert_eq!(answer["task"]["status"], "done", "{answer:#}");
    let notes = answer["notes"].to_string();
    assert!(notes.contains("`brew` has commits that were not merged (1); they stay there"), "{notes}");
    assert_eq!((home.git(&["rev-parse", "main"]), forge.remote("git rev-parse main")), (judged.clone(), judged));
    // The commit is on its branch, the file is kept.
    assert_eq!(home.git(&["log", "-1", "--format=%s", "brew"]), "late");
    assert!(!home.git(&["for-each-ref", &format!("refs/sluice/keep/{id}")]).is_empty());
}

/// What became of the branch on the remote, and why.
fn skipped(answer: &serde_json::Value) -> (String, String) {
    let effects = answer["transition"]["effects"].as_array().unwrap().clone();
    let effect = effects.into_iter().find(|it| it["action"] == "delete_remote_branch").unwrap();
    (effect["status"].as_str().unwrap().to_owned(), effect["error"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_branch_on_the_remote_goes_only_when_all_of_it_is_merged() {
    let forge = Forge::new();
    let home = &forge.home;
    let push = "git push -q origin HEAD";
    let colleague = |branch: &str| {
        let script = format!(
            "rm -rf theirs; git clone -q -b {branch} remote.git theirs; cd theirs; echo t > theirs; git add -A; git commit -qm theirs; git push -q origin {branch}; git rev-parse HEAD"
        );
        sh(home, &home.path(""), &script)
    };
    // A person closes it by hand, and nothing was merged.
    let id = home.create("closed", PASSES, &[]);
    let folder = PathBuf::from(home.until_status(&id, "reviewing")["workspace"].as_str().unwrap());
    sh(home, &folder, push);
    let (status, why) = skipped(&home.json(&["task", "update", &id, "--status", "done"]));
    assert!(status == "skipped" && why.contains("`closed` stays on `origin`"), "{status} {why}");
    assert_eq!(forge.remote("git rev-parse closed"), home.git(&["rev-parse", "closed"]));
    // Merged, and a colleague has pushed one more commit to it.
    let id = home.create("shared", PASSES, &[]);
    let folder = PathBuf::from(home.until_status(&id, "reviewing")["workspace"].as_str().unwrap());
    sh(home, &folder, push);
    let theirs = colleague("shared");
    let answer = home.json(&["task", "merge", &id]);
    let (status, why) = skipped(&answer);
    assert!(status == "skipped" && why.contains(&theirs[..12]), "{status} {why}");
    assert_eq!((&answer["task"]["status"], forge.remote("git rev-parse shared")), (&"done".into(), theirs));
    // Merged as it is.
    let id = home.create("mine", PASSES, &[]);
    let folder = PathBuf::from(home.until_status(&id, "reviewing")["workspace"].as_str().unwrap());
    sh(home, &folder, push);
    assert_eq!(skipped(&home.json(&["task", "merge", &id])).0, "done");
    assert_eq!(forge.remote("git branch --format='%(refname:short)'"), "closed\nmain\nshared");
}

/// The remote of one project does not answer; another project has nothing to do with it.
#[test]
fn a_remote_that_hangs_is_no_matter_of_another_project() {
    let home = Home::new();
    let (here, on) = (home.pipe("here"), home.pipe("on"));
    let hanging = format!(
        "#!/bin/sh\n[ -e ../hung ] && exec git-upload-pack \"$@\"\n: > ../hung; : > {}; : < {}; exit 1\n",
        here.path(),
        on.path()
    );
    std::fs::write(home.path("hang"), hanging).unwrap();
    let remote = "chmod +x ../hang; git init -q --bare ../remote.git; git remote add origin ../remote.git; \
         git push -q origin main; git config remote.origin.uploadpack ../hang; \
         git clone -q . ../tea; git -C ../tea remote remove origin";
    sh(&home, &home.repository(), remote);
    home.json(&["project", "add", home.path("tea").to_str().unwrap(), "--name", "tea"]);
    let coffee = home.create("brew", PASSES, &["--project", "coffee"]);
    let tea = home.create("steep", PASSES, &["--project", "tea"]);
    home.until_status(&coffee, "reviewing");
    home.until_status(&tea, "reviewing");
    let mut merging = home.command(&["task", "merge", &coffee]).stdout(std::process::Stdio::null()).spawn().unwrap();
    here.hear();
    assert_eq!(home.json(&["task", "merge", &tea])["task"]["status"], "done");
    assert!(merging.try_wait().unwrap().is_none(), "it waits for its remote");
    on.let_go();
    assert!(merging.wait().unwrap().success());
    home.until_status(&coffee, "done");
    let main = home.git(&["rev-parse", "main"]);
    assert_eq!(sh(&home, &home.path("remote.git"), "git rev-parse main"), main);
}

#[test]
fn that_a_merge_was_not_pushed_is_told_and_stays_told() {
    let forge = Forge::new();
    let home = &forge.home;
    let id = home.create("brew", PASSES, &[]);
    home.until_status(&id, "reviewing");
    std::fs::rename(home.path("remote.git"), home.path("away.git")).unwrap();
    let answer = home.json(&["task", "merge", &id]);
    let notes = answer["notes"].to_string();
    assert!(notes.contains("merged, not pushed: ") && notes.contains("`git push origin main`"), "{answer:#}");
    // The branch on the remote could not be looked at either.
    let task = home.until(&id, "settled", |task| task["attention"].to_string().contains("delete_remote_branch"));
    let attention = task["attention"]["text"].as_str().unwrap().to_owned();
    assert!(attention.starts_with("merged, not pushed: ") && attention.contains("git push origin main"), "{attention}");
}

/// The remote takes branches and does not take the default branch: then the branch is all that it has of the work.
/// A hook of the repository may commit on the default branch; the remote gets what was judged, and no more.
#[test]
fn what_a_hook_puts_on_the_default_branch_is_not_pushed() {
    let forge = Forge::new();
    let home = &forge.home;
    let hook = "printf '#!/bin/sh\\necho evil > evil; git add evil; git commit -q -m evil\\n' > .git/hooks/post-merge; \
                chmod +x .git/hooks/post-merge";
    sh(home, &home.repository(), hook);
    let id = home.create("brew", PASSES, &[]);
    let folder = PathBuf::from(home.until_status(&id, "reviewing")["workspace"].as_str().unwrap());
    let judged = sh(home, &folder, "git rev-parse HEAD");
    let notes = home.json(&["task", "merge", &id])["notes"].to_string();
    assert_eq!(home.git(&["log", "-1", "--format=%s", "main"]), "evil", "the hook has run");
    assert!(notes.contains("not at the merge"), "{notes}");
    assert_eq!(forge.remote("git rev-parse main"), judged);
}

#[test]
fn a_branch_on_the_remote_stays_when_the_merge_was_not_pushed() {
    let forge = Forge::new();
    let home = &forge.home;
    for strategy in ["ff", "squash"] {
        let id = home.create(strategy, PASSES, &[]);
        let folder = PathBuf::from(home.until_status(&id, "reviewing")["workspace"].as_str().unwrap());
        sh(home, &folder, "git push -q origin HEAD");
        forge.remote("printf '#!/bin/sh\\n[ $1 != refs/heads/main ]\\n' > hooks/update; chmod +x hooks/update");
        let before = forge.remote("git for-each-ref");
        let answer = home.json(&["task", "merge", &id, "--strategy", strategy]);
        let notes = answer["notes"].to_string();
        assert!(notes.contains("merged, not pushed: ") && !notes.contains("grafts"), "{notes}");
        let (status, why) = skipped(&answer);
        assert!(status == "skipped" && why.contains(&format!("`{strategy}` stays on `origin`")), "{status} {why}");
        assert_eq!(forge.remote("git for-each-ref"), before, "{strategy}");
        // Pushed later, it does not stand in the way of the next, and the task does not go on about it.
        assert!(home.task(&id)["attention"]["text"].as_str().unwrap().starts_with("merged, not pushed: "));
        forge.remote("rm hooks/update");
        home.git(&["push", "--quiet", "origin", "main"]);
        assert_eq!(home.task(&id)["attention"], Value::Null);
    }
    // The same ways of merging, pushed at once: nothing of them is only on the branch.
    for strategy in ["squash", "rebase"] {
        let branch = format!("{strategy}-pushed");
        let id = home.create(&branch, PASSES, &[]);
        let folder = PathBuf::from(home.until_status(&id, "reviewing")["workspace"].as_str().unwrap());
        sh(home, &folder, "git push -q origin HEAD");
        assert_eq!(skipped(&home.json(&["task", "merge", &id, "--strategy", strategy])).0, "done");
    }
    assert_eq!(forge.remote("git branch --format='%(refname:short)'"), "ff\nmain\nsquash");
}
