//! Restate as a peer: its server, and a service in Node whose handlers are made of durable steps.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::PATIENCE;
use super::langgraph::Deed;
use super::pipe::Pipe;
use crate::line::WaitingLine;
use crate::machine::{disk, resident, rest};

/// How long to wait before asking again whether it serves.
const AGAIN: Duration = Duration::from_millis(100);

/// What is started.
pub struct RestateProgram {
    /// The server.
    pub server: PathBuf,
    /// The service, which Node runs.
    pub script: PathBuf,
}

/// A server and its service at work. Both end with this.
pub struct Restate {
    folder: TempDir,
    pipe: Pipe,
    ingress: String,
    server: Child,
    service: Child,
}

impl Restate {
    /// Starts both, and lets the server know the service.
    pub fn start(program: &RestateProgram, disk: &Path) -> Restate {
        let folder = tempfile::tempdir_in(disk).unwrap();
        let pipe = Pipe::new(folder.path());
        let [node, ingress, admin, service] = free_ports();
        let quiet = |command: &mut Command| {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let mut server = Command::new(&program.server);
        server.arg("--no-logo").env("RESTATE_BASE_DIR", folder.path().join("data"));
        server
            .env("RESTATE_LISTEN_MODE", "tcp")
            .env("RESTATE_BIND_IP", "127.0.0.1")
            .env("RESTATE_BIND_PORT", node.to_string());
        server
            .env("RESTATE_INGRESS__BIND_PORT", ingress.to_string())
            .env("RESTATE_ADMIN__BIND_PORT", admin.to_string());
        server.env("RESTATE_DISABLE_TELEMETRY", "true");
        let server = quiet(&mut server);
        let mut script = Command::new("node");
        let started = quiet(script.arg(&program.script).arg(service.to_string()).arg(pipe.path()));
        let restate = Restate { folder, pipe, ingress: format!("127.0.0.1:{ingress}"), server, service: started };
        // The server asks the service what it has; either may still be starting.
        let known = format!("{{\"uri\": \"http://127.0.0.1:{service}\"}}");
        until(|| WaitingLine::open(&format!("127.0.0.1:{admin}"), "")?.ask("POST", "/deployments", &known).map(drop));
        until(|| restate.line()?.ask("POST", "/bench/chain", &asked(1, Deed::Noop, 1, false)).map(drop));
        restate.pipe.next();
        restate
    }

    /// So many runs of five steps over so many connections, until the last has ended.
    pub fn runs(&self, deed: Deed, count: usize, connections: usize) -> Duration {
        let body = asked(5, deed, 1, false);
        let mut lines: Vec<WaitingLine> = (0..connections).map(|_| self.line().unwrap()).collect();
        let began = Instant::now();
        std::thread::scope(|scope| {
            for (first, line) in lines.iter_mut().enumerate() {
                let body = &body;
                scope.spawn(move || {
                    for _ in (first..count).step_by(connections) {
                        line.ask("POST", "/bench/chain/send", body).unwrap();
                    }
                });
            }
        });
        for _ in 0..count {
            self.pipe.next();
        }
        began.elapsed()
    }

    /// One run of so many steps: a `chain`, or a `fan` with so many at once.
    pub fn steps(&self, what: &str, count: usize, at_once: usize) -> Duration {
        let mut line = self.line().unwrap();
        let began = Instant::now();
        line.ask("POST", &format!("/bench/{what}/send"), &asked(count, Deed::Spawn, at_once, false)).unwrap();
        self.pipe.next() - began
    }

    /// From a start until the first step has started a script, each of so many.
    pub fn first(&self, count: usize) -> Vec<Duration> {
        let mut line = self.line().unwrap();
        let once = |_| {
            let began = Instant::now();
            line.ask("POST", "/bench/chain/send", &asked(5, Deed::Spawn, 1, true)).unwrap();
            self.pipe.next() - began
        };
        (0..count).map(once).collect()
    }

    /// Resident memory of the server and of the service, in MiB.
    pub fn resident(&self) -> (f64, f64) {
        (resident(self.server.id()), resident(self.service.id()))
    }

    /// Bytes that the server has on the disk.
    pub fn disk(&self) -> u64 {
        disk(&self.folder.path().join("data"))
    }

    fn line(&self) -> crate::line::Outcome<WaitingLine> {
        WaitingLine::open(&self.ingress, "")
    }
}

impl Drop for Restate {
    fn drop(&mut self) {
        for child in [&mut self.service, &mut self.server] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn asked(steps: usize, deed: Deed, at_once: usize, first: bool) -> String {
    let kind = deed.word();
    format!("{{\"steps\": {steps}, \"kind\": \"{kind}\", \"atOnce\": {at_once}, \"first\": {first}}}")
}

/// Asks until it is answered.
fn until(mut ask: impl FnMut() -> crate::line::Outcome<()>) {
    let began = Instant::now();
    while let Err(why) = ask() {
        assert!(began.elapsed() < PATIENCE, "Restate does not answer: {why}");
        rest(AGAIN);
    }
}

/// Ports that nothing listens at. Another program may take one before it is used; then the server says so and ends.
fn free_ports() -> [u16; 4] {
    let bound = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    bound.map(|it| it.local_addr().unwrap().port())
}
