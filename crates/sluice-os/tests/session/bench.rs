//! A place for sessions that leaves nothing behind: whatever a test started is ended with it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use sluice_os::process::ProcessIdentity;
use sluice_os::session::{
    EndedSession, LivingSession, SessionConfig, SessionId, SessionLimits, SessionPlace, SessionSpec, SessionStanding,
    SessionWindow, Sessions,
};
use sluice_os::tmux::Tmux;

/// Longer than anything here takes; what waits for it in vain fails.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// What the engine promises to notice within.
pub(crate) const PROMISED: Duration = Duration::from_secs(1);

pub(crate) struct Bench {
    pub(crate) sessions: Option<Sessions>,
    with_tmux: bool,
    pub(crate) folder: tempfile::TempDir,
}

impl Bench {
    /// Sessions without tmux.
    pub(crate) fn plain() -> Self {
        Self::with(false)
    }

    /// Sessions in windows of a tmux server of their own.
    pub(crate) fn tmux() -> Self {
        Self::with(true)
    }

    fn with(with_tmux: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut bench = Self { sessions: None, with_tmux, folder };
        bench.restart();
        bench
    }

    /// What an engine's restart is to sessions.
    pub(crate) fn restart(&mut self) {
        self.restart_in("sessions");
    }

    /// The same with the sessions elsewhere.
    pub(crate) fn restart_in(&mut self, folder: &str) {
        self.sessions = None;
        let program: Vec<OsString> = vec![env!("CARGO_BIN_EXE_shim-under-test").into(), "shim".into()];
        let tmux = self.with_tmux.then(|| Tmux::new("tmux", self.path("tmux.sock")));
        self.sessions = Some(Sessions::new(SessionConfig { folder: self.path(folder), program, tmux }).unwrap());
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        self.sessions.as_ref().unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    /// A script as an agent, in a terminal.
    pub(crate) fn script(&self, id: &str, text: &str) -> SessionSpec {
        let path = std::env::var("PATH").unwrap();
        let window =
            SessionWindow { key: "task-1".to_owned(), session: "project/branch".to_owned(), name: id.to_owned() };
        SessionSpec {
            id: SessionId::new(id).unwrap(),
            arguments: ["/bin/sh", "-c", text].map(str::to_owned).to_vec(),
            environment: BTreeMap::from([("PATH".to_owned(), path)]),
            folder: self.folder.path().to_owned(),
            place: SessionPlace::Terminal { rows: 50, columns: 200, window: Some(window) },
            typed: None,
            limits: SessionLimits::default(),
            keeper: None,
            lease: None,
            may_leave: false,
        }
    }

    pub(crate) fn headless(&self, id: &str, text: &str, input: Option<PathBuf>) -> SessionSpec {
        SessionSpec { place: SessionPlace::Headless { input }, ..self.script(id, text) }
    }

    /// Starts it and says who lives.
    pub(crate) fn start(&self, spec: &SessionSpec) -> LivingSession {
        match self.sessions().start(spec).unwrap().standing {
            SessionStanding::Living(living) => living,
            SessionStanding::Gone(gone) => panic!("{} is over at once: {gone:?}", spec.id),
        }
    }

    /// Starts it and gives the channel that says how it ended.
    pub(crate) fn start_watched(&self, spec: &SessionSpec) -> (LivingSession, Receiver<EndedSession>) {
        let living = self.start(spec);
        (living, self.watch(&spec.id))
    }

    pub(crate) fn watch(&self, id: &SessionId) -> Receiver<EndedSession> {
        let (sender, receiver) = channel();
        let then = move |_, gone: Result<EndedSession, _>| drop(sender.send(gone.unwrap()));
        self.sessions().watch(id, then).unwrap();
        receiver
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, spec: &SessionSpec) -> EndedSession {
        self.sessions().start(spec).unwrap();
        self.watch(&spec.id).recv_timeout(LONG).unwrap()
    }

    /// Tells the tmux server something, if there is one.
    pub(crate) fn tell_tmux(&self, words: &[&str]) {
        if let Some(tmux) = self.sessions().tmux().filter(|tmux| tmux.socket().exists()) {
            let _ = Command::new("tmux").arg("-S").arg(tmux.socket()).args(words).output();
        }
    }

    pub(crate) fn folder_of(&self, spec: &SessionSpec) -> PathBuf {
        self.path("sessions").join(spec.id.as_str())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let Some(sessions) = &self.sessions else { return };
        for id in sessions.list().unwrap_or_default() {
            let _ = sessions.end(&id, Duration::ZERO, "the test is over");
        }
        self.tell_tmux(&["kill-server"]);
    }
}

/// What a script writes into a fifo, read to its end. A script that never writes makes the test fail, not hang.
pub(crate) fn hear(fifo: &Path) -> Vec<u8> {
    assert!(fifo.metadata().unwrap().file_type().is_fifo());
    let (sender, receiver) = channel();
    let path = fifo.to_owned();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::fs::File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
        sender.send(bytes)
    });
    receiver.recv_timeout(LONG).expect("a script writes to its fifo")
}

/// The process whose number a script writes into a fifo.
pub(crate) fn hear_pid(fifo: &Path) -> ProcessIdentity {
    let text = String::from_utf8(hear(fifo)).unwrap();
    ProcessIdentity::of(text.trim().parse().unwrap()).expect("the process lives")
}

/// Kills a process without warning, and waits until it is dead.
pub(crate) fn kill(identity: &ProcessIdentity) {
    let pid = rustix::process::Pid::from_raw(identity.pid).unwrap();
    let handle = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let within = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
    let mut waiting = [rustix::event::PollFd::new(&handle, rustix::event::PollFlags::IN)];
    assert_eq!(rustix::event::poll(&mut waiting, Some(&within)), Ok(1));
}
