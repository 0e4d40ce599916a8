//! From what an agent program prints to what happened: progress on the way, and how it ended.
//!
//! Success is never the exit status or one word of the stream alone. Usage is rather reported too low than twice, and
//! what is unknown stays unknown. Whatever a program prints, only so much of it is kept.

use serde::Deserialize;
use serde_json::Value;

mod agy;
mod aider;
mod claude;
mod codex;
mod copilot;
mod gemini;
mod goose;
mod opencode;
mod pi;
mod state;

use super::result;
use state::HarnessStreamState;

/// Bytes of one line; a longer one is passed over.
pub const LONGEST_LINE: usize = 8 << 20;
/// Bytes of text that are kept of one message; of more, the end.
pub const LONGEST_TEXT: usize = 1 << 20;
/// Bytes of what a program complains that are kept for the message about its end.
const LONGEST_COMPLAINT: usize = 2 << 10;

macro_rules! outputs {
    ($($(#[$default:meta])? $name:ident = $word:literal,)+) => {
        /// How the stream of a program is read, by the words of `config.toml`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
        pub enum HarnessFormat {
            $(#[doc = $word] #[serde(rename = $word)] $(#[$default])? $name,)+
        }

        impl HarnessFormat {
            pub const ALL: &[HarnessFormat] = &[$(HarnessFormat::$name,)+];

            pub fn word(self) -> &'static str {
                match self { $(HarnessFormat::$name => $word,)+ }
            }
        }
    };
}

outputs! {
    #[default]
    Text = "text",
    Claude = "claude",
    Codex = "codex",
    Gemini = "gemini",
    Opencode = "opencode",
    Goose = "goose",
    Cursor = "cursor",
    Amp = "amp",
    Pi = "pi",
    Copilot = "copilot",
    Qwen = "qwen",
    Agy = "agy",
    Aider = "aider",
}

impl HarnessFormat {
    pub fn read(word: &str) -> Option<HarnessFormat> {
        HarnessFormat::ALL.iter().copied().find(|output| output.word() == word)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HarnessProgress {
    Text(String),
    Tool(String),
    Usage(HarnessUsage),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HarnessUsage {
    /// Tokens read, from the cache or not.
    pub input: Option<u64>,
    /// Those of them that came from the cache.
    pub cached: Option<u64>,
    pub output: Option<u64>,
    pub total: Option<u64>,
    /// Millionths of a US dollar.
    pub cost: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// When it will be over, in seconds of the Unix clock, if that was said.
    pub resets_at: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HarnessExit {
    Code(i32),
    /// By a signal, ours or another's.
    Signal(i32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarnessEnd {
    pub text: String,
    /// What the program calls the conversation, to resume it.
    pub session: Option<String>,
    pub usage: HarnessUsage,
    /// Why it did not end well; `None` if it did.
    pub error: Option<String>,
    pub rate_limit: Option<RateLimit>,
}

#[derive(Debug, Default)]
pub struct HarnessReader {
    output: HarnessFormat,
    line: Vec<u8>,
    overlong: bool,
    state: HarnessStreamState,
}

impl HarnessReader {
    pub fn new(output: HarnessFormat) -> HarnessReader {
        HarnessReader { output, ..HarnessReader::default() }
    }

    /// Takes what was printed, in pieces of any size.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<HarnessProgress> {
        if self.output == HarnessFormat::Text {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.state.text.push(bytes);
            return vec![HarnessProgress::Text(text)];
        }
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.keep(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.keep(rest);
        self.state.take_progress()
    }

    /// Whether the final message has come: from here on [`super::HarnessWatchdogs::after_result`] counts.
    pub fn is_final(&self) -> bool {
        self.state.ending.is_some()
    }

    /// How it ended, given how its process did and the end of what it complained about on stderr.
    pub fn finish(mut self, exit: HarnessExit, stderr: &[u8]) -> HarnessEnd {
        self.end_line();
        if self.output == HarnessFormat::Aider {
            aider::finish(&mut self.state);
        }
        let text = self.state.last_message();
        let said = result::result(&text);
        let error = self.error(exit, &text, stderr).or_else(|| {
            (said.success == Some(false)).then(|| format!("the agent says that it did not succeed: {}", said.summary))
        });
        let rate_limit = error.as_deref().and_then(|error| self.state.rate_limit.or(limit_in_words(error)));
        let usage = self.state.usage();
        HarnessEnd { text, session: self.state.session, usage, error, rate_limit }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.overlong || self.line.len() + bytes.len() > LONGEST_LINE {
            self.overlong = true;
            self.line.clear();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.overlong) {
            return;
        }
        if self.output == HarnessFormat::Aider {
            return aider::line(&String::from_utf8_lossy(&line), &mut self.state);
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match serde_json::from_slice::<Value>(&line) {
            Ok(event @ Value::Object(_)) => self.event(&event),
            Ok(_) | Err(_) => self.state.noise(&String::from_utf8_lossy(&line)),
        }
    }

    fn event(&mut self, event: &Value) {
        let state = &mut self.state;
        match self.output {
            HarnessFormat::Text | HarnessFormat::Aider => {}
            HarnessFormat::Claude => claude::event(event, state, claude::ClaudeVariant::Claude),
            HarnessFormat::Amp => claude::event(event, state, claude::ClaudeVariant::Amp),
            HarnessFormat::Qwen => claude::event(event, state, claude::ClaudeVariant::Qwen),
            HarnessFormat::Cursor => claude::cursor_event(event, state),
            HarnessFormat::Codex => codex::event(event, state),
            HarnessFormat::Gemini => gemini::event(event, state),
            HarnessFormat::Opencode => opencode::event(event, state),
            HarnessFormat::Goose => goose::event(event, state),
            HarnessFormat::Pi => pi::event(event, state),
            HarnessFormat::Copilot => copilot::event(event, state),
            HarnessFormat::Agy => agy::event(event, state),
        }
    }

    fn error(&self, exit: HarnessExit, text: &str, stderr: &[u8]) -> Option<String> {
        let how = exit_words(self.output, exit);
        let complaint = || {
            let stderr = String::from_utf8_lossy(&stderr[stderr.len().saturating_sub(LONGEST_COMPLAINT)..]);
            let (trouble, noise) = (self.state.trouble.as_deref(), self.state.noise.as_deref());
            let said = [trouble.unwrap_or_default(), stderr.trim(), noise.unwrap_or_default()];
            let said = said.into_iter().find(|words| !words.is_empty());
            said.map_or_else(String::new, |words| format!(": {words}"))
        };
        if self.output == HarnessFormat::Text {
            return (exit != HarnessExit::Code(0)).then(|| format!("it {how}{}", complaint()));
        }
        match (&self.state.ending, exit) {
            (None, _) => Some(format!("it {how} without a final message{}", complaint())),
            (Some(Err(error)), _) => Some(error.clone()),
            (Some(Ok(())), HarnessExit::Code(code)) if code != 0 => {
                Some(format!("it {how} after its final message{}", complaint()))
            }
            (Some(Ok(())), _) if text.trim().is_empty() && !self.state.used_tools => {
                Some(format!("it ended without having said or done anything{}", complaint()))
            }
            (Some(Ok(())), _) => None,
        }
    }
}

fn exit_words(output: HarnessFormat, exit: HarnessExit) -> String {
    let meaning = match (output, exit) {
        (HarnessFormat::Gemini | HarnessFormat::Qwen, HarnessExit::Code(41)) => " (it is not logged in)",
        (HarnessFormat::Gemini | HarnessFormat::Qwen, HarnessExit::Code(42)) => " (it did not accept its input)",
        (HarnessFormat::Gemini | HarnessFormat::Qwen, HarnessExit::Code(53)) => " (it ran out of turns)",
        (HarnessFormat::Gemini, HarnessExit::Code(55)) => " (it does not trust the folder)",
        (HarnessFormat::Qwen, HarnessExit::Code(55)) => " (it used up the time or the tool calls that it was allowed)",
        (_, HarnessExit::Code(_) | HarnessExit::Signal(_)) => "",
    };
    match exit {
        HarnessExit::Code(code) => format!("ended with exit status {code}{meaning}"),
        HarnessExit::Signal(signal) => format!("was ended by signal {signal}"),
    }
}

/// A limit that is told in words only.
fn limit_in_words(error: &str) -> Option<RateLimit> {
    let error = error.to_ascii_lowercase();
    let signs = ["rate limit", "rate_limit", "ratelimit", "usage limit", "usage_limit", "quota", "too many requests"];
    signs.iter().any(|sign| error.contains(sign)).then_some(RateLimit { resets_at: None })
}
