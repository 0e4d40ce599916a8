//! A person is told once of what waits for them, across kills of the engine, and of nothing that was answered meanwhile.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::Value;

use super::home::{Home, LONG, run};
use super::process::stop as stop_process;
use super::recipes::text;
use super::traces::heard;

const REVIEWED: [&str; 2] = ["--workflow", "reviewed"];
const SCRIPT: &str = "worker: work\nreviewer: review pass";

/// A request that came, and whether it was taken.
pub(super) struct Posted {
    head: String,
    body: String,
    taken: bool,
}

impl Posted {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    fn has(&self, line: &str) -> bool {
        self.head.lines().any(|it| it.eq_ignore_ascii_case(line))
    }
}

/// A server for messages that takes them, or is out of order.
pub(super) struct Mailbox {
    pub(super) url: String,
    works: Arc<AtomicBool>,
    posted: Receiver<Posted>,
}

/// A server for messages that has read the whole of one and answers it when it is told to.
struct SlowMailbox {
    url: String,
    posted: Receiver<(TcpStream, Posted)>,
}

impl SlowMailbox {
    fn new() -> SlowMailbox {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hunter2", listener.local_addr().unwrap());
        let (sender, posted) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Some((head, body)) = heard(&stream) else { continue };
                if sender.send((stream, Posted { head, body, taken: true })).is_err() {
                    return;
                }
            }
        });
        SlowMailbox { url, posted }
    }

    /// The next message, which is not answered yet.
    #[track_caller]
    fn next(&self) -> (TcpStream, Posted) {
        self.posted.recv_timeout(LONG).expect("a message")
    }
}

fn take(mut stream: TcpStream) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
}

impl Mailbox {
    pub(super) fn new(works: bool) -> Mailbox {
        Mailbox::refusing(works, None)
    }

    /// One that takes no message with this word in it, and says so.
    fn refusing(works: bool, word: Option<&'static str>) -> Mailbox {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hunter2", listener.local_addr().unwrap());
        let works = Arc::new(AtomicBool::new(works));
        let (theirs, (sender, posted)) = (works.clone(), channel());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let Some((head, body)) = heard(&stream) else { continue };
                let is_refused = word.is_some_and(|word| body.contains(word));
                let taken = theirs.load(Ordering::SeqCst) && !is_refused;
                if sender.send(Posted { head, body, taken }).is_err() {
                    return;
                }
                let status = match (taken, is_refused) {
                    (true, _) => "200 OK",
                    (false, true) => "400 Bad Request",
                    (false, false) => "503 Service Unavailable",
                };
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
    pub(super) fn next(&self) -> Posted {
        self.posted.recv_timeout(LONG).expect("a message")
    }

    /// The next message that was taken.
    #[track_caller]
    fn taken(&self) -> Posted {
        std::iter::repeat_with(|| self.next()).find(|posted| posted.taken).unwrap()
    }
}

fn configure(home: &Home, notify: &str) {
    std::fs::write(home.place().join("config.toml"), format!("[notify]\n{notify}")).unwrap();
}

pub(super) fn hook_at(url: &str, kind: &str) -> String {
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

/// The receiver has the message, and the engine is dead before it can write that down. The same message comes again, and says by
/// its id that it is the same.
#[test]
fn what_was_taken_and_not_written_down_comes_again_under_the_same_id() {
    let home = Home::new();
    let mailbox = SlowMailbox::new();
    configure(&home, &hook_at(&mailbox.url, "json"));
    let (_, id) = review(&home, "brew");
    let (stream, first) = mailbox.next();
    // It cannot go on to write it down: it is stopped while the receiver answers, and dies then.
    let engine = home.engine_pid();
    stop_process(engine);
    take(stream);
    home.kill_engine();
    home.sluice(&["inbox"]).done();
    let (stream, again) = mailbox.next();
    take(stream);
    assert_eq!(again.json(), first.json(), "the same message");
    let key = format!("idempotency-key: {id}");
    assert!(first.has(&key) && again.has(&key), "{}\n{}", first.head, again.head);
    let told = home.follow(&["--type", "attention.told"]).next(Instant::now() + LONG).unwrap();
    assert_eq!(told["data"]["ids"], serde_json::json!([id]), "{told:#}");
    // From here on it is known: the next message is about something else.
    home.kill_engine();
    let (_, other) = review(&home, "steep");
    assert_eq!(text(&mailbox.next().1.json()["id"]), other);
}

/// What a person answers while the server for messages is out of order, or before another engine looks, is not told.
#[test]
fn what_is_answered_before_the_next_engine_looks_is_not_told() {
    let home = Home::new();
    let mailbox = Mailbox::new(false);
    configure(&home, &hook_at(&mailbox.url, "json"));
    let (_, answered) = review(&home, "brew");
    assert_eq!(text(&mailbox.next().json()["id"]), answered);
    home.kill_engine();
    // This command starts the next engine, and is what it hears first.
    home.json(&["answer", &answered, "approve"]);
    mailbox.mend();
    let (_, other) = review(&home, "steep");
    let taken = mailbox.taken().json();
    assert_eq!((text(&taken["id"]), &taken["things"]), (other.as_str(), &Value::Null), "{taken:#}");
}

/// A message that a server refuses keeps no other back. It is offered again, given up in the end, and not forgotten: the thing
/// still waits.
#[test]
fn a_message_that_is_refused_is_given_up_and_holds_up_no_other() {
    let home = Home::new();
    let mailbox = Mailbox::refusing(true, Some("brew"));
    configure(&home, &hook_at(&mailbox.url, "json"));
    let (_, refused) = review(&home, "brew");
    let (_, other) = review(&home, "steep");
    assert_eq!(text(&mailbox.taken().json()["id"]), other);
    let give_up = Instant::now() + LONG;
    while !log(&home).contains(&format!("has refused a message about {refused} 5 times")) {
        assert!(Instant::now() < give_up, "{}", log(&home));
        home.sluice(&["inbox"]).done();
    }
    let tested = home.sluice(&["notify", "test"]);
    assert!(tested.stdout.contains("given up webhook 127.0.0.1:"), "{tested:?}");
    assert!(tested.stdout.contains(&format!("the message about {refused}: ")), "{tested:?}");
    assert!(tested.stdout.contains("400 Bad Request") && !tested.stdout.contains("hunter2"), "{tested:?}");
    let inbox = home.json(&["inbox"])["questions"].take();
    assert!(inbox.as_array().unwrap().iter().any(|it| it["id"] == refused.as_str()), "{inbox:#}");
}

#[test]
fn a_message_links_to_the_page_where_a_person_has_named_its_address() {
    let home = Home::new();
    let (mailbox, phone) = (Mailbox::new(true), Mailbox::new(true));
    let both = hook_at(&mailbox.url, "json") + &hook_at(&phone.url, "ntfy");
    configure(&home, &format!("page = \"https://sluice.example/\"\n{both}"));
    let (task, _) = review(&home, "brew");
    let link = format!("https://sluice.example/tasks/{task}");
    assert_eq!(text(&mailbox.next().json()["link"]), link);
    let ntfy = phone.next();
    assert!(ntfy.has(&format!("click: {link}")) && ntfy.body.ends_with(&link), "{}{}", ntfy.head, ntfy.body);
    configure(&home, &hook_at(&mailbox.url, "json"));
    review(&home, "steep");
    assert_eq!(mailbox.next().json()["link"], Value::Null, "there is no address");
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

/// What a hook has told is not told again by the command, though the engine that ran the hook is dead.
#[test]
fn what_a_hook_told_is_not_told_again_after_a_kill() {
    let home = Home::new();
    let mailbox = Mailbox::new(false);
    let told = home.path("told");
    let webhook = hook_at(&mailbox.url, "json");
    configure(
        &home,
        &format!("command = [\"sh\", \"-c\", \"cat >> {0}; echo over >> {0}\"]\n{webhook}", told.display()),
    );
    let (_, id) = review(&home, "brew");
    home.kill_engine();
    mailbox.mend();
    home.sluice(&["inbox"]).done();
    // The command is asked before the webhook.
    assert_eq!(text(&mailbox.taken().json()["id"]), id);
    let said = std::fs::read_to_string(&told).unwrap();
    assert_eq!(said.matches("over\n").count(), 1, "{said}");
    assert!(said.contains("is ready for you to read (brew)"), "{said}");
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
