//! Workflows over HTTP: each scenario of the document under "Workflow API" and "Workflow Events", in its words.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::home::Home;
use super::process;
use super::served::{Answer, Served, request, token};

const SHIP: &str = "name: ship\ndescription: checks and ships\ntrigger: manual\ninput: [{name: what, type: string}]\nsteps:\n  \
- {name: look, type: script, command: \"echo looking at ${input.what}\", output: seen}\n  \
- {name: tests, type: gate, command: \"test -f ok\", message: \"no ok\"}\n  \
- {name: finish, type: script, command: \"echo shipped ${seen}\"}\n";

struct Door {
    home: Home,
    served: Served,
    secret: String,
}

impl Door {
    /// A served home whose project has this grimoire.
    fn new(grimoire: &str) -> Door {
        let home = Home::new();
        let folder = home.repository().join(".coven/grimoires");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("ship.yml"), grimoire).unwrap();
        let served = Served::start(&home, &[]);
        let (_, secret) = token(&home, &[]);
        Door { home, served, secret }
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.served.ask(method, path, Some(&self.secret), &body)
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.ask("GET", path, &Value::Null);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    fn start(&self) -> String {
        let wanted = json!({ "grimoire": "ship", "input": { "what": "it" }, "project": "coffee" });
        let answer = self.ask("POST", "/workflows", &wanted);
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["workflow_id"].as_str().unwrap().to_owned()
    }

    /// Listens to what happens, after the event of this number.
    fn listen(&self, last: Option<u64>) -> Listening {
        let last = last.map(|last| format!("last-event-id: {last}\r\n")).unwrap_or_default();
        let shown = format!("authorization: Bearer {}\r\n{last}", self.secret);
        let mut stream = self.served.connect();
        stream.write_all(request("GET", "/events", &shown, 0).as_bytes()).unwrap();
        let mut listening = Listening(BufReader::new(stream));
        listening.line("retry: ");
        listening
    }
}

struct Listening(BufReader<TcpStream>);

impl Listening {
    /// The next line that begins like this, without its beginning.
    fn line(&mut self, begins: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "it ended before `{begins}`");
            if let Some(rest) = line.strip_prefix(begins) {
                return rest.trim_end().to_owned();
            }
        }
    }

    /// The next event of this type: its number, and what it says.
    fn event(&mut self, kind: &str) -> (u64, Value) {
        loop {
            let number = self.line("id: ").parse().unwrap();
            let found = self.line("event: ");
            let event: Value = serde_json::from_str(&self.line("data: ")).unwrap();
            if found == kind {
                assert_eq!((&event["type"], &event["seq"]), (&json!(kind), &json!(number)));
                return (number, event["data"].clone());
            }
        }
    }
}

#[test]
fn start_workflow() {
    let door = Door::new(SHIP);
    let mut listening = door.listen(None);
    let id = door.start();
    assert_eq!(listening.event("workflow.started").1["workflow_id"], json!(id));
    assert_eq!(door.ask("POST", "/workflows", &json!({ "grimoire": "nothing", "input": {} })).short(), "404 not_found");
    let wrong = json!({ "grimoire": "ship", "input": { "other": 1 }, "project": "coffee" });
    assert_eq!(door.ask("POST", "/workflows", &wrong).short(), "400 bad_request");
    let no_object = door.ask("POST", "/workflows", &json!("ship")).json();
    assert_eq!(no_object["error"], "the request cannot be read: it is no object");
    let names = door.get("/grimoires?project=coffee");
    let names: Vec<&str> = names["grimoires"].as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect();
    for name in ["ship", "spec-to-beads", "implement-bead", "review-loop", "prepare-pr"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn get_workflow_status() {
    let door = Door::new(SHIP);
    let mut listening = door.listen(None);
    let id = door.start();
    listening.event("workflow.blocked");
    let shown = door.get(&format!("/workflows/{id}"));
    assert_eq!((&shown["status"], &shown["current_step"]), (&json!("blocked"), &json!("tests")));
    let steps: Vec<&str> = shown["steps"].as_array().unwrap().iter().filter_map(|it| it["status"].as_str()).collect();
    assert!(steps.contains(&"blocked") && steps.contains(&"pending"), "{steps:?}");
    assert_eq!(shown["variables"]["seen"], "looking at it");
    assert_eq!(shown["errors"][0]["step"], "tests");
    assert_eq!(shown["available_actions"], json!(["retry", "skip", "abort", "cancel"]));
    assert_eq!(shown["question"]["options"], json!(["retry", "skip", "abort"]));
    assert_eq!(door.ask("GET", "/workflows/nothing", &Value::Null).short(), "404 not_found");
    assert_eq!(door.get("/workflows")["workflows"][0]["workflow_id"], json!(id));
}

#[test]
fn cancel_workflow() {
    let door = Door::new("name: ship\ndescription: hangs\ntrigger: manual\nsteps: []\n");
    let pipe = door.home.pipe("there");
    let steps = format!("- {{name: hang, type: agent, harness: demo, prompt: \"demo: tell {}; hang\"}}", pipe.path());
    let text = format!("name: ship\ndescription: hangs\ntrigger: manual\nsteps:\n  {steps}\n");
    std::fs::write(door.home.repository().join(".coven/grimoires/ship.yml"), text).unwrap();
    let mut listening = door.listen(None);
    let answer = door.ask("POST", "/workflows", &json!({ "grimoire": "ship", "project": "coffee" }));
    let id = answer.json()["workflow_id"].as_str().unwrap().to_owned();
    listening.event("workflow.step.started");
    pipe.hear(); // its agent is there
    let agents = process::carrying(&format!("SLUICE_RUN={id}"));
    assert!(!agents.is_empty());
    let answer = door.ask("DELETE", &format!("/workflows/{id}"), &Value::Null);
    assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("cancelled")));
    assert!(!agents.into_iter().any(process::lives));
    listening.event("workflow.cancelled");
    assert_eq!(door.ask("DELETE", &format!("/workflows/{id}"), &Value::Null).short(), "422 finished");
}

#[test]
fn step_started_event_and_step_completed_event() {
    let door = Door::new(SHIP);
    let mut listening = door.listen(None);
    let id = door.start();
    let (_, started) = listening.event("workflow.step.started");
    assert_eq!(
        (&started["workflow_id"], &started["step_name"], &started["step_type"]),
        (&json!(id), &json!("look"), &json!("script"))
    );
    let (_, completed) = listening.event("workflow.step.completed");
    assert_eq!(
        (&completed["workflow_id"], &completed["step_name"], &completed["output_summary"]),
        (&json!(id), &json!("look"), &json!("looking at it"))
    );
}

#[test]
fn intervention_required_event_and_it_resumes_when_intervention_is_provided() {
    let door = Door::new(SHIP);
    let mut listening = door.listen(None);
    let id = door.start();
    let (_, required) = listening.event("workflow.intervention.required");
    assert_eq!((&required["workflow_id"], &required["options"]), (&json!(id), &json!(["retry", "skip", "abort"])));
    assert!(required["reason"].as_str().unwrap().starts_with("no ok"), "{required}");
    let path = format!("/workflows/{id}/intervention");
    assert_eq!(door.ask("POST", &path, &json!({ "option": "nonsense" })).short(), "422 not_ready");
    let skipped = door.ask("POST", &path, &json!({ "option": "skip", "message": "it is fine" }));
    assert_eq!(skipped.status, 200, "{skipped:?}");
    listening.event("workflow.completed");
    assert_eq!(door.get(&format!("/workflows/{id}"))["status"], "completed");
    // It is there, and waits for no answer.
    assert_eq!(door.ask("POST", &path, &json!({ "option": "skip" })).short(), "422 finished");
}

#[test]
fn whoever_was_away_goes_on_after_the_last_event_and_is_told_when_there_is_no_such() {
    let door = Door::new(SHIP);
    let mut listening = door.listen(None);
    door.start();
    let (third, _) = listening.event("workflow.step.completed");
    listening.event("workflow.blocked");
    drop(listening);
    let mut again = door.listen(Some(third));
    assert_eq!(again.line("id: "), (third + 1).to_string());
    let mut lost = door.listen(Some(9_999_999));
    assert_eq!(lost.line("event: "), "resync");
    let shown = format!("authorization: Bearer {}\r\nlast-event-id: x\r\n", door.secret);
    assert_eq!(door.served.say(request("GET", "/events", &shown, 0).as_bytes()).short(), "400 bad_request");
}
