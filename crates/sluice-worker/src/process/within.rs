//! In which homes a process lives. What an engine starts carries that in its environment, through every fork and every
//! program that it becomes, and so does what it leaves behind.
//!
//! A process may drop it on purpose. That is malice, and against malice none of this helps; by accident nobody does.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use super::identity::{environment, stat};

/// The variable that names the homes, the outermost first, separated by `:`.
pub const WITHIN: &str = "SLUICE_WITHIN";
/// Ancestors that are looked at; nobody has more.
pub(crate) const MOST_ANCESTORS: usize = 1000;

/// What everything carries that this process starts, once it is known which home it works for.
static ASSIGNMENT: OnceLock<String> = OnceLock::new();

/// The variable with its value, for whatever is started by this process.
pub(crate) fn within() -> Option<(&'static str, &'static str)> {
    ASSIGNMENT.get().map(|value| (WITHIN, value.as_str()))
}

/// The home of an engine, and the homes in whose processes that engine itself was started: a test of Sluice that an agent
/// of Sluice runs, say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Within {
    own: String,
    around: BTreeSet<String>,
}

impl Within {
    /// This process works for a home. What it starts carries that from now on. It is asked early: whoever started this
    /// process may go away.
    pub fn enter(home: &Path) -> Self {
        let own = named(&home.canonicalize().unwrap_or_else(|_| home.to_owned()));
        let mut around = BTreeSet::new();
        let mut next = stat(rustix::process::getpid().as_raw_nonzero().get());
        for _ in 0..MOST_ANCESTORS {
            let Some(process) = next else { break };
            around.extend(homes(&environment(process.pid)));
            next = stat(process.parent);
        }
        around.remove(&own);
        let within = Self { own, around };
        // A second home in one process is a test's.
        let _ = ASSIGNMENT.set(within.assignment().1);
        within
    }

    /// The variable with its value, for everything that is started here.
    pub fn assignment(&self) -> (&'static str, String) {
        let homes: Vec<&str> = self.around.iter().chain([&self.own]).map(String::as_str).collect();
        (WITHIN, homes.join(":"))
    }

    /// Whether a process with this environment was started by the engine of this home, or of one that the engine itself
    /// does not live in.
    pub(crate) fn holds(&self, environment: &[Vec<u8>]) -> bool {
        homes(environment).any(|home| !self.around.contains(&home))
    }
}

/// A home's name in the list.
fn named(home: &Path) -> String {
    home.to_string_lossy().replace('%', "%25").replace(':', "%3A")
}

/// The homes that an environment names.
fn homes(environment: &[Vec<u8>]) -> impl Iterator<Item = String> {
    let value = environment.iter().find_map(|entry| entry.strip_prefix(WITHIN.as_bytes())?.strip_prefix(b"="));
    let value = String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
    let homes: Vec<String> = value.split(':').filter(|home| !home.is_empty()).map(str::to_owned).collect();
    homes.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_homes_around_an_engine_do_not_count_and_its_own_does() {
        let within = Within { own: "/in".into(), around: BTreeSet::from(["/out%3Aer".to_owned()]) };
        let carries = |value: &str| vec![b"PATH=/bin".to_vec(), format!("{WITHIN}={value}").into_bytes()];
        assert_eq!(within.assignment(), (WITHIN, "/out%3Aer:/in".to_owned()));
        assert!(within.holds(&carries("/out%3Aer:/in")));
        assert!(within.holds(&carries("/another")));
        assert!(!within.holds(&carries("/out%3Aer")) && !within.holds(&carries("")) && !within.holds(&[]));
        assert_eq!(named(Path::new("/out:er")), "/out%3Aer");
    }
}
