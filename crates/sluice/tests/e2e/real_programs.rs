//! Real agent programs, as package registries have them, where they need a person: what is said, by which channel and after
//! how long, and that one command solves it. `cargo xtask harness-real` runs this with the programs that it finds on the
//! PATH, and prints a table. No real model is asked: a scripted one listens on loopback, or nothing does.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use sluice_os::harness::{Harness, HarnessScriptedModel, Harnesses, find_program, read_version};
use sluice_testkit::model::{ModelScript, ScriptedModel};

use super::home::{Home, Ran, run};

/// How long something may take to be said, or to be solved. What takes longer is not said.
const PATIENCE: Duration = Duration::from_secs(90);
/// A port on which nothing listens.
const NOWHERE: &str = "http://127.0.0.1:9";
/// The word in the prompt by which the model knows it.
const ASKED: &str = "asked-of-a-real-program";

/// What was set up before, as `sluice harness setup` does it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RealSetup {
    Nothing,
    All,
    AllButTrust,
}

use RealSetup::{All, AllButTrust, Nothing};

/// What the program finds where its model should be, before the cure.
#[derive(Clone, Copy)]
enum RealService {
    /// No key and no address: a program as it was installed, without a network.
    Fresh,
    /// A key, and an address at which nothing listens.
    Nowhere,
    /// A key, and a service that answers with this status.
    Fails(u16),
    /// A key, and a service that works.
    Works,
}

/// The one command that solves it.
#[derive(Clone, Copy)]
enum RealCure {
    /// `sluice harness setup PROGRAM --yes`
    SetUp,
    /// `sluice answer ID respawn`, in a shell where key and address are right.
    Respawn,
    /// `sluice answer ID attach`, and these keys in the session.
    Attach(&'static [&'static str]),
    /// It needs a network, and there is none.
    Unknown,
}

struct RealCase {
    program: &'static str,
    case: &'static str,
    /// Of `config.toml`.
    config: &'static str,
    before: RealSetup,
    service: RealService,
    /// What must be said: reason, channel and kind.
    said: &'static str,
    cure: RealCure,
}

const fn case(
    (program, case): (&'static str, &'static str),
    config: &'static str,
    before: RealSetup,
    service: RealService,
    said: &'static str,
    cure: RealCure,
) -> RealCase {
    RealCase { program, case, config, before, service, said, cure }
}

const LOOKS: &str = "";
const NO_LOOKS: [&str; 5] = [
    "[harnesses.claude]\npreflight = false\n",
    "[harnesses.codex]\npreflight = false\n",
    "[harnesses.gemini]\npreflight = false\n",
    "[harnesses.copilot]\npreflight = false\n",
    // codex is told to trust the folder as a rule.
    "[harnesses.codex]\ninteractive = [\"codex\", \"-c\", \"features.daemon_auto_start=false\", \"{prompt}\"]\n",
];

const CASES: &[RealCase] = &[
    case(("claude", "no key"), LOOKS, Nothing, RealService::Fresh, "cannot_start engine login", RealCure::SetUp),
    case(
        ("claude", "untrusted folder"),
        LOOKS,
        Nothing,
        RealService::Works,
        "cannot_start engine trust",
        RealCure::SetUp,
    ),
    case(
        ("claude", "trust dialog"),
        NO_LOOKS[0],
        AllButTrust,
        RealService::Works,
        "dialog screen trust",
        RealCure::Attach(&["Down", "Enter"]),
    ),
    case(("claude", "no key, no look"), NO_LOOKS[0], All, RealService::Fresh, "dialog hook login", RealCure::Respawn),
    case(
        ("claude", "fresh, no network"),
        NO_LOOKS[0],
        Nothing,
        RealService::Fresh,
        "crashed exit network",
        RealCure::Unknown,
    ),
    case(("claude", "no network"), LOOKS, All, RealService::Nowhere, "dialog screen network", RealCure::Respawn),
    case(("claude", "refused key"), LOOKS, All, RealService::Fails(401), "dialog screen login", RealCure::Respawn),
    case(("claude", "limit"), LOOKS, All, RealService::Fails(429), "dialog screen limit", RealCure::Respawn),
    case(("codex", "no key"), LOOKS, Nothing, RealService::Fresh, "cannot_start engine login", RealCure::Respawn),
    case(("codex", "sign-in"), NO_LOOKS[1], Nothing, RealService::Fresh, "dialog screen login", RealCure::Respawn),
    case(
        ("codex", "trust dialog"),
        NO_LOOKS[4],
        Nothing,
        RealService::Works,
        "dialog screen trust",
        RealCure::Attach(&["Enter"]),
    ),
    case(("codex", "no network"), LOOKS, Nothing, RealService::Nowhere, "dialog screen network", RealCure::Respawn),
    case(("codex", "refused key"), LOOKS, Nothing, RealService::Fails(401), "dialog screen login", RealCure::Respawn),
    case(("codex", "limit"), LOOKS, Nothing, RealService::Fails(429), "dialog screen limit", RealCure::Respawn),
    case(("gemini", "no key"), LOOKS, Nothing, RealService::Fresh, "cannot_start engine login", RealCure::Respawn),
    case(("gemini", "sign-in"), NO_LOOKS[2], Nothing, RealService::Fresh, "dialog screen login", RealCure::Respawn),
    case(("gemini", "refused key"), LOOKS, Nothing, RealService::Fails(401), "dialog screen login", RealCure::Respawn),
    case(("opencode", "no network"), LOOKS, Nothing, RealService::Nowhere, "dialog screen network", RealCure::Respawn),
    case(
        ("opencode", "fresh, no network"),
        LOOKS,
        Nothing,
        RealService::Fresh,
        "dialog screen network",
        RealCure::Respawn,
    ),
    case(("qwen", "sign-in"), LOOKS, Nothing, RealService::Fresh, "dialog screen login", RealCure::Respawn),
    case(("qwen", "no network"), LOOKS, Nothing, RealService::Nowhere, "dialog screen network", RealCure::Respawn),
    case(("qwen", "refused key"), LOOKS, Nothing, RealService::Fails(401), "dialog screen login", RealCure::Respawn),
    case(
        ("copilot", "untrusted folder"),
        LOOKS,
        Nothing,
        RealService::Fresh,
        "cannot_start engine trust",
        RealCure::SetUp,
    ),
    case(
        ("copilot", "trust dialog"),
        NO_LOOKS[3],
        Nothing,
        RealService::Works,
        "dialog screen trust",
        RealCure::Attach(&["Enter"]),
    ),
    case(("copilot", "sign-in"), LOOKS, All, RealService::Fresh, "dialog screen login", RealCure::Respawn),
    case(("pi", "no key"), LOOKS, Nothing, RealService::Fresh, "dialog screen login", RealCure::Respawn),
    case(("pi", "no network"), LOOKS, Nothing, RealService::Nowhere, "dialog screen network", RealCure::Respawn),
    case(("aider", "no key"), LOOKS, Nothing, RealService::Fresh, "dialog screen login", RealCure::Respawn),
    case(("aider", "no network"), LOOKS, Nothing, RealService::Nowhere, "dialog screen network", RealCure::Respawn),
];

/// One line of the table.
struct RealRow {
    said: String,
    is_expected: bool,
    after: Option<Duration>,
    solved: Option<Duration>,
}

/// A program in a home of its own.
struct RealGround {
    home: Home,
    harness: Harness,
    good: ScriptedModel,
    _bad: Option<ScriptedModel>,
    before: BTreeMap<String, String>,
}

fn model(fails: Option<u16>, without_tools: bool) -> ScriptedModel {
    let script =
        ModelScript { command: "true".to_owned(), sentence: "I have done it.".to_owned(), without_tools, fails };
    ScriptedModel::listen(script).unwrap()
}

impl RealGround {
    fn new(case: &RealCase) -> RealGround {
        let home = Home::empty();
        std::fs::create_dir_all(home.place()).unwrap();
        // What stands for a key in codex's scratch configuration is no usual variable.
        let config = format!("{}[env]\nallow = [\"SCRIPTED_KEY\"]\n", case.config);
        std::fs::write(home.place().join("config.toml"), config).unwrap();
        let harness = Harnesses::builtin().get(case.program).unwrap().clone();
        let without_tools = harness.scripted().is_some_and(|scripted| !scripted.has_tools());
        let bad = match case.service {
            RealService::Fails(status) => Some(model(Some(status), without_tools)),
            RealService::Fresh | RealService::Nowhere | RealService::Works => None,
        };
        let good = model(None, without_tools);
        let address = match (&bad, case.service) {
            (Some(bad), _) => Some(bad.address().to_owned()),
            (None, RealService::Nowhere) => Some(NOWHERE.to_owned()),
            (None, RealService::Works) => Some(good.address().to_owned()),
            (None, RealService::Fresh | RealService::Fails(_)) => None,
        };
        let mut ground = RealGround { home, harness, good, _bad: bad, before: BTreeMap::new() };
        ground.before = address.map(|address| ground.led_to(&address)).unwrap_or_default();
        // Programs that would refuse to work as the superuser.
        ground.before.insert("IS_SANDBOX".into(), "1".into());
        ground
    }

    fn scripted(&self) -> &HarnessScriptedModel {
        self.harness.scripted().unwrap()
    }

    /// Leads the program to this address: its files, and the variables for it.
    fn led_to(&self, address: &str) -> BTreeMap<String, String> {
        self.scripted().write(&self.home.path("user"), address).unwrap();
        let mut variables = self.scripted().variables(address, "");
        variables.insert("IS_SANDBOX".into(), "1".into());
        variables
    }

    fn sluice(&self, variables: &BTreeMap<String, String>, arguments: &[&str]) -> Ran {
        run(self.home.command(arguments).envs(variables))
    }

    /// The attention of a task as reason, channel and kind; and its id.
    fn attention(&self, id: &str) -> Option<(String, String)> {
        const KINDS: [&str; 8] = ["trust", "login", "permission", "question", "update", "limit", "network", "other"];
        let task = self.home.task(id);
        let attention = &task["attention"];
        let text = attention["text"].as_str()?;
        // A start that is refused has its reasons in words.
        let worded = [("not logged in", "login"), ("does not trust", "trust")];
        let kind = KINDS.into_iter().find(|kind| text.contains(&format!("({kind})")));
        let kind = kind.or_else(|| worded.into_iter().find(|(words, _)| text.contains(words)).map(|(_, kind)| kind));
        let word = |key: &str| attention[key].as_str().unwrap_or_default().to_owned();
        Some((format!("{} {} {}", word("reason"), word("said_by"), kind.unwrap_or("-")), word("id")))
    }

    /// Waits for what is said about the task: one thing, or any.
    fn said(&self, id: &str, wanted: &str) -> Option<(String, String)> {
        let began = Instant::now();
        let mut last = None;
        while began.elapsed() < PATIENCE {
            last = self.attention(id).or(last);
            if last.as_ref().is_some_and(|(said, _)| said == wanted) {
                break;
            }
            std::thread::park_timeout(Duration::from_millis(100));
        }
        last
    }

    /// How long after its beginning the task needed a person for the reason that it has now.
    fn after(&self, id: &str) -> Option<Duration> {
        let moment = |text: &str| text.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_millisecond).ok();
        let task = self.home.task(id);
        let raised = moment(task["attention"]["since"].as_str()?)?;
        let history = self.home.history(id);
        let began =
            history.iter().find(|event| event["type"] == "status.changed")?["time"].as_str().and_then(moment)?;
        u64::try_from(raised - began).ok().map(Duration::from_millis)
    }

    /// Carries out the cure; whether the program then reached the model with its prompt.
    fn cure(&self, case: &RealCase, id: &str) -> Option<Duration> {
        let began = Instant::now();
        let right = self.led_to(self.good.address());
        match case.cure {
            RealCure::SetUp => {
                let ran = self.sluice(&right, &["harness", "setup", case.program, "--yes"]);
                println!("    $ sluice harness setup {} --yes → {} {}", case.program, ran.code, ran.stderr.trim());
            }
            RealCure::Respawn => {
                let ran = self.sluice(&right, &["answer", id, "respawn"]);
                println!("    $ sluice answer {id} respawn → {} {}", ran.code, ran.stderr.trim());
            }
            RealCure::Attach(keys) => self.attach(id, keys),
            RealCure::Unknown => return None,
        }
        let is_meant = |body: &str| body.contains(ASKED);
        self.good.wait(PATIENCE, |request| is_meant(&request.body)).map(|_| began.elapsed())
    }

    /// A person attaches in a terminal of their own, and types.
    fn attach(&self, id: &str, keys: &[&str]) {
        let socket = self.home.path("person.sock");
        let tmux = || {
            let mut tmux = self.home.program("tmux");
            tmux.arg("-S").arg(&socket);
            tmux
        };
        let sluice = env!("CARGO_BIN_EXE_sluice");
        let command = format!("'{sluice}' answer {id} attach");
        run(tmux().args(["new-session", "-d", "-x", "120", "-y", "40", &command])).done();
        let shown = || run(tmux().args(["capture-pane", "-p"])).stdout;
        let began = Instant::now();
        while shown().trim().is_empty() && began.elapsed() < PATIENCE {
            std::thread::park_timeout(Duration::from_millis(100));
        }
        println!("    $ sluice answer {id} attach, then {}", keys.join(" "));
        keys.iter().for_each(|key| drop(run(tmux().args(["send-keys", key]))));
    }
}

impl Drop for RealGround {
    fn drop(&mut self) {
        let socket = self.home.path("person.sock");
        if socket.exists() {
            drop(run(self.home.program("tmux").arg("-S").arg(&socket).arg("kill-server")));
        }
    }
}

fn measured(case: &RealCase) -> RealRow {
    let ground = RealGround::new(case);
    ground.sluice(&ground.before, &["project", "add"]).done();
    if case.before != Nothing {
        let with_key = ground.scripted().variables(NOWHERE, "");
        ground.sluice(&with_key, &["harness", "setup", case.program, "--yes"]).done();
        // The next engine knows nothing of this key.
        ground.home.sluice(&["stop"]).done();
    }
    if case.before == AllButTrust {
        let file = ground.home.path("user/.claude.json");
        let mut state: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        state["projects"] = Value::Null;
        std::fs::write(&file, state.to_string()).unwrap();
    }
    let summary = format!("Do what is {ASKED}");
    let create = ["task", "create", "brew", &summary, "--harness", case.program, "--review-harness", "demo", "--json"];
    let created = ground.sluice(&ground.before, &create);
    let id = created.json()["task"]["id"].as_str().unwrap().to_owned();
    let said = ground.said(&id, case.said);
    let is_expected = said.as_ref().is_some_and(|(said, _)| said == case.said);
    let after = said.as_ref().and_then(|_| ground.after(&id));
    if !is_expected || std::env::var_os("REAL_SHOW").is_some() {
        println!("{}", ground.home.sluice(&["inbox"]).stdout);
        show_screens(&ground.home);
    }
    let solved = said.as_ref().filter(|_| is_expected).and_then(|(_, waits)| ground.cure(case, waits));
    if is_expected && solved.is_none() {
        println!("{}", ground.home.sluice(&["task", "history", &id]).stdout);
        show_screens(&ground.home);
    }
    RealRow { said: said.map(|(said, _)| said).unwrap_or_else(|| "nothing".to_owned()), is_expected, after, solved }
}

/// What stands on the terminals of the home.
fn show_screens(home: &Home) {
    let socket = home.place().join("tmux.sock");
    let tmux = |arguments: &[&str]| run(home.program("tmux").arg("-S").arg(&socket).args(arguments)).stdout;
    for pane in tmux(&["list-panes", "-a", "-F", "#{pane_id}"]).lines() {
        let screen = tmux(&["capture-pane", "-p", "-t", pane]);
        println!("--- {pane}");
        screen.lines().filter(|line| !line.trim().is_empty()).for_each(|line| println!("    | {line}"));
    }
}

fn version(home: &Home, name: &str) -> Option<String> {
    let path = std::env::var("PATH").ok()?;
    find_program(name, Some(&path), home.path("").as_path())?;
    let ran = run(home.program(name).arg("--version"));
    read_version(&ran.stdout).or_else(|| read_version(&ran.stderr))
}

#[test]
#[ignore = "it needs the programs; `cargo xtask harness-real` runs it"]
fn as_many_real_programs_as_there_are() {
    let only = std::env::var("REAL_ONLY").unwrap_or_default();
    let is_wanted = |case: &&RealCase| only.is_empty() || format!("{} {}", case.program, case.case).contains(&only);
    let home = Home::empty();
    let mut versions: BTreeMap<&str, Option<String>> = BTreeMap::new();
    let mut table = String::from(
        "| program | version | case | said | by | after | solved by | after |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut failed = Vec::new();
    for case in CASES.iter().filter(is_wanted) {
        let version = versions.entry(case.program).or_insert_with(|| version(&home, case.program)).clone();
        let Some(version) = version else { continue };
        println!("{} {version}: {}", case.program, case.case);
        let row = measured(case);
        let mut words = row.said.splitn(3, ' ');
        let (reason, by, kind) =
            (words.next().unwrap_or("-"), words.next().unwrap_or("-"), words.next().unwrap_or("-"));
        let time =
            |after: Option<Duration>| after.map_or("-".to_owned(), |after| format!("{:.1} s", after.as_secs_f64()));
        let cure = match case.cure {
            RealCure::SetUp => "`harness setup`",
            RealCure::Respawn => "`answer ID respawn`",
            RealCure::Attach(_) => "`answer ID attach`",
            RealCure::Unknown => "-",
        };
        let line = format!(
            "| {} | {version} | {} | {reason} ({kind}) | {by} | {} | {cure} | {} |\n",
            case.program,
            case.case,
            time(row.after),
            time(row.solved)
        );
        print!("    {line}");
        table.push_str(&line);
        if !row.is_expected {
            failed.push(format!(
                "{}, {}: `{}` was to be said, and `{}` was",
                case.program, case.case, case.said, row.said
            ));
        } else if row.solved.is_none() && !matches!(case.cure, RealCure::Unknown) {
            failed.push(format!("{}, {}: it was not solved", case.program, case.case));
        }
    }
    let absent: Vec<&str> = versions.iter().filter(|(_, version)| version.is_none()).map(|(name, _)| *name).collect();
    println!("\n{table}\nnot on the PATH: {}", absent.join(", "));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
