//! Traces: a collector hears what took how long, and nothing that was said. One that is away hinders nobody.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

use super::home::{Home, LONG};
use super::recipes::{fresh, grimoire, start, text};
use super::served::{Served, request, token};
use super::state_runs::{CHECKED, checked};

/// A collector that takes everything.
struct Collector {
    url: String,
    /// The head of each request, and its body.
    taken: Receiver<(String, String)>,
}

impl Collector {
    fn new() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, taken) = channel();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let Some(heard) = heard(&stream) else { continue };
                if sender.send(heard).is_err() {
                    return;
                }
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
            }
        });
        Collector { url, taken }
    }
}

/// The head and the body of one request.
pub(crate) fn heard(stream: &TcpStream) -> Option<(String, String)> {
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

/// The spans of a body: each with its name and what is said about it, but for what differs each time.
fn spans(body: &str) -> Vec<(String, Value)> {
    let body: Value = serde_json::from_str(body).unwrap();
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
    let described = |span: &Value| {
        let values = span["attributes"].as_array().unwrap().iter().map(|it| {
            let value = &it["value"];
            let value = value["stringValue"].as_str().or(value["intValue"].as_str()).unwrap();
            format!(" {}={value}", text(&it["key"]))
        });
        let failed = if span["status"]["code"] == 2 { " FAILED" } else { "" };
        format!("{}{}{failed}", text(&span["name"]), values.collect::<String>())
    };
    spans.into_iter().map(|span| (described(&span), span)).collect()
}

#[test]
fn a_collector_hears_of_requests_and_steps_and_of_no_secret() {
    let home = fresh();
    let collector = Collector::new();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=open%20sesame"),
        ("OTEL_SERVICE_NAME", "tea-house"),
    ];
    let mut served = Served::with(&home, &[], &variables);
    let (_, secret) = token(&home, &[]);
    let parent = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n";
    let head = format!("authorization: Bearer {secret}\r\n{parent}");
    let asked = served.say(request("GET", "/v1/lifecycle/tasks/hunter2/history?colour=hunter2", &head, 0).as_bytes());
    assert_eq!(asked.status, 404, "{asked:?}");
    let unwanted = parent.replace("-01\r", "-00\r");
    assert_eq!(served.say(request("GET", "/healthz", &unwanted, 0).as_bytes()).status, 200);
    let steps = "input:\n  - {name: word}\nsteps:\n  - {name: greet, type: script, command: 'echo ${input.word}'}\n  - {name: break, type: script, command: 'echo ${input.word}; exit 3'}\n";
    grimoire(&home, "mine", steps);
    let ran = start(&home, &["mine", "--input", "word=hunter2"]);
    let run = ran.json()["run"]["id"].as_str().unwrap_or_else(|| panic!("{ran:?}")).to_owned();
    served.terminate();
    assert_eq!(served.ended(), Some(0));

    let taken: Vec<(String, String)> = collector.taken.try_iter().collect();
    assert!(!taken.is_empty(), "nothing was delivered");
    for (head, body) in &taken {
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n") && head.contains("x-key: open sesame\r\n"), "{head}");
        assert!(body.contains("tea-house"), "{body}");
        for said in [secret.as_str(), "hunter2", "sesame"] {
            assert!(!body.contains(said), "{said} is told: {body}");
        }
    }
    let all: Vec<(String, Value)> = taken.iter().flat_map(|(_, body)| spans(body)).collect();
    let route = "/v1/lifecycle/tasks/{id}/history";
    let asked =
        format!("GET {route} http.request.method=GET url.scheme=http http.route={route} http.response.status_code=404");
    let found = |name: &str| {
        let found = all.iter().find(|(described, _)| described == name);
        &found.unwrap_or_else(|| panic!("no `{name}` in {:#?}", all.iter().map(|it| &it.0).collect::<Vec<_>>())).1
    };
    let asked = found(&asked);
    assert_eq!(asked["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(asked["parentSpanId"], "b7ad6b7169203331");
    let about = |step: &str| format!("step sluice.run.id={run} sluice.step={step} sluice.attempt=1 sluice.kind=script");
    found(&format!("{} sluice.outcome=completed", about("greet")));
    let broke = found(&format!("{} sluice.outcome=failed error.type=failed FAILED", about("break")));
    let number = |key: &str| broke[key].as_str().unwrap().parse::<u64>().unwrap();
    assert!(number("startTimeUnixNano") < number("endTimeUnixNano"), "{broke}");
    assert!(all.iter().any(|(described, _)| described.starts_with("store.commit sluice.commit.streams=")));
    let health = all.iter().filter(|(_, span)| span["parentSpanId"] == "b7ad6b7169203331").count();
    assert_eq!(health, 1, "whoever does not record their trace gets none here");
}

/// Hears until a span of this name is there with each of these texts in what is said about it, and gives all that was heard.
#[track_caller]
fn heard_until(collector: &Collector, wanted: &[(&str, &str)]) -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> = Vec::new();
    let is_there = |all: &[(String, Value)], (name, said): &(&str, &str)| {
        all.iter().any(|(described, span)| span["name"] == *name && described.contains(said))
    };
    while !wanted.iter().all(|one| is_there(&all, one)) {
        let told = || all.iter().map(|it| &it.0).collect::<Vec<_>>();
        let (_, body) =
            collector.taken.recv_timeout(LONG).unwrap_or_else(|_| panic!("not all of {wanted:?} in {:#?}", told()));
        all.extend(spans(&body));
    }
    all
}

/// The only span of this name that is about this.
#[track_caller]
fn one<'a>(all: &'a [(String, Value)], name: &str, about: &str) -> &'a Value {
    let found: Vec<_> = all.iter().filter(|(it, span)| span["name"] == name && it.contains(about)).collect();
    assert_eq!(found.len(), 1, "{name} {about}: {found:#?}");
    &found[0].1
}

/// What a span is linked to: traces and spans.
fn links(span: &Value) -> Vec<(&str, &str)> {
    let links = span["links"].as_array().map(Vec::as_slice).unwrap_or_default();
    links.iter().map(|link| (text(&link["traceId"]), text(&link["spanId"]))).collect()
}

fn named(span: &Value) -> (&str, &str) {
    (text(&span["traceId"]), text(&span["spanId"]))
}

#[test]
fn a_run_is_one_trace_also_across_engines_and_says_what_started_it() {
    let home = fresh();
    let collector = Collector::new();
    names(&home, &collector.url);
    let steps = "steps:\n  - {name: one, type: script, command: 'true'}\n  - {name: ask, type: gate, command: 'exit 1'}\n  - {name: two, type: script, command: 'true'}\n";
    grimoire(&home, "two", steps);
    let folder = home.place().join("workflows");
    std::fs::create_dir_all(&folder).unwrap();
    let after = "name: after\ntrigger: {event: workflow.completed, where: \"recipe == 'two'\"}\nsteps: [{name: third, type: script, command: 'true'}]\n";
    std::fs::write(folder.join("after.yml"), after).unwrap();
    let begun = start(&home, &["two"]);
    let run = begun.json()["run"]["id"].as_str().unwrap_or_else(|| panic!("{begun:?}")).to_owned();
    // The next engine goes on with the same trace.
    home.sluice(&["stop"]).done();
    home.json(&["answer", &run, "skip"]);
    let all = heard_until(&collector, &[("run", &run), ("step", "sluice.step=third"), ("run", "sluice.recipe=after")]);
    home.sluice(&["stop"]).done();

    let about = format!("sluice.run.id={run}");
    let root = one(&all, "run", &about);
    assert!(root["parentSpanId"].is_null(), "{root}");
    let began = one(&all, "run.start", &about);
    let steps = ["one", "two"].map(|step| one(&all, "step", &format!("{about} sluice.step={step}")));
    for part in [began, steps[0], steps[1]] {
        assert_eq!((&part["traceId"], &part["parentSpanId"]), (&root["traceId"], &root["spanId"]), "{part}");
    }
    let request = one(&all, "POST /v1/recipe/runs", "");
    assert_eq!(links(began), [named(request)]);
    let second = one(&all, "run", "sluice.recipe=after");
    assert_ne!(second["traceId"], root["traceId"]);
    let begins: Vec<_> = all.iter().filter(|(_, span)| span["name"] == "run.start").collect();
    let then = begins.iter().find(|(_, span)| span["traceId"] == second["traceId"]).unwrap();
    assert_eq!(links(&then.1), [named(root)], "what its trigger saw");
}

#[test]
fn a_task_is_one_trace_and_linked_with_the_run_of_its_state() {
    let home = Home::new();
    home.sluice(&["stop"]).done();
    let collector = Collector::new();
    names(&home, &collector.url);
    checked(&home, "true");
    let id = home.create("brew", "worker: work", &["--workflow", CHECKED]);
    home.until_status(&id, "reviewing");
    home.sluice(&["task", "update", &id, "--status", "done"]).done();
    let about = format!("sluice.task.id={id}");
    let all = heard_until(&collector, &[("task", &about), ("run", "sluice.recipe=verify")]);
    home.sluice(&["stop"]).done();

    let root = one(&all, "task", &format!("{about} sluice.workflow=checked sluice.outcome=done"));
    assert!(root["parentSpanId"].is_null(), "{root}");
    let mut effects = 0;
    for (_, part) in all.iter().filter(|(it, span)| span["name"] == "task.effect" && it.contains(&about)) {
        assert_eq!((&part["traceId"], &part["parentSpanId"]), (&root["traceId"], &root["spanId"]), "{part}");
        effects += 1;
    }
    assert!(effects > 3, "{all:#?}");
    let run = one(&all, "run", "sluice.recipe=verify");
    assert_eq!(links(run), [named(root)]);
    let effect = one(&all, "task.effect", "sluice.kind=start_run");
    assert_eq!(links(effect), [named(run)]);
    let begun = one(&all, "run.start", "");
    assert_eq!((links(begun), &begun["traceId"]), (vec![named(effect)], &run["traceId"]));
}

#[test]
fn what_is_set_for_a_collector_is_obeyed_or_refused_with_a_word() {
    let home = fresh();
    let collector = Collector::new();
    let there = ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str());
    let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=kitchen%20two,service.name=pot");
    let mut served = Served::with(&home, &[], &[there, attributes, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]);
    served.ask("GET", "/healthz", None, "");
    served.terminate();
    assert_eq!(served.ended(), Some(0));
    let (_, body) = collector.taken.recv_timeout(LONG).unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    let resource = body["resourceSpans"][0]["resource"]["attributes"].to_string();
    for said in ["kitchen two", r#"{"key":"service.name","value":{"stringValue":"pot"}}"#] {
        assert!(resource.contains(said), "no {said} in {resource}");
    }
    for (name, value) in
        [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")]
    {
        let served = Served::with(&home, &[], &[there, (name, value)]);
        drop(served);
        let log = std::fs::read_to_string(home.place().join("logs/engine.log")).unwrap();
        let refused = format!("no traces are delivered: {name} is `{value}`, and only `http/json` is spoken");
        assert!(log.contains(&refused), "{log}");
    }
    assert!(collector.taken.try_recv().is_err(), "what cannot be sent as it is wanted is not sent");
}

/// A home whose settings name this collector.
fn names(home: &Home, url: &str) {
    let config = format!("[defaults]\nharness = \"demo\"\n\n[telemetry]\nendpoint = \"{url}\"\n");
    std::fs::write(home.place().join("config.toml"), config).unwrap();
}

#[test]
fn an_engine_in_the_background_tells_what_it_did_for_a_task() {
    let home = Home::new();
    home.sluice(&["stop"]).done();
    let collector = Collector::new();
    names(&home, &collector.url);
    let id = home.create("brew", "worker: hang", &[]);
    home.until(&id, "active", |task| task["session"] == "active");
    home.sluice(&["stop"]).done();
    let begun = format!("task.effect sluice.task.id={id} ");
    let mut wanted = vec!["sluice.kind=acquire_workspace", "sluice.kind=start_session", "sluice.kind=write_artifact"];
    while !wanted.is_empty() {
        let (_, body) = collector.taken.recv_timeout(LONG).unwrap_or_else(|_| panic!("nothing is told of {wanted:?}"));
        for (described, _) in spans(&body).iter().filter(|(described, _)| described.starts_with(&begun)) {
            wanted.retain(|kind| !described.contains(&format!("{kind} sluice.outcome=completed")));
        }
    }
}

#[test]
fn a_collector_that_is_away_hinders_nobody_and_is_counted() {
    let home = fresh();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    names(&home, &format!("http://{}", listener.local_addr().unwrap()));
    let mut served = Served::start(&home, &[]);
    let (_, secret) = token(&home, &[]);
    // It breaks off once, and then never answers. What it broke off has been counted when the next comes.
    drop(listener.accept().unwrap());
    assert_eq!(served.ask("GET", "/healthz", None, "").status, 200);
    let _silent = listener.accept().unwrap();
    let metrics = served.ask("GET", "/metrics", Some(&secret), "").body;
    let count = |fate: &str| {
        let name = format!("sluice_spans_total{{fate=\"{fate}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
        line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse::<u64>().unwrap()
    };
    assert!(count("undelivered") > 0, "{metrics}");
    assert_eq!((count("delivered"), count("overflowed")), (0, 0));
    let log = std::fs::read_to_string(home.place().join("logs/engine.log")).unwrap();
    assert_eq!(log.matches("traces cannot be delivered").count(), 1, "{log}");
    served.terminate();
    assert_eq!(served.ended(), Some(0));
}

#[test]
fn a_collector_that_cannot_be_used_is_written_down_and_done_without() {
    let home = fresh();
    names(&home, "localhost:4317");
    let served = Served::start(&home, &[]);
    let (_, secret) = token(&home, &[]);
    let metrics = served.ask("GET", "/metrics", Some(&secret), "").body;
    assert!(!metrics.contains("sluice_spans"), "{metrics}");
    let log = std::fs::read_to_string(home.place().join("logs/engine.log")).unwrap();
    assert!(log.contains("no traces are delivered: its address cannot be used"), "{log}");
}
