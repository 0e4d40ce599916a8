//! The client at a socket: what it makes of answers, of lines that go on, and of an engine that is not there.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use serde_json::Value;
use sluice_api::client::{GONE, damage};
use sluice_api::{Client, Problem};

/// What an engine was asked, each question with its head, and the connections that are still open.
type Served = (Vec<String>, Vec<UnixStream>);

/// A socket at which each of these answers is given once, in order. An empty one ends the connection; the others stay open
/// until the thread is joined.
fn engine(folder: &Path, answers: &'static [&'static str]) -> (PathBuf, JoinHandle<Served>) {
    let socket = folder.join("engine.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let serving = std::thread::spawn(move || {
        let mut served = Served::default();
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a caller");
            served.0.push(head_of(&stream));
            stream.write_all(answer.as_bytes()).expect("answered");
            served.1.extend((!answer.is_empty()).then_some(stream));
        }
        served
    });
    (socket, serving)
}

fn head_of(stream: &UnixStream) -> String {
    let lines = BufReader::new(stream).lines().map(|line| line.expect("a line"));
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn an_answer_and_what_stands_beside_it() {
    let folder = folder();
    const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 8\r\nsluice-damaged: 1%20task\r\n\r\n{\"a\": 1}";
    const REFUSAL: &str =
        "HTTP/1.1 404 Not Found\r\ncontent-length: 33\r\n\r\n{\"error\":\"no\",\"code\":\"not_found\"}";
    let (socket, serving) = engine(folder.path(), &[ANSWER, REFUSAL]);
    let client = Client::new(&socket).expect("a client");
    assert_eq!(client.get::<Value>("/v1/tasks/a%2Fb?x=%20").expect("answered")["a"], 1);
    assert_eq!(damage().as_deref(), Some("1 task"));
    let refused = client.delete::<Value>("/v1/tasks/k3f9").expect_err("refused");
    assert_eq!((refused.status.number(), refused.code.as_str()), (404, "not_found"));
    let (asked, _) = serving.join().expect("served");
    assert!(asked[0].starts_with("GET /v1/tasks/a%2Fb?x=%20 HTTP/1.1\n"), "{}", asked[0]);
    assert!(asked[0].contains("\nhost: sluice"), "{}", asked[0]);
    assert!(asked[1].starts_with("DELETE /v1/tasks/k3f9 HTTP/1.1\n"), "{}", asked[1]);
}

#[test]
fn no_engine_and_one_that_goes_away() {
    let folder = folder();
    let told = |problem: Problem| {
        assert_eq!((problem.code.as_str(), problem.status.number()), (GONE, 503));
        problem.message
    };
    let nowhere = folder.path().join("nowhere.sock");
    let client = Client::new(&nowhere).expect("a client");
    let expected = format!("no engine answers at {}: No such file or directory (os error 2)", nowhere.display());
    assert_eq!(told(client.get::<Value>("/v1/tasks").expect_err("there is no engine")), expected);
    assert_eq!(told(client.lines("/v1/events", |_| Ok(true)).expect_err("there is no engine")), expected);
    let (socket, serving) = engine(folder.path(), &[""]);
    let client = Client::new(&socket).expect("a client");
    let gone = told(client.post::<Value>("/v1/tasks", &()).expect_err("gone"));
    assert_eq!(gone, "the engine went away before it answered: connection closed before message completed");
    serving.join().expect("served");
}

#[test]
fn lines_are_read_as_they_come_until_they_are_enough() {
    let folder = folder();
    let (socket, serving) = engine(folder.path(), &["HTTP/1.1 200 OK\r\n\r\none\ntwo\nthr"]);
    let client = Client::new(&socket).expect("a client");
    let mut read = Vec::new();
    let take = |line: &str| {
        read.push(line.to_owned());
        Ok(read.len() < 2)
    };
    client.lines("/v1/events?follow=true", take).expect("read");
    assert_eq!(read, ["one", "two"]);
    serving.join().expect("served");
}

#[test]
fn a_name_that_is_a_folder_is_not_asked_for() {
    let client = Client::new(Path::new("/nowhere")).expect("a client");
    let unknown = client.get::<Value>("/v1/tasks/..").expect_err("nothing");
    assert_eq!((unknown.status.number(), unknown.code.as_str()), (404, "not_found"));
}
