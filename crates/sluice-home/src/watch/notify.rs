//! The notifier: tells a person once what waits for them, through every channel that is set, and remembers that in the store.
//!
//! What a channel has taken is written down after it has: an engine that is killed in between tells it again under the same id, and
//! never loses it. It looks right before each message, so that what was answered meanwhile is not told. The list of what waits is
//! its queue; it has no other, and the follower never waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sluice_api::Problem;
use sluice_api::attention::Attention;
use sluice_api::notice::{AttentionOver, AttentionTold};
use sluice_core::event_name::EventName;
use sluice_store::StreamId;

use crate::background::threads::spawn;
use crate::home::Home;
use crate::home::attention::all;
use crate::home::channels::{self, NoticeChannel};
use crate::home::notices::message;
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
    away: BTreeMap<String, ChannelFault>,
    /// Quiet hours have just been: what came in them is told together.
    was_quiet: bool,
}

/// Tells what waits until the home is closed.
pub(crate) fn start<F>(home: &Arc<Home>, faults: F) -> Result<(), Problem>
where
    F: Fn() -> BTreeMap<StreamId, String> + Send + 'static,
{
    let notifier = Notifier { faults, away: BTreeMap::new(), was_quiet: false };
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

    fn waiting(&self, home: &Home) -> Result<Vec<Attention>, Problem> {
        let faults: Vec<_> = (self.faults)().into_iter().map(|(stream, why)| (stream.to_string(), why)).collect();
        all(home, &faults)
    }

    /// Tells what is new, and says when to look again at the latest.
    fn look(&mut self, home: &Home) -> Result<Duration, Problem> {
        let (channels, _) = channels::all(home);
        self.away.retain(|key, _| channels.iter().any(|channel| channel.key == *key));
        if channels.is_empty() {
            home.notices.owe(false);
            return Ok(LOOK);
        }
        let waiting = self.waiting(home)?;
        forget_what_is_over(home, &waiting)?;
        if is_quiet(home) {
            let held = waiting.iter().filter(|it| channels.iter().any(|channel| !is_told(home, it, channel))).count();
            if held > 0 && !self.was_quiet {
                tracing::info!("something waits for a person, who is told at the end of the quiet hours");
            }
            self.was_quiet |= held > 0;
            home.notices.owe(held > 0);
            return Ok(LOOK);
        }
        for channel in &channels {
            if self.away.get(&channel.key).is_none_or(|fault| fault.until <= Instant::now()) {
                self.tell(home, channel)?;
            }
        }
        self.was_quiet &= !self.away.is_empty();
        home.notices.owe(self.away.values().any(|fault| fault.count < PATIENCE));
        let next = self.away.values().map(|fault| fault.until.saturating_duration_since(Instant::now())).min();
        Ok(next.unwrap_or(LOOK).min(LOOK))
    }

    /// Tells one channel everything that it has not taken yet, as long as it takes it.
    fn tell(&mut self, home: &Home, channel: &NoticeChannel) -> Result<(), Problem> {
        loop {
            let waiting = self.waiting(home)?;
            let (by_hook, new): (Vec<&Attention>, Vec<&Attention>) = waiting
                .iter()
                .filter(|attention| !is_told(home, attention, channel))
                .partition(|attention| channel.is_command() && home.notices.is_told_by_hook(attention));
            if !by_hook.is_empty() {
                remember(home, channel, &by_hook)?;
            }
            let is_group = new.len() > MOST_SINGLE || self.was_quiet;
            let now = if is_group { new.as_slice() } else { &new[..new.len().min(1)] };
            if now.is_empty() {
                self.away.remove(&channel.key);
                return Ok(());
            }
            if let Err(why) = channel.send(home, &message(now)) {
                self.failed(channel, &why);
                return Ok(());
            }
            remember(home, channel, now)?;
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
