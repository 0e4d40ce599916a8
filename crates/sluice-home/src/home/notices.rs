//! When to look for something to tell a person, what the message says, and which hooks have told it already.
//!
//! It neither sends nor remembers what was sent: the notifier does ([`crate::watch::notify`]). What is lost here with the engine
//! leads to one look too many.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use sluice_api::attention::{Attention, AttentionCause, AttentionKind};
use sluice_api::notice::{AttentionMessage, RefusedNotice};
use sluice_core::event_name::EventName;
use sluice_store::LoggedEvent;

use super::signals::bare;
use crate::background::locked;
use crate::settings::clock::id_from;

/// So many hooks are remembered that told something.
const MOST_HOOKS: usize = 1000;
/// What the name of a note begins with that a hook leaves in the folder of its task or run.
const NOTE: &str = "told-";
/// Characters of what is the matter with one thing.
const LONGEST_TEXT: usize = 1000;
/// Characters of the title of one thing, and of its line in a message about several.
const LONGEST_LINE: usize = 200;
/// So many things are listed in a message about several.
const MOST_LISTED: usize = 20;
/// Bytes of a message as JSON: a program takes no more than 128 KiB in one variable or argument.
const LONGEST_MESSAGE: usize = 64 << 10;
/// So many messages that were given up are remembered.
const MOST_GIVEN_UP: usize = 20;

/// Whether there may be something new, and what is owed.
#[derive(Default)]
pub(crate) struct Notices(Arc<NoticesShared>);

#[derive(Default)]
pub(crate) struct NoticesShared {
    state: Mutex<NoticesState>,
    changed: Condvar,
}

#[derive(Default)]
struct NoticesState {
    is_stirred: bool,
    /// Something is to be told, and no channel has taken it yet.
    owes: bool,
    /// What a hook of a task or run told a person, by the task or run and the name of the effect.
    hooks: BTreeMap<(String, String), HookNotice>,
    /// The newest messages that a channel has refused for good.
    given_up: VecDeque<RefusedNotice>,
}

impl NoticesShared {
    /// Waits until there may be something new, but not for longer than this.
    pub(crate) fn wait(&self, longest: Duration) {
        let waited = self.changed.wait_timeout_while(locked(&self.state), longest, |state| !state.is_stirred);
        let state = &mut waited.unwrap_or_else(PoisonError::into_inner).0;
        state.owes |= std::mem::take(&mut state.is_stirred);
    }
}

impl Notices {
    pub(crate) fn shared(&self) -> Arc<NoticesShared> {
        self.0.clone()
    }

    /// Something may need a person now.
    pub(crate) fn stir(&self) {
        locked(&self.0.state).is_stirred = true;
        self.0.changed.notify_all();
    }

    /// Takes note of events that may change what waits for a person.
    pub(crate) fn heard(&self, page: &[LoggedEvent]) {
        let needs = |logged: &LoggedEvent| {
            let name = EventName::read(&logged.event.kind);
            name.is_some_and(|name| {
                [EventName::AttentionSet, EventName::RunInterventionRequired, EventName::StepAsked].contains(&name)
            })
        };
        if page.iter().any(needs) {
            self.stir();
        }
    }

    /// Whether something is to be told that no channel has taken yet.
    pub(crate) fn owes(&self) -> bool {
        let state = locked(&self.0.state);
        state.owes || state.is_stirred
    }

    pub(crate) fn owe(&self, owes: bool) {
        locked(&self.0.state).owes = owes;
    }

    /// A channel has refused a message about this for good.
    pub(crate) fn give_up(&self, channel: &str, id: &str, why: &str) {
        let given_up = &mut locked(&self.0.state).given_up;
        if given_up.len() >= MOST_GIVEN_UP {
            given_up.pop_front();
        }
        given_up.push_back(RefusedNotice { channel: channel.to_owned(), id: id.to_owned(), why: why.to_owned() });
    }

    /// What was given up since the engine began, the oldest first.
    pub(crate) fn given_up(&self) -> Vec<RefusedNotice> {
        locked(&self.0.state).given_up.iter().cloned().collect()
    }

    /// The hook `effect` of this task or run tells a person this through the command.
    pub(crate) fn hook_tells(&self, about: &str, effect: &str, words: &str, now: i64) {
        let hooks = &mut locked(&self.0.state).hooks;
        if hooks.len() >= MOST_HOOKS {
            hooks.clear();
        }
        hooks.insert((about.to_owned(), effect.to_owned()), HookNotice { words: words.to_owned(), at: now });
    }

    /// Forgets that a hook has told something: the hook failed.
    pub(crate) fn hook_failed(&self, about: &str, effect: &str) {
        locked(&self.0.state).hooks.remove(&(about.to_owned(), effect.to_owned()));
        self.stir();
    }

    /// Whether a hook of this task or run has told a person of that through the command, or tells it now.
    pub(crate) fn is_told_by_hook(&self, about: &str, sought: &HookSought) -> bool {
        let state = locked(&self.0.state);
        let mut own = state.hooks.iter().filter(|((of, _), _)| of == about);
        own.any(|((_, effect), told)| sought.is(effect, || Some(told.clone())))
    }
}

/// What a hook told a person, and when, in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct HookNotice {
    words: String,
    at: i64,
}

/// By what it is known that a hook has told of something that waits.
#[derive(Debug)]
pub(crate) enum HookSought {
    /// A task stands where it stands since this turn: the hooks of this and of later turns belong to that.
    Turn(u32),
    /// A run asks a question in these words since this moment. An earlier question in the same words had a hook of its own.
    Words(String, i64),
}

impl HookSought {
    /// Whether the hook with the effect of this name, or with the note that is called after it, is the one.
    fn is(&self, effect: &str, told: impl FnOnce() -> Option<HookNotice>) -> bool {
        match self {
            HookSought::Turn(turn) => turn_of(effect).is_some_and(|of| of >= *turn),
            HookSought::Words(words, since) => told().is_some_and(|told| told.words == *words && told.at >= *since),
        }
    }
}

/// The turn of a task's effect: the number in `turn-7/2 notify`, and in `turn-7-2-notify`.
fn turn_of(effect: &str) -> Option<u32> {
    effect.strip_prefix("turn-")?.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
}

/// The note in the folder `notes` that the hook `effect` has told a person something.
pub(crate) fn note(notes: &Path, effect: &str) -> PathBuf {
    notes.join(format!("{NOTE}{}", effect.replace(|it: char| !it.is_ascii_alphanumeric(), "-")))
}

/// Whether one of these notes is the one. An engine that is killed forgets the hooks that it ran, and finds their notes
/// ([`crate::effect`]).
pub(crate) fn is_noted(notes: &Path, sought: &HookSought) -> bool {
    std::fs::read_dir(notes).into_iter().flatten().flatten().any(|entry| {
        let name = entry.file_name();
        let effect = name.to_str().and_then(|name| name.strip_prefix(NOTE));
        let told = || {
            let at = entry.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            let at = i64::try_from(at.as_millis()).ok()?;
            Some(HookNotice { words: std::fs::read_to_string(entry.path()).ok()?, at })
        };
        effect.is_some_and(|effect| sought.is(effect, told))
    })
}

/// Whether hooks tell of this: of a state that a transition leads to, or of a question of a run.
pub(crate) fn is_told_by_hooks(attention: &Attention) -> bool {
    match attention.kind {
        AttentionKind::Task => match attention.reason {
            AttentionCause::Review
            | AttentionCause::Clarification
            | AttentionCause::Stuck
            | AttentionCause::Question => true,
            AttentionCause::Gate
            | AttentionCause::Conflict
            | AttentionCause::LoopExhausted
            | AttentionCause::Timeout
            | AttentionCause::HookFailed
            | AttentionCause::Crashed
            | AttentionCause::CannotStart
            | AttentionCause::Dialog
            | AttentionCause::Quiet
            | AttentionCause::PoolFull
            | AttentionCause::WorkAtRisk
            | AttentionCause::Store
            | AttentionCause::Worker => false,
        },
        AttentionKind::Gate
        | AttentionKind::MaxIterations
        | AttentionKind::PartialFailure
        | AttentionKind::LoopExhausted
        | AttentionKind::Clarification
        | AttentionKind::Undecided => true,
        AttentionKind::Wait | AttentionKind::Home => false,
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.stir(); // the notifier finds that its home is gone
    }
}

/// The message about what waits: of one thing, or of several. `page` is the address of the page that shows it.
pub(crate) fn message(waiting: &[&Attention], page: Option<&str>) -> AttentionMessage {
    let mut things: Vec<AttentionMessage> = waiting.iter().map(|attention| single(attention, page)).collect();
    if things.len() == 1
        && let Some(one) = things.pop()
    {
        return one;
    }
    let ids: Vec<&str> = things.iter().map(|thing| thing.id.as_str()).collect();
    let (id, count) = (format!("group-{}", id_from(&ids)), things.len());
    let since = things.iter().map(|thing| thing.since.clone()).min().unwrap_or_default();
    things.truncate(MOST_LISTED);
    let written = |thing: &AttentionMessage| serde_json::to_string(thing).map_or(0, |text| text.len());
    let mut bytes: usize = things.iter().map(written).sum();
    while bytes > LONGEST_MESSAGE
        && let Some(last) = things.pop()
    {
        bytes -= written(&last);
    }
    let line = |thing: &AttentionMessage| cut(&format!("{}: {}", thing.title, first_line(&thing.text)), LONGEST_LINE);
    let mut lines: Vec<String> = things.iter().map(line).collect();
    let more = count - things.len();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    AttentionMessage {
        id,
        reason: None,
        title: format!("{count} things need you"),
        text: lines.join("\n"),
        project: None,
        task: None,
        run: None,
        since,
        answer: Some("sluice inbox".to_owned()),
        link: page.map(str::to_owned),
        things,
        more,
    }
}

/// A text for a person, whatever an agent has put into it: without what would steer a terminal, and without marks that turn the
/// direction of writing or that no person sees. Every text that leaves through a channel comes through here.
pub(crate) fn cleaned(text: &str) -> String {
    let lines = text.lines().map(bare).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

fn cut(text: &str, longest: usize) -> String {
    let mut letters = text.chars();
    let cut: String = letters.by_ref().take(longest).collect();
    if letters.next().is_some() { format!("{cut}…") } else { cut }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn single(attention: &Attention, page: Option<&str>) -> AttentionMessage {
    let project = attention.project.as_ref().map(|project| format!("{project}: ")).unwrap_or_default();
    AttentionMessage {
        id: attention.id.clone(),
        reason: Some(attention.reason),
        title: format!(
            "{} needs you ({})",
            cut(&bare(&format!("{project}{}", attention.title)), LONGEST_LINE),
            attention.reason
        ),
        text: cut(&cleaned(&attention.text), LONGEST_TEXT),
        project: attention.project.as_deref().map(bare),
        task: attention.task.clone(),
        run: attention.run.clone(),
        since: attention.since.clone(),
        answer: attention.command(),
        link: page.map(|page| link(page, attention)),
        things: Vec::new(),
        more: 0,
    }
}

/// Where the page shows what something is about.
fn link(page: &str, attention: &Attention) -> String {
    let page = page.trim_end_matches('/');
    match (&attention.task, &attention.run) {
        (Some(task), _) => format!("{page}/tasks/{task}"),
        (None, Some(run)) => format!("{page}/runs/{run}"),
        (None, None) => page.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use sluice_api::attention::{Attention, AttentionCause};

    use super::{HookSought, Notices, is_noted, message, note};
    use crate::read::attention::about_home;

    fn waits(number: usize, text: &str) -> Attention {
        about_home(format!("disk/{number}"), AttentionCause::WorkAtRisk, text.to_owned(), String::new())
    }

    #[test]
    fn what_an_agent_writes_steers_nothing() {
        let hostile = "\u{1b}]0;mine\u{7}a\0b\u{202e}c\u{1b}[2J\r\n\u{200b}\nsecond\tline";
        let attention =
            Attention { title: hostile.to_owned(), project: Some("\u{1b}[1mx".into()), ..waits(1, hostile) };
        let told = message(&[&attention], None);
        assert_eq!(told.text, "abc\nsecond line");
        assert_eq!(told.title, "x: abc second line needs you (work_at_risk)");
        assert_eq!(told.project.as_deref(), Some("x"));
    }

    #[test]
    fn a_hook_tells_of_the_state_that_its_transition_leads_to() {
        let notices = Notices::default();
        notices.hook_tells("task", "turn-7/2 notify", "ready", 0);
        let told = |turn| notices.is_told_by_hook("task", &HookSought::Turn(turn));
        assert_eq!([6, 7, 8].map(told), [true, true, false], "a hook that is done again has a later turn");
        assert!(!notices.is_told_by_hook("other", &HookSought::Turn(7)));
        notices.hook_failed("task", "turn-7/2 notify");
        assert!(!notices.is_told_by_hook("task", &HookSought::Turn(7)));
    }

    #[test]
    fn a_hook_tells_of_the_question_in_whose_words_it_tells() {
        let notices = Notices::default();
        notices.hook_tells("run", "9.1", "`look` asks: which?", 5000);
        let told = |words: &str, since| notices.is_told_by_hook("run", &HookSought::Words(words.to_owned(), since));
        assert!(told("`look` asks: which?", 5000));
        assert!(!told("`look` asks: when?", 5000));
        assert!(!told("`look` asks: which?", 6000), "another question in the same words");
    }

    #[test]
    fn the_notes_of_hooks_say_the_same() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        std::fs::write(note(folder.path(), "turn-7/2 notify"), "ready")?;
        std::fs::write(folder.path().join("turn-9"), "no note")?;
        assert_eq!([7, 8, 9].map(|turn| is_noted(folder.path(), &HookSought::Turn(turn))), [true, false, false]);
        assert!(is_noted(folder.path(), &HookSought::Words("ready".to_owned(), 0)));
        assert!(!is_noted(folder.path(), &HookSought::Words("steady".to_owned(), 0)));
        Ok(())
    }

    #[test]
    fn many_things_have_room_in_one_variable() {
        let long = "\"\u{1f980}".repeat(5000);
        let waiting: Vec<Attention> = (0..500).map(|number| waits(number, &long)).collect();
        let told = message(&waiting.iter().collect::<Vec<_>>(), None);
        let json = serde_json::to_string(&told).unwrap_or_default();
        assert!(json.len() < 128 << 10, "{}", json.len());
        assert!(told.text.len() < 64 << 10, "{}", told.text.len());
        assert_eq!(told.title, "500 things need you");
        assert!(!told.things.is_empty() && told.things.len() + told.more == 500, "{}", told.more);
        assert!(told.text.ends_with(&format!("\nand {} more", told.more)), "{}", told.text);
    }
}
