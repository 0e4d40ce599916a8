//! Inputs that nobody should write: each gets an answer, and nothing is eaten up.

use super::sluice::{command, folder, run_in};

const STEP: &str = "name: hello\nsteps:\n  - name: greet\n    type: script\n    command: echo hello\n";

fn check(name: &str, content: &[u8]) -> (i32, Vec<String>, String) {
    let place = folder(&[(name, content)]);
    let text = run_in(place.path(), &["check", name]);
    let answer = run_in(place.path(), &["check", name, "--json"]);
    assert_eq!(text.code, answer.code, "the answer does not depend on the format");
    (answer.code, answer.findings(), text.stdout)
}

fn only(name: &str, content: &[u8]) -> String {
    let (_, findings, text) = check(name, content);
    assert_eq!(findings.len(), 1, "{findings:?}\n{}", &text[..text.len().min(2000)]);
    findings[0].clone()
}

#[test]
fn a_byte_order_mark_and_crlf_change_nothing() {
    assert_eq!(check("bom.yml", format!("\u{feff}{STEP}").as_bytes()).1, [""; 0]);
    assert_eq!(check("crlf.yml", STEP.replace('\n', "\r\n").as_bytes()).1, [""; 0]);
    let broken = STEP.replace("command", "comand");
    assert_eq!(only("bom.yml", format!("\u{feff}{broken}").as_bytes()), "S0007 5:5");
    assert_eq!(only("crlf.yml", broken.replace('\n', "\r\n").as_bytes()), "S0007 5:5");
}

#[test]
fn columns_count_characters() {
    let file = "name: hello\nsteps:\n  - {name: greet, description: \"größe 🌊\", tipe: script, command: echo}\n";
    assert!(check("wide.yml", file.as_bytes()).1.contains(&"S0007 3:43".to_owned()));
}

#[test]
fn what_is_not_text_is_said_to_be_so() {
    assert_eq!(only("latin.yml", b"name: caf\xe9\n"), "S0002 1:10");
    assert_eq!(only("nul.yml", b"name: a\nx: \0\n"), "S0002 2:4");
    assert_eq!(only("utf16.yml", b"\xff\xfen\0a\0"), "S0002 1:1");
    assert_eq!(only("empty.yml", b""), "S0005 1:1");
    assert_eq!(only("empty.toml", b"\n\n"), "S0005 1:1");
    assert_eq!(only("comment.yml", b"# nothing\n"), "S0005 1:1");
}

#[test]
fn fifty_megabytes_are_refused_without_being_read() {
    let large = vec![b'a'; 50 << 20];
    assert_eq!(&only("large.yml", &large)[..5], "S0001");
    assert_eq!(&only("large.toml", &large)[..5], "S0001");
}

#[test]
fn bombs_do_not_go_off() {
    let mut aliases = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let before = vec![format!("*a{}", level - 1); 10].join(", ");
        aliases.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    assert_eq!(&only("aliases.yml", aliases.as_bytes())[..5], "S0004");
    for deep in ["[", "- ", "{a: ", "{", "? "] {
        let (code, findings, _) = check("deep.yml", deep.repeat(200_000).as_bytes());
        assert_eq!((code, findings.len()), (1, 1), "{deep:?}: {findings:?}");
    }
    for deep in ["a = [", "a.", "[a.", "a = {b = "] {
        let (code, findings, _) = check("deep.toml", deep.repeat(100_000).as_bytes());
        assert_eq!(code, 1, "{deep:?}");
        assert!(!findings.is_empty() && findings.len() <= 60, "{deep:?}: {}", findings.len());
    }
}

#[test]
fn a_fifo_and_a_folder_are_not_waited_for() {
    let place = folder(&[("x/y.txt", b"")]);
    let fifo = place.path().join("pipe.yml");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert_eq!(run_in(place.path(), &["check", "pipe.yml"]).code, 1);
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_nothing_is_shown_of_it() {
    let place = folder(&[]);
    assert!(std::process::Command::new("mkfifo").arg(place.path().join("pipe.yml")).status().unwrap().success());
    insta::assert_snapshot!(run_in(place.path(), &["check", "pipe.yml"]).shown(), @r"
    error[S0002]: the file cannot be read: it is not a file
    --> pipe.yml
     = help: name a file that is there, and that you may read

    --- stderr
    1 error in 1 file
    --- exit 1
    ");
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let home = folder(&[]);
    let answer = command(home.path(), home.path(), &["workflow", "show", "default"]).stdout(full).output().unwrap();
    assert_eq!(answer.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&answer.stderr).contains("error: cannot write the answer"));
}

#[test]
fn findings_end() {
    let steps: String = (0..1500).map(|n| format!("  - {{name: s{n}, type: script, comand: x}}\n")).collect();
    let place = folder(&[("many.yml", format!("name: many\nsteps:\n{steps}").as_bytes())]);
    let answer = run_in(place.path(), &["check", "many.yml", "--json"]);
    assert_eq!(answer.findings().len(), 1000);
    assert!(answer.stdout.contains("the file has 500 more findings, which are not listed"));
}

#[test]
fn escape_sequences_do_not_reach_the_terminal() {
    let (_, _, text) = check("esc.toml", "name = \"a\"\n\u{7f}\u{9b}31m = 1\n".as_bytes());
    assert!(!text.contains(['\u{1b}', '\u{9b}']), "{text:?}");
    let (_, _, text) = check("esc.yml", "name: a\nsteps: [{name: \"\\e[31mred\", command: x}]\n".as_bytes());
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn a_thousand_mistakes_are_counted_and_the_first_hundred_shown() {
    let mut file = String::from("name: many\nsteps:\n");
    for step in 0..1000 {
        file.push_str(&format!("  - name: s{step}\n    type: script\n    comand: x\n"));
    }
    let place = folder(&[("many.yml", file.as_bytes())]);
    let answer = run_in(place.path(), &["check", "many.yml"]);
    assert_eq!(answer.stdout.matches("error[S0007]").count(), 100);
    assert!(answer.stdout.contains("900 more"), "{}", &answer.stdout[answer.stdout.len() - 300..]);
    assert!(answer.stderr.contains("1000 errors"), "{}", answer.stderr);
}

#[test]
fn a_cycle_of_ten_thousand_does_not_name_them_all() {
    let mut file = String::from("name: round\nsteps:\n");
    for step in 0..10_000 {
        let need = (step + 9_999) % 10_000;
        file.push_str(&format!("  - {{name: s{step}, type: script, command: x, needs: [s{need}]}}\n"));
    }
    let place = folder(&[("round.yml", file.as_bytes())]);
    for format in ["text", "json", "sarif"] {
        let answer = run_in(place.path(), &["check", "round.yml", "--format", format]);
        assert_eq!(answer.code, 1);
        assert!(answer.stdout.contains("S0203") && answer.stdout.contains('…'), "{format}");
        assert!(answer.stdout.len() < 20_000, "{format} has {} bytes", answer.stdout.len());
    }
}
