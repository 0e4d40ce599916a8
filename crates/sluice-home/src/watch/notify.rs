//! The notifier: tells a person once what waits for them, through every channel that is set, and remembers that in the store.
//!
//! What a channel has taken is written down after it has: an engine that is killed in between tells it again under the same id, and
//! never loses it. It looks right before each message, so that what was answered meanwhile is not told. The list of what waits is
//! its queue; it has no other, and the follower never waits for it. What one channel refuses holds up neither that channel nor
//! another ([`super::telling`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sluice_api::Problem;
use sluice_api::attention::Attention;
use sluice_api::notice::{AttentionOver, AttentionTold};
use sluice_core::event_name::EventName;
use sluice_store::StreamId;

use super::telling::{MOST_REFUSALS, TellingMemory, TellingTime};
use crate::background::threads::spawn;
use crate::home::Home;
use crate::home::attention::{all, without_store};
use crate::home::channels::{self, NoticeChannel, NoticeFailure};
use crate::home::notices::{HookSought, is_noted, is_told_by_hooks, message};
use crate::home::registry::{RegistryChange, RegistryEntry};

/// What comes within so long may go into one message.
const GATHER: Duration = Duration::from_secs(1);
/// More than so many go into one message.
const MOST_SINGLE: usize = 3;
/// How often it looks without being stirred: not everything that waits is an event.
const LOOK: Duration = Duration::from_secs(60);
/// A channel that failed is tried again after this, then after twice as long, and so on.
const AGAIN: Duration = Duration::from_secs(1);
/// After so many failures an engine with nothing else to do does not stay for the channel.
const PATIENCE: u32 = 8;

/// The channels that have told something that waits.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ToldEntry {
    to: Vec<String>,
}

impl RegistryEntry for ToldEntry {
    const PREFIX: &'static str = "told/";
}

/// A channel that does not take anything at present.
struct ChannelFault {
    count: u32,
    until: Instant,
}

struct Notifier<F> {
    faults: F,
    memory: TellingMemory,
    away: BTreeMap<String, ChannelFault>,
    /// The channels that have refused several things in one message: they get each by itself.
    apart: BTreeSet<String>,
    /// The store does not take what was told, and the log says so.
    is_unwritten: bool,
    /// Quiet hours have just been: what came in them is told together.
    was_quiet: bool,
}

/// Tells what waits until the home is closed.
pub(crate) fn start<F>(home: &Arc<Home>, faults: F) -> Result<(), Problem>
where
    F: Fn() -> BTreeMap<StreamId, String> + Send + 'static,
{
    let notifier = Notifier {
        faults,
        memory: TellingMemory::default(),
        away: BTreeMap::new(),
        apart: BTreeSet::new(),
        is_unwritten: false,
        was_quiet: false,
    };
    home.notices.stir(); // an engine that died may have left something
    let weak = Arc::downgrade(home);
    spawn("notify", move || notifier.keep_on(&weak))
}

impl<F: Fn() -> BTreeMap<StreamId, String>> Notifier<F> {
    fn keep_on(mut self, home: &Weak<Home>) {
        let Some(stirred) = home.upgrade().map(|home| home.notices.shared()) else { return };
        let mut wait = LOOK;
        loop {
            stirred.wait(wait);
            if home.strong_count() == 0 {
                return;
            }
            std::thread::park_timeout(GATHER);
            let Some(home) = home.upgrade() else { return };
            wait = self.look(&home).unwrap_or_else(|problem| {
                tracing::warn!("what waits for a person is not told now: {}", problem.message);
                LOOK
            });
        }
    }

    /// What waits, and whether that is all of it: while the store cannot be asked, a person is told what is known without it, and
    /// that it cannot.
    fn waiting(&self, home: &Home) -> Result<(Vec<Attention>, bool), Problem> {
        let faults: Vec<_> = (self.faults)().into_iter().map(|(stream, why)| (stream.to_string(), why)).collect();
        match all(home, &faults) {
            Err(problem) if problem.is_passing() => Ok((without_store(home, &faults, &problem), false)),
            found => found.map(|found| (found, true)),
        }
    }

    /// Tells what is new, and says when to look again at the latest.
    fn look(&mut self, home: &Home) -> Result<Duration, Problem> {
        let (mut channels, _) = channels::all(home);
        // One that did not answer the last time may take its whole time again: the others go first.
        channels.sort_by_key(|channel| self.away.contains_key(&channel.key));
        self.away.retain(|key, _| channels.iter().any(|channel| channel.key == *key));
        if channels.is_empty() {
            home.notices.owe(false);
            return Ok(LOOK);
        }
        let (waiting, is_all) = self.waiting(home)?;
        // What is not seen now is not over.
        if is_all {
            self.memory.keep(&waiting, Instant::now());
            let forgotten = forget_what_is_over(home, &waiting);
            self.wrote(forgotten);
        }
        if is_quiet(home) {
            let held = waiting.iter().filter(|it| channels.iter().any(|channel| !is_told(home, it, channel))).count();
            if held > 0 && !self.was_quiet {
                tracing::info!("something waits for a person, who is told at the end of the quiet hours");
            }
            self.was_quiet |= held > 0;
            home.notices.owe(held > 0);
            return Ok(LOOK);
        }
        let mut later = Vec::new();
        for channel in &channels {
            if self.away.get(&channel.key).is_none_or(|fault| fault.until <= Instant::now()) {
                later.extend(self.tell(home, channel)?);
            }
        }
        self.was_quiet &= !self.away.is_empty();
        home.notices.owe(!later.is_empty() || self.away.values().any(|fault| fault.count < PATIENCE));
        let next = self.away.values().map(|fault| fault.until).chain(later).min();
        Ok(next.map_or(LOOK, |until| until.saturating_duration_since(Instant::now())).min(LOOK))
    }

    /// Tells one channel everything that it has not taken yet and that is to be told now, as long as it takes it. Says when the
    /// next of the others is to be told.
    fn tell(&mut self, home: &Home, channel: &NoticeChannel) -> Result<Option<Instant>, Problem> {
        loop {
            let (waiting, _) = self.waiting(home)?;
            let (by_hook, new): (Vec<&Attention>, Vec<&Attention>) = waiting
                .iter()
                .filter(|attention| !is_told(home, attention, channel))
                .partition(|attention| self.is_written_late(home, channel, attention));
            if !by_hook.is_empty() {
                self.remember(home, channel, &by_hook);
            }
            let now = Instant::now();
            let time = |attention: &&Attention| self.memory.time(&channel.key, attention, now);
            let later =
                new.iter().filter_map(|it| if let TellingTime::From(at) = time(it) { Some(at) } else { None }).min();
            let new: Vec<&Attention> = new.into_iter().filter(|it| time(it) == TellingTime::Now).collect();
            let is_group = (new.len() > MOST_SINGLE || self.was_quiet) && !self.apart.contains(&channel.key);
            let now = if is_group { new.as_slice() } else { &new[..new.len().min(1)] };
            if now.is_empty() {
                self.away.remove(&channel.key);
                self.apart.remove(&channel.key);
                return Ok(later);
            }
            match channel.send(home, &message(now, home.context.config().notify.page.as_deref())) {
                Ok(()) => self.took(home, channel, now),
                Err(NoticeFailure::Refused(why)) => self.refused(home, channel, now, &why),
                Err(NoticeFailure::Away(why)) => {
                    self.failed(channel, &why);
                    return Ok(later);
                }
            }
        }
    }

    /// Whether this is to be written down without being told: a hook has told it, or the store did not take it before.
    fn is_written_late(&self, home: &Home, channel: &NoticeChannel, attention: &Attention) -> bool {
        self.memory.has_taken(&channel.key, attention) || (channel.is_command() && is_told_by_hook(home, attention))
    }

    fn took(&mut self, home: &Home, channel: &NoticeChannel, told: &[&Attention]) {
        let now = Instant::now();
        told.iter().for_each(|attention| self.memory.took(&channel.key, attention, now));
        self.remember(home, channel, told);
    }

    /// Writes down what the channel has taken. A store that does not take that gets it again at the next look.
    fn remember(&mut self, home: &Home, channel: &NoticeChannel, told: &[&Attention]) {
        let written = remember(home, channel, told);
        self.wrote(written);
    }

    fn wrote(&mut self, written: Result<(), Problem>) {
        if let Err(problem) = &written
            && !self.is_unwritten
        {
            tracing::warn!("what a person was told is not written down, and is tried again: {}", problem.message);
        }
        self.is_unwritten = written.is_err();
    }

    /// The channel is there, and does not take this. Of several things it gets each by itself: one may be at fault.
    fn refused(&mut self, home: &Home, channel: &NoticeChannel, told: &[&Attention], why: &str) {
        let [one] = told else {
            self.apart.insert(channel.key.clone());
            return;
        };
        if self.memory.refused(&channel.key, one, Instant::now()) {
            tracing::warn!(
                "{} has refused a message about {} {MOST_REFUSALS} times, and does not get it again: {why}",
                channel.name,
                one.id
            );
            home.notices.give_up(&channel.name, &one.id, why);
        }
    }

    fn failed(&mut self, channel: &NoticeChannel, why: &str) {
        let count = self.away.get(&channel.key).map_or(1, |fault| fault.count.saturating_add(1));
        if count == 1 {
            tracing::warn!("{} does not take what a person is to be told, and is tried again: {why}", channel.name);
        }
        let wait = AGAIN.saturating_mul(1 << (count - 1).min(6)).min(LOOK);
        self.away.insert(channel.key.clone(), ChannelFault { count, until: Instant::now() + wait });
    }
}

fn is_quiet(home: &Home) -> bool {
    let Some(quiet) = home.context.config().notify.quiet else { return false };
    let now = jiff::Zoned::now();
    let minute = u16::from(now.hour().unsigned_abs()) * 60 + u16::from(now.minute().unsigned_abs());
    quiet.hold(minute)
}

fn is_told(home: &Home, attention: &Attention, channel: &NoticeChannel) -> bool {
    home.registry.get::<ToldEntry>(&attention.id).is_some_and(|told| told.to.contains(&channel.key))
}

/// Whether a hook has told a person of this through the command, this engine's or one that was killed.
fn is_told_by_hook(home: &Home, attention: &Attention) -> bool {
    let told = |about: &str, notes: &Path, sought: &HookSought| {
        home.notices.is_told_by_hook(about, sought) || is_noted(notes, sought)
    };
    let places = &home.context.places;
    if !is_told_by_hooks(attention) {
        return false;
    }
    if let Some(task) = attention.task.as_ref().and_then(|id| home.tasks.open_task(&id.parse().ok()?)) {
        let notes = places.task(&task.state.about.project, &task.id);
        return told(task.id.as_str(), &notes, &HookSought::Turn(task.state.visit.turn));
    }
    let Some(run) = attention.run.as_ref().and_then(|id| home.tasks.load_run(&id.parse().ok()?).ok()?) else {
        return false;
    };
    let mut asked = run.state.questions().filter(|(_, asked)| format!("{}/{}", run.id, asked.id) == attention.id);
    asked.any(|(step, asked)| {
        let words = asked.told(run.plan.recipe.step(step).name.as_str());
        told(run.id.as_str(), &places.evidence().join(run.id.as_str()), &HookSought::Words(words, asked.since.0))
    })
}

fn remember(home: &Home, channel: &NoticeChannel, told: &[&Attention]) -> Result<(), Problem> {
    let ids = told.iter().map(|attention| attention.id.clone()).collect();
    let happened = AttentionTold { ids, to: channel.name.clone() };
    let mut change = RegistryChange::new(EventName::AttentionTold, "engine", &happened);
    for attention in told {
        let mut entry = home.registry.get::<ToldEntry>(&attention.id).unwrap_or_default();
        entry.to.push(channel.key.clone());
        change = change.put(&attention.id, &entry);
    }
    home.registry.record(home, change)
}

/// What waits under the same id one day is told again.
fn forget_what_is_over(home: &Home, waiting: &[Attention]) -> Result<(), Problem> {
    let waiting: BTreeSet<&str> = waiting.iter().map(|attention| attention.id.as_str()).collect();
    let mut ids = home.registry.ids::<ToldEntry>();
    ids.retain(|id| !waiting.contains(id.as_str()));
    if ids.is_empty() {
        return Ok(());
    }
    let happened = AttentionOver { ids: ids.clone() };
    let change = RegistryChange::new(EventName::AttentionOver, "engine", &happened);
    home.registry.record(home, ids.iter().fold(change, |change, id| change.remove::<ToldEntry>(id)))
}
