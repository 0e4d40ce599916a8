//! In which homes a process lives. What an engine starts carries that in its environment, through every fork and every
//! program that it becomes, and so does what it leaves behind. A process may drop it on purpose; it cannot take off the
//! [`NestingMark`] that it has besides.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use super::identity::{environment, stat};
use super::mark::NestingMark;

/// The variable that names the homes, the outermost first, separated by `:`.
pub const WITHIN: &str = "SLUICE_WITHIN";
/// The file of a home with what was around the process that made it.
const FILE: &str = "within";
/// Files by which one can see that a home was in use before it had that file.
const USED: [&str; 2] = ["home.id", "store.db"];
/// Ancestors that are looked at; no process has more.
pub(crate) const MOST_ANCESTORS: usize = 1000;

/// What everything carries that this process starts, once it is known which home it works for.
static ASSIGNMENT: OnceLock<String> = OnceLock::new();

/// The variable with its value, for whatever is started by this process.
pub(crate) fn within() -> Option<(&'static str, &'static str)> {
    ASSIGNMENT.get().map(|value| (WITHIN, value.as_str()))
}

/// The home of an engine, and the homes in whose processes that home was made: by a test of Sluice that an agent of Sluice
/// runs, say. Those around it are persons to it. Who starts its engine later does not matter: an agent of another home may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeNesting {
    own: String,
    around: BTreeSet<String>,
    /// How many engines are around it.
    depth: u64,
    mark: NestingMark,
}

impl HomeNesting {
    /// This process works for a home. What it starts carries that from now on. It is asked early: whoever started this
    /// process may go away.
    pub fn enter(home: &Path) -> Self {
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let (own, mark) = (named(&home), NestingMark::own());
        let (around, depth) = remembered(&home).unwrap_or_else(|| {
            let is_used = USED.iter().any(|file| home.join(file).exists());
            let found = if is_used { (BTreeSet::new(), 0) } else { (around(&own), mark.depth_around(&own)) };
            // Without it the next start looks around again.
            let _ = std::fs::write(home.join(FILE), remembering(&found.0, found.1));
            found
        });
        let within = Self { own, around, depth, mark };
        // A second home in one process is a test's.
        let _ = ASSIGNMENT.set(within.assignment().1);
        within
    }

    /// Marks this process, and so everything that it starts from now on.
    pub fn mark(&self) -> std::io::Result<()> {
        self.mark.put_below(&self.own, self.depth)
    }

    /// Whether a process comes from an engine that this one does not live in, as its mark says.
    pub(crate) fn marks(&self, pid: i32) -> std::io::Result<bool> {
        Ok(NestingMark::of(pid)?.depth() > self.depth)
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

/// The homes in whose processes this one was started.
fn around(own: &str) -> BTreeSet<String> {
    let mut around = BTreeSet::new();
    let mut next = stat(rustix::process::getpid().as_raw_nonzero().get());
    for _ in 0..MOST_ANCESTORS {
        let Some(process) = next else { break };
        around.extend(homes(&environment(process.pid).unwrap_or_default()));
        next = stat(process.parent);
    }
    around.remove(own);
    around
}

/// What a home remembers, and what it is written as: the depth, and the homes.
fn remembered(home: &Path) -> Option<(BTreeSet<String>, u64)> {
    let text = std::fs::read_to_string(home.join(FILE)).ok()?;
    let (depth, homes) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    Some((split(homes).map(str::to_owned).collect(), depth.parse().ok()?))
}

fn remembering(around: &BTreeSet<String>, depth: u64) -> String {
    let homes: Vec<&str> = around.iter().map(String::as_str).collect();
    format!("{depth} {}\n", homes.join(":"))
}

fn split(homes: &str) -> impl Iterator<Item = &str> {
    homes.split(':').filter(|home| !home.is_empty())
}

fn named(home: &Path) -> String {
    home.to_string_lossy().replace('%', "%25").replace(':', "%3A")
}

fn homes(environment: &[Vec<u8>]) -> impl Iterator<Item = String> {
    let value = environment.iter().find_map(|entry| entry.strip_prefix(WITHIN.as_bytes())?.strip_prefix(b"="));
    let value = String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
    let homes: Vec<String> = split(&value).map(str::to_owned).collect();
    homes.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_homes_around_an_engine_do_not_count_and_its_own_does() {
        let around = BTreeSet::from(["/out%3Aer".to_owned()]);
        let within = HomeNesting { own: "/in".into(), around, depth: 0, mark: NestingMark::own() };
        let carries = |value: &str| vec![b"PATH=/bin".to_vec(), format!("{WITHIN}={value}").into_bytes()];
        assert_eq!(within.assignment(), (WITHIN, "/out%3Aer:/in".to_owned()));
        assert!(within.holds(&carries("/out%3Aer:/in")));
        assert!(within.holds(&carries("/another")));
        assert!(!within.holds(&carries("/out%3Aer")) && !within.holds(&carries("")) && !within.holds(&[]));
        assert_eq!(named(Path::new("/out:er")), "/out%3Aer");
    }

    #[test]
    fn a_home_remembers_what_was_around_it_when_it_was_made() {
        let folder = tempfile::tempdir().unwrap();
        let (new, used) = (folder.path().join("new"), folder.path().join("used"));
        [&new, &used].iter().for_each(|home| std::fs::create_dir(home).unwrap());
        let around = BTreeSet::from(["/a%3Ab".to_owned(), "/c".to_owned()]);
        std::fs::write(new.join(FILE), remembering(&around, 2)).unwrap();
        let within = HomeNesting::enter(&new);
        assert_eq!((within.around, within.depth), (around, 2));
        std::fs::write(used.join("home.id"), "").unwrap();
        let within = HomeNesting::enter(&used);
        assert_eq!((within.around, within.depth), (BTreeSet::new(), 0));
        assert_eq!(std::fs::read_to_string(used.join(FILE)).unwrap(), "0 \n");
    }
}
