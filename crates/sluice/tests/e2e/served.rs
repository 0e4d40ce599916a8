//! A home that is served over the network, and a small client that says exactly what a test wants said.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::Value;

use super::home::{Home, LONG};

/// An engine in the foreground. It is killed when this is dropped.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn read(text: &str) -> Answer {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_default();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// `status code`, or only the status of what was done.
    pub(crate) fn short(&self) -> String {
        match self.json()["code"].as_str() {
            Some(code) => format!("{} {code}", self.status),
            None => self.status.to_string(),
        }
    }
}

impl Served {
    /// Serves a home at a free port, with further arguments, and waits until it listens.
    #[track_caller]
    pub(crate) fn start(home: &Home, more: &[&str]) -> Served {
        Served::listen(home, "127.0.0.1:0", more, &[])
    }

    /// The same at an address.
    #[track_caller]
    pub(crate) fn start_at(home: &Home, listen: &str, more: &[&str]) -> Served {
        Served::listen(home, listen, more, &[])
    }

    /// The same with further variables.
    #[track_caller]
    pub(crate) fn with(home: &Home, more: &[&str], variables: &[(&str, &str)]) -> Served {
        Served::listen(home, "127.0.0.1:0", more, variables)
    }

    /// The same, tried again for as long as the store is another engine's.
    #[track_caller]
    pub(crate) fn takes_over(home: &Home, more: &[&str]) -> Served {
        let give_up = Instant::now() + LONG;
        loop {
            match Served::tries(home.command(&["serve", "--listen", "127.0.0.1:0"]).args(more).stderr(Stdio::null())) {
                Some(served) => return served,
                None => assert!(Instant::now() < give_up, "it does not get the store"),
            }
        }
    }

    #[track_caller]
    fn listen(home: &Home, listen: &str, more: &[&str], variables: &[(&str, &str)]) -> Served {
        let mut command = home.command(&["serve", "--listen", listen]);
        Served::tries(command.args(more).envs(variables.iter().copied()))
            .unwrap_or_else(|| panic!("it does not listen"))
    }

    /// Nothing, if it ends before it listens.
    #[track_caller]
    fn tries(command: &mut Command) -> Option<Served> {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let served = |url: &str, child| Served { child, url: url.to_owned() };
        match lines.recv_timeout(LONG) {
            Ok(line) => {
                let url = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}"));
                Some(served(url, child))
            }
            Err(_) => {
                drop(served("", child));
                None
            }
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// A new connection.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.url.split("://").nth(1).unwrap()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    }

    /// Says these bytes, and reads until the engine ends the connection.
    pub(crate) fn say(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // It may answer before it has heard everything.
        let _ = stream.write_all(bytes);
        Answer::read(&rest_of(&mut stream))
    }

    /// One question.
    pub(crate) fn ask(&self, method: &str, path: &str, token: Option<&str>, body: &str) -> Answer {
        let shown = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = request(method, path, &shown, body.len());
        self.say(format!("{head}{body}").as_bytes())
    }

    /// Tells it to end, as a service manager does.
    pub(crate) fn terminate(&self) {
        kill_process(Pid::from_raw(self.pid()).unwrap(), Signal::TERM).unwrap();
    }

    /// Waits for its end, and gives its exit code.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let handle = pidfd_open(Pid::from_raw(self.pid()).unwrap(), PidfdFlags::empty()).unwrap();
        let within = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&within)), Ok(1), "it does not end");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One question to whoever listens at an address. Nobody there is an answer too: 503.
pub(crate) fn ask_at(address: &str, method: &str, path: &str, token: &str, body: &str) -> Answer {
    let away = |error: std::io::Error| Answer { status: 503, head: String::new(), body: error.to_string() };
    let mut stream = match TcpStream::connect(address) {
        Ok(stream) => stream,
        Err(error) => return away(error),
    };
    stream.set_read_timeout(Some(LONG)).unwrap();
    let shown = format!("authorization: Bearer {token}\r\n");
    let _ = stream.write_all(format!("{}{body}", request(method, path, &shown, body.len())).as_bytes());
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        Ok(_) if !text.is_empty() => Answer::read(&String::from_utf8_lossy(&text)),
        Ok(_) => away(std::io::ErrorKind::UnexpectedEof.into()),
        Err(error) => away(error),
    }
}

/// The head of a request; `more` are further lines of it.
pub(crate) fn request(method: &str, path: &str, more: &str, length: usize) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: sluice\r\nconnection: close\r\n{more}content-length: {length}\r\n\r\n")
}

/// Everything that still comes.
#[track_caller]
pub(crate) fn rest_of(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        // What it did not want to hear any more ends the connection.
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error}"),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A new token's id and secret.
#[track_caller]
pub(crate) fn token(home: &Home, more: &[&str]) -> (String, String) {
    let scope: &[&str] = if more.contains(&"--scope") { &[] } else { &["--scope", "person"] };
    let made = home.json(&[&["token", "create"], scope, more].concat());
    let text = |key: &str| made["token"][key].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

/// The process of a task's first agent, as its session tells it.
#[track_caller]
pub(crate) fn agent(home: &Home, task: &str) -> i32 {
    let record = home.place().join(format!("sessions/live/{task}.1/started.json"));
    let started: Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    i32::try_from(started["agent"]["pid"].as_i64().unwrap()).unwrap()
}
