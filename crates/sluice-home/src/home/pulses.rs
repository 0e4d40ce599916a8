//! How busy the terminals of living agents were of late, and the last line that can be read in each. It is known when a person
//! looks; a session that is not looked at costs nothing but a count of its bytes when it prints.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use sluice_api::board::{ACTIVITY_PARTS, ACTIVITY_SECONDS};
use sluice_os::session::{LAST_LINE, SessionId, Sessions};

use crate::background::locked;
use crate::home::signals::bare;

/// The most sessions that are remembered.
const MOST: usize = 1000;

pub(crate) struct SessionPulses {
    began: Instant,
    all: Mutex<BTreeMap<SessionId, TerminalPulse>>,
}

#[derive(Clone, Debug, Default)]
struct TerminalPulse {
    /// Bytes that it had printed when it was last looked at.
    printed: u64,
    /// Bytes that were printed in each part of time, by the number of the part.
    parts: BTreeMap<u64, u64>,
    /// The last line, and how much had been printed then.
    line: Option<(u64, String)>,
}

impl Default for SessionPulses {
    fn default() -> SessionPulses {
        SessionPulses { began: Instant::now(), all: Mutex::default() }
    }
}

impl SessionPulses {
    fn part(&self) -> u64 {
        self.began.elapsed().as_secs() / ACTIVITY_SECONDS
    }

    /// A session has printed something, or may have.
    pub(crate) fn note(&self, sessions: &Sessions, id: &SessionId) -> u64 {
        let (printed, part) = (sessions.printed(id), self.part());
        let mut all = locked(&self.all);
        if all.len() >= MOST && !all.contains_key(id) {
            all.pop_first();
        }
        // What was printed before the first look is no sign of what goes on now.
        let pulse = all.entry(id.clone()).or_insert_with(|| TerminalPulse { printed, ..TerminalPulse::default() });
        let more = printed.saturating_sub(pulse.printed);
        pulse.printed = printed;
        if more > 0 {
            *pulse.parts.entry(part).or_default() += more;
            pulse.parts.retain(|at, _| *at + ACTIVITY_PARTS as u64 > part);
        }
        printed
    }

    pub(crate) fn forget(&self, id: &SessionId) {
        locked(&self.all).remove(id);
    }

    /// How busy a session was of late, the oldest part first, from 0 to 8 each.
    pub(crate) fn activity(&self, id: &SessionId) -> Vec<u8> {
        let now = self.part();
        let all = locked(&self.all);
        let Some(pulse) = all.get(id) else { return vec![0; ACTIVITY_PARTS] };
        let level = |ago: u64| now.checked_sub(ago).and_then(|part| pulse.parts.get(&part)).copied().map_or(0, level);
        (0..ACTIVITY_PARTS as u64).rev().map(level).collect()
    }

    /// The last line that can be read in a session's terminal. `may_look` says whether its output may be read for that now.
    pub(crate) fn line(&self, sessions: &Sessions, id: &SessionId, may_look: impl FnOnce() -> bool) -> Option<String> {
        let printed = self.note(sessions, id);
        let known = locked(&self.all).get(id).and_then(|pulse| pulse.line.clone());
        match known {
            Some((at, line)) if at == printed => return Some(line),
            known if !may_look() => return known.map(|(_, line)| line),
            _ => {}
        }
        let screen = sessions.replayed(id, LAST_LINE).ok()?;
        let line = bare(screen.last_line().unwrap_or_default());
        if let Some(pulse) = locked(&self.all).get_mut(id) {
            pulse.line = Some((printed, line.clone()));
        }
        Some(line)
    }
}

/// Bytes as a number from 1 to 8: each is twice the one before.
fn level(bytes: u64) -> u8 {
    let doubled = (bytes / 64 + 1).ilog2() + 1;
    u8::try_from(doubled.min(8)).unwrap_or(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_busier_up_to_a_bound() {
        let levels: Vec<u8> = [1, 64, 500, 2000, 8000, u64::MAX].into_iter().map(level).collect();
        assert_eq!(levels, [1, 2, 4, 6, 7, 8]);
    }
}
