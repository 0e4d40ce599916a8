//! The clock on the wall is set to another day while the engine runs. libfaketime stands between the engine and the clock
//! on the wall (`CLOCK_REALTIME`), and nothing else: what has passed since the machine started is what has really passed.
//! That is how a kernel shows it to a process when somebody sets the clock.

use std::path::{Path, PathBuf};

use super::home::{Home, run};
use super::recipes::{begin, grimoire, settled, step, text, until, with_shell};
use super::served::Served;

/// The library, wherever this machine's Debian has it.
fn library() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap().flatten();
    let files = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    files.into_iter().find(|file| file.exists()).expect("libfaketime is there: `./test` installs `faketime`")
}

/// What makes an engine see the clock that stands in a file.
pub(crate) fn variables(clock: &Path) -> Vec<(&'static str, String)> {
    vec![
        ("LD_PRELOAD", library().display().to_string()),
        ("FAKETIME_TIMESTAMP_FILE", clock.display().to_string()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
}

#[test]
fn a_clock_that_is_set_to_another_day_neither_ends_a_step_nor_freezes_one() {
    let home = Home::empty();
    with_shell(&home);
    let clock = home.path("clock");
    let set = |offset: &str| std::fs::write(&clock, format!("{offset}\n")).unwrap();
    set("+0");
    let variables = variables(&clock);
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let served = Served::with(&home, &[], &variables);
    let loaded = std::fs::read_to_string(format!("/proc/{}/maps", served.pid())).unwrap();
    assert!(loaded.contains("libfaketime"), "the engine sees the real clock");
    let today = || run(home.program("date").arg("+%F").envs(variables.iter().copied())).done().stdout;
    let before = today();
    let (begun, on) = (home.pipe("begun"), home.pipe("on"));
    let tries = home.path("tries").display().to_string();
    let steps = format!(
        "steps:\n  - {{name: long, type: script, timeout: 60s, command: 'echo x > {}; cat {}'}}\n  - {{name: again, type: script, retry: {{max: 1, backoff: 2s}}, command: 'echo x >> {tries}; if [ $(wc -l < {tries}) -lt 2 ]; then echo x > {}; exit 1; fi'}}\n",
        begun.path(),
        on.path(),
        begun.path(),
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    begun.hear();
    set("+1d");
    assert_ne!(today(), before, "whoever has the library sees another day");
    on.let_go();
    begun.hear(); // the first try of the second step
    set("-1d");
    let ended = settled(&home, &id);
    assert_eq!(text(&ended["status"]), "completed", "{ended:#}");
    assert_eq!(step(&ended, "long")["attempt"], 1, "{ended:#}");
    assert_eq!(step(&ended, "again")["attempt"], 2, "{ended:#}");
}

/// A retry that was put off by an engine whose clock was days ahead is made when an engine with the right clock has waited
/// for as long as the retry was put off.
#[test]
fn what_was_put_off_under_a_clock_that_was_ahead_is_not_put_off_until_that_day() {
    let home = Home::empty();
    with_shell(&home);
    let clock = home.path("clock");
    std::fs::write(&clock, "+10d\n").unwrap();
    let variables = variables(&clock);
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let served = Served::with(&home, &[], &variables);
    let tries = home.path("tries").display().to_string();
    let steps = format!(
        "steps:\n  - {{name: again, type: script, retry: {{max: 1, backoff: 10s}}, command: 'echo x >> {tries}; test $(wc -l < {tries}) -ge 2'}}\n"
    );
    grimoire(&home, "mine", &steps);
    let id = begin(&home, &["mine"]);
    until(&home, &id, |run| step(run, "again")["status"] == "ready" && step(run, "again")["exit_code"] == 1);
    drop(served);
    let ended = settled(&home, &id);
    assert_eq!(text(&ended["status"]), "completed", "{ended:#}");
    assert_eq!(step(&ended, "again")["attempt"], 2, "{ended:#}");
}
