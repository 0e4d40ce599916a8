//! A crab that knows the protocol of its connection and nothing else: it registers, listens, and answers in the envelope in
//! which it was told. It is played here byte by byte, so that no client of ours stands between.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::home::Home;
use super::served::{Served, request, rest_of, token};

const MANIFEST: &str = include_str!("../../../sluice-dialect/tests/seeds/001-dev-task.toml");
const CLOSE: u8 = 8;

/// A control plane with one colony.
struct Plane {
    home: Home,
    served: Served,
    secret: String,
    colony: String,
}

/// A connection that a crab listens on.
pub(crate) struct Ear(TcpStream);

impl Plane {
    fn new() -> Plane {
        let home = Home::new();
        let prompts = home.path("prompts");
        std::fs::create_dir_all(prompts.join("workflows")).unwrap();
        std::fs::create_dir_all(prompts.join("do")).unwrap();
        std::fs::write(prompts.join("workflows/dev-task.toml"), MANIFEST).unwrap();
        for name in ["plan", "implement", "review", "pr"] {
            std::fs::write(prompts.join(format!("do/{name}.md")), format!("{name}\n{{{{context}}}}\n")).unwrap();
        }
        let served = Served::start(&home, &["--prompts", prompts.to_str().unwrap()]);
        let (_, secret) = token(&home, &[]);
        let mut plane = Plane { home, served, secret, colony: String::new() };
        plane.colony = text(&plane.ask("POST", "/v1/colonies", &json!({ "name": "reef" })), "colony_id");
        plane
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.served.ask(method, path, Some(&self.secret), &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    fn register(&self, crab: &str, role: &str, secret: &str) {
        let wanted = json!({ "crab_id": crab, "colony_id": self.colony, "name": crab, "role": role });
        let answer = self.served.ask("POST", "/v1/crabs/register", Some(secret), &wanted.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    #[track_caller]
    fn listen(&self, crab: &str, secret: &str) -> Ear {
        listen(&self.served, crab, secret)
    }

    fn mission(&self) -> String {
        let wanted = json!({ "colony_id": self.colony, "prompt": "Fix issue #6", "workflow": "dev-task" });
        text(&self.ask("POST", "/v1/missions", &wanted), "mission_id")
    }

    fn status(&self, mission: &str, step: &str) -> String {
        let tasks = self.ask("GET", &format!("/v1/tasks?mission_id={mission}"), &Value::Null);
        text(tasks.as_array().unwrap().iter().find(|task| task["step_id"] == step).unwrap(), "status")
    }

    fn state(&self, crab: &str) -> String {
        let crabs = self.ask("GET", "/v1/crabs", &Value::Null);
        text(crabs.as_array().unwrap().iter().find(|it| it["crab_id"] == crab).unwrap(), "state")
    }
}

/// Listens as a crab.
#[track_caller]
pub(crate) fn listen(served: &Served, crab: &str, secret: &str) -> Ear {
    let mut stream = served.connect();
    let head = format!(
        "GET /v1/ws/crab/{crab} HTTP/1.1\r\nhost: sluice\r\nauthorization: Bearer {secret}\r\nupgrade: websocket\r\n\
         connection: Upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answered = Vec::new();
    while !answered.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answered.push(byte[0]);
    }
    let answered = String::from_utf8(answered).unwrap();
    assert!(answered.starts_with("HTTP/1.1 101"), "{answered}");
    Ear(stream)
}

impl Ear {
    /// A frame: what it is, and what is in it.
    #[track_caller]
    fn frame(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        let length = match head[1] {
            126 => {
                let mut long = [0; 2];
                self.0.read_exact(&mut long).unwrap();
                usize::from(u16::from_be_bytes(long))
            }
            length => usize::from(length),
        };
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).unwrap();
        (head[0] & 15, bytes)
    }

    /// The next message, which has every key of the envelope.
    #[track_caller]
    pub(crate) fn hear(&mut self) -> Value {
        let (kind, bytes) = self.frame();
        let said: Value = serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{kind}: {error}"));
        for key in ["message_id", "mission_id", "task_id", "run_id", "kind", "sent_at_ms"] {
            assert!(said.get(key).is_some(), "no {key} in {said}");
        }
        said
    }

    /// The code that the connection is closed with.
    #[track_caller]
    fn closed(&mut self) -> u16 {
        let (kind, bytes) = self.frame();
        assert_eq!(kind, CLOSE, "{}", String::from_utf8_lossy(&bytes));
        u16::from_be_bytes([bytes[0], bytes[1]])
    }

    fn say_text(&mut self, text: &str) {
        let length = u16::try_from(text.len()).unwrap();
        // Masked with zeros, as it stands: a client must mask, and need not hide.
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend(length.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.0.write_all(&frame).unwrap();
    }

    /// Says something about what it was assigned, in the same envelope, and hears what is answered.
    #[track_caller]
    fn say(&mut self, about: &Value, kind: &str, payload: &Value) -> Value {
        let message = json!({
            "message_id": "m-1", "mission_id": about["mission_id"], "task_id": about["task_id"], "run_id": about["run_id"],
            "kind": { "type": kind, "payload": payload }, "sent_at_ms": 1_790_000_000_000_u64,
        });
        self.say_text(&message.to_string());
        let answer = self.hear();
        assert_eq!(answer["reply_to"], "m-1", "{answer}");
        answer
    }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}")).to_owned()
}

/// The kind of an answer, and the code of an error.
fn short(answer: &Value) -> String {
    let kind = &answer["kind"];
    [&kind["type"], &kind["payload"]["code"]].iter().filter_map(|it| it.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_worker_of_a_version_that_the_engine_does_not_speak_is_refused() {
    let plane = Plane::new();
    let register = |protocol: Value| {
        let wanted = json!({ "colony_id": plane.colony, "name": "ann", "role": "any", "protocol": protocol });
        plane.served.ask("POST", "/v1/crabs/register", Some(&plane.secret), &wanted.to_string())
    };
    let refused = register(json!(0));
    assert_eq!(refused.short(), "409 protocol_too_old");
    assert_eq!(refused.json()["hint"], "update the worker", "{refused:?}");
    // One that is later speaks the engine's version, which it is told; one that says nothing is a crab of the document.
    for known in [json!(2), json!(3), json!(9), Value::Null] {
        assert_eq!(register(known).json()["protocol"], 4);
    }
}

/// An older worker would do such a step in a worktree: it is given other steps, and this one waits for a worker that knows.
#[test]
fn a_worker_of_an_older_version_is_given_no_step_without_a_workspace() {
    let plane = Plane::new();
    let step =
        |id: &str, more: &str| format!("[[steps]]\nid = \"{id}\"\ntype = \"script\"\ncommand = \"true\"\n{more}");
    let steps = [step("apart", "workspace = \"none\"\n"), step("along", "")].concat();
    let manifest = format!("max_parallel = 2\n[workflow]\nname = \"mixed\"\n{steps}");
    std::fs::write(plane.home.path("prompts/workflows/mixed.toml"), manifest).unwrap();
    plane.register("old", "any", &plane.secret);
    let mut old = plane.listen("old", &plane.secret);
    let wanted = json!({ "colony_id": plane.colony, "prompt": "Fix issue #6", "workflow": "mixed" });
    let mission = text(&plane.ask("POST", "/v1/missions", &wanted), "mission_id");
    assert_eq!(old.hear()["task_id"], format!("{mission}.along"));
    assert_eq!(plane.status(&mission, "apart"), "queued");
    let wanted = json!({ "crab_id": "new", "colony_id": plane.colony, "name": "new", "role": "any", "protocol": 4 });
    plane.ask("POST", "/v1/crabs/register", &wanted);
    let told = plane.listen("new", &plane.secret).hear();
    assert_eq!(told["task_id"], format!("{mission}.apart"));
    let order = &told["kind"]["payload"];
    assert_eq!((&order["workspace"], &order["repo"]), (&json!("none"), &Value::Null), "{order:#}");
    assert_eq!(order["worktree_path"], format!("scratch/{mission}/"));
}

#[test]
fn a_crab_that_knows_only_its_connection_does_its_work() {
    let plane = Plane::new();
    plane.register("piper", "planner", &plane.secret);
    plane.register("wanda", "worker", &plane.secret);
    let mut piper = plane.listen("piper", &plane.secret);
    let mut wanda = plane.listen("wanda", &plane.secret);
    let mission = plane.mission();

    // It is told the run that this will be, and its first word about it begins it.
    let told = piper.hear();
    assert_eq!((&told["kind"]["type"], &told["task_id"]), (&json!("task_assigned"), &json!(format!("{mission}.plan"))));
    assert!(told["run_id"].is_string(), "{told}");
    assert_eq!(plane.status(&mission, "plan"), "assigned");
    assert_eq!(short(&piper.say(&told, "run_update", &json!({ "progress_message": "half way" }))), "ack");
    assert_eq!(plane.status(&mission, "plan"), "running");
    let done = piper.say(&told, "run_complete", &json!({ "status": "completed", "summary": "first this" }));
    assert_eq!((short(&done), &done["run_id"]), ("ack".to_owned(), &told["run_id"]));

    // Another calls its runs as it likes, and says nothing before it is done.
    let told = wanda.hear();
    assert_eq!(told["task_id"], format!("{mission}.implement"));
    let about = json!({ "mission_id": mission, "task_id": told["task_id"], "run_id": "run-7" });
    // What makes no sense begins nothing.
    assert_eq!(short(&wanda.say(&about, "run_complete", &json!({ "summary": "no status" }))), "error bad_request");
    assert_eq!(plane.status(&mission, "implement"), "assigned");
    let report = json!({ "run_id": null, "status": "completed", "summary": "it is written" });
    assert_eq!(wanda.say(&about, "run_complete", &report)["run_id"], "run-7");
    assert_eq!(plane.status(&mission, "review"), "queued");

    // Said once more it is understood; what is not its own is not, and neither is what says nothing.
    assert_eq!(short(&wanda.say(&about, "run_complete", &report)), "ack");
    let other = json!({ "mission_id": mission, "task_id": format!("{mission}.review"), "run_id": null });
    assert_eq!(short(&wanda.say(&other, "run_complete", &json!({ "status": "completed" }))), "error bad_request");
    assert_eq!(short(&wanda.say(&other, "dance", &json!({}))), "error bad_request");
    wanda.say_text("{broken");
    assert_eq!(short(&wanda.hear()), "error bad_request");

    // Who did what is still there.
    let tasks = plane.ask("GET", &format!("/v1/tasks?mission_id={mission}"), &Value::Null);
    let crabs: Vec<&Value> = tasks.as_array().unwrap().iter().map(|task| &task["assigned_crab_id"]).collect();
    assert_eq!(crabs, [&json!("piper"), &json!("wanda"), &Value::Null, &Value::Null, &Value::Null]);
}

#[test]
fn a_connection_is_closed_with_the_reason() {
    let mut plane = Plane::new();
    // Who connects twice is heard where they connected last.
    plane.register("piper", "planner", &plane.secret);
    let mut first = plane.listen("piper", &plane.secret);
    let mut second = plane.listen("piper", &plane.secret);
    assert_eq!(first.closed(), 4000);
    plane.mission();
    assert_eq!(second.hear()["kind"]["type"], "task_assigned");

    // A token that is revoked opens nothing more, and what it opened is shut.
    let (id, secret) = token(&plane.home, &["--scope", "worker"]);
    plane.register("wanda", "worker", &secret);
    let mut wanda = plane.listen("wanda", &secret);
    assert_eq!(plane.state("wanda"), "idle");
    plane.home.sluice(&["token", "revoke", &id[..8]]).done();
    assert_eq!(wanda.closed(), 1008);
    rest_of(&mut wanda.0);
    let again = request("GET", "/v1/crabs", &format!("authorization: Bearer {secret}\r\n"), 0);
    assert_eq!(plane.served.say(again.as_bytes()).short(), "401 token_revoked");

    // An engine that ends says so.
    plane.served.terminate();
    assert_eq!(second.closed(), 1001);
    assert_eq!(plane.served.ended(), Some(0));
}

/// What several crabs of one mission have made comes together one after the other, and a report that was merged with
/// something older does not count.
#[test]
fn a_report_counts_if_its_work_was_merged_with_where_the_mission_stands() {
    let plane = Plane::new();
    plane.register("any", "any", &plane.secret);
    let mission = plane.mission();
    let begin = |step: &str| {
        plane.ask("POST", "/v1/scheduler/tick", &Value::Null);
        let begun = json!({ "mission_id": mission, "task_id": format!("{mission}.{step}"), "crab_id": "any" });
        text(&plane.ask("POST", "/v1/runs/start", &begun), "run_id")
    };
    let commit = |letter: &str| letter.repeat(40);
    let run = begin("plan");
    let turn = plane.ask("POST", "/v1/runs/merge-turn", &json!({ "run_id": run }));
    assert_eq!(turn, json!({ "run_id": run, "ready": true }), "nothing stands anywhere yet");
    let report = |onto: Value| {
        let report = json!({
            "run_id": run, "status": "completed", "protocol": 3, "commit": commit("a"), "onto": onto, "summary": "planned",
        });
        plane.served.ask("POST", "/v1/runs/complete", Some(&plane.secret), &report.to_string())
    };
    assert_eq!(report(json!(commit("b"))).short(), "409 no_merge_turn");
    assert_eq!(report(Value::Null).short(), "200");
    // The next one is told where it stands.
    let next = begin("implement");
    let turn = plane.ask("POST", "/v1/runs/merge-turn", &json!({ "run_id": next }));
    assert_eq!(turn, json!({ "run_id": next, "ready": true, "commit": commit("a") }));
}
