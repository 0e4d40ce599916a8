//! Pausing everything below a process, and letting it go on.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::event::poll;
use rustix::process::Signal;

use super::identity::{ProcessIdentity, ProcessRest, ProcessStat, stat};
use super::sweep::{below, is_kept, timespec};

/// How often it is looked whether all have stopped. Mostly twice is enough.
const MOST_LOOKS: usize = 500;
/// How long is waited for those who were just told.
const SOON: Duration = Duration::from_millis(1);

/// Processes that do nothing until they are let go on. Dropping this lets none of them go on.
#[derive(Debug)]
pub(crate) struct PausedProcesses(BTreeSet<ProcessIdentity>);

impl PausedProcesses {
    /// Stops everything below a process. One that is told may start another before it hears, so it is looked again until
    /// a look finds nobody who could. What was stopped before, by whomever, stays so afterwards.
    pub(crate) fn below(of: i32) -> PausedProcesses {
        let mut told = BTreeSet::new();
        // These at once, however many others the machine has; a look at all of them takes long where there are thousands.
        tell_children(of, &mut told);
        for _ in 0..MOST_LOOKS {
            let mut all_rest = true;
            // Who cannot be looked at is not taken for one who rests.
            let found = below(of).inspect_err(|_| all_rest = false).unwrap_or_default();
            for stat in found.iter().filter(|stat| stat.rest != ProcessRest::Stopped) {
                let identity = stat.identity();
                all_rest &= stat.rest == ProcessRest::Deaf && told.contains(&identity);
                identity.signal(Signal::STOP);
                told.insert(identity);
            }
            if all_rest {
                break;
            }
            let _ = poll(&mut [], Some(&timespec(SOON)));
        }
        PausedProcesses(told)
    }

    pub(crate) fn go_on(self) {
        for identity in self.0 {
            identity.signal(Signal::CONT);
        }
    }
}

/// Stops the children of a process, and theirs, as the kernel lists them. The list lacks some where others end meanwhile,
/// and there is none on some kernels: it is a beginning.
fn tell_children(of: i32, told: &mut BTreeSet<ProcessIdentity>) {
    let ours = |stat: &ProcessStat| !stat.ended && is_kept(stat.pid).is_ok_and(|is_kept| !is_kept);
    let mut open = vec![of];
    while let Some(parent) = open.pop() {
        for found in children(parent).into_iter().filter_map(stat).filter(ours) {
            if found.rest == ProcessRest::None && told.insert(found.identity()) {
                found.identity().signal(Signal::STOP);
            }
            open.push(found.pid);
        }
    }
}

fn children(of: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split(' ').flat_map(str::parse).collect::<Vec<_>>()).collect()
}
