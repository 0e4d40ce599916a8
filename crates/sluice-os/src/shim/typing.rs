//! Typing a text into the agent's terminal: the text as one paste, then Enter as a key of its own, and after each the
//! check that the agent has read it.
//!
//! The check asks the kernel how much of the terminal's input is unread. A program that reads and throws away cannot
//! be told from one that listens, by us or by anybody who looks at its screen; `answered` says whether it printed.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::{Errno, ioctl_fionread, write};
use rustix::termios::{InputModes, LocalModes, QueueSelector, Termios, tcflush, tcgetattr};

use super::control::{ReceivedSay, SayCaller};
use crate::session::say::{SayDelivery, SayOrder};

/// How long nothing may be unread before it is believed. What is on its way inside the kernel is not counted as
/// unread, but it arrives at once where there is room.
const SETTLED: Duration = Duration::from_millis(50);
const ASK_AGAIN: Duration = Duration::from_millis(5);
/// How long is waited between the text and Enter. gemini takes an Enter that comes within 40 ms of a paste for a part of
/// it, and counts from when it got round to the paste.
const BEFORE_ENTER: Duration = Duration::from_millis(400);
/// How long a program that has just begun to read keys may take to ask for brackets. Without them, the lines of a text
/// would be as many messages.
const ASKS_FOR_BRACKETS: Duration = Duration::from_secs(1);
/// How long is waited first: what the program printed a moment ago, and what it asked for in it, is on its way.
const HEAR_FIRST: Duration = Duration::from_millis(20);
/// Bytes of a line that the kernel keeps for a program that reads lines; it drops the rest.
const LONGEST_LINE: usize = 4095;

/// Why a text does not arrive any more.
pub(super) const AGENT_HAS_ENDED: &str = "the agent has ended";

const PASTE: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// Quotes the next key for a program that reads lines.
const LITERAL_NEXT: u8 = 0x16;

pub(super) struct ShimKeyboard<'a> {
    pub(super) ours: &'a OwnedFd,
    pub(super) agents: &'a OwnedFd,
    /// The program wants pasted text in brackets.
    pub(super) brackets: bool,
    /// Bytes the program has printed so far.
    pub(super) printed: u64,
}

pub(super) enum TypingNext {
    /// Again when the terminal takes more, or at that time.
    Writable(Instant),
    At(Instant),
    Done(SayDelivery),
}

enum TypingStage {
    /// The program may not read keys yet.
    Waiting {
        from: Instant,
        until: Instant,
        /// Since when it reads keys and has not asked for brackets.
        bare: Option<Instant>,
    },
    /// The terminal has not taken all of it.
    Writing,
    /// All is written; nothing has been unread since then.
    Settling { since: Instant },
}

pub(super) struct SayTyping {
    order: SayOrder,
    text: Vec<u8>,
    pub(super) caller: SayCaller,
    stage: TypingStage,
    unsent: Vec<u8>,
    unread: u64,
    entering: bool,
    /// The kernel said after the last key that nothing is unread.
    read: bool,
    brackets: bool,
    altered: bool,
    printed_before: u64,
    give_up: Instant,
}

impl SayTyping {
    pub(super) fn new(received: ReceivedSay, now: Instant, printed: u64) -> Self {
        let from = now + HEAR_FIRST;
        let until = from + Duration::from_millis(received.order.ready_within_ms);
        Self {
            give_up: until + Duration::from_millis(received.order.patience_ms),
            order: received.order,
            text: received.text,
            caller: received.caller,
            stage: TypingStage::Waiting { from, until, bare: None },
            unsent: Vec::new(),
            unread: 0,
            entering: false,
            read: false,
            brackets: false,
            altered: false,
            printed_before: printed,
        }
    }

    pub(super) fn order_and_caller(&mut self) -> (&SayOrder, &mut SayCaller) {
        (&self.order, &mut self.caller)
    }

    /// Whether some of it is typed: a key between would spoil it.
    pub(super) fn has_begun(&self) -> bool {
        match self.stage {
            TypingStage::Waiting { .. } => false,
            TypingStage::Writing | TypingStage::Settling { .. } => true,
        }
    }

    /// The agent has ended meanwhile. One that read all of it may have done at once what it was told, and be done.
    pub(super) fn agent_ended(self, printed: u64) {
        let delivery = if self.read { self.delivered(printed) } else { not(AGENT_HAS_ENDED) };
        self.caller.answer(&delivery);
    }

    pub(super) fn end(self) -> (Option<String>, SayCaller) {
        (self.order.once, self.caller)
    }

    /// Goes on as far as it can at once.
    pub(super) fn step(&mut self, keyboard: &ShimKeyboard<'_>, now: Instant) -> TypingNext {
        loop {
            let next = match self.stage {
                TypingStage::Waiting { from, .. } if now < from => Some(TypingNext::At(from)),
                TypingStage::Waiting { until, bare, .. } => self.wait(keyboard, now, until, bare),
                TypingStage::Writing => self.write(keyboard, now),
                TypingStage::Settling { since } => self.settle(keyboard, now, since),
            };
            match next {
                Some(TypingNext::Writable(_) | TypingNext::At(_)) if now >= self.give_up => {
                    // What stays unread must not be read later, as if it had just been typed.
                    let _ = tcflush(keyboard.agents, QueueSelector::IFlush);
                    return TypingNext::Done(not("the agent did not read it"));
                }
                Some(next) => return next,
                None => {}
            }
        }
    }

    fn wait(
        &mut self,
        keyboard: &ShimKeyboard<'_>,
        now: Instant,
        until: Instant,
        bare: Option<Instant>,
    ) -> Option<TypingNext> {
        let modes = match tcgetattr(keyboard.ours) {
            Ok(modes) => modes,
            Err(error) => return Some(TypingNext::Done(not(&format!("its terminal does not answer: {error}")))),
        };
        let reads_lines = modes.local_modes.contains(LocalModes::ICANON);
        let bare = (!reads_lines && !keyboard.brackets).then(|| bare.unwrap_or(now));
        let may_ask = bare.is_some_and(|since| now < since + ASKS_FOR_BRACKETS);
        if (reads_lines || may_ask) && now < until {
            self.stage = TypingStage::Waiting { from: now, until, bare };
            return Some(TypingNext::At(until.min(now + ASK_AGAIN)));
        }
        let typed = match encode(&self.text, &modes, keyboard.brackets) {
            Ok(typed) => typed,
            Err(reason) => return Some(TypingNext::Done(not(&reason))),
        };
        self.unsent = typed.bytes;
        self.brackets = keyboard.brackets;
        self.altered = typed.altered;
        self.printed_before = keyboard.printed;
        self.progress(now);
        self.stage = TypingStage::Writing;
        None
    }

    fn write(&mut self, keyboard: &ShimKeyboard<'_>, now: Instant) -> Option<TypingNext> {
        while !self.unsent.is_empty() {
            match write(keyboard.ours, &self.unsent) {
                Ok(count) => {
                    self.unsent.drain(..count);
                    self.progress(now);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Some(TypingNext::Writable(self.give_up)),
                Err(error) => return Some(TypingNext::Done(not(&format!("its terminal takes nothing: {error}")))),
            }
        }
        self.stage = TypingStage::Settling { since: now };
        None
    }

    fn settle(&mut self, keyboard: &ShimKeyboard<'_>, now: Instant, since: Instant) -> Option<TypingNext> {
        let unread = ioctl_fionread(keyboard.agents.as_fd()).unwrap_or(0);
        if unread != self.unread {
            self.unread = unread;
            self.progress(now);
        }
        if unread > 0 {
            self.stage = TypingStage::Settling { since: now };
            return Some(TypingNext::At(now + ASK_AGAIN));
        }
        let last = self.entering || !self.order.enter;
        self.read = last && (self.read || now >= since + ASK_AGAIN);
        let settled = since + if last { SETTLED } else { BEFORE_ENTER };
        if now < settled {
            return Some(TypingNext::At((now + ASK_AGAIN).min(settled)));
        }
        if !last {
            self.entering = true;
            self.unsent = b"\r".to_vec();
            self.stage = TypingStage::Writing;
            return None;
        }
        Some(TypingNext::Done(self.delivered(keyboard.printed)))
    }

    fn delivered(&self, printed: u64) -> SayDelivery {
        let answered = printed > self.printed_before;
        SayDelivery::Delivered { brackets: self.brackets, altered: self.altered, answered }
    }

    fn progress(&mut self, now: Instant) {
        self.give_up = now + Duration::from_millis(self.order.patience_ms);
    }
}

pub(super) fn not(reason: &str) -> SayDelivery {
    SayDelivery::NotDelivered { reason: reason.to_owned() }
}

struct TypedKeys {
    bytes: Vec<u8>,
    altered: bool,
}

/// The keys that make the program read exactly this text. Where no keys can, because the terminal itself would act on
/// a control character or the paste would end early, the character is replaced by its picture.
fn encode(text: &[u8], modes: &Termios, brackets: bool) -> Result<TypedKeys, String> {
    let lines = modes.local_modes.contains(LocalModes::ICANON);
    if lines && text.split(|byte| *byte == b'\n').any(|line| line.len() > LONGEST_LINE) {
        return Err(format!("the agent reads lines, and a line can have {LONGEST_LINE} bytes: put it in a file"));
    }
    let can_quote = lines && modes.local_modes.contains(LocalModes::IEXTEN);
    let mut typed = TypedKeys { bytes: Vec::with_capacity(text.len() + 16), altered: false };
    if brackets {
        typed.bytes.extend_from_slice(PASTE);
    }
    for (index, byte) in text.iter().enumerate() {
        let acts = acts_on(*byte, modes, lines);
        let ends_paste = brackets && text[index..].starts_with(PASTE_END);
        if acts && can_quote {
            typed.bytes.extend_from_slice(&[LITERAL_NEXT, *byte]);
        } else if acts || ends_paste {
            let picture = if *byte == 0x7f { 0x2421 } else { 0x2400 + u32::from(*byte) };
            let mut buffer = [0; 4];
            let picture = char::from_u32(picture).unwrap_or(char::REPLACEMENT_CHARACTER);
            typed.bytes.extend_from_slice(picture.encode_utf8(&mut buffer).as_bytes());
            typed.altered = true;
        } else {
            typed.bytes.push(*byte);
        }
    }
    if brackets {
        typed.bytes.extend_from_slice(PASTE_END);
    }
    Ok(typed)
}

/// Whether the terminal itself would act on a byte instead of passing it on.
fn acts_on(byte: u8, modes: &Termios, lines: bool) -> bool {
    if lines {
        return (byte < 0x20 && byte != b'\n') || byte == 0x7f;
    }
    let signals = modes.local_modes.contains(LocalModes::ISIG) && [0x03, 0x1c, 0x1a].contains(&byte);
    let flow = modes.input_modes.contains(InputModes::IXON) && [0x11, 0x13].contains(&byte);
    signals || flow
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::shim::launch::terminal;

    fn raw_terminal() -> (OwnedFd, OwnedFd) {
        let (ours, agents) = terminal((24, 80)).unwrap();
        let mut modes = tcgetattr(&agents).unwrap();
        modes.make_raw();
        rustix::termios::tcsetattr(&agents, rustix::termios::OptionalActions::Now, &modes).unwrap();
        (ours, agents)
    }

    fn received(text: &str, ready_within_ms: u64, caller: UnixStream) -> ReceivedSay {
        let (length, patience_ms) = (text.len(), 60_000);
        let order = SayOrder { length, enter: true, ready_within_ms, patience_ms, turn_within_ms: 0, once: None };
        ReceivedSay { order, text: text.into(), caller: SayCaller(Some(caller)) }
    }

    /// Types "hi" and Enter; the agent reads as much as it is told to and ends a moment after Enter.
    fn told_and_ended(reads: &str) -> SayDelivery {
        let (ours, agents) = raw_terminal();
        let (caller, mut answer) = UnixStream::pair().unwrap();
        let mut now = Instant::now();
        let mut typing = SayTyping::new(received("hi", 0, caller), now, 0);
        let keyboard = ShimKeyboard { ours: &ours, agents: &agents, brackets: false, printed: 0 };
        for key in ["hi", "\r"] {
            now += HEAR_FIRST.max(BEFORE_ENTER);
            assert!(!matches!(typing.step(&keyboard, now), TypingNext::Done(_)), "after {key:?}");
            while ioctl_fionread(&agents).unwrap() == 0 {} // it is on its way inside the kernel
            if reads.contains(key) {
                rustix::io::read(&agents, &mut [0; 8]).unwrap();
            }
        }
        now += ASK_AGAIN;
        assert!(!matches!(typing.step(&keyboard, now), TypingNext::Done(_)));
        typing.agent_ended(0);
        let mut line = String::new();
        answer.read_to_string(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn an_agent_that_ends_by_what_it_was_told_has_been_told() {
        let delivered = SayDelivery::Delivered { brackets: false, altered: false, answered: false };
        assert_eq!(told_and_ended("hi\r"), delivered);
    }

    #[test]
    fn an_agent_that_ends_before_it_reads_enter_has_not_been_told() {
        assert_eq!(told_and_ended("hi"), not(AGENT_HAS_ENDED));
    }

    /// What a program finds that reads keys from the start and asks for brackets then, if it does.
    fn typed_into_one_that_has_just_begun(asks_after: Option<Duration>) -> String {
        let (ours, agents) = raw_terminal();
        let (caller, _answer) = UnixStream::pair().unwrap();
        let begun = Instant::now();
        let mut typing = SayTyping::new(received("a\nb", 60_000, caller), begun, 0);
        let mut now = begun;
        while now < begun + HEAR_FIRST + ASKS_FOR_BRACKETS {
            now += ASK_AGAIN;
            let brackets = asks_after.is_some_and(|after| now >= begun + after);
            let keyboard = ShimKeyboard { ours: &ours, agents: &agents, brackets, printed: 0 };
            typing.step(&keyboard, now);
            if !matches!(typing.stage, TypingStage::Waiting { .. }) {
                break;
            }
        }
        while ioctl_fionread(&agents).unwrap() == 0 {} // it is on its way inside the kernel
        let mut keys = [0; 64];
        let count = rustix::io::read(&agents, &mut keys).unwrap();
        // It has read the text. Enter does not follow at once.
        let keyboard = ShimKeyboard { ours: &ours, agents: &agents, brackets: asks_after.is_some(), printed: 0 };
        typing.step(&keyboard, now + BEFORE_ENTER - ASK_AGAIN);
        assert!(!typing.entering);
        typing.step(&keyboard, now + BEFORE_ENTER);
        assert!(typing.entering);
        String::from_utf8_lossy(&keys[..count]).into_owned()
    }

    #[test]
    fn a_program_is_given_time_to_ask_for_brackets() {
        let late = Some(Duration::from_millis(300));
        assert_eq!(typed_into_one_that_has_just_begun(late), "\u{1b}[200~a\nb\u{1b}[201~");
        assert_eq!(typed_into_one_that_has_just_begun(None), "a\nb");
    }
}
