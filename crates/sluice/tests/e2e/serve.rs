//! `sluice serve`: it takes a home over, answers at both doors, keeps its limits, and ends in order.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

use super::home::{Home, Ran, run};
use super::process;
use super::served::{Served, agent, request, rest_of, token};

/// `sluice` as it is used from another machine: without this home.
fn from_elsewhere(home: &Home, served: &Served, secret: &str, arguments: &[&str]) -> Ran {
    let mut command = home.command(arguments);
    command.env("SLUICE_HOME", home.path("elsewhere"));
    run(command.env("SLUICE_URL", &served.url).env("SLUICE_TOKEN", secret))
}

#[test]
fn it_takes_over_from_an_engine_in_the_background_with_a_living_session() {
    let home = Home::new();
    let id = home.create("brew", "worker: hang", &[]);
    home.until(&id, "active", |task| task["session"] == "active");
    let (before, agent) = (home.engine_pid(), agent(&home, &id));

    let mut served = Served::start(&home, &[]);
    assert_eq!(home.engine_pid(), served.pid());
    assert!(!process::lives(before), "two engines");
    assert_eq!(home.task(&id)["session"], "active");
    assert!(process::lives(agent));

    // It is the engine of this home: commands find it, and there is only one.
    assert_eq!(home.refused(&["serve", "--listen", "127.0.0.1:0"]), "5 already_served");
    assert_eq!(served.ask("GET", "/healthz", None, "").body, r#"{"ok":true}"#);

    // `sluice stop` ends it too, and the session goes on.
    home.sluice(&["stop"]).done();
    assert_eq!(served.ended(), Some(0));
    assert_eq!(home.task(&id)["session"], "active");
    let spawned = home.history(&id).iter().filter(|event| event["type"] == "agent.spawned").count();
    assert_eq!(spawned, 1);
    assert!(process::lives(agent));
}

#[test]
fn it_ends_in_order() {
    let home = Home::new();
    let mut served = Served::start(&home, &[]);
    let (_, secret) = token(&home, &[]);
    let shown = format!("authorization: Bearer {secret}\r\n");

    let mut follower = served.connect();
    let followed = request("GET", "/v1/events?follow=true", &shown, 0);
    follower.write_all(followed.as_bytes()).unwrap();
    // A question that is being heard: it says `100 Continue` when it reads the body.
    let mut slow = served.connect();
    let body = r#"{"scope":"read"}"#;
    let more = format!("{shown}expect: 100-continue\r\n");
    slow.write_all(request("POST", "/v1/tokens", &more, body.len()).as_bytes()).unwrap();
    let mut heard = [0; 25];
    slow.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"HTTP/1.1 100 Continue\r\n\r\n");

    served.terminate();
    let told = rest_of(&mut follower);
    assert!(told.ends_with("\r\n0\r\n\r\n") || told.ends_with("0\r\n\r\n"), "the follower was cut off: {told:?}");
    // Somebody new may still reach the system's queue, but gets no answer.
    if let Ok(mut late) = TcpStream::connect(served.url.strip_prefix("http://").unwrap()) {
        let _ = late.write_all(request("GET", "/healthz", "", 0).as_bytes());
        assert_eq!(rest_of(&mut late), "", "somebody new is let in");
    }
    slow.write_all(body.as_bytes()).unwrap();
    let answer = rest_of(&mut slow);
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("\"secret\""), "{answer}");
    assert_eq!(served.ended(), Some(0));
    assert!(!home.place().join("engine.sock").exists());
}

#[test]
fn whoever_takes_long_to_ask_is_cut_off() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let mut silent = served.connect();
    let mut slow = served.connect();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nhost: slu").unwrap();
    // Both are ended by the engine; others are answered meanwhile.
    assert_eq!(served.ask("GET", "/healthz", None, "").status, 200);
    for stream in [&mut silent, &mut slow] {
        let told = rest_of(stream);
        assert!(told.is_empty() || told.starts_with("HTTP/1.1 408"), "{told:?}");
    }
}

#[test]
fn what_cannot_be_understood_is_told_in_one_shape() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let (_, secret) = token(&home, &[]);
    let ask = |method: &str, path: &str, body: &str| served.ask(method, path, Some(&secret), body);
    let mut told = String::new();
    let mut note = |what: &str, answer: super::served::Answer| {
        let json = answer.json();
        assert_eq!((json["ok"].as_bool(), json["error"].is_string()), (Some(false), true), "{answer:?}");
        assert!(answer.head.contains("content-type: application/json"), "{answer:?}");
        told.push_str(&format!("{what}: {}\n", answer.short()));
        answer
    };
    note("not JSON", ask("POST", "/v1/tokens", "{scope"));
    note("another shape", ask("POST", "/v1/tokens", r#"{"scope":"king"}"#));
    let allow = note("another method", ask("PUT", "/v1/tokens", "{}")).head;
    assert!(allow.contains("allow: get,head,post"), "{allow}");
    note("nowhere", ask("GET", "/v1/coffee", ""));
    note("no such task", ask("GET", "/v1/lifecycle/tasks/nobody", ""));
    note("bytes that are no text", ask("GET", "/v1/lifecycle/tasks/%FF", ""));
    note("a refusal", ask("POST", "/v1/projects", &format!("{{\"path\":{:?}}}", home.repository())));
    let shown = format!("authorization: Bearer {secret}\r\n");
    let xml = format!("{shown}content-type: text/xml\r\n");
    note("XML", served.say(format!("{}<a/>", request("POST", "/v1/tokens", &xml, 4)).as_bytes()));
    note("too large", served.say(request("POST", "/v1/tokens", &shown, (8 << 20) + 1).as_bytes()));
    let chunked = format!(
        "POST /v1/tokens HTTP/1.1\r\nhost: sluice\r\nconnection: close\r\n{shown}transfer-encoding: chunked\r\n\r\n"
    );
    let mut bytes = chunked.into_bytes();
    bytes.extend_from_slice(format!("{:x}\r\n", (8 << 20) + 1).as_bytes());
    bytes.extend(std::iter::repeat_n(b'x', (8 << 20) + 1));
    note("too large, in pieces", served.say(&bytes));
    insta::assert_snapshot!(told, @"
    not JSON: 400 bad_request
    another shape: 400 bad_request
    another method: 405 wrong_method
    nowhere: 404 not_found
    no such task: 404 not_found
    bytes that are no text: 400 bad_request
    a refusal: 422 exists
    XML: 415 not_json
    too large: 413 too_large
    too large, in pieces: 413 too_large
    ");
    // The socket speaks in the same shape, and a command in its own.
    assert_eq!(home.refused(&["task", "show", "nobody"]), "3 not_found");
}

#[test]
fn commands_work_from_elsewhere() {
    let home = Home::new();
    let id = home.create("brew", "worker: hang", &[]);
    let served = Served::start(&home, &[]);
    let (_, secret) = token(&home, &["--name", "laptop"]);
    let ask = |arguments: &[&str]| from_elsewhere(&home, &served, &secret, arguments);
    let tasks = ask(&["task", "list", "--json"]).done().json();
    assert_eq!(tasks["tasks"][0]["id"], id.as_str());
    ask(&["task", "update", &id, "--summary", "From afar"]).done();
    assert_eq!(home.task(&id)["summary"], "From afar");
    assert!(ask(&["events", "--type", "task.created"]).done().stdout.contains("task.created"));
    assert_eq!(ask(&["task", "show", "nobody", "--json"]).refusal(), "3 not_found");
    // What is about a home itself is about the one here, and says so.
    let here = home.path("elsewhere").display().to_string();
    let refused = ask(&["restore", "copy.db"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains(&served.url) && refused.stderr.contains(&here), "{refused:?}");
    let doctor = ask(&["doctor"]);
    let first = doctor.stdout.lines().next().unwrap();
    assert!(first.starts_with("ok       SLUICE_URL") && first.contains("answers") && first.contains(&here), "{first}");
    assert!(!home.path("elsewhere").exists(), "no home is needed to ask another");

    let mut without = home.command(&["task", "list", "--json"]);
    assert_eq!(run(without.env("SLUICE_URL", &served.url)).refusal(), "4 no_token");
    assert_eq!(from_elsewhere(&home, &served, "slu_guess", &["task", "list", "--json"]).refusal(), "4 unknown_token");
    let mut nowhere = home.command(&["task", "list", "--json"]);
    let nowhere = run(nowhere.env("SLUICE_URL", "http://127.0.0.1:1").env("SLUICE_TOKEN", &secret));
    assert_eq!(nowhere.refusal(), "6 engine_gone");
    let mut doctor = home.command(&["doctor"]);
    let doctor = run(doctor.env("SLUICE_URL", "http://127.0.0.1:1").env("SLUICE_TOKEN", &secret));
    assert!(doctor.stdout.starts_with("broken   SLUICE_URL"), "{doctor:?}");
    assert!(!format!("{nowhere:?}").contains(&secret));
}

/// A certificate for this machine, made by itself: the files of the certificate and of its key.
fn certificate(home: &Home, name: &str) -> (String, String) {
    certificate_for(home, name, ["localhost", "127.0.0.1"], IsCa::NoCa)
}

/// A certificate for these names, which is an authority or not.
fn certificate_for(home: &Home, name: &str, names: [&str; 2], is_authority: IsCa) -> (String, String) {
    let mut wanted = CertificateParams::new(names.map(str::to_owned)).unwrap();
    wanted.is_ca = is_authority;
    let key = KeyPair::generate().unwrap();
    let file = |end: &str, text: String| {
        let path = home.path(&format!("{name}.{end}"));
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    (file("pem", wanted.self_signed(&key).unwrap().pem()), file("key", key.serialize_pem()))
}

#[test]
fn a_certificate_that_is_its_own_authority_is_trusted_if_it_is_named_itself() {
    // This is what `openssl req -x509` makes.
    let home = Home::new();
    let authority = || IsCa::Ca(BasicConstraints::Unconstrained);
    let (chain, key) = certificate_for(&home, "own", ["localhost", "127.0.0.1"], authority());
    let served = Served::start(&home, &["--tls-cert", &chain, "--tls-key", &key]);
    let (_, secret) = token(&home, &[]);
    let with = |served: &Served, authorities: &str| {
        let mut command = home.command(&["project", "list", "--json"]);
        command.env("SLUICE_URL", &served.url).env("SLUICE_TOKEN", &secret).env("SLUICE_CA", authorities);
        run(&mut command)
    };
    with(&served, &chain).done();
    let (other, _) = certificate_for(&home, "other", ["localhost", "127.0.0.1"], authority());
    let ran = with(&served, &other);
    assert_eq!(ran.refusal(), "6 engine_gone");
    assert!(ran.json()["error"]["hint"].as_str().unwrap().contains("SLUICE_CA"), "{ran:?}");
    drop(served);
    // One that is trusted and stands for another name is not.
    let (chain, key) = certificate_for(&home, "away", ["elsewhere.example", "localhost"], authority());
    let served = Served::start(&home, &["--tls-cert", &chain, "--tls-key", &key]);
    assert_eq!(with(&served, &chain).refusal(), "6 engine_gone");
}

#[test]
fn it_speaks_tls() {
    let home = Home::new();
    let (chain, key) = certificate(&home, "good");
    let mut served = Served::start(&home, &["--tls-cert", &chain, "--tls-key", &key]);
    assert!(served.url.starts_with("https://127.0.0.1:"), "{}", served.url);
    let (_, secret) = token(&home, &[]);
    let with = |authorities: Option<&str>| {
        let mut command = home.command(&["project", "list", "--json"]);
        command.env("SLUICE_URL", &served.url).env("SLUICE_TOKEN", &secret);
        run(command.envs(authorities.map(|file| ("SLUICE_CA", file))))
    };
    assert_eq!(with(Some(&chain)).done().json()["projects"][0]["name"], "coffee");
    let mut events = home.command(&["events", "--json"]);
    run(events.env("SLUICE_URL", &served.url).env("SLUICE_TOKEN", &secret).env("SLUICE_CA", &chain)).done();
    // A certificate that nobody vouches for, one that vouches for another, and no file at all.
    let (other, other_key) = certificate(&home, "other");
    assert_eq!(with(None).refusal(), "6 engine_gone");
    assert_eq!(with(Some(&other)).refusal(), "6 engine_gone");
    assert_eq!(with(Some("nowhere.pem")).refusal(), "2 bad_request");
    // Whoever speaks without it gets no answer, and it goes on.
    let mut plain = served.connect();
    plain.write_all(request("GET", "/healthz", "", 0).as_bytes()).unwrap();
    assert!(!rest_of(&mut plain).contains("HTTP/1.1 200"));
    with(Some(&chain)).done();
    served.terminate();
    assert_eq!(served.ended(), Some(0));

    // Files that are of no use are told before anything begins.
    let start = |chain: &str, key: &str| {
        let ran = home.sluice(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", chain, "--tls-key", key, "--json"]);
        let message = ran.json()["error"]["message"].as_str().unwrap().to_owned();
        let wrong = [chain, key].into_iter().find(|file| message.starts_with(file));
        let name = wrong.and_then(|file| Path::new(file).file_name()?.to_str()).unwrap_or("?").to_owned();
        format!("{} {name}", ran.refusal())
    };
    assert_eq!(start("nowhere.pem", &key), "2 bad_request nowhere.pem");
    assert_eq!(start(&chain, "nowhere.key"), "2 bad_request nowhere.key");
    assert_eq!(start(&key, &key), "2 bad_request good.key");
    assert_eq!(start(&chain, &other_key), "2 bad_request other.key");
    let locked = home.path("locked.key").display().to_string();
    std::fs::write(&locked, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
        .unwrap();
    let ran = home.sluice(&["serve", "--tls-cert", &chain, "--tls-key", &locked, "--json"]);
    let told = ran.json();
    assert!(told["error"]["message"].as_str().unwrap().contains("encrypted"), "{told}");
    assert_eq!(home.sluice(&["serve", "--tls-cert", &chain, "--json"]).refusal(), "2 usage");
}

#[test]
fn what_is_wrong_with_the_door_is_told_before_anybody_makes_way() {
    let home = Home::new();
    let engine = home.engine_pid();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert_eq!(home.refused(&["serve", "--listen", &address]), "6 unavailable");
    assert_eq!(home.refused(&["serve", "--listen", "nonsense"]), "2 bad_request");
    assert_eq!(home.refused(&["serve", "--prompts", "nowhere"]), "3 not_found");
    for origin in ["https://page.example/", "page.example", ""] {
        assert_eq!(home.refused(&["serve", "--cors", origin]), "2 bad_request");
    }
    assert_eq!((home.engine_pid(), process::lives(engine)), (engine, true));
}

#[test]
fn pages_of_another_origin_may_ask_only_if_they_are_named() {
    let home = Home::new();
    let before = "origin: https://page.example\r\naccess-control-request-method: POST\r\n";
    let asked = request("OPTIONS", "/v1/tokens", before, 0);
    let other = asked.replace("page.example", "other.example");

    let mut served = Served::start(&home, &[]);
    let answer = served.say(asked.as_bytes());
    assert_eq!((answer.status, answer.head.contains("access-control")), (401, false), "{answer:?}");
    served.terminate();
    served.ended();

    let served = Served::start(&home, &["--cors", "https://page.example"]);
    let answer = served.say(asked.as_bytes());
    assert_eq!(answer.status, 204);
    assert!(answer.head.contains("access-control-allow-origin: https://page.example"), "{answer:?}");
    let answer = served.say(other.as_bytes());
    assert_eq!((answer.status, answer.head.contains("access-control")), (401, false), "{answer:?}");
    drop(served);

    let served = Served::start(&home, &["--cors", "*"]);
    let answer = served.say(other.as_bytes());
    assert_eq!(answer.status, 204);
    assert!(answer.head.contains("access-control-allow-origin: *"), "{answer:?}");
}

#[test]
fn what_goes_on_can_be_measured() {
    let home = Home::new();
    let id = home.create("brew", "worker: hang", &[]);
    let served = Served::start(&home, &[]);
    let (_, secret) = token(&home, &["--scope", "read"]);
    assert_eq!(served.ask("GET", "/metrics", None, "").short(), "401 no_token");
    served.ask("GET", &format!("/v1/lifecycle/tasks/{id}"), Some(&secret), "");
    served.ask("BREW", "/coffee", Some(&secret), "");
    let mut follower = served.connect();
    let shown = format!("authorization: Bearer {secret}\r\n");
    follower.write_all(request("GET", "/v1/events?follow=true", &shown, 0).as_bytes()).unwrap();
    follower.read_exact(&mut [0; 15]).unwrap();
    let metrics = served.ask("GET", "/metrics", Some(&secret), "").body;
    for line in [
        r#"sluice_open{kind="task",status="working"} 1"#,
        r#"sluice_http_requests_total{method="GET",route="/metrics",status="401"} 1"#,
        r#"sluice_http_request_duration_seconds_count{method="GET",route="/metrics"} 1"#,
        "# TYPE sluice_http_request_duration_seconds histogram",
        &format!("sluice_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION")),
        r#"sluice_http_requests_total{method="GET",route="/v1/lifecycle/tasks/{id}",status="200"} 1"#,
        r#"sluice_http_requests_total{method="other",route="other",status="403"} 1"#,
        r#"sluice_followers{door="network"} 1"#,
        r#"sluice_connections{door="network"} 2"#,
        "sluice_faults 0",
        "# TYPE sluice_http_requests_total counter",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line} is not in:\n{metrics}");
    }
    // Whoever asks for the newer form gets it.
    let newer = format!("{shown}accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n");
    let answer = served.say(request("GET", "/metrics", &newer, 0).as_bytes());
    assert!(answer.head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{answer:?}");
    assert!(answer.body.ends_with("# EOF\n"), "{answer:?}");
}
