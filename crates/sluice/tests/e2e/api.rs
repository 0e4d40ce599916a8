//! The server answers as its OpenAPI document says: every operation is asked for once and done, and its answer has all
//! that the document promises and nothing that it does not mention.

use std::io::{Read, Write};

use serde_json::{Value, json};

use super::crab_protocol::listen;
use super::described::{Described, furnished, repository};
use super::home::Home;
use super::recipes::settled;
use super::served::request;

/// What cannot be done here, and why.
const NOT_HERE: [&str; 9] = [
    "POST /v1/page/links",                     // the tests of the page ask for them
    "POST /v1/workspaces/end",                 // there is no agent that no task knows
    "POST /v1/workspaces/adopt",               // nor here
    "POST /v1/workspaces/drop",                // there is no kept work
    "POST /v1/lifecycle/signal",               // only the hooks of a session may say it
    "GET /v1/lifecycle/tasks/{id}/events",     // `task wait` follows them
    "GET /v1/lifecycle/tasks/{id}/log/stream", // `task log` follows it
    "POST /v1/lifecycle/tasks/{id}/create-pr", // there is no forge
    "GET /v1/recipe/runs/{id}/log/stream",     // `run log` follows it
];

#[test]
fn every_operation_answers_as_the_document_says() {
    let home = furnished();
    let mut api = Described::serve(&home);
    look_around(&mut api, &home);
    projects(&mut api, &home);
    tasks(&mut api, &home);
    runs(&mut api, &home);
    processes(&mut api, &home);
    missions(&mut api);
    a_session_speaks(&mut api);
    grimoires(&mut api, &home);
    api.does("POST", "/v1/stop", "");
    assert_eq!(api.served.ended(), Some(0));
    assert_eq!(api.unasked(), NOT_HERE);
}

fn id_of(answer: &Value, path: &str) -> String {
    let found = answer.pointer(path).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no {path} in {answer:#}")).to_owned()
}

fn look_around(api: &mut Described, home: &Home) {
    assert_eq!(api.does("GET", "/healthz", ""), json!({ "ok": true }));
    assert_eq!(api.does("GET", "/v1/openapi.json", "")["openapi"], "3.1.0");
    assert_eq!(api.does("GET", "/v1/faults", ""), json!({ "faults": [] }));
    assert!(api.does("GET", "/metrics", "").as_str().unwrap().contains("sluice_faults 0"));
    assert!(api.does("GET", "/v1/events?type=*&since=1h&follow=false", "").is_string());
    api.does("POST", "/v1/notify/test", "");
    for path in [
        "/v1/board?project=coffee",
        "/v1/board/rows?id=none",
        "/v1/workers",
        "/v1/schedules",
        "/v1/costs?by=model&days=2",
        "/v1/views",
    ] {
        api.does("GET", path, "");
    }
    api.does("PUT", "/v1/views", r#"{"views":[{"name":"mine"}]}"#);
    let file = home.path("copy.db");
    api.does("POST", "/v1/backup", &json!({ "file": file }).to_string());
    assert!(file.exists());
    let made = api.does("POST", "/v1/tokens", r#"{"scope":"read","name":"page"}"#);
    api.does("GET", "/v1/tokens", "");
    let revoked = api.does("DELETE", &format!("/v1/tokens/{}", id_of(&made, "/token/id")), "");
    assert!(revoked["token"]["revoked_at"].is_string());
}

fn projects(api: &mut Described, home: &Home) {
    let path = repository(home, "tea");
    api.does("POST", "/v1/projects", &json!({ "path": path, "pool_size": 2 }).to_string());
    api.does("PATCH", "/v1/projects/tea", r#"{"pool_size":1}"#);
    assert_eq!(api.does("GET", "/v1/projects", "")["projects"].as_array().unwrap().len(), 2);
    assert_eq!(api.does("POST", "/v1/workspaces/init", r#"{"project":"tea"}"#)["workspaces"][0]["exists"], true);
    assert_eq!(api.does("POST", "/v1/workspaces/gc", r#"{"project":"tea"}"#)["workspaces"][0]["exists"], false);
    api.does("GET", "/v1/workspaces?project=tea", "");
    api.does("DELETE", "/v1/projects/tea", "");
    let list = json!([{ "name": "tea", "path": path }]);
    let added = api.does("POST", "/v1/projects/import", &list.to_string());
    assert_eq!(added["projects"][0]["name"], "tea");
    assert_eq!(
        api.does("POST", "/v1/projects/import", &json!({ "projects": list }).to_string())["projects"],
        json!([])
    );
}

fn create(api: &mut Described, branch: &str, script: &str) -> String {
    let context = format!("## Context\n\n```demo\n{script}\n```\n");
    let wanted =
        json!({ "project": "coffee", "branch": branch, "summary": "Do it", "context": context, "no_spawn": true });
    id_of(&api.does("POST", "/v1/lifecycle/tasks", &wanted.to_string()), "/task/id")
}

fn tasks(api: &mut Described, home: &Home) {
    let here = home.pipe("here");
    let id = create(
        api,
        "brew",
        &format!("worker: edit notes.md \"hot\"; tell {}; wait for notification; hang", here.path()),
    );
    let at = format!("/v1/lifecycle/tasks/{id}");
    api.does("POST", &format!("{at}/spawn"), "");
    here.hear();
    api.does("GET", "/v1/lifecycle/tasks?all=true&project=coffee&status=working", "");
    let task = api.does("GET", &at, "");
    api.does("GET", &format!("{at}/attach"), "");
    api.does("GET", &format!("{at}/file"), "");
    api.does("GET", &format!("{at}/history"), "");
    api.does("GET", &format!("{at}/diff"), "");
    for look in ["log", "changes", "screen", "usage"] {
        api.does("GET", &format!("{at}/{look}"), "");
    }
    api.does("POST", &format!("{at}/nudge"), r#"{"message":"Make it hot"}"#);
    api.does("PATCH", &at, r#"{"summary":"Do it well"}"#);
    let folder = id_of(&task, "/task/workspace");
    assert_eq!(api.does("GET", &format!("/v1/lifecycle/tasks/here?cwd={folder}"), "")["task"]["id"], id.as_str());
    api.does("POST", &format!("{at}/cancel"), "");
    let restored = json!({ "task": id, "into": home.path("restored") });
    api.does("POST", "/v1/workspaces/restore", &restored.to_string());
    assert!(home.path("restored/notes.md").exists());
    api.does("DELETE", &at, "");

    let id = create(api, "tea", "worker 1: crash\nworker: work\nreviewer: review pass");
    let at = format!("/v1/lifecycle/tasks/{id}");
    api.does("POST", &format!("{at}/spawn"), "");
    home.until_event(&id, "agent.crashed", 1);
    api.does("POST", &format!("{at}/respawn"), "");
    home.until_status(&id, "reviewing");
    assert_eq!(api.does("POST", &format!("{at}/merge"), r#"{"local":true}"#)["task"]["status"], "done");

    let wanted = json!({
        "project": "coffee", "branch": "milk", "summary": "Do it", "workflow": "persistent",
        "context": "```demo\nworker: work\nreviewer: review pass\n```\n",
    });
    let id = id_of(&api.does("POST", "/v1/lifecycle/tasks", &wanted.to_string()), "/task/id");
    home.until_status(&id, "reviewing");
    let at = format!("/v1/lifecycle/tasks/{id}");
    let moved = api.does("POST", &format!("{at}/request-changes"), r#"{"message":"Hotter"}"#);
    assert_eq!(moved["transition"]["to"], "working");
    home.until_status(&id, "reviewing");
    let moved = api.does("POST", &format!("{at}/reject"), r#"{"message":"Colder"}"#);
    assert_eq!(moved["transition"]["to"], "working");
    home.until_status(&id, "reviewing");
    assert_eq!(api.does("POST", &format!("{at}/approve"), "{}")["task"]["status"], "done");
}

fn runs(api: &mut Described, home: &Home) {
    let cwd = home.repository().display().to_string();
    let start = |api: &mut Described, recipe: &str| {
        let run = api.does("POST", "/v1/recipe/runs", &json!({ "recipe": recipe, "cwd": cwd }).to_string());
        let id = id_of(&run, "/run/id");
        settled(home, &id);
        id
    };
    let held = start(api, "gated");
    let at = format!("/v1/recipe/runs/{held}");
    assert_eq!(api.does("GET", &at, "")["run"]["status"], "held");
    api.does("GET", "/v1/recipe/runs?all=true&status=held", "");
    assert!(api.does("GET", &format!("{at}/events?after=0"), "").as_str().unwrap().contains("workflow.started"));
    api.does("GET", &format!("{at}/log?step=tests"), "");
    api.does("GET", &format!("{at}/context/tests"), "");
    for (count, path) in [(1, format!("/v1/attention/{held}")), (2, format!("/v1/attention/{held}/2"))] {
        let asked = api.does("GET", &path, "");
        assert_eq!(asked["id"], format!("{held}/{count}"), "{asked:#}");
        let list = api.does("GET", "/v1/attention", "")["attention"].take();
        assert!(list.as_array().unwrap().contains(&asked), "{list:#}");
        assert_eq!(api.does("GET", "/v1/inbox", "")["questions"], list);
        api.does("POST", &path, r#"{"option":"retry"}"#);
        settled(home, &held);
    }
    api.does("POST", "/v1/inbox", &json!({ "id": held, "option": "retry" }).to_string());
    settled(home, &held);
    assert_eq!(api.does("DELETE", &at, r#"{"reason":"enough"}"#)["run"]["error"], "enough");
    let failed = start(api, "broken");
    api.does("POST", &format!("/v1/recipe/runs/{failed}/retry"), r#"{"step":"bad","message":"Again"}"#);
    assert_eq!(settled(home, &failed)["status"], "failed");
    let made = start(api, "makes");
    for look in ["diff", "changes", "screen?step=make", "timeline", "usage"] {
        api.does("GET", &format!("/v1/recipe/runs/{made}/{look}"), "");
    }
    api.does("POST", &format!("/v1/recipe/runs/{made}/merge"), "{}");
    api.does("POST", &format!("/v1/recipe/runs/{failed}/delete"), "");
}

/// The token of an agent that runs elsewhere speaks for its step.
fn a_session_speaks(api: &mut Described) {
    let colony = id_of(&api.does("POST", "/v1/colonies", r#"{"name":"bay"}"#), "/colony_id");
    let crab = json!({ "crab_id": "piper", "colony_id": colony, "name": "Piper", "role": "planner" });
    api.does("POST", "/v1/crabs/register", &crab.to_string());
    let mut ear = listen(&api.served, "piper", &api.secret);
    let mission = json!({ "colony_id": colony, "prompt": "Fix it", "workflow": "dev-task" });
    let mission = id_of(&api.does("POST", "/v1/missions", &mission.to_string()), "/mission_id");
    let secret = id_of(&ear.hear(), "/kind/payload/agent_token");
    let said = api.does_as(&secret, "POST", "/v1/step", r#"{"verb":"complete","summary":"It is done"}"#);
    assert_eq!(said, json!({ "said": true }));
    api.does("DELETE", &format!("/v1/missions/{mission}"), "");
}

fn processes(api: &mut Described, home: &Home) {
    let wanted = json!({ "recipe": "by-hand", "cwd": home.repository() }).to_string();
    let at = format!("/v1/processes/{}", id_of(&api.does("POST", "/v1/processes", &wanted), "/process/id"));
    for verb in ["start", "complete"] {
        api.does("POST", &format!("{at}/steps/one/{verb}"), r#"{"summary":"One"}"#);
    }
    api.does("GET", &at, "");
    assert_eq!(api.does("POST", &format!("{at}/complete"), "")["process"]["status"], "completed");
    api.does("GET", "/v1/processes?all=true", "");
    let at = format!("/v1/processes/{}", id_of(&api.does("POST", "/v1/processes", &wanted), "/process/id"));
    api.does("DELETE", &at, "");
}

fn missions(api: &mut Described) {
    let colony = id_of(&api.does("POST", "/v1/colonies", r#"{"name":"reef","surplus":1}"#), "/colony_id");
    api.does("GET", "/v1/colonies", "");
    let crab = json!({ "crab_id": "clawde", "colony_id": colony, "name": "Clawde", "role": "planner" });
    assert_eq!(api.does("POST", "/v1/crabs/register", &crab.to_string())["state"], "idle");
    assert_eq!(api.does("GET", "/v1/workflows", ""), json!(["dev-task"]));
    let mission = json!({ "colony_id": colony, "prompt": "Fix it", "workflow": "dev-task" });
    let mission = id_of(&api.does("POST", "/v1/missions", &mission.to_string()), "/mission_id");
    api.does("POST", "/v1/missions", &json!({ "colony_id": colony, "prompt": "One day" }).to_string());
    assert_eq!(api.does("POST", "/v1/scheduler/tick", ""), json!({ "ok": true, "assigned": 1 }));
    let tasks = api.does("GET", &format!("/v1/tasks?mission_id={mission}&surplus=1"), "");
    let task = id_of(&tasks, "/0/task_id");
    let begun = json!({ "mission_id": mission, "task_id": task, "crab_id": "clawde" });
    let run = id_of(&api.does("POST", "/v1/runs/start", &begun.to_string()), "/run_id");
    assert_eq!(api.does("GET", "/v1/crabs", "")[0]["current_run_id"], run.as_str());
    api.does("POST", "/v1/runs/update", &json!({ "run_id": run, "progress_message": "half of it" }).to_string());
    let turn = api.does("POST", "/v1/runs/merge-turn", &json!({ "run_id": run }).to_string());
    assert_eq!(turn, json!({ "run_id": run, "ready": true }));
    let ended = json!({ "run_id": run, "status": "completed", "summary": "planned" }).to_string();
    for _ in 0..2 {
        api.does("POST", "/v1/runs/complete", &ended);
    }
    api.does("GET", "/v1/status", "");
    assert_eq!(api.does("GET", &format!("/v1/missions/{mission}"), "")["tasks"][0]["status"], "completed");
    api.does("GET", "/v1/missions", "");
    // Connections that stay: one that a crab listens on, and those that follow what happens.
    let more = format!(
        "authorization: Bearer {}\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        api.secret
    );
    for (path, more, status) in [
        ("/v1/ws/crab/clawde", &more, "101"),
        ("/v1/ws/events", &more, "101"),
        ("/events", &format!("authorization: Bearer {}\r\n", api.secret), "200"),
    ] {
        let asked = request("GET", path, more, 0).replace("connection: close", "connection: upgrade");
        let mut stream = api.served.connect();
        stream.write_all(asked.as_bytes()).unwrap();
        let mut heard = [0; 12];
        stream.read_exact(&mut heard).unwrap();
        assert_eq!(String::from_utf8_lossy(&heard), format!("HTTP/1.1 {status}"), "{path}");
        api.note("GET", path);
    }
    assert_eq!(api.does("DELETE", "/v1/crabs/clawde", "")["state"], "offline");
    assert_eq!(api.does("DELETE", &format!("/v1/missions/{mission}"), "")["status"], "cancelled");
}

fn grimoires(api: &mut Described, home: &Home) {
    let list = api.does("GET", "/grimoires?project=coffee", "");
    assert!(list["grimoires"].as_array().unwrap().iter().any(|it| it["name"] == "gated"));
    let started = api.does("POST", "/workflows", r#"{"grimoire":"gated","project":"coffee","input":{},"surplus":1}"#);
    let id = id_of(&started, "/workflow_id");
    settled(home, &id);
    let at = format!("/workflows/{id}");
    assert_eq!(api.does("GET", &at, "")["status"], "blocked");
    api.does("POST", &format!("{at}/intervention"), r#"{"option":"retry","message":"Once more"}"#);
    settled(home, &id);
    api.does("GET", "/workflows", "");
    assert_eq!(api.does("DELETE", &at, "")["status"], "cancelled");
}
