//! The worktree of a run: made when the first step needs it, given back when the run has ended, and nothing is lost with it.

use std::path::PathBuf;
use std::time::Instant;

use super::home::{Home, LONG, Pipe};
use super::recipes::{begin, fresh, grimoire, start, text, until, until_status};

/// What is left of runs: checkouts and their locks, and branches. The pool has a lock of its own.
fn left(home: &Home) -> (Vec<String>, String) {
    let folders = std::fs::read_dir(home.place().join("runs")).into_iter().flatten();
    let mut folders: Vec<String> = folders.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    folders.retain(|name| name != ".lock");
    folders.sort();
    (folders, home.git(&["branch", "--format=%(refname:short)", "--list", "sluice/*"]))
}

/// Starts a recipe with one script, and gives its run and its checkout when the script has ended.
fn scripted(home: &Home, command: &str) -> (String, PathBuf) {
    grimoire(home, "mine", &format!("steps:\n  - name: one\n    type: script\n    command: |\n      {command}\n"));
    let run = start(home, &["mine"]).json()["run"].take();
    (text(&run["id"]).to_owned(), PathBuf::from(text(&run["workspace"])))
}

/// Waits until nothing is left of runs.
fn until_nothing_is_left(home: &Home) {
    let give_up = Instant::now() + LONG;
    while left(home) != (Vec::new(), String::new()) {
        assert!(Instant::now() < give_up, "{:?}", left(home));
        home.json(&["run", "list"]);
    }
}

#[test]
fn a_run_that_leaves_nothing_new_leaves_nothing() {
    let home = fresh();
    for command in ["true", "pwd; git status"] {
        let (id, folder) = scripted(&home, command);
        until(&home, &id, |_| !folder.exists() && left(&home).1.is_empty());
    }
    until_nothing_is_left(&home);
    assert_eq!(home.git(&["for-each-ref", "refs/sluice"]), "");
    assert_eq!(home.git(&["worktree", "list"]).lines().count(), 1);
}

/// Which folder it is, whatever it is called; what else lies there; and where it stands.
const LOOK: &str =
    "stat -c '%i %w' .; ls; git status --porcelain --ignored; git rev-parse HEAD; git branch --show-current";

/// What a run sees of its worktree, by line.
fn looks(home: &Home, command: &str) -> Vec<String> {
    let (id, _) = scripted(home, command);
    let run = until_status(home, &id, "completed");
    text(&run["steps"][0]["output"]).lines().map(str::to_owned).collect()
}

#[test]
fn runs_that_follow_each_other_are_lent_the_same_worktree_and_see_nothing_of_each_other() {
    let home = fresh();
    std::fs::write(home.repository().join(".gitignore"), "*.cache\n").unwrap();
    home.git(&["add", ".gitignore"]);
    home.git(&["commit", "--quiet", "--message", "ignore"]);
    // A run may begin before the one before it has given its worktree back, and is lent that of an earlier one or a new one.
    let mut seen: Vec<Vec<String>> = Vec::new();
    let give_up = Instant::now() + LONG;
    loop {
        assert!(Instant::now() < give_up, "{seen:?}");
        let look = looks(&home, LOOK);
        assert!(
            seen.iter().all(|other| other.last() != look.last()),
            "each has a branch of its own: {look:?} {seen:?}"
        );
        let is_lent_again = seen.iter().any(|other| other[0] == look[0]);
        seen.push(look);
        if is_lent_again {
            break;
        }
    }

    // One that leaves something that git does not count leaves it to none.
    for left in ["touch left.cache", "git config extensions.worktreeConfig true; git config --worktree a.b c"] {
        looks(&home, left);
        let after = looks(&home, &format!("{LOOK}; git config a.b || true"));
        assert!(!after.iter().any(|line| line.contains("left.cache") || line == "c"), "{after:?}");
    }

    // The next begins where the person stands then.
    std::fs::write(home.repository().join("new.txt"), "new").unwrap();
    home.git(&["add", "new.txt"]);
    home.git(&["commit", "--quiet", "--message", "new"]);
    let after = looks(&home, LOOK);
    assert!(after.contains(&"new.txt".to_owned()) && after.contains(&home.git(&["rev-parse", "HEAD"])), "{after:?}");
    until_nothing_is_left(&home);
}

#[test]
fn spare_worktrees_of_an_engine_that_was_killed_go() {
    let home = fresh();
    for _ in 0..3 {
        looks(&home, "true");
    }
    // While the engine is killed there is a spare or there is none; a part of one is there for sure.
    home.kill_engine();
    let half = home.place().join("runs/.spare-1x1-0");
    home.git(&["worktree", "add", "--quiet", "-b", "sluice/run-halfway", half.to_str().unwrap()]);
    std::fs::write(half.join("work.txt"), "work").unwrap();
    std::fs::create_dir(home.place().join("runs/.spare-1x1-1")).unwrap();
    home.json(&["run", "list"]);
    assert!(!left(&home).0.iter().any(|name| name.starts_with(".spare-1x1")), "{:?}", left(&home));
    let kept = home.git(&["for-each-ref", "--format=%(refname)", "refs/sluice/keep"]);
    assert!(home.git(&["ls-tree", "-r", "--name-only", &kept]).contains("work.txt"));
}

#[test]
fn what_a_run_made_stays_on_its_branch_or_is_kept() {
    let home = fresh();
    let (id, folder) = scripted(&home, "echo new > made.txt");
    let kept = |home: &Home| home.git(&["for-each-ref", "--format=%(refname)", "refs/sluice/keep"]);
    until(&home, &id, |_| !kept(&home).is_empty());
    assert!(folder.join("made.txt").exists(), "the checkout stays for a while");
    assert_eq!(left(&home), (vec![id.clone(), format!("{id}.lock")], format!("sluice/run-{id}")));
    assert!(home.git(&["ls-tree", "-r", "--name-only", &kept(&home)]).contains("made.txt"));

    let (id, folder) = scripted(&home, "echo new > made.txt; git add made.txt; git commit -qm made");
    until_status(&home, &id, "completed");
    assert!(folder.join("made.txt").exists());
    assert_eq!(home.git(&["show", &format!("sluice/run-{id}:made.txt")]), "new");
}

#[test]
fn a_run_shows_its_branch_and_what_is_kept_of_it() {
    let home = fresh();
    let (id, _) = scripted(&home, "echo new > made.txt; git add made.txt; git commit -qm made; echo more > more.txt");
    let kept = format!("refs/sluice/keep/{id}/1");
    let run = until(&home, &id, |run| run["kept"] == serde_json::json!([kept]));
    assert_eq!(run["branch"], format!("sluice/run-{id}"), "{run:#}");
    let shown = home.sluice(&["run", "show", &id]).done().stdout;
    assert!(shown.contains(&format!("sluice/run-{id}")) && shown.contains(&kept), "{shown}");
    // One that has neither says neither.
    let (id, folder) = scripted(&home, "true");
    let run = until(&home, &id, |_| !folder.exists() && !left(&home).1.contains(&id));
    assert_eq!((&run["branch"], &run["kept"]), (&serde_json::Value::Null, &serde_json::Value::Null), "{run:#}");
}

#[test]
fn a_run_whose_work_went_with_its_branch_is_not_tried_again_from_the_base() {
    let home = fresh();
    let (id, folder) = scripted(&home, "git commit -q --allow-empty -m made; exit 3");
    until_status(&home, &id, "failed");
    let branch = format!("sluice/run-{id}");
    let commit = home.git(&["rev-parse", &branch]);
    home.git(&["worktree", "remove", "--force", folder.to_str().unwrap()]);
    home.git(&["branch", "-q", "-D", &branch]);
    let ran = home.sluice(&["run", "retry", &id, "--json"]);
    assert_eq!(ran.refusal(), "1 no_workspace");
    let hint = ran.json()["error"]["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains(&format!("branch {branch} {commit}")), "{hint}");
    // As it says.
    home.git(&["branch", &branch, &commit]);
    home.json(&["run", "retry", &id]);
    until_status(&home, &id, "failed");
    assert_eq!(home.git(&["rev-parse", &format!("{branch}~1")]), commit, "it goes on where it was");
}

#[test]
fn a_run_in_a_bare_repository_has_a_worktree_of_its_own() {
    let home = fresh();
    grimoire(&home, "mine", "steps:\n  - {name: one, type: script, command: 'pwd; git log --format=%s; echo x > x'}\n");
    home.commit();
    let bare = home.path("bare.git");
    home.git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let recipe = home.repository().join(".coven/grimoires/mine.yml");
    let before = std::fs::read_dir(&bare).unwrap().count();
    let mut command = home.command(&["start", recipe.to_str().unwrap(), "--json"]);
    let run = super::home::run(command.current_dir(&bare)).done().json()["run"].take();
    let folder = home.place().join("runs").join(text(&run["id"]));
    assert_eq!(run["workspace"], folder.to_str().unwrap(), "{run:#}");
    let output = text(&run["steps"][0]["output"]).to_owned();
    assert!(output.starts_with(folder.to_str().unwrap()) && output.ends_with("begin"), "{output}");
    assert!(!bare.join("x").exists());
    // git keeps something for worktrees there, and we a folder of our own.
    let after = std::fs::read_dir(&bare).unwrap().count();
    assert!(after - before <= 3, "{:?}", std::fs::read_dir(&bare).unwrap().collect::<Vec<_>>());
}

#[test]
fn what_failed_keeps_its_worktree_until_it_is_tried_again() {
    let home = fresh();
    let mended = home.path("mended");
    let (id, folder) = scripted(&home, &format!("test -e {}", mended.display()));
    until_status(&home, &id, "failed");
    assert!(folder.exists());
    // One that vanished is made again; and it goes when the run has ended well.
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&mended, "").unwrap();
    home.json(&["run", "retry", &id]);
    until_status(&home, &id, "completed");
    until(&home, &id, |_| !folder.exists() && left(&home).1.is_empty());
}

#[test]
fn an_engine_that_is_killed_gives_the_worktree_back_later() {
    let home = fresh();
    let (begun, end) = (home.pipe("begun"), home.pipe("end"));
    let command = format!("echo > {}; cat {}", begun.path(), end.path());
    grimoire(&home, "mine", &format!("steps:\n  - {{name: one, type: script, command: '{command}'}}\n"));
    let id = begin(&home, &["mine"]);
    begun.hear();
    home.kill_engine();
    // The script runs again under the next engine.
    let folder = PathBuf::from(text(&home.json(&["run", "show", &id])["run"]["workspace"]));
    begun.hear();
    end.let_go();
    until_status(&home, &id, "completed");
    until(&home, &id, |_| !folder.exists() && left(&home).1.is_empty());
}

#[test]
fn a_checkout_goes_when_its_time_is_over_and_so_does_one_whose_run_never_began() {
    let home = fresh();
    let config = home.place().join("config.toml");
    let settings = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{settings}\n[workspaces]\nkeep = \"0s\"\n")).unwrap();
    let (id, folder) = scripted(&home, "echo new > made.txt");
    let kept = || home.git(&["for-each-ref", "--format=%(refname)", "refs/sluice/keep"]);
    until(&home, &id, |_| !kept().is_empty());
    let (failed, of_failed) = scripted(&home, "false");
    until_status(&home, &failed, "failed");
    let orphan = home.place().join("runs/neverbegan");
    home.git(&["worktree", "add", "--quiet", "-b", "sluice/run-neverbegan", orphan.to_str().unwrap()]);
    std::fs::write(orphan.join("lost.txt"), "work").unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    std::fs::File::open(&orphan).unwrap().set_modified(long_ago).unwrap();
    // An engine looks when it starts, and every hour.
    home.sluice(&["stop"]).done();
    let give_up = Instant::now() + LONG;
    while folder.exists() || orphan.exists() {
        assert!(Instant::now() < give_up, "{:?}", left(&home));
        home.json(&["run", "list"]);
    }
    assert!(of_failed.exists(), "it may be tried again");
    let kept = home.git(&["for-each-ref", "--format=%(refname)", "refs/sluice/keep"]);
    let trees: Vec<String> = kept.lines().map(|name| home.git(&["ls-tree", "-r", "--name-only", name])).collect();
    assert!(["made.txt", "lost.txt"].iter().all(|name| trees.iter().any(|tree| tree.contains(name))), "{trees:?}");
}

/// A store that was restored from an older backup does not know the run, and its agent is at work all the same.
#[test]
fn a_checkout_of_an_unknown_run_stays_while_an_agent_lives_there() {
    let home = fresh();
    let config = home.place().join("config.toml");
    let settings = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{settings}\n[workspaces]\nkeep = \"0s\"\n")).unwrap();
    let (begun, end, copy) = (home.pipe("begun"), home.pipe("end"), home.path("copy.db"));
    home.sluice(&["backup", copy.to_str().unwrap()]).done();
    let prompt = format!("echo > {}; cat {}", begun.path(), end.path());
    grimoire(&home, "mine", &format!("steps:\n  - {{name: one, type: agent, harness: shell, prompt: '{prompt}'}}\n"));
    let id = begin(&home, &["mine"]);
    begun.hear();
    let folder = home.place().join("runs").join(&id);
    home.sluice(&["stop"]).done();
    home.sluice(&["restore", copy.to_str().unwrap()]).done();
    let last = home.place().join("runs/zzz");
    home.git(&["worktree", "add", "--quiet", "--detach", last.to_str().unwrap()]);
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    [&folder, &last].iter().for_each(|it| std::fs::File::open(it).unwrap().set_modified(long_ago).unwrap());
    let give_up = Instant::now() + LONG;
    while last.exists() {
        assert!(Instant::now() < give_up, "{:?}", left(&home));
        home.json(&["run", "list"]);
    }
    assert!(folder.exists(), "its agent is at work there");
    end.let_go();
}

/// Worktrees are being lent, worked in and given back while the engine is killed, at ever other moments.
#[test]
fn engines_that_are_killed_while_runs_come_and_go_leave_nothing() {
    let home = fresh();
    grimoire(
        &home,
        "mine",
        "steps:\n  - {name: one, type: script, command: 'true'}\n  - {name: two, type: script, command: 'true'}\n",
    );
    let mut ids = Vec::new();
    for round in 0..5 {
        ids.extend((0..3).map(|_| begin(&home, &["mine"])));
        let mut happening = home.follow(&["--type", "workflow.*", "--correlation", &ids[ids.len() - 1 - round % 3]]);
        (0..=round).for_each(|_| drop(happening.next(Instant::now() + LONG)));
        home.kill_engine();
    }
    ids.iter().for_each(|id| drop(until_status(&home, id, "completed")));
    until_nothing_is_left(&home);
    assert_eq!(home.git(&["for-each-ref", "refs/sluice"]), "");
}

#[test]
fn scripts_and_gates_with_a_workspace_of_their_own_do_not_meet() {
    let home = fresh();
    let pipes = [1, 2, 3].map(|n| (home.pipe(&format!("begun{n}")), home.pipe(&format!("end{n}"))));
    // All of them are at work at the same time.
    let step = |(n, (begun, end)): (usize, &(Pipe, Pipe))| {
        let work = format!(
            "echo {n} > {n}.txt; git add . && git commit -qm {n}; echo > {}; cat {}; pwd",
            begun.path(),
            end.path()
        );
        let kind = if n == 3 { "gate" } else { "script" };
        format!("  - {{name: s{n}, type: {kind}, needs: [], workspace: own, command: '{work}'}}\n")
    };
    let steps: String = (1..).zip(&pipes).map(step).collect();
    let after = "  - {name: after, type: script, needs: [s1, s2, s3], command: 'cat 1.txt 2.txt 3.txt; pwd'}\n";
    grimoire(&home, "mine", &format!("max_parallel: 3\nsteps:\n{steps}{after}"));
    let id = begin(&home, &["mine"]);
    pipes.iter().for_each(|(begun, _)| begun.hear());
    let shown = home.json(&["run", "show", &id])["run"].take();
    let tree = home.place().join("runs").join(&id).display().to_string();
    let folders = [0, 1, 2].map(|n| text(&shown["steps"][n]["workspace"]).to_owned());
    assert_eq!(folders, [0, 1, 2].map(|n| format!("{tree}-{n}-1-whole")), "{shown:#}");
    pipes.iter().for_each(|(_, end)| end.let_go());
    let run = until_status(&home, &id, "completed");
    for (n, folder) in folders.iter().enumerate() {
        assert!(text(&run["steps"][n]["output"]).ends_with(folder.as_str()), "{run:#}");
        assert_eq!(text(&run["steps"][n]["workspace"]), tree, "there its work is now");
    }
    assert_eq!(run["steps"][3]["output"], format!("1\n2\n3\n{tree}"), "{run:#}");
    until(&home, &id, |_| left(&home).0.iter().all(|name| name.trim_end_matches(".lock") == id));
    assert_eq!(left(&home).1, format!("sluice/run-{id}"));
}
