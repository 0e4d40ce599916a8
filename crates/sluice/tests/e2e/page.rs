//! The page at `/` by HTTP, as a browser speaks it: who gets in, what a form needs, what a session for reading sees, what
//! callers of the API notice (nothing), and hostile text, which only appears. Chromium has tests of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::Value;

use super::home::{Home, LONG, run};
use super::recipes::{begin, grimoire, settled, text, until, with_shell, write};
use super::served::{Answer, Served, rest_of, token};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// A browser at the page: where it is, and the cookie that it keeps.
pub(crate) struct Browser {
    host: String,
    port: u16,
    cookie: Option<String>,
}

impl Browser {
    /// A browser that has opened nothing yet, and the link of `sluice open`.
    fn with_link(home: &Home, more: &[&str]) -> (Browser, String) {
        let page = home.json(&[&["open"], more].concat());
        let url = text(&page["page"]["url"]).to_owned();
        let (host, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).unwrap();
        let port = host.rsplit_once(':').unwrap().1.parse().unwrap();
        (Browser { host: host.to_owned(), port, cookie: None }, format!("/{path}"))
    }

    /// A browser that has logged in by a link.
    pub(crate) fn logged_in(home: &Home, more: &[&str]) -> Browser {
        let (mut browser, link) = Browser::with_link(home, more);
        assert_eq!(browser.get(&link).status, 200);
        assert!(browser.cookie.is_some());
        browser
    }

    fn at(served: &Served) -> Browser {
        let host = served.url.strip_prefix("http://").unwrap().to_owned();
        let port = host.rsplit_once(':').unwrap().1.parse().unwrap();
        Browser { host, port, cookie: None }
    }

    fn stream(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    }

    fn head(&self, method: &str, path: &str, more: &str, length: usize) -> String {
        let cookie = self.cookie.as_ref().map(|cookie| format!("cookie: {cookie}\r\n")).unwrap_or_default();
        format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\naccept: text/html,*/*;q=0.8\r\n{cookie}{more}content-length: {length}\r\n\r\n",
            self.host
        )
    }

    fn say(&mut self, bytes: &str) -> Answer {
        let mut stream = self.stream();
        stream.write_all(bytes.as_bytes()).unwrap();
        let said = rest_of(&mut stream);
        if let Some(set) = said.lines().find_map(|line| line.strip_prefix("set-cookie: ")) {
            let pair = set.split(';').next().unwrap().to_owned();
            self.cookie = Some(pair).filter(|pair| !pair.ends_with('='));
        }
        Answer::read(&said)
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        let request = self.head("GET", path, "", 0);
        self.say(&request)
    }

    /// Sends a form as a browser does from our own page.
    pub(crate) fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let origin = format!("origin: http://{}\r\nsec-fetch-site: same-origin\r\n", self.host);
        self.post_from(path, &origin, fields)
    }

    fn post_from(&mut self, path: &str, more: &str, fields: &[(&str, &str)]) -> Answer {
        let pairs: Vec<String> = fields.iter().map(|(key, value)| format!("{key}={}", escaped(value))).collect();
        let body = pairs.join("&");
        let form = format!("{more}content-type: application/x-www-form-urlencoded\r\n");
        let request = format!("{}{body}", self.head("POST", path, &form, body.len()));
        self.say(&request)
    }

    /// What the forms of this session carry, as the page itself has it.
    pub(crate) fn key(&mut self) -> String {
        let page = self.get("/").body;
        let (_, rest) = page.split_once("name=\"key\" value=\"").unwrap_or_else(|| panic!("no form in {page}"));
        rest.split('"').next().unwrap().to_owned()
    }
}

fn escaped(value: &str) -> String {
    value
        .bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A run that waits at a gate, and its question.
fn held(home: &Home) -> (String, Value) {
    with_shell(home);
    grimoire(home, "gated", "steps:\n  - {name: check, type: gate, command: 'false', message: May it pass?}\n");
    let id = begin(home, &["gated"]);
    let run = settled(home, &id);
    assert_eq!(run["status"], "held", "{run:#}");
    (id, run["question"].clone())
}

#[test]
fn a_link_opens_once_and_its_session_ends_when_it_is_logged_out() {
    let home = Home::new();
    let (mut browser, link) = Browser::with_link(&home, &[]);
    assert!(browser.host.starts_with("sluice-") && browser.host.contains(".localhost:"), "{}", browser.host);
    let stranger = browser.get("/");
    assert_eq!(stranger.status, 401);
    assert!(stranger.body.contains("sluice open"), "{}", stranger.body);
    let opened = browser.get(&link);
    assert_eq!(opened.status, 200, "{opened:?}");
    for flag in ["httponly", "samesite=strict", "path=/", "max-age=43200"] {
        assert!(opened.head.contains(flag), "{flag} in {}", opened.head);
    }
    let cookie = browser.cookie.clone();
    let again = browser.get(&link);
    assert_eq!(again.status, 401, "a link opens once");
    assert!(again.body.contains("used before"), "{}", again.body);
    browser.cookie = cookie;
    let board = browser.get("/");
    assert_eq!(board.status, 200);
    assert!(
        board.head.contains(&format!("content-security-policy: {}", POLICY.to_ascii_lowercase())),
        "{}",
        board.head
    );
    for header in ["x-content-type-options: nosniff", "cache-control: no-store", "referrer-policy: same-origin"] {
        assert!(board.head.contains(header), "{header} in {}", board.head);
    }
    let tokens = home.json(&["token", "list"]).to_string();
    assert!(tokens.contains("(page)"), "{tokens}");
    let key = browser.key();
    assert_eq!(browser.post("/page/logout", &[("key", "wrong")]).status, 403);
    let out = browser.post("/page/logout", &[("key", &key)]);
    assert_eq!(out.status, 303, "{out:?}");
    assert!(browser.cookie.is_none());
    // No link and no session is left: the port of this machine is closed again, by a thread of its own.
    let asked = Instant::now();
    while TcpStream::connect(("127.0.0.1", browser.port)).is_ok() {
        assert!(asked.elapsed() < LONG, "the port stays open");
        std::thread::yield_now();
    }
    let denied = home.sluice(&["events", "--json", "--type", "access.denied"]).done().stdout;
    assert!(denied.contains("unknown_link") && !denied.contains("slu_"), "{denied}");
}

#[test]
fn a_form_needs_our_origin_and_the_key_of_its_session() {
    let home = Home::new();
    let (id_of_run, question) = held(&home);
    let mut browser = Browser::logged_in(&home, &[]);
    let key = browser.key();
    let id = text(&question["id"]).to_owned();
    let form = |key: &'static str| [("key", key), ("act", "answer"), ("id", "x"), ("option", "x")];
    let own = format!("origin: http://{}\r\n", browser.host);
    for (more, why) in [
        (String::new(), "no origin"),
        ("origin: http://evil.example\r\n".to_owned(), "another origin"),
        (format!("{own}sec-fetch-site: cross-site\r\n"), "another site"),
        (format!("{own}sec-fetch-site: same-origin\r\n"), "another key"),
    ] {
        let answer = browser.post_from("/page/act", &more, &form("0000"));
        assert_eq!(answer.status, 403, "{why}: {answer:?}");
    }
    let option = "skip".to_owned();
    let fields =
        [("key", key.as_str()), ("act", "answer"), ("id", &id), ("option", &option), ("back", "//evil.example")];
    let answered = browser.post("/page/act", &fields);
    assert_eq!(answered.status, 303, "{answered:?}");
    assert!(answered.head.contains("location: /?done=answer"), "{}", answered.head);
    until(&home, &id_of_run, |run| run["status"] != "held");
    // The same question is answered once, and the page says what happened.
    let again = browser.post("/page/act", &fields);
    assert!(again.status >= 400 && again.body.contains("id=\"problem\""), "{again:?}");
}

#[test]
fn a_session_for_reading_has_no_buttons() {
    let home = Home::new();
    let (id_of_run, question) = held(&home);
    let mut reader = Browser::logged_in(&home, &["--read"]);
    for path in ["/", &format!("/runs/{id_of_run}"), "/settings", "/workflows/gated?project=coffee"] {
        let page = reader.get(path);
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(!page.body.contains("/page/act") && !page.body.contains("/page/start"), "{path}: {}", page.body);
    }
    assert!(reader.get("/").body.contains("May it pass?"));
    let key = reader.key();
    let id = text(&question["id"]);
    let refused = reader.post("/page/act", &[("key", &key), ("act", "answer"), ("id", id), ("option", "retry")]);
    assert_eq!(refused.status, 403, "{refused:?}");
    let refused = reader.post("/page/act", &[("key", &key), ("act", "cancel"), ("kind", "run"), ("id", &id_of_run)]);
    assert_eq!(refused.status, 403, "{refused:?}");
}

#[test]
fn callers_of_the_api_notice_nothing_of_the_page() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let (_, person) = token(&home, &[]);
    let html = "accept: text/html,application/xhtml+xml\r\n";
    let with = |path: &str, more: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{more}\r\n");
        served.say(head.as_bytes())
    };
    for path in ["/workflows", "/grimoires"] {
        let shown = format!("authorization: Bearer {person}\r\n");
        for more in [shown.clone(), format!("{shown}{html}"), format!("{shown}accept: */*\r\n")] {
            let answer = with(path, &more);
            assert_eq!(answer.status, 200, "{path} {more}");
            assert!(answer.head.contains("content-type: application/json"), "{path}: {}", answer.head);
        }
        assert_eq!(with(path, "accept: */*\r\n").short(), "401 no_token", "{path}");
    }
    let missing = with("/workflows/none", &format!("authorization: Bearer {person}\r\n{html}"));
    assert_eq!(missing.short(), "404 not_found");
    let mut stream = served.connect();
    write!(stream, "GET /events HTTP/1.1\r\nhost: x\r\n{html}authorization: Bearer {person}\r\n\r\n").unwrap();
    let head: Vec<String> =
        BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    assert!(head.iter().any(|line| line == "content-type: text/event-stream"), "{head:?}");
    // The same addresses are pages for a browser, which logs in with its token here.
    let mut browser = Browser::at(&served);
    assert_eq!(browser.get("/workflows").status, 401);
    let wrong = browser.post("/page/login", &[("token", "slu_nonsense")]);
    assert_eq!(wrong.status, 401);
    assert!(wrong.body.contains("does not know this token"), "{}", wrong.body);
    let worker = token(&home, &["--scope", "worker"]).1;
    assert_eq!(browser.post("/page/login", &[("token", &worker)]).status, 401);
    assert_eq!(browser.post("/page/login", &[("token", &person)]).status, 303);
    for path in ["/workflows", "/events", "/workers", "/workspaces", "/costs", "/settings", "/workflows/default"] {
        let page = browser.get(path);
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(page.head.contains("content-type: text/html"), "{path}");
    }
    let (id, secret) = token(&home, &[]);
    assert_eq!(browser.post("/page/login", &[("token", &secret)]).status, 303);
    home.sluice(&["token", "revoke", &id]).done();
    assert_eq!(browser.get("/").status, 401, "a session ends with its token");
}

/// The session that a browser keeps, without the name of its cookie.
fn session_of(browser: &Browser) -> String {
    browser.cookie.as_deref().and_then(|cookie| cookie.split_once('=')).unwrap().1.to_owned()
}

#[test]
fn a_token_that_is_typed_in_makes_a_session_and_is_in_no_cookie() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let (id, secret) = token(&home, &["--name", "ada", "--expires", "1h"]);
    let mut browser = Browser::at(&served);
    let answer = browser.post("/page/login", &[("token", &secret)]);
    assert_eq!(answer.status, 303, "{answer:?}");
    assert!(!answer.head.contains(&secret.to_ascii_lowercase()), "the token itself is in the cookie");
    let session = session_of(&browser);
    assert_ne!(session, secret);
    assert_eq!(browser.get("/").status, 200);
    let listed = home.json(&["token", "list"]);
    let find = |name: &str| listed["tokens"].as_array().unwrap().iter().find(|it| it["name"] == name).cloned().unwrap();
    let (made, from) = (find("ada (page)"), find("ada"));
    assert_eq!((&made["scope"], &made["expires_at"]), (&from["scope"], &from["expires_at"]), "it ends with its token");
    // A token itself is no session, also where a browser sends it as one.
    let cookie = browser.cookie.clone();
    browser.cookie = cookie.as_ref().map(|cookie| cookie.replace(&session, &secret));
    assert_eq!(browser.get("/").status, 401);
    browser.cookie = cookie;
    assert_eq!(browser.get("/").status, 200);
    home.sluice(&["token", "revoke", &id]).done();
    assert_eq!(browser.get("/").status, 401, "a session is revoked with its token");
    let revoked = home.sluice(&["events", "--json", "--type", "token.revoked"]).done().stdout;
    assert!(revoked.contains("ada (page)"), "{revoked}");
    let (_, reading) = token(&home, &["--scope", "read"]);
    assert_eq!(browser.post("/page/login", &[("token", &reading)]).status, 303);
    assert!(!browser.get("/settings").body.contains("/page/act"));
    // To log out ends the session, and not the token.
    let key = browser.key();
    assert_eq!(browser.post("/page/logout", &[("key", &key)]).status, 303);
    assert_eq!(served.ask("GET", "/v1/board", Some(&reading), "").status, 200);
}

#[test]
fn a_session_of_the_page_is_no_token_and_makes_none() {
    let home = Home::new();
    let served = Served::start(&home, &[]);
    let (_, secret) = token(&home, &[]);
    let mut browser = Browser::at(&served);
    assert_eq!(browser.post("/page/login", &[("token", &secret)]).status, 303);
    let session = session_of(&browser);
    for (path, body) in [("/v1/tokens", r#"{"scope":"person"}"#), ("/v1/page/links", "{}")] {
        let refused = served.ask("POST", path, Some(&session), body);
        assert_eq!(refused.short(), "401 page_session", "{path}: {refused:?}");
        assert!(refused.body.contains("sluice token create"), "{refused:?}");
    }
    let again = browser.post("/page/login", &[("token", &session)]);
    assert_eq!(again.status, 401, "a session makes no further session");
}

#[test]
fn the_page_answers_only_under_names_of_this_engine() {
    let home = Home::new();
    std::fs::write(home.place().join("config.toml"), "[serve]\nhosts = [\"Sluice.example\"]\n").unwrap();
    let served = Served::start(&home, &[]);
    let (_, secret) = token(&home, &[]);
    let mut browser = Browser::at(&served);
    assert_eq!(browser.post("/page/login", &[("token", &secret)]).status, 303);
    let port = browser.port;
    for ours in ["127.0.0.1", "127.8.8.8", "localhost", "sluice-ab.localhost", "[::1]", "sluice.example", "LOCALHOST."]
    {
        browser.host = format!("{ours}:{port}");
        assert_eq!(browser.get("/").status, 200, "{ours}");
    }
    for other in
        ["evil.example", "localhost.evil.example", "192.0.2.1", "sluice.example.evil", "[::2]", "x@127.0.0.1", ""]
    {
        browser.host = format!("{other}:{port}");
        for path in ["/", "/page/login", "/page/page.js", "/page/hints"] {
            let refused = browser.get(path);
            assert_eq!(refused.status, 403, "{other}{path}: {refused:?}");
            assert!(refused.body.contains("[serve]"), "{refused:?}");
        }
        assert_eq!(browser.post("/page/login", &[("token", &secret)]).status, 403, "{other}");
    }
    // A caller of the API shows its token, which no other page has: it comes under any name.
    let head = format!(
        "GET /v1/board HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\nauthorization: Bearer {secret}\r\n\r\n"
    );
    assert_eq!(served.say(head.as_bytes()).status, 200);
}

#[test]
fn an_option_with_any_character_is_answered_as_it_is() {
    let home = Home::new();
    with_shell(&home);
    let odd = " a\u{1b}[31m\u{7}b\u{202e}c\n%41+& ";
    let option = home.path("option.txt");
    std::fs::write(&option, odd).unwrap();
    let ask = format!("sluice step ask 'Which?' --option \"$(cat {})\" --option other", option.display());
    let recipe = format!("steps:\n  - name: work\n    type: agent\n    harness: shell\n    prompt: |\n      {ask}\n");
    grimoire(&home, "asks", &recipe);
    let id = begin(&home, &["asks"]);
    let run = settled(&home, &id);
    assert_eq!(run["status"], "held", "{run:#}");
    let mut browser = Browser::logged_in(&home, &[]);
    let page = browser.get(&format!("/runs/{id}")).body;
    let form = page.split("<form").find(|form| form.contains("value=\"answer\"")).unwrap();
    let value = |of: &str| {
        let (_, rest) = form.split_once(&format!("name=\"{of}\" value=\"")).unwrap_or_else(|| panic!("{of} in {form}"));
        rest.split('"').next().unwrap().replace("&#38;", "&")
    };
    let (key, about, chosen) = (value("key"), value("id"), value("option*"));
    let fields = [("key", key.as_str()), ("act", "answer"), ("id", &about), ("option*", &chosen)];
    let answered = browser.post("/page/act", &fields);
    assert_eq!(answered.status, 303, "{answered:?}");
    until(&home, &id, |run| run["status"] != "held");
    let told = home.sluice(&["events", "--json", "--type", "workflow.answered", "--correlation", &id]).done().stdout;
    let told: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    assert!(told["data"].to_string().contains("b\u{202e}c"), "{told:#}");
}

#[test]
fn a_workflow_of_one_project_is_found_without_its_name() {
    let home = Home::new();
    held(&home);
    let mut browser = Browser::logged_in(&home, &[]);
    let found = browser.get("/workflows/gated");
    assert_eq!(found.status, 303, "{found:?}");
    assert!(found.head.contains("location: /workflows/gated?project=coffee"), "{}", found.head);
    assert_eq!(browser.get("/workflows/none").status, 404);
    let shown = browser.get("/workflows/gated?project=coffee").body;
    assert!(shown.contains("href=\"/workflows?project=coffee\""), "the way back keeps the project: {shown}");
}

#[test]
fn the_page_is_sent_compressed_and_is_small_and_hints_are_not() {
    let home = Home::new();
    held(&home);
    let mut browser = Browser::logged_in(&home, &[]);
    let page = browser.get("/").body;
    let linked = |before: &str| page.split_once(before).unwrap().1.split('"').next().unwrap().to_owned();
    let script = linked("type=\"module\" src=\"");
    let style = linked("rel=\"stylesheet\" href=\"");
    let mut whole = 0;
    for path in ["/", script.as_str(), style.as_str(), "/page/icon.svg"] {
        let mut stream = browser.stream();
        stream.write_all(browser.head("GET", path, "accept-encoding: gzip, br\r\n", 0).as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
        assert!(head.contains("content-encoding: gzip"), "{path}: {head}");
        whole += answer.len() - end;
    }
    assert!(whole < 60_000, "the page and its assets have {whole} bytes");
    let mut stream = browser.stream();
    stream.write_all(browser.head("GET", "/page/hints", "accept-encoding: gzip\r\n", 0).as_bytes()).unwrap();
    let head: Vec<String> =
        BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    assert!(head.iter().any(|line| line == "content-type: text/event-stream"), "{head:?}");
    assert!(!head.iter().any(|line| line.starts_with("content-encoding")), "{head:?}");
}

/// Everything that HTML, a script, a style, a terminal or a reader's eye could take for something else.
const HOSTILE: &str = "<script>alert(1)</script> </script><img src=x onerror=alert(1)> \" ' & <!-- ]]> {{7*7}} \u{202e}rtl \
                       \u{1b}[31mred é 漢字 🦀 javascript:alert(1)";

#[test]
fn hostile_text_in_every_field_only_appears() {
    let home = Home::empty();
    with_shell(&home);
    home.sluice(&["project", "add", "--name", "co<b>ffee"]).done();
    let context = format!(
        "# {HOSTILE}\n\n[go](javascript:alert(1)) ![pic](http://evil.example/x.png)\n\n{}",
        "long ".repeat(200_000)
    );
    let branch = "fix.<b>'\"&é漢";
    std::fs::write(home.path("context.md"), context).unwrap();
    let mut create = home.command(&["task", "create", "--no-spawn", "--context", "-", "--json", "--", branch, HOSTILE]);
    let task = run(create.stdin(std::fs::File::open(home.path("context.md")).unwrap())).done().json();
    let task = text(&task["task"]["id"]).to_owned();
    let path = home.path("hostile.txt");
    std::fs::write(&path, format!("{HOSTILE}\n").repeat(20_000)).unwrap();
    let steps = format!(
        "steps:\n  - {{name: say, type: script, command: 'cat {0}'}}\n  - {{name: gate, type: gate, command: 'tail -n 3 {0}; false', message: '<b>May</b> it?'}}\n",
        path.display()
    );
    grimoire(&home, "loud", &steps);
    write(&home, ".sluice/workflows/bad.yml", &format!("name: bad\ndescription: {HOSTILE:?}\nsteps: {HOSTILE:?}\n"));
    let loud = begin(&home, &["loud", "--prompt", HOSTILE]);
    settled(&home, &loud);
    let mut browser = Browser::logged_in(&home, &[]);
    let project = "co%3Cb%3Effee";
    let mut pages: Vec<String> = [
        "/",
        "/?view=columns",
        "/?q=%3Cscript%3E",
        "/workflows",
        "/workers",
        "/workspaces",
        "/costs",
        "/events",
        "/settings",
    ]
    .map(str::to_owned)
    .to_vec();
    pages.push(format!("/?project={project}"));
    pages.push(format!("/workflows?project={project}"));
    pages.push(format!("/workflows/bad?project={project}"));
    pages.push("/events?type=%3Cscript%3E&correlation=%22%3E".to_owned());
    pages.push("/workflows/%3Cscript%3Ealert(1)%3C%2Fscript%3E".to_owned());
    pages.push("/tasks/%3Cscript%3Ealert(1)".to_owned());
    for tab in ["timeline", "terminal", "changes", "file", "usage"] {
        pages.push(format!("/tasks/{task}?tab={tab}&at=%22%3E%3Cscript%3E"));
    }
    pages.extend([format!("/runs/{loud}"), format!("/runs/{loud}?step=say"), format!("/runs/{loud}?step=gate")]);
    for path in pages {
        let page = browser.get(&path);
        assert!([200, 404].contains(&page.status), "{path}: {} {}", page.status, page.body);
        let own = page.body.replace("<script type=\"module\" src=\"/page/page.js?v=", "");
        for bad in ["<script", "<img", "<b>", "href=\"javascript", "\u{1b}", "\u{202e}", "evil.example/x.png\""] {
            let at = own.find(bad).map(|at| own[at.saturating_sub(200)..].chars().take(400).collect::<String>());
            assert!(at.is_none(), "{bad} in {path}: {at:?}");
        }
        assert!(page.body.len() < 2 << 20, "{path} has {} bytes", page.body.len());
    }
    let board = browser.get("/").body;
    assert!(board.contains("&#60;script&#62;alert(1)&#60;/script&#62;") || board.contains("&lt;script&gt;"), "{board}");
    for path in ["/".to_owned(), format!("/tasks/{task}?tab=file"), format!("/runs/{loud}?step=say")] {
        let page = browser.get(&path).body;
        assert!(page.contains("&lt;U+202E&gt;rtl"), "{path} does not show what turns the writing: {page}");
    }
}

#[test]
fn the_next_engine_knows_the_session_and_hints_name_what_changed() {
    let home = Home::new();
    let mut browser = Browser::logged_in(&home, &[]);
    assert_eq!(browser.get("/").status, 200);
    home.kill_engine();
    // Any command starts the next engine, which listens at the same port again.
    home.sluice(&["task", "list"]).done();
    assert_eq!(browser.get("/").status, 200);
    let mut stream = browser.stream();
    stream.write_all(browser.head("GET", "/page/hints", "", 0).as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    assert!(lines.by_ref().any(|line| line == "retry: 1000"));
    let answer = home.json(&["task", "create", "latte", "Milk", "--no-spawn"]);
    let id = text(&answer["task"]["id"]);
    assert!(lines.by_ref().any(|line| line.starts_with("data: ") && line.contains(id)), "no hint");
    let task = browser.get(&format!("/tasks/{id}"));
    assert_eq!(task.status, 200);
    assert!(task.body.contains("latte") && task.body.contains("class=\"node now\""), "{}", task.body);
    let part = browser.get(&format!("/tasks/{id}?part=facts"));
    assert!(part.body.contains("id=\"facts\"") && !part.body.contains("<html"), "{}", part.body);
}

#[test]
fn a_filter_is_saved_as_a_view_and_forgotten_again() {
    let home = Home::new();
    home.json(&["task", "create", "latte", "Milk", "--no-spawn"]);
    let mut browser = Browser::logged_in(&home, &[]);
    let key = browser.key();
    let filtered = "/?group=queued&group=done&q=latte";
    assert!(!browser.get("/").body.contains("save-view"), "everything is no view");
    assert!(browser.get(filtered).body.contains("save-view"));
    let name = "mi<b>ne";
    let view = [("key", key.as_str()), ("name", name), ("q", "latte"), ("group", "queued"), ("group", "done")];
    let save = [&view[..], &[("act", "save_view"), ("back", filtered)]].concat();
    assert_eq!(browser.post_from("/page/views", "", &save).status, 403, "a form of no origin");
    let saved = browser.post("/page/views", &save);
    assert_eq!(saved.status, 303, "{saved:?}");
    assert!(saved.head.contains("&done=save_view"), "{}", saved.head);
    let board = browser.get("/").body;
    assert!(board.contains("/?group=queued&#38;group=done&#38;q=latte"), "{board}");
    assert!(board.contains("mi&#60;b&#62;ne") && !board.contains(name), "{board}");
    // Who may only look opens views, and changes none.
    let mut reader = Browser::logged_in(&home, &["--read"]);
    let seen = reader.get(filtered).body;
    assert!(seen.contains("mi&#60;b&#62;ne") && !seen.contains("/page/views"), "{seen}");
    let theirs = reader.key();
    let refused = reader.post("/page/views", &[("key", &theirs), ("act", "forget_view"), ("name", name)]);
    assert_eq!(refused.status, 403, "{refused:?}");
    let nonsense = browser.post("/page/views", &[("key", &key), ("act", "keep"), ("name", name)]);
    assert_eq!(nonsense.status, 400, "{nonsense:?}");
    assert_eq!(browser.post("/page/views", &[("key", &key), ("act", "forget_view"), ("name", name)]).status, 303);
    assert!(!browser.get("/").body.contains("mi&#60;b&#62;ne"));
}
