//! Text into a living agent: byte for byte, with Enter as a key of its own, and known to have arrived.

use std::time::Duration;

use sluice_os::session::{SayDelivery, SayRequest, SessionId};

use crate::bench::{Bench, hear};

/// Every byte that can stand in a text, quotes and shells' darlings first; no `ESC [ 201 ~`.
fn nasty(length: usize) -> String {
    let mut piece =
        "'\"`$(touch broken); touch broken & \\ | > broken \r\n\t #{pane_id} \u{1f980} \u{202e} %s \x1b[A ".to_owned();
    piece.extend((1..128u8).map(char::from));
    piece.extend(['\u{80}', '\u{9b}', '\u{ff}', '\u{ffff}']);
    let mut text = piece.repeat(length / piece.len() + 1);
    while !text.is_char_boundary(length) || text.len() > length {
        text.pop();
    }
    text
}

fn delivered(brackets: bool, altered: bool, answered: bool) -> SayDelivery {
    SayDelivery::Delivered { brackets, altered, answered }
}

/// An agent that reads keys, as all that draw on the whole terminal do, until it has read so many bytes.
fn raw_reader(before: &str, count: usize) -> String {
    format!("stty raw -echo; {before} echo > ready; head -c {count} > got; echo > ready; read x < go")
}

#[test]
fn a_megabyte_of_everything_reaches_a_program_that_reads_keys() {
    for bench in [Bench::plain(), Bench::tmux()] {
        let (ready, _go) = (bench.fifo("ready"), bench.fifo("go"));
        let text = nasty(1 << 20);
        let spec = bench.script("raw", &raw_reader("", text.len() + 1));
        bench.start(&spec);
        hear(&ready);
        let delivery = bench.sessions().say(&spec.id, &SayRequest::new(&text)).unwrap();
        assert_eq!(delivery, delivered(false, false, false));
        hear(&ready);
        assert!(std::fs::read(bench.path("got")).unwrap() == format!("{text}\r").into_bytes(), "the text differs");
        assert!(!bench.path("broken").exists());
    }
}

#[test]
fn a_program_that_asks_for_it_gets_the_text_as_a_paste_that_cannot_end_early() {
    let bench = Bench::plain();
    let (ready, _go) = (bench.fifo("ready"), bench.fifo("go"));
    let text = "one\ntwo \x1b[201~ rm -rf \x1b\x1b[201~[201~";
    let expected = "\x1b[200~one\ntwo \u{241b}[201~ rm -rf \x1b\u{241b}[201~[201~\x1b[201~\r";
    let ask = "printf 'hello \\033[?2004h';";
    let spec = bench.script("pasted", &raw_reader(ask, expected.len()));
    bench.start(&spec);
    hear(&ready);
    let delivery = bench.sessions().say(&spec.id, &SayRequest::new(text)).unwrap();
    assert_eq!(delivery, delivered(true, true, false));
    hear(&ready);
    assert_eq!(std::fs::read_to_string(bench.path("got")).unwrap(), expected);
}

#[test]
fn enter_comes_after_the_text_was_read_as_a_read_of_its_own() {
    let bench = Bench::plain();
    let (ready, _go) = (bench.fifo("ready"), bench.fifo("go"));
    // `dd` copies one read at a time: what it counts as its second is Enter alone.
    let text = "stty raw -echo; echo > ready; dd bs=1000 count=1 of=first 2>&1; dd bs=1000 count=1 of=second 2>&1; echo > ready; read x < go";
    let spec = bench.script("reads", text);
    bench.start(&spec);
    hear(&ready);
    let delivery = bench.sessions().say(&spec.id, &SayRequest::new("fix it")).unwrap();
    assert_eq!(delivery, delivered(false, false, true));
    hear(&ready);
    assert_eq!(std::fs::read_to_string(bench.path("first")).unwrap(), "fix it");
    assert_eq!(std::fs::read_to_string(bench.path("second")).unwrap(), "\r");
}

#[test]
fn what_is_said_again_under_the_same_name_is_typed_once() {
    let bench = Bench::plain();
    let (ready, _go) = (bench.fifo("ready"), bench.fifo("go"));
    let text = "echo > ready; read one; echo > ready; read two; echo \"$one, $two\" > got; echo > ready; read x < go";
    let spec = bench.script("once", text);
    bench.start(&spec);
    hear(&ready);
    let sessions = bench.sessions();
    let first = sessions.say(&spec.id, &SayRequest::new("fix it").once("turn-1")).unwrap();
    assert!(matches!(first, SayDelivery::Delivered { .. }), "{first:?}");
    hear(&ready);
    assert_eq!(sessions.say(&spec.id, &SayRequest::new("fix it").once("turn-1")).unwrap(), first);
    sessions.say(&spec.id, &SayRequest::new("and that").once("turn-2")).unwrap();
    hear(&ready);
    assert_eq!(std::fs::read_to_string(bench.path("got")).unwrap(), "fix it, and that\n");
}

#[test]
fn a_program_that_reads_lines_gets_control_characters_too() {
    let bench = Bench::plain();
    let (ready, _go) = (bench.fifo("ready"), bench.fifo("go"));
    let text: String = nasty(3000).split('\n').map(|line| line.to_owned() + "\n").collect();
    let spec = bench.script(
        "lines",
        &format!("stty -echo; echo > ready; head -c {} > got; echo > ready; read x < go", text.len() + 1),
    );
    bench.start(&spec);
    hear(&ready);
    let delivery = bench.sessions().say(&spec.id, &SayRequest::new(&text)).unwrap();
    assert_eq!(delivery, delivered(false, false, false));
    hear(&ready);
    assert_eq!(std::fs::read_to_string(bench.path("got")).unwrap(), format!("{text}\n"));
    let long = bench.sessions().say(&spec.id, &SayRequest::new("x".repeat(5000))).unwrap();
    let reason = "the agent reads lines, and a line can have 4095 bytes: put it in a file".to_owned();
    assert_eq!(long, SayDelivery::NotDelivered { reason });
}

#[test]
fn what_is_not_read_is_taken_back_and_said_to_be_missing() {
    let bench = Bench::plain();
    let (ready, go) = (bench.fifo("ready"), bench.fifo("go"));
    let text = "stty raw -echo; echo > ready; read x < go; head -c 4 > got; echo > ready; read x < go";
    let spec = bench.script("busy", text);
    bench.start(&spec);
    hear(&ready);
    let impatient = SayRequest { patience: Duration::from_millis(200), ..SayRequest::new("unread") };
    let delivery = bench.sessions().say(&spec.id, &impatient).unwrap();
    assert_eq!(delivery, SayDelivery::NotDelivered { reason: "the agent did not read it".to_owned() });
    std::fs::write(&go, "\n").unwrap();
    let delivery = bench.sessions().say(&spec.id, &SayRequest::new("two")).unwrap();
    assert!(matches!(delivery, SayDelivery::Delivered { .. }), "{delivery:?}");
    hear(&ready);
    assert_eq!(std::fs::read_to_string(bench.path("got")).unwrap(), "two\r");
}

#[test]
fn one_that_has_just_started_is_given_time_to_read_keys() {
    let bench = Bench::plain();
    let (ready, go) = (bench.fifo("ready"), bench.fifo("go"));
    let spec =
        bench.script("slow", "echo > ready; read x < go; stty raw -echo; head -c 6 > got; echo > ready; read x < go");
    bench.start(&spec);
    hear(&ready);
    let sessions = bench.sessions();
    let delivery = std::thread::scope(|scope| {
        let patient = SayRequest { ready_within: Duration::from_secs(30), ..SayRequest::new("hello") };
        let saying = scope.spawn(|| sessions.say(&spec.id, &{ patient }).unwrap());
        std::fs::write(&go, "\n").unwrap();
        saying.join().unwrap()
    });
    assert_eq!(delivery, delivered(false, false, false));
    hear(&ready);
    assert_eq!(std::fs::read_to_string(bench.path("got")).unwrap(), "hello\r");
}

#[test]
fn texts_said_at_once_do_not_mix_and_one_to_an_agent_that_ends_is_answered() {
    let bench = Bench::plain();
    let (ready, _go) = (bench.fifo("ready"), bench.fifo("go"));
    let spec = bench.script("crowd", "stty raw -echo; echo > ready; head -c 4004 > got");
    let ended = bench.start_watched(&spec).1;
    hear(&ready);
    let sessions = bench.sessions();
    std::thread::scope(|scope| {
        let texts = ["a", "b", "c", "d"].map(|letter| SayRequest::new(letter.repeat(1000)));
        let all: Vec<_> = texts
            .into_iter()
            .map(|text| {
                scope.spawn({
                    let id = spec.id.clone();
                    move || sessions.say(&id, &text).unwrap()
                })
            })
            .collect();
        for one in all {
            let delivery = one.join().unwrap();
            let too_late = SayDelivery::NotDelivered { reason: "the agent has ended".to_owned() };
            assert!(matches!(delivery, SayDelivery::Delivered { .. }) || delivery == too_late, "{delivery:?}");
        }
    });
    ended.recv_timeout(crate::bench::LONG).unwrap();
    let got = std::fs::read_to_string(bench.path("got")).unwrap();
    let mut pieces: Vec<&str> = got.split_terminator('\r').collect();
    pieces.sort_unstable();
    assert_eq!(pieces, ["a", "b", "c", "d"].map(|letter| letter.repeat(1000)));
    let id = SessionId::new("crowd").unwrap();
    let reason = "the session has ended".to_owned();
    assert_eq!(sessions.say(&id, &SayRequest::new("late")).unwrap(), SayDelivery::NotDelivered { reason });
}

#[test]
fn questions_to_the_terminal_are_answered_where_nobody_looks() {
    let bench = Bench::plain();
    let _go = bench.fifo("go");
    let done = bench.fifo("done");
    let text = "stty raw -echo; printf '\\033[6n\\033[c'; head -c 15 > got; echo > done; read x < go";
    bench.start(&bench.script("asks", text));
    hear(&done);
    assert_eq!(std::fs::read_to_string(bench.path("got")).unwrap(), "\x1b[1;1R\x1b[?62;22c");
}

#[test]
fn a_session_in_a_very_deep_folder_takes_text() {
    let mut bench = Bench::plain();
    let deep = "deep-".repeat(40);
    std::fs::create_dir(bench.path(&deep)).unwrap();
    bench.restart_in(&format!("{deep}/sessions"));
    let (ready, _go) = (bench.fifo("ready"), bench.fifo("go"));
    let spec = bench.script("deep", &raw_reader("", 3));
    bench.start(&spec);
    hear(&ready);
    assert_eq!(bench.sessions().say(&spec.id, &SayRequest::new("hi")).unwrap(), delivered(false, false, false));
}
