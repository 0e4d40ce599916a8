//! Scripts as they end, and as they are ended.

use super::*;

/// Longer than anything here takes; what waits for it in vain fails.
const LONG: Duration = Duration::from_secs(60);

struct ProcessBench {
    folder: tempfile::TempDir,
}

impl ProcessBench {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn script(&self, text: &str) -> ProcessScript {
        let path = std::env::var("PATH").unwrap();
        ProcessScript {
            program: ScriptProgram::Shell(text.to_owned()),
            environment: [("PATH".to_owned(), path)].into(),
            folder: self.folder.path().to_owned(),
            input: Vec::new(),
            timeout: Some(LONG),
            grace: Duration::from_millis(100),
            output_limit: 1024,
            output_file: None,
            record: self.folder.path().join("record.json"),
            speaks_for: None,
            ward: None,
        }
    }

    fn run(&self, text: &str) -> ProcessOutcome {
        run(&self.script(text), &ScriptCancel::new().unwrap()).unwrap()
    }

    fn fifo(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }
}

fn pid_in(path: &Path) -> i32 {
    std::fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// One that has ended and that nobody has asked about does not live.
fn lives(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| stat.identity().lives())
}

#[test]
fn exit_codes_signals_and_both_outputs_are_told_apart() {
    let bench = ProcessBench::new();
    let outcome = bench.run("echo out; echo err >&2; exit 7");
    assert_eq!(
        (outcome.ending, outcome.stdout.text(), outcome.stderr.text()),
        (ProcessEnding::Code(7), "out\n".to_owned(), "err\n".to_owned())
    );
    assert_eq!(bench.run("kill -9 $$").ending, ProcessEnding::Signal(9));
    assert!(!bench.folder.path().join("record.json").exists());
}

#[test]
fn hostile_values_travel_in_the_environment_and_the_input_is_exact() {
    let bench = ProcessBench::new();
    let nasty = "'; touch broken; $(touch broken) `touch broken` \"\n\\ \u{1f980}";
    let mut script = bench.script("printf '%s' \"$VALUE\"; cat >&2");
    script.environment.insert("VALUE".to_owned(), nasty.to_owned());
    script.input = nasty.as_bytes().repeat(10);
    script.output_limit = 1 << 20;
    let outcome = run(&script, &ScriptCancel::new().unwrap()).unwrap();
    assert_eq!(outcome.stdout.text(), nasty);
    assert_eq!(outcome.stderr.head, script.input);
    assert!(!bench.folder.path().join("broken").exists());
}

#[test]
fn a_value_too_long_for_the_kernel_is_refused_with_a_way_out() {
    let bench = ProcessBench::new();
    let mut script = bench.script("true");
    script.environment.insert("VALUE".to_owned(), "x".repeat(1 << 20));
    let failure = run(&script, &ScriptCancel::new().unwrap()).unwrap_err();
    insta::assert_snapshot!(failure, @"the value of VALUE is 1048581 bytes long and a program can be given 131071: pass it in a file");
    script.environment.remove("VALUE");
    script.program = ScriptProgram::Arguments(vec!["no-such-program".to_owned()]);
    assert!(matches!(run(&script, &ScriptCancel::new().unwrap()), Err(ProcessFailure::Start { .. })));
    assert!(!script.record.exists());
}

#[test]
fn output_without_end_is_cut_in_the_middle_and_does_not_block() {
    let bench = ProcessBench::new();
    let outcome = bench.run("echo first; head -c 3000000 /dev/zero; echo last");
    assert_eq!(outcome.ending, ProcessEnding::Code(0));
    assert!(outcome.stdout.head.starts_with(b"first\n"));
    assert!(outcome.stdout.tail.ends_with(b"last\n"));
    assert_eq!(outcome.stdout.omitted, 3_000_011 - 1024);
}

#[test]
fn time_over_ends_the_whole_group_also_what_ignores_being_told() {
    let bench = ProcessBench::new();
    bench.fifo("never");
    let child = "sh -c 'trap \"\" TERM; echo $$ > child; exec cat never'";
    let mut script = bench.script(&format!("trap '' TERM; {child} & exec cat never"));
    script.timeout = Some(Duration::from_secs(1));
    let outcome = run(&script, &ScriptCancel::new().unwrap()).unwrap();
    assert_eq!(outcome.ending, ProcessEnding::TimedOut);
    assert!(ProcessIdentity::of(pid_in(&bench.folder.path().join("child"))).is_none());
}

#[test]
fn cancel_ends_it_from_another_thread() {
    let bench = ProcessBench::new();
    let (started, never) = (bench.fifo("started"), bench.fifo("never"));
    let script = bench.script("echo $$ > started; exec cat never");
    let cancel = ScriptCancel::new().unwrap();
    let running = std::thread::spawn({
        let cancel = cancel.clone();
        move || run(&script, &cancel).unwrap()
    });
    let pid = pid_in(&started);
    cancel.cancel();
    assert_eq!(running.join().unwrap().ending, ProcessEnding::Cancelled);
    assert!(ProcessIdentity::of(pid).is_none());
    drop(never);
}

#[test]
fn what_a_script_leaves_in_its_group_ends_with_it() {
    let bench = ProcessBench::new();
    bench.fifo("never");
    let outcome = bench.run("sh -c 'echo $$ > child; echo child; exec cat never' & while ! test -s child; do :; done");
    assert_eq!(outcome.ending, ProcessEnding::Code(0));
    assert_eq!(outcome.stdout.text(), "child\n");
    assert!(ProcessIdentity::of(pid_in(&bench.folder.path().join("child"))).is_none());
}

#[test]
fn leftovers_of_a_dead_engine_are_found_by_number_or_by_mark() {
    let bench = ProcessBench::new();
    let (started, record) = (bench.fifo("started"), bench.folder.path().join("record.json"));
    bench.fifo("never");
    // As an engine that dies at once after the start would leave it: nobody waits, and the number may not be noted.
    for noted in [true, false] {
        let script = bench.script("echo $$ > started; exec cat never");
        let mut child = spawn(&script, &format!("test.{}.{noted}", std::process::id())).unwrap();
        let pid = pid_in(&started);
        let leader = ProcessIdentity::of(pid).unwrap();
        let mark = if noted {
            "SLUICE_PROCESS=another".to_owned()
        } else {
            format!("{MARK}=test.{}.false", std::process::id())
        };
        // It is begun and never ended.
        drop(ScriptNote::begin(&record, &ScriptRecord { mark, leader: noted.then(|| leader.clone()) }).unwrap());
        assert_eq!(kill_leftover(&record).unwrap(), 1);
        child.wait().unwrap();
        assert!(!leader.lives() && !record.exists());
        assert_eq!(kill_leftover(&record).unwrap(), 0);
    }
}

#[test]
fn a_script_that_is_ended_takes_with_it_what_left_its_group() {
    let bench = ProcessBench::new();
    let told = bench.fifo("told");
    let text = "setsid sh -c 'trap \"\" TERM; echo $$ > left; echo > told; exec tail -f /dev/null' & wait";
    let script = ProcessScript { timeout: None, ..bench.script(text) };
    let cancel = ScriptCancel::new().unwrap();
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&script, &cancel).unwrap());
        std::fs::read(&told).unwrap();
        cancel.cancel();
        running.join().unwrap()
    });
    assert_eq!(outcome.ending, ProcessEnding::Cancelled);
    assert!(!lives(pid_in(&bench.folder.path().join("left"))), "the process that left is gone too");
}

#[test]
fn what_carries_a_mark_is_ended_wherever_it_went() {
    let bench = ProcessBench::new();
    let mark = format!("SLUICE_TEST={}", new_mark());
    let (name, value) = mark.split_once('=').unwrap();
    let mut script = bench.script(
        "setsid sh -c 'echo $$ > left; exec tail -f /dev/null >/dev/null 2>&1' & while ! test -s left; do :; done",
    );
    script.environment.insert(name.to_owned(), value.to_owned());
    assert_eq!(run(&script, &ScriptCancel::new().unwrap()).unwrap().ending, ProcessEnding::Code(0));
    let left = pid_in(&bench.folder.path().join("left"));
    assert!(lives(left), "a script may leave a server behind");
    assert_eq!(end_marked(&mark, Duration::ZERO).unwrap(), 0);
    assert!(!lives(left));
}

#[test]
fn the_file_of_a_note_is_used_again_and_never_stands_under_an_old_name() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let record = |mark: &str| ScriptRecord { mark: mark.to_owned(), leader: None };
    let (first, second) = (folder.path().join("first.json"), folder.path().join("second.json"));
    let note = ScriptNote::begin(&first, &record("a-mark-that-is-longer-than-the-next")).unwrap();
    let file = std::fs::metadata(&first).unwrap().ino();
    note.end();
    assert!(!first.exists() && note::read(&first).unwrap().is_none());
    let note = ScriptNote::begin(&second, &record("short")).unwrap();
    assert_eq!(std::fs::metadata(&second).unwrap().ino(), file);
    assert_eq!(note::read(&second).unwrap().unwrap().mark, "short");
    // What an engine that is gone has put aside is removed, and nothing else.
    std::fs::write(folder.path().join("aside-0-7"), "").unwrap();
    tidy_notes(folder.path());
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["second.json"]);
    note.end();
}
