//! What is known of an attempt so far, whatever its program: the words of all readers.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{HarnessProgress, HarnessUsage, LONGEST_COMPLAINT, LONGEST_TEXT, RateLimit};

/// Messages whose usage is remembered one by one; a program that sends more is counted too low.
const MOST_MESSAGES: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct HarnessStreamState {
    pub(super) text: TextTail,
    /// The one before it, should it stay empty.
    before: String,
    pub(super) session: Option<String>,
    /// The final message: how it says that it ended.
    pub(super) ending: Option<Result<(), String>>,
    pub(super) trouble: Option<String>,
    /// The last thing that the program printed outside its stream.
    pub(super) noise: Option<String>,
    /// Which message is being said, where they have names.
    message_id: Option<String>,
    pub(super) rate_limit: Option<RateLimit>,
    pub(super) used_tools: bool,
    /// Usage by message: the same message may come several times.
    parts: BTreeMap<String, HarnessUsage>,
    /// What the final message says about all of it.
    total: Option<HarnessUsage>,
    progress: Vec<HarnessProgress>,
}

impl HarnessStreamState {
    pub(super) fn take_progress(&mut self) -> Vec<HarnessProgress> {
        std::mem::take(&mut self.progress)
    }

    pub(super) fn say(&mut self, words: &str) {
        if !words.is_empty() {
            self.text.push(words.as_bytes());
            self.progress.push(HarnessProgress::Text(words.to_owned()));
        }
    }

    pub(super) fn new_message(&mut self) {
        let message = self.text.take();
        if !message.trim().is_empty() {
            self.before = message;
        }
    }

    /// What was said of the current message was none.
    pub(super) fn forget(&mut self) {
        self.text.take();
    }

    pub(super) fn has_begun(&self) -> bool {
        !self.text.bytes.iter().all(u8::is_ascii_whitespace)
    }

    /// Whether something was used up, so that somebody has answered.
    pub(super) fn has_answered(&self) -> bool {
        !self.parts.is_empty()
    }

    pub(super) fn message(&mut self, words: &str) {
        self.new_message();
        self.say(words);
    }

    pub(super) fn tool(&mut self, name: &str) {
        self.used_tools = true;
        self.new_message();
        self.progress.push(HarnessProgress::Tool(name.to_owned()));
    }

    /// The final message is the whole answer, whatever was said before it.
    pub(super) fn answer(&mut self, words: &str) {
        if !words.trim().is_empty() {
            self.text.take();
            self.text.push(words.as_bytes());
        }
    }

    /// What the message called `id` used up; said again, it counts once.
    pub(super) fn used_by(&mut self, id: &str, usage: HarnessUsage) {
        if self.parts.len() < MOST_MESSAGES || self.parts.contains_key(id) {
            self.parts.insert(id.to_owned(), usage);
            self.progress.push(HarnessProgress::Usage(usage));
        }
    }

    /// What a step without a name used up.
    pub(super) fn used(&mut self, usage: HarnessUsage) {
        let id = format!("#{}", self.parts.len());
        self.used_by(&id, usage);
    }

    /// What everything used up. Of several such totals the largest counts, not their sum.
    pub(super) fn used_in_all(&mut self, usage: HarnessUsage) {
        self.total = Some(match self.total {
            None => usage,
            Some(before) => combine(before, usage, u64::max),
        });
        self.progress.push(HarnessProgress::Usage(usage));
    }

    pub(super) fn usage(&self) -> HarnessUsage {
        let parts = self.parts.values().copied().reduce(|sum, part| combine(sum, part, u64::saturating_add));
        combine(self.total.unwrap_or_default(), parts.unwrap_or_default(), |total, _| total)
    }

    pub(super) fn complain(&mut self, words: &str) {
        self.trouble = Some(beginning(words));
    }

    pub(super) fn noise(&mut self, words: &str) {
        self.noise = Some(beginning(words));
    }

    /// What comes now belongs to the message called `id`.
    pub(super) fn in_message(&mut self, id: Option<&str>) {
        if id != self.message_id.as_deref() {
            self.new_message();
            self.message_id = id.map(str::to_owned);
        }
    }

    pub(super) fn end(&mut self, how: Result<(), String>) {
        self.ending = Some(how);
    }

    /// It ends with the status that an event names, well if it is one of these.
    pub(super) fn end_by_status(&mut self, event: &Value, well: &[&str]) {
        let status = text(event, "/status").unwrap_or("unknown");
        if well.contains(&status) {
            return self.end(Ok(()));
        }
        let words = error_words(event).or_else(|| self.trouble.clone());
        self.end(Err(words.unwrap_or_else(|| format!("it ended with the status {status}"))));
    }

    pub(super) fn fail(&mut self, event: &Value) {
        let words = error_words(event).unwrap_or_else(|| "an error".to_owned());
        self.complain(&words);
        self.end(Err(words));
    }

    pub(super) fn last_message(&mut self) -> String {
        self.new_message();
        std::mem::take(&mut self.before)
    }
}

fn beginning(words: &str) -> String {
    let end = words.char_indices().nth(LONGEST_COMPLAINT).map_or(words.len(), |(index, _)| index);
    words[..end].trim().to_owned()
}

/// Known only where one side knows: a sum without its unknown part is too low, which is better than too high.
pub(super) fn combine(left: HarnessUsage, right: HarnessUsage, how: fn(u64, u64) -> u64) -> HarnessUsage {
    let both = |left: Option<u64>, right: Option<u64>| match (left, right) {
        (Some(left), Some(right)) => Some(how(left, right)),
        (one, other) => one.or(other),
    };
    HarnessUsage {
        input: both(left.input, right.input),
        cached: both(left.cached, right.cached),
        output: both(left.output, right.output),
        total: both(left.total, right.total),
        cost: both(left.cost, right.cost),
    }
}

/// The end of a text that may be endless.
#[derive(Debug, Default)]
pub(super) struct TextTail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl TextTail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Cut at twice the length, so that the cost of cutting is spread over as many bytes.
        if self.bytes.len() > 2 * LONGEST_TEXT {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let excess = self.bytes.len().saturating_sub(LONGEST_TEXT);
        self.is_cut |= excess > 0;
        self.bytes.drain(..excess);
    }

    fn take(&mut self) -> String {
        self.cut();
        let TextTail { bytes, is_cut } = std::mem::take(self);
        let is_inside_a_character = |byte: &&u8| (0x80..0xC0).contains(*byte);
        let rest = bytes.iter().take(3).take_while(is_inside_a_character).count();
        String::from_utf8_lossy(&bytes[if is_cut { rest } else { 0 }..]).into_owned()
    }
}

pub(super) fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path).and_then(Value::as_str)
}

/// The whole number at `path`, if it is one and not negative.
pub(super) fn count(value: &Value, path: &str) -> Option<u64> {
    let number = value.pointer(path)?;
    number.as_u64().or_else(|| number.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
}

/// The dollars at `path`, in millionths.
pub(super) fn dollars(value: &Value, path: &str) -> Option<u64> {
    let amount = value.pointer(path)?.as_f64()?;
    (amount.is_finite() && amount >= 0.0).then(|| (amount * 1e6).round() as u64)
}

/// The sum of what is known.
pub(super) fn sum<const N: usize>(parts: [Option<u64>; N]) -> Option<u64> {
    parts.into_iter().flatten().reduce(u64::saturating_add)
}

/// The words of an error, wherever programs put them.
pub(super) fn error_words(event: &Value) -> Option<String> {
    let places = [
        "/message",
        "/error/message",
        "/error/data/message",
        "/data/message",
        "/error",
        "/data/error",
        "/errorMessage",
        "/error/name",
    ];
    let words = places.iter().find_map(|place| text(event, place)).map(str::trim).filter(|words| !words.is_empty());
    words.map(str::to_owned)
}
