//! What the notifier remembers as long as the engine lives: what each channel has taken, what it refuses, and what a person was
//! told lately. It neither sends anything nor looks at a clock.
//!
//! That a message was taken also stands in the store. A store that cannot be written must not make the same message come again
//! every minute, so what was taken is remembered here first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use sluice_api::attention::Attention;

/// The same reason of the same task or step is told again after this at the earliest: an agent that begins and ends to wait many
/// times, or a worker that comes and goes, does not flood a person. The inbox is exact all the time.
pub(super) const SAME_AGAIN: Duration = Duration::from_secs(60);
/// A message that a channel refuses is offered to it so many times, and then given up: it would be refused for ever.
pub(super) const MOST_REFUSALS: u32 = 5;
/// A refused message is offered again after this, then after twice as long, and so on.
const OFFERED_AGAIN: Duration = Duration::from_secs(1);

/// A channel, and what waits.
type ChannelThing = (String, String);

/// When something that waits is told through a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TellingTime {
    Now,
    /// Not before this moment.
    From(Instant),
    /// The channel has taken it, or it was given up.
    Over,
}

#[derive(Debug, Default)]
pub(super) struct TellingMemory {
    taken: BTreeSet<ChannelThing>,
    refused: BTreeMap<ChannelThing, MessageRefusals>,
    /// When a channel has taken something with this reason of this task or step.
    lately: BTreeMap<(String, String), Instant>,
}

#[derive(Debug)]
struct MessageRefusals {
    count: u32,
    until: Instant,
}

impl TellingMemory {
    /// When this is told through the channel.
    pub(super) fn time(&self, channel: &str, attention: &Attention, now: Instant) -> TellingTime {
        let thing = thing(channel, attention);
        let refused = self.refused.get(&thing);
        if self.taken.contains(&thing) || refused.is_some_and(|it| it.count >= MOST_REFUSALS) {
            return TellingTime::Over;
        }
        let lately = self.lately.get(&(channel.to_owned(), subject(attention))).map(|at| *at + SAME_AGAIN);
        let until = lately.into_iter().chain(refused.map(|it| it.until)).max();
        until.filter(|until| *until > now).map_or(TellingTime::Now, TellingTime::From)
    }

    /// Whether the channel has taken it from this engine.
    pub(super) fn has_taken(&self, channel: &str, attention: &Attention) -> bool {
        self.taken.contains(&thing(channel, attention))
    }

    pub(super) fn took(&mut self, channel: &str, attention: &Attention, now: Instant) {
        let thing = thing(channel, attention);
        self.refused.remove(&thing);
        self.taken.insert(thing);
        self.lately.insert((channel.to_owned(), subject(attention)), now);
    }

    /// The channel refuses a message about this alone. Whether it is given up.
    pub(super) fn refused(&mut self, channel: &str, attention: &Attention, now: Instant) -> bool {
        let known = self.refused.entry(thing(channel, attention)).or_insert(MessageRefusals { count: 0, until: now });
        known.until = now + OFFERED_AGAIN.saturating_mul(1 << known.count.min(MOST_REFUSALS));
        known.count = known.count.saturating_add(1);
        known.count >= MOST_REFUSALS
    }

    /// Forgets what waits no more, and what was told long ago.
    pub(super) fn keep(&mut self, waiting: &[Attention], now: Instant) {
        let waiting: BTreeSet<&str> = waiting.iter().map(|attention| attention.id.as_str()).collect();
        self.taken.retain(|(_, id)| waiting.contains(id.as_str()));
        self.refused.retain(|(_, id), _| waiting.contains(id.as_str()));
        self.lately.retain(|_, at| *at + SAME_AGAIN > now);
    }
}

fn thing(channel: &str, attention: &Attention) -> ChannelThing {
    (channel.to_owned(), attention.id.clone())
}

/// The reason, and the task or step that it is about. What waits otherwise has an id that says so.
fn subject(attention: &Attention) -> String {
    let about = match (&attention.task, &attention.run, &attention.step) {
        (Some(task), _, _) => task.clone(),
        (None, Some(run), Some(step)) => format!("{run}/{step}"),
        (None, Some(run), None) => run.clone(),
        (None, None, _) => attention.id.clone(),
    };
    format!("{} {about}", attention.reason.word())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use sluice_api::attention::{Attention, AttentionCause};

    use super::{MOST_REFUSALS, SAME_AGAIN, TellingMemory, TellingTime};
    use crate::read::attention::about_home;

    fn of_task(number: u32, reason: AttentionCause) -> Attention {
        let task = Some("01TASK".to_owned());
        Attention { task, ..about_home(format!("01TASK/{number}"), reason, "it waits".into(), String::new()) }
    }

    #[test]
    fn an_agent_that_waits_again_and_again_is_told_once_in_an_interval() {
        let (mut memory, start) = (TellingMemory::default(), Instant::now());
        let mut told = 0;
        // It begins to wait every second for ten minutes, each time under another number.
        for second in 0..600 {
            let now = start + Duration::from_secs(second);
            let waits = of_task(u32::try_from(second).unwrap_or_default(), AttentionCause::Dialog);
            if memory.time("desktop", &waits, now) == TellingTime::Now {
                memory.took("desktop", &waits, now);
                told += 1;
            }
            memory.keep(&[], now);
        }
        assert_eq!(told, 10);
        // Another reason, and another channel, do not wait for that.
        let now = start + Duration::from_secs(600);
        let review = of_task(700, AttentionCause::Review);
        assert_eq!(memory.time("desktop", &review, now), TellingTime::Now);
        assert_eq!(memory.time("command", &of_task(600, AttentionCause::Dialog), now), TellingTime::Now);
        // What still waits is told when the interval is over.
        let dialog = of_task(601, AttentionCause::Dialog);
        memory.took("desktop", &of_task(600, AttentionCause::Dialog), now);
        assert_eq!(memory.time("desktop", &dialog, now), TellingTime::From(now + SAME_AGAIN));
        assert_eq!(memory.time("desktop", &dialog, now + SAME_AGAIN), TellingTime::Now);
    }

    #[test]
    fn what_was_taken_is_over_until_it_waits_no_more() {
        let (mut memory, now) = (TellingMemory::default(), Instant::now());
        let review = of_task(1, AttentionCause::Review);
        memory.took("desktop", &review, now);
        let later = now + SAME_AGAIN * 2;
        memory.keep(std::slice::from_ref(&review), later);
        assert_eq!(memory.time("desktop", &review, later), TellingTime::Over);
        memory.keep(&[], later);
        assert_eq!(memory.time("desktop", &review, later), TellingTime::Now);
    }

    #[test]
    fn what_is_refused_is_offered_again_and_then_given_up() {
        let (mut memory, mut now) = (TellingMemory::default(), Instant::now());
        let review = of_task(1, AttentionCause::Review);
        for count in 1..=MOST_REFUSALS {
            let is_given_up = memory.refused("desktop", &review, now);
            assert_eq!(is_given_up, count == MOST_REFUSALS, "{count}");
            match memory.time("desktop", &review, now) {
                TellingTime::From(until) => now = until,
                other => assert_eq!((other, is_given_up), (TellingTime::Over, true)),
            }
        }
        // Another thing of the same channel goes on.
        assert_eq!(memory.time("desktop", &of_task(2, AttentionCause::Dialog), now), TellingTime::Now);
    }
}
