//! Commands with hostile values, run by real shells: a value arrives as it is, or its place is refused. It never runs.

use std::path::Path;
use std::process::{Command as Process, Stdio};

use sluice_core::text::ShellCommand;

/// Prints its arguments, each followed by a NUL.
const SHOW: &str = "show() { printf '%s\\0' \"$@\"; }\n";

/// Scripts that show the value once, and nothing else.
const SHOWN: [&str; 34] = [
    "show ${a}",
    "show \"${a}\"",
    "x=$(printf '%s.' ${a}); show \"$${x%.}\"",
    "show \"$(printf '%s' \"$(printf '%s' ${a} | cat)\" > out; printf '%s' ${a} > out; echo)\" > out; show ${a}",
    "x=${a}; show \"$x\"",
    "x=\"${a}\" && show \"$x\"",
    "export X=${a}; show \"$X\"",
    "export \"X=${a}\"; show \"$X\"",
    "X=${a} sh -c 'printf \"%s\\0\" \"$X\"'",
    "sh -c 'printf \"%s\\0\" \"$1\"' sh ${a}",
    "set -- ${a}; show \"$@\"",
    "for x in ${a}; do show \"$x\"; done",
    "for x in ${a}\ndo show \"$x\"; done",
    "case ${a} in ${a}) show ${a};; *) show no;; esac",
    "case x in (x) case ${a} in \"${a}\") show ${a};; esac;; esac",
    "f() { show \"$1\"; }; f ${a}",
    "f() { show ${a}; }; f",
    "{ show ${a}; }",
    "(show ${a})",
    "( (show ${a}) )",
    "if [ x = x ]; then show ${a}; fi",
    "if [ ${a} = ${a} ]; then show ${a}; fi",
    "printf '%s\\0' ${a} > out; cat out",
    "printf '%s\\0' ${a} | cat",
    "show \\\n  ${a}",
    "# it's\nshow ${a} # it's",
    "cat > /dev/null <<E\nit's `echo` $(echo)\nE\nshow ${a}",
    "cat > /dev/null <<-'E' <<\\F; show ${a}\n\tit's\n\tE\n)\nF\n",
    "x=$(cat <<E\n)'\"\nE\n); show ${a}",
    "x=$(case y in y) echo ')';; esac); show ${a}",
    "x=\"$(echo \"it's\" \")\")\"; show ${a}",
    "x=`echo \"it's\"`; show ${a}",
    "x=$((1 + (2 * 3))); show ${a}",
    "x=' '; show $${y:-}${a}$${x# }",
];

/// Scripts in which something goes before or after the value.
const WRAPPED: [(&str, &str, &str); 4] = [
    ("show x${a}y", "x", "y"),
    ("show \"it's ${a} \\\"$${NONE:-}\"", "it's ", " \""),
    ("show 'a b'${a}\"c d\"", "a b", "c d"),
    ("x=$$; show \"$(printf '%s' \"<\" ${a} \">\" > out; cat out; echo .)\"", "<", ">."),
];

/// Scripts that are refused.
const REFUSED: [&str; 24] = [
    "echo '${a}'",
    "cat <<E\n${a}\nE",
    "cat <<EO\"F\"\n${a}\nEOF",
    "echo $((1 + ${a}))",
    "echo $(( (1+(2)) + ${a} ))",
    "echo $(( $(echo $(echo 1)) + ${a} ))",
    "echo $(( $(echo ${a}) + 1 ))",
    "(( ${a} > 3 ))",
    "for ((i = ${a}; i < 1; i++)); do :; done",
    "echo $[ ${a} ]",
    "[[ ${a} -gt 3 ]]",
    "x=abc; echo $${x:${a}}",
    "echo $${x[${a}]}",
    "x[${a}]=1",
    "RANDOM=${a}",
    "PS4=${a}; set -x; :",
    "printf ${a} x",
    "unset ${a}",
    "eval ${a}",
    "eval \"echo ${a}\"",
    "sh -c \"echo ${a}\"",
    "trap ${a} EXIT",
    "echo `echo ${a}`",
    "echo \"`echo ${a}`\"",
];

fn values() -> Vec<String> {
    let mut values: Vec<String> = [
        "",
        "two words  and\ttabs ",
        "it's \"quoted\" \\ \\n %s",
        "$(touch pwned)",
        "`touch pwned`",
        "*",
        "; touch pwned; #",
        "\"; touch pwned; \"",
        "'; touch pwned; '",
        "line\nline\n\ntouch pwned\n",
        "a[$(touch pwned)]",
        "PATH[$(touch pwned)]",
        "-n",
        "--",
        "${HOME} $HOME ~ !! && | < > ( )",
        "größe 🌊 \u{a0}\r",
    ]
    .map(str::to_owned)
    .to_vec();
    values.push("$(touch pwned) 'x' ".repeat(100 * 1024 / 19));
    values
}

/// Each shell that is here, and what calls it.
fn shells() -> Vec<&'static [&'static str]> {
    let known: [&[&str]; 5] = [&["sh"], &["dash"], &["bash"], &["bash", "--posix"], &["busybox", "sh"]];
    let works = |call: &&[&str]| {
        let status = Process::new(call[0]).args(&call[1..]).args(["-c", ":"]).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let found: Vec<_> = known.into_iter().filter(works).collect();
    assert!(found.contains(&known[0]), "there is no `sh`");
    found
}

/// What `script` prints when its variables have the value `value`.
fn shown(shell: &[&str], script: &str, value: &str, folder: &Path) -> String {
    let (reading, unexpanded) = ShellCommand::read(script);
    assert!(reading.bad.is_empty() && unexpanded.is_empty(), "{script}: {unexpanded:?}");
    let mut process = Process::new(shell[0]);
    process.args(&shell[1..]).arg("-c").arg(SHOW.to_owned() + &reading.text.script).current_dir(folder);
    for (name, _) in &reading.text.environment {
        process.env(name, value);
    }
    let output = process.stdin(Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.is_empty(), "{shell:?} {script}: {errors}");
    assert!(!folder.join("pwned").exists(), "{shell:?} ran {value:?} in {script}");
    String::from_utf8(output.stdout).unwrap()
}

/// Shows each value in each script, in a folder of its own.
fn try_all(shell: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let values = values();
    for (script, before, after) in SHOWN.map(|script| (script, "", "")).into_iter().chain(WRAPPED) {
        for value in &values {
            let shown = shown(shell, script, value, place.path());
            assert!(
                shown == format!("{before}{value}{after}\0"),
                "{shell:?} {script}: {value:.80?} became {shown:.80?}"
            );
        }
    }
}

#[test]
fn a_value_arrives_as_it_is_and_never_runs() {
    std::thread::scope(|threads| {
        for shell in shells() {
            threads.spawn(move || try_all(shell));
        }
    });
}

#[test]
fn a_place_that_evaluates_is_refused() {
    for script in REFUSED {
        let (_, unexpanded) = ShellCommand::read(script);
        assert!(!unexpanded.is_empty(), "{script}");
    }
}

#[test]
fn a_value_may_be_a_command_if_it_is_all_of_the_argument() {
    let place = tempfile::tempdir().unwrap();
    for shell in shells() {
        for script in ["sh -c ${a}", "sh -c \"${a}\"", "sh -ec ${a} >&1"] {
            assert_eq!(shown(shell, script, "echo 'x  y'", place.path()), "x  y\n", "{shell:?} {script}");
        }
    }
}
