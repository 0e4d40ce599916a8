//! Tokens that allow no more than they are for: bound to a colony, ended by themselves, seen in the log; and secrets that
//! are stored nowhere.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::home::{Home, LONG, run};
use super::recipes::{begin, fresh, grimoire, until_status};
use super::served::{Served, token};

/// Events of a type.
fn events(home: &Home, kind: &str) -> Vec<Value> {
    let told = home.sluice(&["events", "--type", kind, "--json"]).done();
    told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What the system calls whoever runs this test.
fn user() -> String {
    let said = std::process::Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_worker_token_is_for_one_colony_and_one_role_and_sees_no_more_than_it_needs() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let (_, person) = token(&home, &[]);
    let found = |name: &str| {
        let answer = served.ask("POST", "/v1/colonies", Some(&person), &json!({ "name": name }).to_string());
        answer.json()["colony_id"].as_str().unwrap().to_owned()
    };
    let (reef, bay) = (found("reef"), found("bay"));
    let (_, bound) = token(&home, &["--scope", "worker", "--colony", &reef, "--role", "coder"]);
    let (_, free) = token(&home, &["--scope", "worker"]);
    let mut told = String::new();
    for (who, secret) in [("bound", &bound), ("free", &free)] {
        told.push_str(&format!("{who}\n"));
        for (colony, id, role) in [
            ("local", "local", "coder"),
            ("bay", bay.as_str(), "coder"),
            ("reef", reef.as_str(), "coder"),
            ("reef", reef.as_str(), "reviewer"),
            ("bay", bay.as_str(), "reviewer"),
        ] {
            let body = json!({ "colony_id": id, "name": who, "role": role }).to_string();
            let answer = served.ask("POST", "/v1/crabs/register", Some(secret), &body);
            told.push_str(&format!("    {colony} as {role}: {}\n", answer.short()));
        }
        for path in
            ["/v1/crabs", "/v1/tasks", "/v1/projects", "/v1/events", "/v1/lifecycle/tasks", "/v1/runs", "/metrics"]
        {
            told.push_str(&format!("    GET {path}: {}\n", served.ask("GET", path, Some(secret), "").short()));
        }
        for path in ["/v1/step", "/v1/lifecycle/tasks", "/v1/colonies"] {
            told.push_str(&format!("    POST {path}: {}\n", served.ask("POST", path, Some(secret), "{}").short()));
        }
    }
    insta::assert_snapshot!(told, @"
    bound
        local as coder: 403 not_yours
        bay as coder: 403 not_yours
        reef as coder: 200
        reef as reviewer: 403 not_yours
        bay as reviewer: 403 not_yours
        GET /v1/crabs: 200
        GET /v1/tasks: 200
        GET /v1/projects: 403 not_enough
        GET /v1/events: 403 not_enough
        GET /v1/lifecycle/tasks: 403 not_enough
        GET /v1/runs: 403 not_enough
        GET /metrics: 403 not_enough
        POST /v1/step: 403 not_enough
        POST /v1/lifecycle/tasks: 403 not_enough
        POST /v1/colonies: 403 not_enough
    free
        local as coder: 403 not_yours
        bay as coder: 200
        reef as coder: 403 not_yours
        reef as reviewer: 403 not_yours
        bay as reviewer: 200
        GET /v1/crabs: 200
        GET /v1/tasks: 200
        GET /v1/projects: 403 not_enough
        GET /v1/events: 403 not_enough
        GET /v1/lifecycle/tasks: 403 not_enough
        GET /v1/runs: 403 not_enough
        GET /metrics: 403 not_enough
        POST /v1/step: 403 not_enough
        POST /v1/lifecycle/tasks: 403 not_enough
        POST /v1/colonies: 403 not_enough
    ");
    // What was bound by its first use stays so.
    drop(served);
    let served = Served::start(&home, &[]);
    let body = json!({ "colony_id": reef, "name": "free", "role": "coder" }).to_string();
    assert_eq!(served.ask("POST", "/v1/crabs/register", Some(&free), &body).short(), "403 not_yours");
    for wrong in [
        ["token", "create", "--scope", "worker", "--colony", "local"],
        ["token", "create", "--scope", "read", "--colony", &reef],
        ["token", "create", "--scope", "read", "--expires", "soon"],
    ] {
        assert_eq!(home.refused(&wrong), "2 bad_request", "{wrong:?}");
    }
    assert_eq!(home.refused(&["token", "create", "--scope", "worker", "--colony", "nowhere"]), "3 not_found");
    assert_eq!(home.refused(&["token", "create"]), "2 no_scope");
}

#[test]
fn a_worker_sees_its_own_colony_alone_and_registers_so_many_crabs() {
    let home = Home::new();
    let workflows = home.place().join("workflows");
    std::fs::create_dir_all(&workflows).unwrap();
    let manifest =
        "[workflow]\nname = \"one\"\n\n[[steps]]\nid = \"a\"\nprompt = \"{{mission_prompt}}\"\nrole = \"coder\"\n";
    std::fs::write(workflows.join("one.toml"), manifest).unwrap();
    let served = Served::start(&home, &[]);
    let (_, person) = token(&home, &[]);
    let post = |path: &str, secret: &str, body: Value| served.ask("POST", path, Some(secret), &body.to_string());
    let found = |name: &str| post("/v1/colonies", &person, json!({ "name": name })).json()["colony_id"].clone();
    let (reef, bay) = (found("reef"), found("bay"));
    let mut missions = Vec::new();
    for (colony, prompt) in [(&reef, "own words"), (&bay, "secret words"), (&json!("local"), "secret words")] {
        let wanted = json!({ "colony_id": colony, "prompt": prompt, "workflow": "one" });
        missions.push(post("/v1/missions", &person, wanted).json()["mission_id"].as_str().unwrap().to_owned());
        post("/v1/missions", &person, json!({ "colony_id": colony, "prompt": prompt }));
    }
    let crab = |colony: &Value, id: &str| json!({ "colony_id": colony, "crab_id": id, "name": id, "role": "coder" });
    assert_eq!(post("/v1/crabs/register", &person, crab(&bay, "secret-crab")).status, 200);
    assert_eq!(post("/v1/crabs/register", &person, crab(&reef, "own-crab")).status, 200);
    let (_, bound) = token(&home, &["--scope", "worker", "--colony", reef.as_str().unwrap()]);
    let (_, free) = token(&home, &["--scope", "worker"]);
    let own = ["own words", "own words", "own-crab", "own words", "reef"];
    for (path, own) in ["/v1/missions", "/v1/tasks", "/v1/crabs", "/v1/status", "/v1/colonies"].into_iter().zip(own) {
        let seen = |secret: &str| served.ask("GET", path, Some(secret), "").json().to_string();
        assert!(seen(&bound).contains(own), "{path}: {}", seen(&bound));
        assert!(!seen(&bound).contains("secret"), "{path}: {}", seen(&bound));
        assert!(!seen(&bound).contains(bay.as_str().unwrap()), "{path}: {}", seen(&bound));
        assert!(!seen(&free).contains("words"), "{path}: {}", seen(&free));
    }
    let tasks = |mission: &str| served.ask("GET", &format!("/v1/tasks?mission_id={mission}"), Some(&bound), "");
    assert!(tasks(&missions[0]).json().to_string().contains("own words"));
    let status = served.ask("GET", "/v1/status", Some(&bound), "").json();
    assert!(status["tasks"].to_string().contains(&missions[0]), "{status}");
    for other in &missions[1..] {
        assert_eq!(tasks(other).short(), "404 not_found");
        assert_eq!(served.ask("GET", &format!("/v1/missions/{other}"), Some(&bound), "").short(), "404 not_found");
    }
    // Nor does it learn what is there: it is answered as if nothing were.
    assert_eq!(post("/v1/crabs/register", &bound, crab(&reef, "bound-crab")).status, 200);
    let begun = json!({ "mission_id": missions[1], "task_id": format!("{}.a", missions[1]), "crab_id": "secret-crab",
                        "run_id": "secret-run" });
    assert_eq!(post("/v1/scheduler/tick", &person, json!({})).status, 200);
    assert_eq!(post("/v1/runs/start", &person, begun).status, 200);
    let unseen = |path: &str, body: Value, id: &str| {
        let answer = post(path, &bound, body);
        format!("{} {}", answer.status, answer.body.replace(id, "ID"))
    };
    let start = |mission: &str, step: &str, crab: &str| {
        let wanted = json!({ "mission_id": mission, "task_id": format!("{mission}.{step}"), "crab_id": crab });
        unseen("/v1/runs/start", wanted, if crab == "bound-crab" { mission } else { crab })
    };
    let nothing = start("zzzzzzzzzz", "a", "bound-crab");
    assert!(nothing.starts_with("404"), "{nothing}");
    for other in &missions[1..] {
        for mission in [other.as_str(), &other[..6]] {
            assert_eq!(start(mission, "a", "bound-crab"), nothing);
            assert_eq!(start(mission, "b", "bound-crab"), nothing);
            assert_eq!(tasks(mission).short(), "404 not_found");
        }
    }
    assert_eq!(start(&missions[0], "a", "secret-crab"), start(&missions[0], "a", "no-crab"));
    for path in ["/v1/runs/update", "/v1/runs/complete"] {
        let of = |run: &str| unseen(path, json!({ "run_id": run, "status": "completed" }), run);
        assert_eq!(of("secret-run"), of("no-run"));
    }
    let sent_away = |crab: &str| served.ask("DELETE", &format!("/v1/crabs/{crab}"), Some(&bound), "").body;
    assert_eq!(sent_away("secret-crab").replace("secret-crab", ""), sent_away("no-crab").replace("no-crab", ""));
    let join = |colony: &str| unseen("/v1/crabs/register", crab(&json!(colony), "new"), colony);
    assert_eq!(join(bay.as_str().unwrap()), join("zzzzzzzzzz"));
    // So many crabs as can listen with one token, and one more when one of them has gone.
    let register = |id: &str| post("/v1/crabs/register", &bound, crab(&reef, id)).short();
    for number in 0..499 {
        assert_eq!(register(&format!("crab-{number}")), "200");
    }
    assert_eq!((register("one-more"), register("crab-7")), ("429 too_many".to_owned(), "200".to_owned()));
    assert_eq!(served.ask("DELETE", "/v1/crabs/crab-9", Some(&bound), "").status, 200);
    assert_eq!(register("one-more"), "200");
}

#[test]
fn a_token_ends_by_itself_and_everything_about_it_is_in_the_log_with_a_name() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let (brief, secret) = token(&home, &["--scope", "read", "--expires", "1s"]);
    let (laptop, person) = token(&home, &["--name", "laptop", "--expires", "30d"]);
    let give_up = Instant::now() + LONG;
    while served.ask("GET", "/v1/projects", Some(&secret), "").short() != "401 token_expired" {
        assert!(Instant::now() < give_up, "it does not end");
    }
    let mut happening = home.follow(&["--type", "token.expired"]);
    assert_eq!(happening.next(give_up).unwrap()["data"]["token"], brief.as_str());
    assert_eq!(served.ask("DELETE", &format!("/v1/tokens/{brief}"), Some(&person), "").status, 200);
    let me = format!("person:{}", user());
    let created = events(&home, "token.created");
    assert_eq!(created.len(), 2, "{created:#?}");
    assert!(created.iter().all(|event| event["actor"] == me.as_str()), "{created:#?}");
    assert!(created.iter().any(|event| event["data"]["token"] == laptop.as_str() && event["data"]["name"] == "laptop"));
    let revoked = events(&home, "token.revoked");
    assert_eq!((revoked.len(), &revoked[0]["actor"]), (1, &json!("person:laptop")));
    assert!(!format!("{created:?}{revoked:?}").contains(&person));
    // Projects, and what tasks and runs tell of those who moved them.
    home.sluice(&["project", "update", "coffee", "--pool-size", "3"]).done();
    let task = home.create("brew", "worker: hang", &["--no-spawn"]);
    home.sluice(&["task", "cancel", &task, "--yes"]).done();
    home.sluice(&["project", "remove", "coffee"]).done();
    for kind in ["project.added", "project.changed", "project.removed", "task.created", "task.cancelled"] {
        let told = events(&home, kind);
        assert_eq!((told.len(), &told[0]["actor"]), (1, &json!(me)), "{kind}: {told:#?}");
    }
}

#[test]
fn whoever_answers_says_where_a_session_is_and_not_what_to_run() {
    let home = Home::new();
    let (proof, listener) = (home.path("ran"), TcpListener::bind("127.0.0.1:0").unwrap());
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = json!({
        "command": ["touch", proof], "socket": format!("/x; touch {}", proof.display()),
        "target": format!("%1; touch {}", proof.display()),
    });
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            lines.find(String::is_empty);
            let (mut stream, body) = (stream, answer.to_string());
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length:";
            let _ = write!(stream, "{head} {}\r\n\r\n{body}", body.len());
        }
    });
    let mut attach = home.command(&["task", "attach", "brew", "--json"]);
    let ran = run(attach.env("SLUICE_URL", url).env("SLUICE_TOKEN", "slu_x"));
    assert_eq!(ran.refusal(), "1 not_here");
    assert!(!proof.exists());
}

/// The files below a folder that hold these bytes.
fn holding(folder: &Path, bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file()
                && std::fs::read(entry.path()).unwrap().windows(bytes.len()).any(|part| part == bytes)
            {
                found.push(entry.path().display().to_string());
            }
        }
    }
    found
}

#[test]
fn a_secret_that_is_printed_is_stored_nowhere() {
    let home = fresh();
    let known = "open sesame 4711";
    let seen = home.path("seen");
    let agent = format!("echo $SLUICE_TOKEN > {}; echo I am $SLUICE_TOKEN; echo $SLUICE_TOKEN >&2", seen.display());
    let script = "printf \"%s\" \"$GH_TOKEN\" | head -c 9; sleep 0; printf \"%s\" \"$GH_TOKEN\" | tail -c +10; \
                  echo; echo gh\"\"p_0123456789abcdefghij0123456789abcdef; echo \"Bearer $GH_TOKEN\" >&2; exit 3";
    let steps = format!(
        "steps:\n  - {{name: one, harness: shell, prompt: '{agent}'}}\n  - {{name: two, type: script, command: '{script}'}}\n"
    );
    grimoire(&home, "leak", &steps);
    // Whoever starts it has the secret, and so has everything that it starts.
    let started = run(home.command(&["start", "leak", "--json"]).env("GH_TOKEN", known)).json();
    assert_eq!(started["run"]["status"], "failed");
    let id = started["run"]["id"].as_str().unwrap().to_owned();
    let session = std::fs::read_to_string(&seen).unwrap().trim().to_owned();
    assert!(session.starts_with("slu_"), "{session}");
    let log = home.sluice(&["run", "log", &id]).done().stdout;
    assert!(log.contains("I am [redacted]"), "{log}");
    let told =
        log + &home.sluice(&["run", "show", &id, "--json"]).stdout + &home.sluice(&["events", "--json"]).done().stdout;
    home.sluice(&["stop"]).done();
    for secret in [known, &session, "ghp_0123456789"] {
        assert!(!told.contains(secret), "{secret}: {told}");
        assert_eq!(holding(&home.place(), secret.as_bytes()), Vec::<String>::new(), "{secret}");
    }
}

/// People and agents say something about work too. A branch cannot do without a part of its name.
#[test]
fn a_secret_that_is_said_about_work_is_stored_nowhere() {
    let home = Home::new();
    let (known, form) = ("open-sesame-4711", format!("gh{}0123456789abcdefghij0123456789abcdef", "p_"));
    let asked = |words: &[&str]| run(home.command(&[words, &["--json"]].concat()).env("GH_TOKEN", known));
    let script = "## Context\n\n```demo\nworker: work\nreviewer: review pass\n```\n";
    let summary = format!("Use {known} and {form} here");
    let first = ["task", "create", "brew", &summary, "--harness", "demo", "--workflow", "persistent"];
    let created = asked(&[&first[..], &["--context", script]].concat()).json();
    assert_eq!(created["task"]["summary"], "Use [redacted] and [redacted] here");
    let id = created["task"]["id"].as_str().unwrap();
    home.until_status(id, "reviewing");
    let changed = asked(&["task", "update", id, "--summary", &summary]).json();
    assert_eq!(changed["task"]["summary"], "Use [redacted] and [redacted] here");
    for words in [&["task", "create", known, "Tea"][..], &["task", "update", id, "--branch", &form]] {
        let refused = asked(words);
        assert_eq!(refused.refusal(), "2 bad_request");
        assert!(!refused.stderr.contains(known) && !refused.stderr.contains(&form), "{refused:?}");
    }
    asked(&["task", "request-changes", id, "--message", &summary]).done();
    grimoire(&home, "asks", "steps:\n  - {name: check, type: gate, command: 'false', message: 'Really?'}\n");
    for (words, status) in [(["answer", "retry", "--message"], "held"), (["run", "cancel", "--reason"], "cancelled")] {
        let held = begin(&home, &["asks"]);
        until_status(&home, &held, "held");
        let words = match words {
            ["run", cancel, reason] => ["run", cancel, &held, reason, &summary].to_vec(),
            [answer, option, message] => [answer, &held, option, message, &summary].to_vec(),
        };
        asked(&words).done();
        until_status(&home, &held, status);
    }
    let started = asked(&["start", "asks", "--prompt", &summary]).json();
    assert_eq!(started["run"]["prompt"], "Use [redacted] and [redacted] here", "{started:#}");
    home.sluice(&["task", "cancel", id, "--yes"]).done();
    home.sluice(&["stop"]).done();
    for secret in [known, &form] {
        assert_eq!(holding(&home.place(), secret.as_bytes()), Vec::<String>::new(), "{secret}");
    }
}

#[test]
fn a_secret_in_other_clothes_is_stored_nowhere() {
    let home = fresh();
    let known = "open sesame 4711";
    // Colours, base64, and the forms in which passwords travel; what is wanted is not in the words of the recipe.
    let printed = "printf \"gh%s_\\033[31m%s\\033[0m\\n\" p 0123456789abcdefghij0123456789abcdef; printf %s \"$GH_TOKEN\" | base64; \
                   printf \"open\\033[1m sesame 4711\\n\"; echo Authorization: Bas\"\"ic b246Y2hhbnNvbg==; \
                   echo postgres:\"\"//me:chanson@db/x; echo ey\"\"JhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl";
    let said = "sluice step complete --summary \"$(printf \"gh%s_0123456789abcdefghij0123456789abcdef %s\" o \"$GH_TOKEN\")\" \
                --output \"{\\\"at\\\": \\\"amqp:\"\"//me:chanson@mq\\\"}\"";
    let steps = format!(
        "steps:\n  - {{name: one, harness: shell, prompt: '{printed}; {said}'}}\n  - {{name: two, type: script, command: '{printed}'}}\n"
    );
    grimoire(&home, "clothes", &steps);
    let started = run(home.command(&["start", "clothes", "--json"]).env("GH_TOKEN", known)).done().json();
    let id = started["run"]["id"].as_str().unwrap().to_owned();
    let told = home.sluice(&["run", "log", &id]).done().stdout
        + &home.sluice(&["run", "show", &id, "--json"]).done().stdout
        + &home.sluice(&["events", "--json"]).done().stdout;
    assert!(told.contains("postgres://[redacted]@db/x") && told.contains("amqp://[redacted]@mq"), "{told}");
    home.sluice(&["stop"]).done();
    let secrets = [
        known,
        "4711",
        "0123456789abcdefghij",
        "b3BlbiBzZXNhbWU",
        "b246Y2hhbnNvbg",
        "me:chanson",
        "eyJhbGciOiJIUzI1NiJ9",
    ];
    for secret in secrets {
        assert!(!told.contains(secret), "{secret}: {told}");
    }
    for secret in [known, "gho_0123", "b3BlbiBzZXNhbWU", "postgres://me", "amqp://me", "eyJhbGciOiJIUzI1NiJ9.eyJ"] {
        assert_eq!(holding(&home.place(), secret.as_bytes()), Vec::<String>::new(), "{secret}");
    }
}

#[test]
fn a_script_inherits_what_is_usual_and_allowed_and_nothing_of_a_home_is_for_others_to_write() {
    let home = fresh();
    let config = home.place().join("config.toml");
    let written = std::fs::read_to_string(&config).unwrap() + "\n[env]\nallow = [\"MY_*\"]\ndeny = [\"MY_PIN\"]\n";
    std::fs::write(&config, written).unwrap();
    // An engine of somebody who lets everybody write.
    let mut begun = home.program("sh");
    begun.args(["-c", "umask 000; exec \"$0\" project list", env!("CARGO_BIN_EXE_sluice")]);
    run(&mut begun).done();
    let told = home.path("told");
    let command = format!("env | grep =here > {told}; env | grep ^PWD= >> {told}; umask", told = told.display());
    grimoire(&home, "tell", &format!("steps:\n  - {{name: one, type: script, command: '{command}'}}\n"));
    let mut started = home.command(&["start", "tell", "--json"]);
    for name in ["DATABASE_URL", "MY_PLACE", "MY_PIN", "ANTHROPIC_BASE_URL", "https_proxy"] {
        started.env(name, "here");
    }
    let run = run(&mut started).done().json()["run"].take();
    let mut seen: Vec<String> = std::fs::read_to_string(&told).unwrap().lines().map(str::to_owned).collect();
    seen.sort();
    let folder = format!("PWD={}", run["workspace"].as_str().unwrap());
    assert_eq!(seen, ["ANTHROPIC_BASE_URL=here", "MY_PLACE=here", &folder, "https_proxy=here"]);
    let mut open = vec![home.place()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let about = entry.metadata().unwrap();
            let mode = std::os::unix::fs::PermissionsExt::mode(&about.permissions());
            assert!(about.is_symlink() || mode & 0o022 == 0, "{:o} {}", mode, entry.path().display());
            if about.is_dir() {
                open.push(entry.path());
            }
        }
    }
}
