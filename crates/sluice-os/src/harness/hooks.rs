//! Hooks of agent programs: which of them call our own command, in the form that each program reads, and what a call says.
//!
//! claude reads them from a file that its command names; codex from `hooks.json` in the configuration folder of the attempt,
//! and its command says that they may be run; opencode loads a small plugin, which its environment names. The person's own configuration is neither read nor changed. Programs that
//! have no such hooks get none: what is known of them stands on their screen (`screens.rs`).

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::HarnessPromptFile;
use super::screens::AgentDialog;
use super::stream::HarnessFormat;

/// Seconds that a program waits for a hook before it goes on without it.
const SECONDS: u64 = 5;
/// Bytes of the digest that names the use of a tool.
const NAME_BYTES: usize = 8;

/// A hook, as programs name it; what it is called where codex remembers its trust; and the tool that it is for, if not all.
struct HookRow {
    event: &'static str,
    key: &'static str,
    tool: Option<&'static str>,
}

const fn row(event: &'static str, key: &'static str, tool: Option<&'static str>) -> HookRow {
    HookRow { event, key, tool }
}

const CLAUDE: [HookRow; 8] = [
    row("UserPromptSubmit", "user_prompt_submit", None),
    row("PreToolUse", "pre_tool_use", Some("AskUserQuestion")),
    row("PermissionRequest", "permission_request", None),
    row("Elicitation", "elicitation", None),
    row("PostToolUse", "post_tool_use", None),
    row("PostToolUseFailure", "post_tool_use_failure", None),
    row("Stop", "stop", None),
    row("StopFailure", "stop_failure", None),
];
const CODEX: [HookRow; 5] = [
    row("UserPromptSubmit", "user_prompt_submit", None),
    row("PreToolUse", "pre_tool_use", Some("request_user_input")),
    row("PermissionRequest", "permission_request", None),
    row("PostToolUse", "post_tool_use", None),
    row("Stop", "stop", None),
];

/// The plugin of opencode that calls our command. It needs two names before it.
const PLUGIN: &str = include_str!("opencode-hooks.js");
/// The variable by which opencode takes settings besides those of its files.
pub(super) const OPENCODE_SETTINGS: &str = "OPENCODE_CONFIG_CONTENT";

/// What the word `{hooks}` of a command is filled with, and the file that must be there.
pub(super) struct HookSetup {
    pub(super) word: String,
    pub(super) file: Option<HarnessPromptFile>,
}

/// Whose hooks call, and where their files are.
pub(super) struct HookSite<'a> {
    pub(super) sluice: &'a Path,
    /// The session that the calls are about; without one nothing is called.
    pub(super) session: Option<&'a str>,
    pub(super) private: &'a Path,
    /// The configuration folder of the attempt's own, where the program has one.
    pub(super) own_folder: Option<PathBuf>,
}

/// One command of a hook. Its order is that of codex when it makes the digest that it trusts.
#[derive(Clone, Serialize)]
struct HookCommand {
    #[serde(rename = "async", skip_serializing_if = "Option::is_none")]
    is_async: Option<bool>,
    command: String,
    timeout: u64,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Clone, Serialize)]
struct HookGroup {
    #[serde(skip_serializing_if = "Option::is_none")]
    event_name: Option<&'static str>,
    hooks: [HookCommand; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    matcher: Option<&'static str>,
}

/// The hooks of a program; `None` if it has none that could tell anything.
pub(super) fn setup(format: HarnessFormat, site: &HookSite<'_>) -> Option<HookSetup> {
    match format {
        HarnessFormat::Claude => {
            let path = site.private.join("hooks.json");
            let word = path.display().to_string();
            Some(HookSetup { word, file: Some(file(path, &CLAUDE, format, site)) })
        }
        HarnessFormat::Codex => {
            let Some(folder) = site.own_folder.as_ref().filter(|_| site.session.is_some()) else {
                return Some(HookSetup { word: "hooks.state={}".to_owned(), file: None });
            };
            let path = folder.join("hooks.json");
            Some(HookSetup { word: trust(&path, site), file: Some(file(path, &CODEX, format, site)) })
        }
        HarnessFormat::Text
        | HarnessFormat::Gemini
        | HarnessFormat::Opencode
        | HarnessFormat::Goose
        | HarnessFormat::Cursor
        | HarnessFormat::Amp
        | HarnessFormat::Pi
        | HarnessFormat::Copilot
        | HarnessFormat::Qwen
        | HarnessFormat::Agy
        | HarnessFormat::Aider => None,
    }
}

/// The plugin of a program that loads one, and the settings that name it, added to those that the session would inherit. None
/// if those cannot be read: the program says so itself.
pub(super) fn plugin(
    format: HarnessFormat,
    site: &HookSite<'_>,
    inherited: Option<&str>,
) -> Option<(HarnessPromptFile, String)> {
    let session = site.session.filter(|_| format == HarnessFormat::Opencode)?;
    let quoted = |text: &str| Value::String(text.to_owned()).to_string();
    let names = [("SLUICE", quoted(&site.sluice.display().to_string())), ("SESSION", quoted(session))];
    let names = names.map(|(name, value)| format!("const {name} = {value};\n")).concat();
    let path = site.private.join("hooks.js");
    let mut settings: Map<String, Value> = inherited.map_or(Ok(Map::new()), serde_json::from_str).ok()?;
    let plugins = settings.entry("plugin").or_insert_with(|| Value::Array(Vec::new()));
    plugins.as_array_mut()?.push(Value::String(format!("file://{}", path.display())));
    let file = HarnessPromptFile { path, content: format!("{names}{PLUGIN}").into_bytes() };
    Some((file, Value::Object(settings).to_string()))
}

fn file(path: PathBuf, rows: &[HookRow], format: HarnessFormat, site: &HookSite<'_>) -> HarnessPromptFile {
    let groups = rows.iter().filter_map(|row| Some((row.event.to_owned(), group(row, format, site)?)));
    let groups =
        groups.filter_map(|(event, group)| Some((event, Value::Array(vec![serde_json::to_value(group).ok()?]))));
    let hooks = Value::Object(groups.collect());
    let content = Value::Object(Map::from_iter([("hooks".to_owned(), hooks)]));
    HarnessPromptFile { path, content: content.to_string().into_bytes() }
}

fn group(row: &HookRow, format: HarnessFormat, site: &HookSite<'_>) -> Option<HookGroup> {
    let command = format!(
        "{} hook {} {}",
        shell_word(&site.sluice.display().to_string()),
        format.word(),
        shell_word(site.session?)
    );
    let hooks = [HookCommand { is_async: None, command, timeout: SECONDS, kind: "command" }];
    Some(HookGroup { event_name: None, hooks, matcher: row.tool })
}

/// The setting by which codex runs our hooks and no other that a person has not looked at: the digest of each, under the
/// name of its file. Its switch that trusts all hooks would trust those of the repository too.
fn trust(path: &Path, site: &HookSite<'_>) -> String {
    let entries = CODEX.iter().filter_map(|row| {
        let mut group = group(row, HarnessFormat::Codex, site)?;
        group.event_name = Some(row.key);
        group.hooks.iter_mut().for_each(|hook| hook.is_async = Some(false));
        let digest = Sha256::digest(serde_json::to_vec(&group).ok()?);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        // What JSON quotes, TOML reads.
        let key = Value::String(format!("{}:{}:0:0", path.display(), row.key));
        Some(format!("{key}={{trusted_hash=\"sha256:{digest}\"}}"))
    });
    format!("hooks.state={{{}}}", entries.collect::<Vec<_>>().join(","))
}

/// A word that a shell takes as it is.
fn shell_word(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What a call of a hook says about its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookCall {
    Waits {
        what: AgentDialog,
        text: String,
    },
    /// The agent has ended its turn, and said this last.
    TurnEnded {
        text: String,
    },
    Works,
}

impl HookCall {
    /// What the JSON says that a program hands to its hook; `None`: nothing that is known.
    pub fn read(format: HarnessFormat, input: &[u8]) -> Option<HookCall> {
        match format {
            HarnessFormat::Claude | HarnessFormat::Codex => call(&serde_json::from_slice(input).ok()?),
            HarnessFormat::Opencode => event(&serde_json::from_slice(input).ok()?),
            HarnessFormat::Text
            | HarnessFormat::Gemini
            | HarnessFormat::Goose
            | HarnessFormat::Cursor
            | HarnessFormat::Amp
            | HarnessFormat::Pi
            | HarnessFormat::Copilot
            | HarnessFormat::Qwen
            | HarnessFormat::Agy
            | HarnessFormat::Aider => None,
        }
    }

    /// Which dialog the call is about: a name that the call about the end of that dialog has too. `None`: about none alone, so
    /// that an agent which works waits for nothing any more.
    pub fn dialog(format: HarnessFormat, input: &[u8]) -> Option<String> {
        match format {
            HarnessFormat::Claude | HarnessFormat::Codex => tool_of(&serde_json::from_slice(input).ok()?),
            HarnessFormat::Opencode => request_of(&serde_json::from_slice(input).ok()?),
            HarnessFormat::Text
            | HarnessFormat::Gemini
            | HarnessFormat::Goose
            | HarnessFormat::Cursor
            | HarnessFormat::Amp
            | HarnessFormat::Pi
            | HarnessFormat::Copilot
            | HarnessFormat::Qwen
            | HarnessFormat::Agy
            | HarnessFormat::Aider => None,
        }
    }
}

/// The use of a tool: its name and what it is to do. A request for permission has no id that the end of the tool has too, and
/// other tools work beside one that waits.
fn tool_of(said: &Value) -> Option<String> {
    let is_of_tool = ["PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure"];
    let tool = said["tool_name"].as_str().filter(|_| is_of_tool.iter().any(|it| said["hook_event_name"] == *it))?;
    // The answers are added to what such a tool was given.
    let what = question(said).map_or_else(|| permission(tool, &said["tool_input"]), |_| tool.to_owned());
    Some(Sha256::digest(what).iter().take(NAME_BYTES).map(|byte| format!("{byte:02x}")).collect())
}

/// The request of opencode that an event is about.
fn request_of(said: &Value) -> Option<String> {
    let key = match said["type"].as_str()? {
        "permission.asked" | "question.asked" => "id",
        "permission.replied" | "question.replied" | "question.rejected" => "requestID",
        _ => return None,
    };
    said["properties"][key].as_str().map(str::to_owned)
}

fn call(said: &Value) -> Option<HookCall> {
    let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
    let tool = said["tool_name"].as_str().unwrap_or_default();
    let waits = |what, text| Some(HookCall::Waits { what, text });
    match said["hook_event_name"].as_str()? {
        "UserPromptSubmit" | "PostToolUse" | "PostToolUseFailure" => Some(HookCall::Works),
        "PreToolUse" => waits(AgentDialog::Question, question(said)?),
        "PermissionRequest" => match question(said) {
            Some(question) => waits(AgentDialog::Question, question),
            None => waits(AgentDialog::Permission, permission(tool, &said["tool_input"])),
        },
        "Elicitation" => waits(AgentDialog::Question, text("message")),
        // Its subagents and what it runs in the background wake it again.
        "Stop" if said["background_tasks"].as_array().is_some_and(|tasks| !tasks.is_empty()) => Some(HookCall::Works),
        "Stop" => Some(HookCall::TurnEnded { text: text("last_assistant_message") }),
        "StopFailure" => waits(failure(&text("error")), text("last_assistant_message")),
        _ => None,
    }
}

/// An event of opencode.
fn event(said: &Value) -> Option<HookCall> {
    let about = &said["properties"];
    let texts = |list: &Value, text: &dyn Fn(&Value) -> Option<String>| {
        let all = list.as_array().map(Vec::as_slice).unwrap_or_default();
        all.iter().filter_map(text).collect::<Vec<_>>().join(" ")
    };
    match said["type"].as_str()? {
        "permission.asked" => {
            let wanted = texts(&about["patterns"], &|it| it.as_str().map(str::to_owned));
            let text = format!("{}: {wanted}", about["permission"].as_str().unwrap_or_default());
            Some(HookCall::Waits { what: AgentDialog::Permission, text })
        }
        "question.asked" => {
            let text = texts(&about["questions"], &|it| it["question"].as_str().map(str::to_owned));
            Some(HookCall::Waits { what: AgentDialog::Question, text })
        }
        "session.status" if about["status"]["type"] == "retry" => {
            let text = about["status"]["message"].as_str().unwrap_or_default().to_owned();
            Some(HookCall::Waits { what: unreached(&text, None), text })
        }
        "session.error" => error(&about["error"]),
        "permission.replied" | "question.replied" | "question.rejected" | "session.status" => Some(HookCall::Works),
        "session.idle" => Some(HookCall::TurnEnded { text: String::new() }),
        _ => None,
    }
}

/// A turn of opencode that failed. One that a person broke off waits for that person anyway.
fn error(error: &Value) -> Option<HookCall> {
    let name = error["name"].as_str().filter(|name| *name != "MessageAbortedError")?;
    let text = error["data"]["message"].as_str().unwrap_or(name).to_owned();
    let what = match name {
        "ProviderAuthError" => AgentDialog::Login,
        _ => unreached(&text, error["data"]["statusCode"].as_u64()),
    };
    Some(HookCall::Waits { what, text })
}

/// What it means that a model gives no answer, by the status of the answer or by the words about it.
fn unreached(text: &str, status: Option<u64>) -> AgentDialog {
    let text = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match status {
        Some(401 | 403) => AgentDialog::Login,
        Some(402 | 429) => AgentDialog::Limit,
        Some(_) => AgentDialog::Other,
        None if says(&["unauthorized", "api key", "401"]) => AgentDialog::Login,
        None if says(&["rate limit", "too many requests", "quota", "overloaded", "429"]) => AgentDialog::Limit,
        None => AgentDialog::Network,
    }
}

/// The questions of a tool that asks its user, if this is one.
fn question(said: &Value) -> Option<String> {
    matches!(said["tool_name"].as_str(), Some("AskUserQuestion" | "request_user_input")).then(|| {
        let questions = said["tool_input"]["questions"].as_array().map(Vec::as_slice).unwrap_or_default();
        questions.iter().filter_map(|it| it["question"].as_str()).collect::<Vec<_>>().join(" ")
    })
}

fn permission(tool: &str, input: &Value) -> String {
    let told = ["command", "file_path", "url", "path"].iter().find_map(|key| input[key].as_str());
    told.map_or_else(|| tool.to_owned(), |told| format!("{tool}: {told}"))
}

/// What the words of claude for a failed turn mean.
fn failure(error: &str) -> AgentDialog {
    match error {
        "rate_limit" | "billing_error" | "overloaded" => AgentDialog::Limit,
        "authentication_failed" | "oauth_org_not_allowed" => AgentDialog::Login,
        "server_error" | "unknown" => AgentDialog::Network,
        _ => AgentDialog::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(session: Option<&str>) -> HookSite<'_> {
        let (sluice, private) = (Path::new("/opt/it's/sluice"), Path::new("/home/a"));
        HookSite { sluice, session, private, own_folder: Some(PathBuf::from("/home/a/codex")) }
    }

    #[test]
    fn a_file_of_hooks_calls_our_own_command() {
        let made = setup(HarnessFormat::Claude, &site(Some("k3f9.2"))).unwrap();
        let file = made.file.unwrap();
        assert_eq!((made.word.as_str(), file.path), ("/home/a/hooks.json", PathBuf::from("/home/a/hooks.json")));
        let content: Value = serde_json::from_slice(&file.content).unwrap();
        let stop = &content["hooks"]["Stop"][0]["hooks"][0];
        assert_eq!(stop["command"], r"'/opt/it'\''s/sluice' hook claude 'k3f9.2'");
        assert_eq!((stop["type"].as_str(), stop["timeout"].as_u64()), (Some("command"), Some(SECONDS)));
        assert_eq!(content["hooks"]["PreToolUse"][0]["matcher"], "AskUserQuestion");
        let silent = setup(HarnessFormat::Claude, &site(None)).unwrap().file.unwrap();
        assert_eq!(silent.content, br#"{"hooks":{}}"#);
        assert!(setup(HarnessFormat::Gemini, &site(None)).is_none());
    }

    /// codex 0.169.0 ran a hook under this digest.
    #[test]
    fn codex_trusts_what_we_wrote_and_nothing_else() {
        let site = HookSite { sluice: Path::new("/opt/sluice"), ..site(Some("k3f9.2")) };
        let word = setup(HarnessFormat::Codex, &site).unwrap().word;
        let parsed: toml::Table = toml::from_str(&word).unwrap();
        let state = parsed["hooks"]["state"].as_table().unwrap();
        assert_eq!(state.len(), CODEX.len());
        let stop = r#"{"event_name":"stop","hooks":[{"async":false,"command":"'/opt/sluice' hook codex 'k3f9.2'","timeout":5,"type":"command"}]}"#;
        let digest: String = Sha256::digest(stop).iter().map(|byte| format!("{byte:02x}")).collect();
        let trusted = state["/home/a/codex/hooks.json:stop:0:0"]["trusted_hash"].as_str().unwrap();
        assert_eq!(trusted, format!("sha256:{digest}"));
    }

    #[test]
    fn a_plugin_is_added_to_the_settings_that_are_there() {
        let site = site(Some("k3f9.2"));
        let (file, settings) =
            plugin(HarnessFormat::Opencode, &site, Some(r#"{"model":"m","plugin":["mine"]}"#)).unwrap();
        let settings: Value = serde_json::from_str(&settings).unwrap();
        assert_eq!(settings, serde_json::json!({ "model": "m", "plugin": ["mine", "file:///home/a/hooks.js"] }));
        let text = String::from_utf8(file.content).unwrap();
        assert!(text.starts_with("const SLUICE = \"/opt/it's/sluice\";\nconst SESSION = \"k3f9.2\";\n"), "{text}");
        assert!(plugin(HarnessFormat::Opencode, &site, Some("broken")).is_none());
        assert!(plugin(HarnessFormat::Claude, &site, None).is_none());
        let read = |text: &str| HookCall::read(HarnessFormat::Opencode, text.as_bytes());
        // As opencode 1.18.33 said it.
        let asked = r#"{"type":"permission.asked","properties":{"permission":"bash","patterns":["rm -rf x"]}}"#;
        let text = "bash: rm -rf x".to_owned();
        assert_eq!(read(asked), Some(HookCall::Waits { what: AgentDialog::Permission, text }));
        assert_eq!(read(r#"{"type":"permission.replied","properties":{"reply":"once"}}"#), Some(HookCall::Works));
        assert_eq!(read(r#"{"type":"session.idle"}"#), Some(HookCall::TurnEnded { text: String::new() }));
        let waits = |what, text: &str| Some(HookCall::Waits { what, text: text.to_owned() });
        let retry = r#"{"type":"session.status","properties":{"status":{"type":"retry","attempt":3,"message":"WHY"}}}"#;
        let why = "Cannot connect to API: Was there a typo in the url or port?";
        assert_eq!(read(&retry.replace("WHY", why)), waits(AgentDialog::Network, why));
        assert_eq!(read(&retry.replace("WHY", "Too Many Requests")), waits(AgentDialog::Limit, "Too Many Requests"));
        assert_eq!(read(&retry.replace("retry", "busy")), Some(HookCall::Works));
        let error = r#"{"type":"session.error","properties":{"error":{"name":"NAME","data":{"message":"no","statusCode":401}}}}"#;
        assert_eq!(read(&error.replace("NAME", "APIError")), waits(AgentDialog::Login, "no"));
        assert_eq!(read(&error.replace("NAME", "MessageAbortedError")), None);
    }

    #[test]
    fn what_programs_hand_to_their_hooks_is_understood() {
        let read = |text: &str| HookCall::read(HarnessFormat::Claude, text.as_bytes());
        let waits = |what, text: &str| Some(HookCall::Waits { what, text: text.to_owned() });
        // As claude 2.1.326 said it.
        let ask = r#"{"hook_event_name":"EVENT","tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"Which colour?"}]}}"#;
        for event in ["PreToolUse", "PermissionRequest"] {
            assert_eq!(read(&ask.replace("EVENT", event)), waits(AgentDialog::Question, "Which colour?"));
        }
        let bash = r#"{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"rm -rf x"}}"#;
        assert_eq!(read(bash), waits(AgentDialog::Permission, "Bash: rm -rf x"));
        let stop = r#"{"hook_event_name":"Stop","last_assistant_message":"Done.","background_tasks":[]}"#;
        assert_eq!(read(stop), Some(HookCall::TurnEnded { text: "Done.".into() }));
        assert_eq!(read(&stop.replace("[]", "[{}]")), Some(HookCall::Works));
        let limit = r#"{"hook_event_name":"StopFailure","error":"rate_limit","last_assistant_message":"429"}"#;
        assert_eq!(read(limit), waits(AgentDialog::Limit, "429"));
        assert_eq!(read(r#"{"hook_event_name":"PostToolUse","tool_name":"Bash"}"#), Some(HookCall::Works));
        let none = ["", "[]", "{}", "\u{1b}", r#"{"hook_event_name":"PreToolUse","tool_name":"Bash"}"#];
        assert_eq!(none.map(read), [None, None, None, None, None]);
    }

    #[test]
    fn a_dialog_has_the_name_of_its_end_and_no_other() {
        let claude = |text: &str| HookCall::dialog(HarnessFormat::Claude, text.as_bytes());
        let of = |event: &str, tool: &str, input: &str| {
            let text = r#"{"hook_event_name":"EVENT","tool_name":"TOOL","tool_input":INPUT}"#;
            claude(&text.replace("EVENT", event).replace("TOOL", tool).replace("INPUT", input))
        };
        let asked = of("PermissionRequest", "Bash", r#"{"command":"rm -rf beans","description":"tidy"}"#);
        assert!(asked.is_some());
        assert_eq!(asked, of("PostToolUse", "Bash", r#"{"command":"rm -rf beans"}"#));
        assert_ne!(asked, of("PostToolUse", "Bash", r#"{"command":"ls"}"#));
        assert_ne!(asked, of("PostToolUse", "Read", r#"{"file_path":"beans"}"#));
        let question = of("PreToolUse", "AskUserQuestion", r#"{"questions":[{"question":"Which?"}]}"#);
        assert_eq!(question, of("PostToolUse", "AskUserQuestion", r#"{"questions":[],"answers":{"Which?":"this"}}"#));
        assert_eq!((of("Stop", "", "{}"), claude(r#"{"hook_event_name":"UserPromptSubmit"}"#)), (None, None));
        let opencode = |text: &str| HookCall::dialog(HarnessFormat::Opencode, text.as_bytes());
        let asked = opencode(r#"{"type":"permission.asked","properties":{"id":"per_1","sessionID":"s"}}"#);
        assert_eq!(asked.as_deref(), Some("per_1"));
        assert_eq!(
            opencode(r#"{"type":"permission.replied","properties":{"requestID":"per_1","reply":"once"}}"#),
            asked
        );
        assert_eq!(opencode(r#"{"type":"session.idle","properties":{}}"#), None);
    }
}
