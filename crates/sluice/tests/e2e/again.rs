//! Asking again: what was answered with "not now" was not done, what was done is not done again under the same key.

use std::sync::Mutex;

use serde_json::{Value, json};
use sluice_store::testing::Cluster;

use super::home::Home;
use super::served::{Answer, Served, request, token};

/// One question under a key.
fn ask(served: &Served, secret: &str, key: &str, path: &str, body: &Value) -> Answer {
    let body = body.to_string();
    let shown = format!("authorization: Bearer {secret}\r\nidempotency-key: {key}\r\n");
    served.say(format!("{}{body}", request("POST", path, &shown, body.len())).as_bytes())
}

fn ids(served: &Served, secret: &str) -> Vec<String> {
    let list = served.ask("GET", "/v1/lifecycle/tasks", Some(secret), "").json();
    list["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_was_answered_with_not_now_is_not_done_later() {
    let home = Home::empty();
    let cluster = Cluster::start();
    let served = Served::start(&home, &["--store", &cluster.database()]);
    home.sluice(&["project", "add"]).done();
    let (_, secret) = token(&home, &["--scope", "person"]);
    let task = |branch: &str| json!({ "project": "coffee", "branch": branch, "summary": "Do it", "no_spawn": true });
    let first = served.ask("POST", "/v1/lifecycle/tasks", Some(&secret), &task("first").to_string());
    assert_eq!(first.status, 200, "{first:?}");
    cluster.halt();
    // Many at once, several of them for the same branch.
    let answers = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for number in 0..12 {
            let (answers, served, secret) = (&answers, &served, &secret);
            let wanted = task(&format!("branch-{}", number / 3));
            scope.spawn(move || {
                let answer = served.ask("POST", "/v1/lifecycle/tasks", Some(secret), &wanted.to_string());
                answers.lock().unwrap().push((wanted["branch"].clone(), answer));
            });
        }
    });
    cluster.resume();
    let answers = answers.into_inner().unwrap();
    let mut promised: Vec<String> = vec![first.json()["task"]["id"].as_str().unwrap().to_owned()];
    for (branch, answer) in &answers {
        match answer.status {
            202 => promised.push(answer.json()["id"].as_str().unwrap().to_owned()),
            422 => assert_eq!(answer.short(), "422 branch_taken"),
            503 => {}
            other => panic!("{other}: {answer:?} for {branch}"),
        }
    }
    // The store takes what was promised before anything that comes now.
    let later = loop {
        let later = served.ask("POST", "/v1/lifecycle/tasks", Some(&secret), &task("later").to_string());
        if later.status == 200 {
            break later;
        }
        assert!([202, 422, 503].contains(&later.status), "{later:?}");
        if later.status != 503 {
            promised.extend(later.json()["id"].as_str().map(str::to_owned));
        }
        if later.short() == "422 branch_taken" {
            break later;
        }
    };
    promised.extend(later.json()["task"]["id"].as_str().map(str::to_owned));
    promised.sort();
    promised.dedup();
    let mut there = ids(&served, &secret);
    there.sort();
    assert_eq!(there, promised, "{answers:?}");
    let list = served.ask("GET", "/v1/lifecycle/tasks", Some(&secret), "").json();
    let mut branches: Vec<&str> =
        list["tasks"].as_array().unwrap().iter().map(|task| task["branch"].as_str().unwrap()).collect();
    let count = branches.len();
    branches.sort_unstable();
    branches.dedup();
    assert_eq!(branches.len(), count, "two tasks on one branch: {list:#}");
}

#[test]
fn under_one_key_something_is_made_once_also_by_the_next_engine() {
    let home = Home::new();
    let mut served = Served::start(&home, &[]);
    let (_, secret) = token(&home, &["--scope", "person"]);
    let (_, other) = token(&home, &["--scope", "person"]);
    let path = "/v1/lifecycle/tasks";
    let wanted = json!({ "project": "coffee", "branch": "brew", "summary": "Brew it", "no_spawn": true });
    let first = ask(&served, &secret, "k-1", path, &wanted);
    assert_eq!(first.status, 200, "{first:?}");
    let again = ask(&served, &secret, "k-1", path, &wanted);
    assert_eq!((again.status, &again.body), (200, &first.body));
    assert!(again.head.contains("idempotency-replayed: true"), "{}", again.head);
    // Other words, another key, another's key.
    let changed = json!({ "project": "coffee", "branch": "other", "no_spawn": true });
    assert_eq!(ask(&served, &secret, "k-1", path, &changed).short(), "422 key_reused");
    assert_eq!(ask(&served, &secret, "k-2", path, &wanted).short(), "422 branch_taken");
    assert_eq!(ask(&served, &other, "k-1", path, &wanted).short(), "422 branch_taken");
    // A "no" keeps no key.
    let mended = json!({ "project": "coffee", "branch": "mended", "no_spawn": true });
    assert_eq!(ask(&served, &secret, "k-2", path, &mended).status, 200);
    assert_eq!(ask(&served, &secret, "", path, &mended).short(), "400 bad_request");
    // Every route that makes something new knows it.
    std::fs::create_dir_all(home.repository().join(".sluice/grimoires")).unwrap();
    let recipe = "name: mine\nsteps:\n  - {name: a, type: script, command: 'true'}\n";
    std::fs::write(home.repository().join(".sluice/grimoires/mine.yml"), recipe).unwrap();
    let run = json!({ "recipe": "mine", "cwd": home.repository() });
    let grimoire = json!({ "grimoire": "mine", "project": "coffee" });
    let colony = json!({ "name": "reef" });
    let made: Vec<(&str, &Value, Answer)> =
        [("/v1/recipe/runs", &run), ("/v1/processes", &run), ("/workflows", &grimoire), ("/v1/colonies", &colony)]
            .into_iter()
            .map(|(path, body)| (path, body, ask(&served, &secret, "k-3", path, body)))
            .collect();
    let tokens = ask(&served, &secret, "k-3", "/v1/tokens", &json!({ "scope": "read" }));
    assert_eq!(tokens.status, 200, "{tokens:?}");
    served.terminate();
    served.ended();
    let served = Served::start(&home, &[]);
    for (path, body, first) in made {
        assert!(first.status == 200 || first.status == 202, "{path}: {first:?}");
        let again = ask(&served, &secret, "k-3", path, body);
        assert_eq!((again.status, &again.body), (first.status, &first.body), "{path}");
    }
    // A secret is told once.
    let again = ask(&served, &secret, "k-3", "/v1/tokens", &json!({ "scope": "read" }));
    assert_eq!(again.short(), "409 secret_told");
    let again = ask(&served, &secret, "k-1", path, &wanted);
    assert_eq!((again.status, &again.body), (200, &first.body));
    assert_eq!(ids(&served, &secret).len(), 2);
    assert_eq!(home.json(&["run", "list", "--all"])["runs"].as_array().unwrap().len(), 3);
}
