//! A colony with everything that belongs to it: an engine that is served, a remote repository, and workers, each with a home
//! of its own as if on a machine of its own. All of them are real processes, and killed when this is dropped.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::{Value, json};

use super::home::{Happening, Home, LONG};
use super::process;
use super::served::{Answer, Served, token};

/// The manifest of five steps that the fleet works by.
const MANIFEST: &str = include_str!("../../../sluice-dialect/tests/seeds/001-dev-task.toml");

/// A colony.
pub(crate) struct Reef {
    pub(crate) home: Home,
    pub(crate) engine: Option<Served>,
    listen: String,
    store: Option<String>,
    pub(crate) url: String,
    pub(crate) person: String,
    pub(crate) worker: String,
    pub(crate) colony: String,
}

impl Reef {
    /// A colony whose engine has these settings and keeps everything in this store.
    #[track_caller]
    pub(crate) fn new(settings: &str, store: Option<String>) -> Reef {
        let home = Home::empty();
        std::fs::create_dir_all(home.place()).unwrap();
        std::fs::write(home.place().join("config.toml"), settings).unwrap();
        home.git(&["clone", "--quiet", "--bare", ".", home.path("remote.git").to_str().unwrap()]);
        let mut reef = Reef {
            home,
            engine: None,
            listen: "127.0.0.1:0".into(),
            store,
            url: String::new(),
            person: String::new(),
            worker: String::new(),
            colony: String::new(),
        };
        reef.workflow("dev-task", MANIFEST);
        reef.serve();
        reef.listen = reef.url.split("://").nth(1).unwrap().to_owned();
        reef.person = token(&reef.home, &["--scope", "person"]).1;
        reef.worker = token(&reef.home, &["--scope", "worker"]).1;
        let repo = reef.home.path("remote.git");
        let founded = reef.ask("POST", "/v1/colonies", &json!({ "name": "reef", "repo": repo }));
        reef.colony = text(&founded, "colony_id");
        reef
    }

    /// Adds a workflow; its prompts come by [`Reef::prompt`].
    pub(crate) fn workflow(&self, name: &str, manifest: &str) {
        let folder = self.home.path("prompts/workflows");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.toml")), manifest).unwrap();
    }

    /// What the agents of a step are told.
    pub(crate) fn prompt(&self, name: &str, words: &str) {
        let folder = self.home.path("prompts/do");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.md")), words).unwrap();
    }

    /// A script of the demo agent for each of the four prompts.
    pub(crate) fn scripts(&self, plan: &str, implement: &str, review: &str, pr: &str) {
        for (name, script) in [("plan", plan), ("implement", implement), ("review", review), ("pr", pr)] {
            self.prompt(name, &format!("{name}\n```demo\n{script}\n```\n"));
        }
    }

    /// Starts the engine, where it was before if it was.
    #[track_caller]
    pub(crate) fn serve(&mut self) {
        let prompts = self.home.path("prompts");
        let mut more = vec!["--prompts", prompts.to_str().unwrap()];
        more.extend(self.store.iter().flat_map(|store| ["--store", store]));
        let engine = Served::start_at(&self.home, &self.listen, &more);
        self.url.clone_from(&engine.url);
        self.engine = Some(engine);
    }

    /// Kills the engine without warning.
    pub(crate) fn kill_engine(&mut self) {
        if let Some(engine) = self.engine.take() {
            process::kill(engine.pid());
        }
    }

    /// Asks the engine as a person; it must do it.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.answer(method, path, &self.person, body);
        assert!((200..300).contains(&answer.status), "{method} {path}: {answer:?}");
        answer.json()
    }

    /// Asks the engine with a token.
    #[track_caller]
    pub(crate) fn answer(&self, method: &str, path: &str, token: &str, body: &Value) -> Answer {
        self.engine.as_ref().unwrap().ask(method, path, Some(token), &body.to_string())
    }

    /// Begins a mission.
    #[track_caller]
    pub(crate) fn mission(&self, workflow: &str) -> String {
        let wanted = json!({ "colony_id": self.colony, "prompt": "Fix issue 6", "workflow": workflow });
        text(&self.ask("POST", "/v1/missions", &wanted), "mission_id")
    }

    /// A mission with its tasks.
    #[track_caller]
    pub(crate) fn look(&self, mission: &str) -> Value {
        self.ask("GET", &format!("/v1/missions/{mission}"), &Value::Null)
    }

    /// A worker that is known to the engine.
    #[track_caller]
    pub(crate) fn hire(&self, name: &str, role: &str) -> Hired {
        self.hire_over(&self.url, name, role)
    }

    /// The same, over a wire of its own.
    #[track_caller]
    pub(crate) fn hire_over(&self, url: &str, name: &str, role: &str) -> Hired {
        let hired = self.send(url, name, role, &self.worker, &["--colony", &self.colony]);
        registered(hired, name)
    }

    /// A worker of what `whose` says, with a token of its own.
    #[track_caller]
    pub(crate) fn hire_for(&self, name: &str, role: &str, token: &str, whose: &[&str]) -> Hired {
        registered(self.send(&self.url, name, role, token, whose), name)
    }

    /// The same, which may not be let in.
    pub(crate) fn hire_unheard_for(&self, name: &str, role: &str, token: &str, whose: &[&str]) -> Hired {
        self.send(&self.url, name, role, token, whose)
    }

    /// A worker that may not be let in.
    pub(crate) fn hire_unheard(&self, name: &str, role: &str, token: &str, colony: &str) -> Hired {
        self.send(&self.url, name, role, token, &["--colony", colony])
    }

    fn send(&self, url: &str, name: &str, role: &str, token: &str, whose: &[&str]) -> Hired {
        let machine = self.machine(name);
        std::fs::create_dir_all(&machine).unwrap();
        let config = "[defaults]\nharness = \"demo\"\n\n[harnesses.shell]\nheadless = [\"sh\"]\noutput = \"text\"\n";
        let config = config.replace("demo", if self.home.path("with-shell").exists() { "shell" } else { "demo" });
        std::fs::write(machine.join("config.toml"), config).unwrap();
        let words = [&["worker", "--connect", url, "--role", role, "--name", name], whose].concat();
        let mut command = self.home.command(&words);
        command.env("SLUICE_HOME", &machine).env("SLUICE_TOKEN", token).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Hired { child, lines, crab: String::new() }
    }

    /// The home of a worker.
    pub(crate) fn machine(&self, name: &str) -> PathBuf {
        self.home.path(&format!("machine-{name}"))
    }

    /// The worker's own place in it.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.machine(name).join("workers").join(name)
    }

    /// What happens, from the beginning, asked for over the network: that starts no engine.
    pub(crate) fn follow(&self, filters: &[&str]) -> Happening {
        let mut command = self.home.command(&["events", "--follow", "--all", "--json"]);
        command.env("SLUICE_URL", &self.url).env("SLUICE_TOKEN", &self.person);
        Happening::of(command.args(filters))
    }

    /// Waits for the `count`th event of a type about a mission.
    #[track_caller]
    pub(crate) fn until_event(&self, about: &str, kind: &str, count: usize) -> Value {
        let give_up = Instant::now() + LONG;
        let mut filters = vec!["--type", kind];
        if !about.is_empty() {
            filters.extend(["--correlation", about]);
        }
        let mut happening = self.follow(&filters);
        let mut seen = 0;
        while let Some(event) = happening.next(give_up) {
            seen += 1;
            if seen == count {
                return event;
            }
        }
        panic!("{kind} of {about} came {seen} times: {:#}", self.look(about));
    }

    /// Waits for the end of a mission, and gives how it stands then: `status: step status, …`.
    #[track_caller]
    pub(crate) fn ended(&self, mission: &str) -> String {
        let give_up = Instant::now() + LONG;
        let mut happening = self.follow(&["--correlation", mission]);
        loop {
            let seen = self.look(mission);
            if seen["status"] != "running" {
                return standing(&seen);
            }
            assert!(happening.next(give_up).is_some(), "it does not end: {seen:#}");
        }
    }

    /// The events of a type about a mission.
    pub(crate) fn events(&self, filters: &[&str]) -> Vec<Value> {
        let mut command = self.home.command(&["events", "--json"]);
        command.env("SLUICE_URL", &self.url).env("SLUICE_TOKEN", &self.person).args(filters);
        let told = super::home::run(&mut command).done().stdout;
        told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The store, beside the engine.
    pub(crate) fn reader(&self) -> Box<dyn sluice_store::Reader> {
        let own = || format!("sqlite:{}", self.home.place().join("store.db").display());
        let store = sluice_store::Store::open(&self.store.clone().unwrap_or_else(own)).unwrap();
        store.reader().unwrap()
    }

    /// The commits of a mission on the remote's branch, oldest first.
    pub(crate) fn commits(&self, mission: &str) -> Vec<String> {
        let remote = self.home.path("remote.git");
        let only = format!("--branches=sluice/run-{mission}*"); // no branch is no commit
        let words = ["-C", remote.to_str().unwrap(), "log", "--reverse", "--format=%s", &only, "--not", "main"];
        self.home.git(&words).lines().map(str::to_owned).collect()
    }
}

/// A worker that has said that it is registered.
#[track_caller]
fn registered(mut hired: Hired, name: &str) -> Hired {
    let line = hired.lines.recv_timeout(LONG);
    let line = line.unwrap_or_else(|_| panic!("{name} is not registered: {:?}", hired.child.try_wait()));
    hired.crab = line.split(['(', ')']).nth(1).unwrap_or_else(|| panic!("{line}")).to_owned();
    hired
}

/// `status: step status, …` of a mission.
pub(crate) fn standing(mission: &Value) -> String {
    let tasks = mission["tasks"].as_array().unwrap().iter();
    let tasks: Vec<String> = tasks.map(|task| format!("{} {}", text(task, "step_id"), text(task, "status"))).collect();
    format!("{}: {}", text(mission, "status"), tasks.join(", "))
}

/// A text in an answer.
#[track_caller]
pub(crate) fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value:#}")).to_owned()
}

/// A worker's process. It is killed when this is dropped.
pub(crate) struct Hired {
    child: Child,
    lines: Receiver<String>,
    pub(crate) crab: String,
}

impl Hired {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Kills it without warning.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The next thing that it says.
    #[track_caller]
    pub(crate) fn says(&self) -> String {
        self.lines.recv_timeout(LONG).unwrap()
    }

    /// Tells it to end, as a service manager does.
    pub(crate) fn terminate(&self) {
        kill_process(self.pid(), Signal::TERM).unwrap();
    }

    /// It does nothing any more, and does not know.
    pub(crate) fn hangs(&self) {
        kill_process(self.pid(), Signal::STOP).unwrap();
    }

    /// It has no idea that time has passed.
    pub(crate) fn goes_on(&self) {
        kill_process(self.pid(), Signal::CONT).unwrap();
    }

    /// Waits for its end; gives its exit code and what it said of it.
    #[track_caller]
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let handle = pidfd_open(self.pid(), PidfdFlags::empty()).unwrap();
        let within = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&within)), Ok(1), "it does not end");
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Hired {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
