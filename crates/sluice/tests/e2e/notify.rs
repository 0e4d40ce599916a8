//! A person is told once of what waits for them, across kills of the engine, and of nothing that was answered meanwhile.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::Value;

use super::home::{Home, LONG, run};
use super::recipes::text;

const REVIEWED: [&str; 2] = ["--workflow", "reviewed"];
const SCRIPT: &str = "worker: work\nreviewer: review pass";

/// A request that came, and whether it was taken.
struct Posted {
    head: String,
    body: String,
    taken: bool,
}

impl Posted {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    fn has(&self, line: &str) -> bool {
        self.head.lines().any(|it| it.eq_ignore_ascii_case(line))
    }
}

/// A server for messages that takes them, or is out of order.
struct Mailbox {
    url: String,
    works: Arc<AtomicBool>,
    posted: Receiver<Posted>,
}

impl Mailbox {
    fn new(works: bool) -> Mailbox {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hunter2", listener.local_addr().unwrap());
        let works = Arc::new(AtomicBool::new(works));
        let (theirs, (sender, posted)) = (works.clone(), channel());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let Some((head, body)) = heard(&stream) else { continue };
                let taken = theirs.load(Ordering::SeqCst);
                if sender.send(Posted { head, body, taken }).is_err() {
                    return;
                }
                let status = if taken { "200 OK" } else { "503 Service Unavailable" };
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Mailbox { url, works, posted }
    }

    fn mend(&self) {
        self.works.store(true, Ordering::SeqCst);
    }

    #[track_caller]
    fn next(&self) -> Posted {
        self.posted.recv_timeout(LONG).expect("a message")
    }

    /// The next message that was taken.
    #[track_caller]
    fn taken(&self) -> Posted {
        std::iter::repeat_with(|| self.next()).find(|posted| posted.taken).unwrap()
    }
}

/// The head and the body of one request.
fn heard(stream: &TcpStream) -> Option<(String, String)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.to_ascii_lowercase().split_once("content-length: ")?.1.lines().next()?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8(body).ok()?))
}

fn configure(home: &Home, notify: &str) {
    std::fs::write(home.place().join("config.toml"), format!("[notify]\n{notify}")).unwrap();
}

fn hook_at(url: &str, kind: &str) -> String {
    format!("[[notify.webhook]]\nurl = \"{url}\"\nkind = \"{kind}\"\n")
}

/// A task that waits for its review, and the id of that.
fn review(home: &Home, branch: &str) -> (String, String) {
    let id = home.create(branch, SCRIPT, &REVIEWED);
    let event = home.until_event(&id, "attention.set", 1);
    (id, text(&event["data"]["id"]).to_owned())
}

fn log(home: &Home) -> String {
    std::fs::read_to_string(home.place().join("logs/engine.log")).unwrap_or_default()
}

#[test]
fn a_review_is_told_once_with_its_id_and_the_command_that_answers_it() {
    let home = Home::new();
    let mailbox = Mailbox::new(true);
    configure(&home, &hook_at(&mailbox.url, "json"));
    let (task, id) = review(&home, "brew");
    let first = mailbox.next();
    assert!(first.head.starts_with("POST /hunter2 "), "{}", first.head);
    assert!(first.has(&format!("idempotency-key: {id}")), "{}", first.head);
    let message = first.json();
    let fields = ["id", "reason", "project", "task", "title", "answer"].map(|key| text(&message[key]).to_owned());
    let answer = format!("sluice answer {id} approve");
    assert_eq!(fields, [&id, "review", "coffee", &task, "coffee: brew needs you (review)", &answer]);
    assert!(text(&message["since"]).starts_with("20") && !text(&message["text"]).is_empty(), "{message:#}");
    let told = home.follow(&["--type", "attention.told"]).next(Instant::now() + LONG).unwrap();
    assert_eq!(told["data"]["ids"], serde_json::json!([id]), "{told:#}");
    // Another engine knows it too.
    home.kill_engine();
    let (_, other) = review(&home, "steep");
    assert_eq!(text(&mailbox.next().json()["id"]), other);
    home.json(&["answer", &id, "approve"]);
    let (_, last) = review(&home, "pour");
    assert_eq!(text(&mailbox.next().json()["id"]), last);
    // What was told and is over is forgotten.
    let over = home.follow(&["--type", "attention.over"]).next(Instant::now() + LONG).unwrap();
    assert_eq!(over["data"]["ids"], serde_json::json!([id]), "{over:#}");
    let events = home.sluice(&["events", "--json"]).done().stdout;
    assert!(!events.contains("hunter2") && !log(&home).contains("hunter2"), "a secret is told");
}

#[test]
fn what_was_not_taken_arrives_after_a_kill_under_the_same_id() {
    let home = Home::new();
    let mailbox = Mailbox::new(false);
    configure(&home, &hook_at(&mailbox.url, "json"));
    let (_, id) = review(&home, "brew");
    assert!(mailbox.next().has(&format!("idempotency-key: {id}")));
    home.kill_engine();
    mailbox.mend();
    home.sluice(&["inbox"]).done();
    let again = mailbox.taken();
    assert!(again.has(&format!("idempotency-key: {id}")), "{}", again.head);
    assert_eq!(text(&again.json()["id"]), id);
}

#[test]
fn what_was_answered_meanwhile_is_not_told() {
    let home = Home::new();
    let mailbox = Mailbox::new(false);
    configure(&home, &hook_at(&mailbox.url, "json"));
    let (_, answered) = review(&home, "brew");
    assert_eq!(text(&mailbox.next().json()["id"]), answered);
    home.json(&["answer", &answered, "approve"]);
    mailbox.mend();
    let (_, other) = review(&home, "steep");
    assert_eq!(text(&mailbox.taken().json()["id"]), other);
}

#[test]
fn many_at_once_are_one_message() {
    let home = Home::new();
    let mailbox = Mailbox::new(false);
    configure(&home, &hook_at(&mailbox.url, "json"));
    let mut ids = ["a", "b", "c", "d", "e"].map(|branch| review(&home, branch).1);
    mailbox.mend();
    let message = mailbox.taken().json();
    let said = log(&home);
    assert!(said.contains("webhook 127.0.0.1:") && !said.contains("hunter2"), "{said}");
    assert_eq!(message["title"], "5 things need you", "{message:#}");
    let mut told: Vec<&str> = message["things"].as_array().unwrap().iter().map(|it| text(&it["id"])).collect();
    told.sort_unstable();
    ids.sort_unstable();
    assert_eq!(told, ids);
    assert_eq!(text(&message["text"]).lines().count(), 5, "{message:#}");
    let (_, last) = review(&home, "f");
    assert_eq!(text(&mailbox.next().json()["id"]), last);
}

#[test]
fn quiet_hours_hold_back_and_end_with_one_message() {
    let home = Home::new();
    let mailbox = Mailbox::new(true);
    let minute = |more: &str| run(home.program("date").args(["-d", more, "+%H:%M"])).done().stdout.trim().to_owned();
    let quiet = format!("quiet = \"{}-{}\"\n", minute("+721 minutes"), minute("+720 minutes"));
    let webhook = hook_at(&mailbox.url, "json");
    configure(&home, &format!("{quiet}{webhook}"));
    let ids = ["brew", "steep"].map(|branch| review(&home, branch).1);
    let give_up = Instant::now() + LONG;
    while !log(&home).contains("at the end of the quiet hours") {
        assert!(Instant::now() < give_up, "{}", log(&home));
        home.sluice(&["inbox"]).done();
    }
    configure(&home, &webhook);
    review(&home, "pour");
    let message = mailbox.next().json();
    let told: Vec<&str> = message["things"].as_array().unwrap().iter().map(|it| text(&it["id"])).collect();
    assert!(ids.iter().all(|id| told.contains(&id.as_str())), "{message:#}");
}

#[test]
fn a_hook_and_what_it_is_about_are_told_once_by_the_command() {
    let home = Home::new();
    let mailbox = Mailbox::new(true);
    let (told, about) = (home.path("told"), home.path("about"));
    let line =
        format!("cat >> {}; echo \\\"$SLUICE_ATTENTION\\\" >> {}; echo over >> {0}", told.display(), about.display());
    let webhook = hook_at(&mailbox.url, "json");
    configure(&home, &format!("command = [\"sh\", \"-c\", \"{line}\"]\n{webhook}"));
    review(&home, "brew");
    mailbox.next();
    let said = std::fs::read_to_string(&told).unwrap();
    assert_eq!(said.matches("over\n").count(), 1, "{said}");
    assert!(said.contains("is ready for you to read (brew)"), "{said}");
    // No hook tells of a crash.
    let id = home.create("steep", "worker: exit 3", &[]);
    home.until_event(&id, "attention.set", 1);
    mailbox.next();
    let said = std::fs::read_to_string(&told).unwrap();
    assert_eq!(said.matches("over\n").count(), 2, "{said}");
    assert!(said.contains("coffee: steep needs you (crashed)\n"), "{said}");
    assert!(said.contains(&format!("sluice answer {id}/1 respawn\n")), "{said}");
    let about = std::fs::read_to_string(&about).unwrap();
    let message: Value = serde_json::from_str(about.lines().last().unwrap()).unwrap();
    assert_eq!((text(&message["reason"]), text(&message["task"])), ("crashed", id.as_str()));
}

#[test]
fn a_test_message_says_for_each_channel_what_came_of_it() {
    let home = Home::new();
    let tested = |code: i32| {
        let ran = home.sluice(&["notify", "test", "--json"]);
        assert_eq!(ran.code, code, "{ran:?}");
        let channels = ran.json()["channels"].as_array().unwrap().clone();
        channels.iter().map(|it| format!("{} {}", text(&it["outcome"]), text(&it["channel"]))).collect::<Vec<_>>()
    };
    assert_eq!(tested(0), ["absent desktop"]);
    let (well, broken) = (Mailbox::new(true), Mailbox::new(false));
    let host = |mailbox: &Mailbox| mailbox.url.trim_start_matches("http://").trim_end_matches("/hunter2").to_owned();
    let both = hook_at(&well.url, "ntfy") + &hook_at(&well.url, "slack");
    configure(&home, &format!("desktop = false\ncommand = [\"cat\"]\n{both}"));
    let sent = format!("sent webhook {}", host(&well));
    assert_eq!(tested(0), ["sent command", &sent, &sent]);
    let (ntfy, slack) = (well.next(), well.next());
    assert!(ntfy.has("title: Sluice: a test message") && ntfy.body.contains("what waits for you"), "{}", ntfy.head);
    assert!(text(&slack.json()["text"]).starts_with("*Sluice: a test message*\n"), "{}", slack.body);
    configure(&home, &format!("desktop = false\ncommand = [\"false\"]\n{}", hook_at(&broken.url, "json")));
    assert_eq!(tested(1), ["failed command".to_owned(), format!("failed webhook {}", host(&broken))]);
    let shown = home.sluice(&["notify", "test"]);
    assert!(shown.code == 1 && shown.stdout.contains("503") && !shown.stdout.contains("hunter2"), "{shown:?}");
}

#[test]
fn the_desktop_of_the_last_command_shows_it() {
    let home = Home::new();
    let shown = home.path("shown");
    let program = home.path("programs/notify-send");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(&program, format!("#!/bin/sh\nprintf '%s\\n' \"$DISPLAY\" \"$@\" > {}\n", shown.display())).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let without = home.json(&["notify", "test"]);
    assert!(text(&without["channels"][0]["why"]).contains("DISPLAY"), "{without:#}");
    let doctor = home.sluice(&["doctor"]).stdout;
    assert!(doctor.lines().any(|line| line.contains("notify ") && line.contains("DISPLAY")), "{doctor}");
    let with = run(home.command(&["notify", "test", "--json"]).env("DISPLAY", ":7")).done().json();
    assert_eq!(with["channels"][0]["outcome"], "sent", "{with:#}");
    let words = std::fs::read_to_string(&shown).unwrap();
    assert!(words.starts_with(":7\n--app-name=Sluice\n--\nSluice: a test message\n"), "{words}");
}
