//! The channels through which a person is told: the desktop, a command, webhooks. Each takes one message at a time, within a time
//! limit, and says whether it has. Of the address of a webhook nothing but the host is ever said.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use sluice_api::client::Outside;
use sluice_api::notice::{AttentionMessage, ChannelOutcome, ChannelReport, SlackMessage};
use sluice_os::harness::find_program;
use sluice_os::process::{ProcessEnding, ProcessScript, ScriptProgram};

use crate::home::Home;
use crate::home::hook::{bad_end, hook};
use crate::perform::inherited;
use crate::settings::clock::id_from;
use crate::settings::config::{WebhookConfig, WebhookKind};
use crate::undone::{PerformError, settled};

/// How long a program may take to tell a person.
pub(crate) const PROGRAM_LIMIT: Duration = Duration::from_secs(30);
/// Without one of these no program can show anything on a desktop.
const DISPLAYS: [&str; 3] = ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"];
/// Who the records of the programs belong to, beside tasks and runs.
const RECORD: &str = "notify";

enum NoticeWay {
    NotifySend,
    AppleScript,
    Command(Vec<String>),
    Webhook(WebhookConfig),
}

/// Why a channel has not taken a message.
#[derive(Debug)]
pub(crate) enum NoticeFailure {
    /// It does not take this message, and would take another.
    Refused(String),
    /// It takes nothing at present.
    Away(String),
}

impl NoticeFailure {
    /// The programs that show something on a desktop fail alike for a message and for a desktop that is not there, and what they get
    /// is clean.
    fn of_desktop(self) -> NoticeFailure {
        NoticeFailure::Away(self.why())
    }

    fn why(self) -> String {
        match self {
            NoticeFailure::Refused(why) | NoticeFailure::Away(why) => why,
        }
    }
}

/// A channel that is there.
pub(crate) struct NoticeChannel {
    /// What it is called in front of people.
    pub(crate) name: String,
    /// What it is called where it is written down what it has taken. It holds no secret.
    pub(crate) key: String,
    way: NoticeWay,
}

impl NoticeChannel {
    pub(crate) fn is_command(&self) -> bool {
        matches!(self.way, NoticeWay::Command(_))
    }

    /// Gives the message to the channel. The error says why it was not taken.
    pub(crate) fn send(&self, home: &Home, message: &AttentionMessage) -> Result<(), NoticeFailure> {
        let body = with_answer(message);
        match &self.way {
            NoticeWay::NotifySend => {
                // The body is markup for most desktops, the title for none.
                let body = escaped(&body);
                let words = ["notify-send", "--app-name=Sluice", "--", &message.title, &body];
                run(home, &self.key, words.map(str::to_owned).to_vec(), message, Vec::new())
                    .map_err(NoticeFailure::of_desktop)
            }
            NoticeWay::AppleScript => {
                let script = "display notification (item 2 of argv) with title (item 1 of argv)";
                let words =
                    ["osascript", "-e", "on run argv", "-e", script, "-e", "end run", "--", &message.title, &body];
                run(home, &self.key, words.map(str::to_owned).to_vec(), message, Vec::new())
                    .map_err(NoticeFailure::of_desktop)
            }
            NoticeWay::Command(command) => {
                let input = format!("{}\n{body}\n", message.title).into_bytes();
                run(home, &self.key, command.clone(), message, input)
            }
            NoticeWay::Webhook(webhook) => post(webhook, message, body),
        }
    }

    /// The same, as a report for a person.
    pub(crate) fn test(&self, home: &Home, message: &AttentionMessage) -> ChannelReport {
        let sent = self.send(home, message);
        let outcome = if sent.is_ok() { ChannelOutcome::Sent } else { ChannelOutcome::Failed };
        ChannelReport { channel: self.name.clone(), outcome, why: sent.err().map(NoticeFailure::why) }
    }
}

/// All channels that a person has set: those that are there, and why the others are not.
pub(crate) fn all(home: &Home) -> (Vec<NoticeChannel>, Vec<ChannelReport>) {
    let config = home.context.config().notify.clone();
    let (mut there, mut absent) = (Vec::new(), Vec::new());
    let own = |name: &str, way| NoticeChannel { name: name.to_owned(), key: name.to_owned(), way };
    if config.desktop {
        match desktop(&inherited(&home.context), home.context.places.home()) {
            Ok(way) => there.push(own("desktop", way)),
            Err(why) => absent.push(ChannelReport {
                channel: "desktop".to_owned(),
                outcome: ChannelOutcome::Absent,
                why: Some(why),
            }),
        }
    }
    if !config.command.is_empty() {
        there.push(own("command", NoticeWay::Command(config.command)));
    }
    there.extend(config.webhook.into_iter().map(|webhook| {
        let host = Outside::at(&webhook.url, &[]).map(|server| server.host().to_owned());
        NoticeChannel {
            name: host.map_or_else(|_| "webhook".to_owned(), |host| format!("webhook {host}")),
            key: format!("webhook-{}", id_from(&[&webhook.url])),
            way: NoticeWay::Webhook(webhook),
        }
    }));
    (there, absent)
}

/// Whether a person with this environment has a desktop that can be told; if not, why.
pub(crate) fn has_desktop(environment: &BTreeMap<String, String>, folder: &Path) -> Result<(), String> {
    desktop(environment, folder).map(drop)
}

/// The program that shows something on the desktop of the person who has this environment.
fn desktop(environment: &BTreeMap<String, String>, folder: &Path) -> Result<NoticeWay, String> {
    let path = environment.get("PATH").map(String::as_str);
    let is_there = |program: &str| find_program(program, path, folder).is_some();
    if is_there("osascript") {
        return Ok(NoticeWay::AppleScript);
    }
    if !is_there("notify-send") {
        return Err("neither `notify-send` nor `osascript` is on the PATH of your last command".to_owned());
    }
    if !DISPLAYS.iter().any(|name| environment.get(*name).is_some_and(|value| !value.is_empty())) {
        return Err(format!("your last command had none of {} in its environment", DISPLAYS.join(", ")));
    }
    Ok(NoticeWay::NotifySend)
}

fn with_answer(message: &AttentionMessage) -> String {
    let lines = [Some(&message.text), message.answer.as_ref(), message.link.as_ref()];
    lines.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join("\n")
}

fn run(
    home: &Home,
    key: &str,
    words: Vec<String>,
    message: &AttentionMessage,
    input: Vec<u8>,
) -> Result<(), NoticeFailure> {
    let perform = || -> Result<Option<(ProcessEnding, String)>, PerformError> {
        let mut script = hook(home, RECORD, key, ScriptProgram::Arguments(words), home.context.places.home())?;
        let about = serde_json::to_string(message).unwrap_or_default();
        script.environment.insert("SLUICE_ATTENTION".to_owned(), about);
        bad_end(home, &ProcessScript { input, timeout: Some(PROGRAM_LIMIT), ..script })
    };
    match settled(perform()) {
        Ok(Ok(None)) => Ok(()),
        // A shell says by these that what it should run is not there.
        Ok(Ok(Some((ProcessEnding::Code(code), why)))) if ![126, 127].contains(&code) => {
            Err(NoticeFailure::Refused(why))
        }
        Ok(Ok(Some((_, why)))) => Err(NoticeFailure::Away(why)),
        Ok(Err(failed)) => Err(NoticeFailure::Away(failed.error.to_string())),
        Err(unavailable) => Err(NoticeFailure::Away(unavailable.0)),
    }
}

fn post(webhook: &WebhookConfig, message: &AttentionMessage, body: String) -> Result<(), NoticeFailure> {
    let as_header = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    let id = if as_header(&message.id) { message.id.clone() } else { id_from(&[&message.id]) };
    let mut headers = vec![("Idempotency-Key".to_owned(), id)];
    let (media, body) = match webhook.kind {
        WebhookKind::Json => ("application/json", serde_json::to_vec(message).unwrap_or_default()),
        WebhookKind::Slack => {
            let text = format!("*{}*\n{}", escaped(&message.title), escaped(&body));
            ("application/json", serde_json::to_vec(&SlackMessage { text }).unwrap_or_default())
        }
        WebhookKind::Ntfy => {
            // A header has room for ASCII only; the whole of it stands in the body.
            let title: String =
                message.title.chars().map(|it| if matches!(it, ' '..='~') { it } else { '?' }).collect();
            headers.push(("Title".to_owned(), title));
            headers.extend(message.reason.map(|reason| ("Tags".to_owned(), reason.to_string())));
            headers.extend(message.link.as_ref().filter(|it| as_header(it)).map(|it| ("Click".to_owned(), it.clone())));
            ("text/plain; charset=utf-8", format!("{}\n{body}", message.title).into_bytes())
        }
    };
    let server = Outside::at(&webhook.url, &headers).map_err(|problem| NoticeFailure::Away(problem.message))?;
    server.post_as(media, body).map_err(|problem| match problem.is_passing() {
        true => NoticeFailure::Away(problem.message),
        false => NoticeFailure::Refused(problem.message),
    })
}

/// Text in which nothing is markup, as Slack and desktops want it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
