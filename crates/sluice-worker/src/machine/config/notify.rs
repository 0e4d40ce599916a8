//! `[notify]`: the channels through which a person is told, and when not. It sends nothing.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// What a person is told with.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifyConfig {
    /// Whether the desktop shows what waits for you: with `notify-send` or `osascript`, where one of them is there.
    #[schemars(example = false)]
    pub desktop: bool,
    /// Whether a command that you follow at a terminal (`start`, `task wait`, `run wait`, `inbox --watch`) rings and shows a message
    /// there (OSC 9) when something needs you.
    #[schemars(example = false)]
    pub terminal: bool,
    /// A program and its arguments; the message comes on its standard input, and as JSON in SLUICE_ATTENTION.
    #[schemars(extend("examples" = [["notify-send", "Sluice"]]))]
    pub command: Vec<String>,
    /// The hours of the day (local time) in which you are told nothing; at their end you are told everything at once.
    #[schemars(example = &"22:00-07:00")]
    pub quiet: Option<QuietHours>,
    /// The address at which you open the page that `sluice serve` serves; messages then link to the task or run there.
    #[schemars(example = &"https://sluice.example:7373")]
    pub page: Option<String>,
    /// Servers that are told.
    pub webhook: Vec<WebhookConfig>,
}

impl Default for NotifyConfig {
    fn default() -> NotifyConfig {
        NotifyConfig {
            desktop: true,
            terminal: true,
            command: Vec::new(),
            quiet: None,
            page: None,
            webhook: Vec::new(),
        }
    }
}

/// A server that is told what waits for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    /// The address that messages are posted to. Only its host is ever shown or logged.
    #[schemars(example = &"https://ntfy.sh/my-topic")]
    pub url: String,
    /// The form of the messages.
    #[serde(default)]
    #[schemars(example = &"ntfy")]
    pub kind: WebhookKind,
}

/// The form of the messages for a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WebhookKind {
    /// One JSON document with all that is known.
    #[default]
    Json,
    /// What an incoming webhook of Slack takes.
    Slack,
    /// What ntfy takes: plain text, with a title.
    Ntfy,
}

/// Hours of the day, in minutes since midnight: from the first to before the second, which may be on the next day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct QuietHours {
    from: u16,
    to: u16,
}

impl QuietHours {
    /// Whether this minute of the day is among them.
    pub fn hold(self, minute: u16) -> bool {
        match self.from <= self.to {
            true => (self.from..self.to).contains(&minute),
            false => minute >= self.from || minute < self.to,
        }
    }
}

fn minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |text: &str| text.parse::<u16>().ok().filter(|_| text.len() == 2);
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
}

impl TryFrom<String> for QuietHours {
    type Error = String;

    fn try_from(text: String) -> Result<QuietHours, String> {
        let hours = text.split_once('-').and_then(|(from, to)| Some((minute(from)?, minute(to)?)));
        let hours = hours.filter(|(from, to)| from != to);
        let (from, to) = hours.ok_or_else(|| format!("`{text}` is not of the form 22:00-07:00"))?;
        Ok(QuietHours { from, to })
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QuietHours { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

impl From<QuietHours> for String {
    fn from(hours: QuietHours) -> String {
        hours.to_string()
    }
}

impl JsonSchema for QuietHours {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "QuietHours".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]{2}:[0-9]{2}-[0-9]{2}:[0-9]{2}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_hours_may_end_on_the_next_day() {
        let held =
            |hours: &str, at: &str| QuietHours::try_from(hours.to_owned()).map(|it| it.hold(minute(at).unwrap()));
        for (hours, at, is_quiet) in [
            ("22:00-07:00", "21:59", false),
            ("22:00-07:00", "22:00", true),
            ("22:00-07:00", "06:59", true),
            ("22:00-07:00", "07:00", false),
            ("12:00-13:00", "12:30", true),
            ("12:00-13:00", "13:00", false),
            ("12:01-12:00", "12:00", false),
            ("12:01-12:00", "11:59", true),
        ] {
            assert_eq!(held(hours, at), Ok(is_quiet), "{hours} {at}");
        }
        for wrong in ["", "22-7", "22:00", "24:00-07:00", "22:60-07:00", "07:00-07:00", "2:00-07:00"] {
            assert!(held(wrong, "00:00").is_err(), "{wrong}");
        }
        assert_eq!(QuietHours::try_from("22:00 - 07:00".to_owned()).unwrap().to_string(), "22:00-07:00");
    }
}
