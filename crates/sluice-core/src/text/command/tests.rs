//! Tables: a command, and what the shell is given or where the variable is refused.

use super::*;

fn script(text: &str) -> String {
    let (reading, unexpanded) = ShellCommand::read(text);
    let bad: String = reading.bad.iter().map(|bad| format!(" !{}", bad.message)).collect();
    let refused: String = unexpanded.iter().map(|found| format!(" !{}", found.place)).collect();
    reading.text.script.replace("SLUICE_VALUE_", "V") + &bad + &refused
}

/// Where the variables of `text` are refused.
fn places(text: &str) -> Vec<&'static str> {
    ShellCommand::read(text).1.iter().map(|found| found.place).collect()
}

/// Each of `texts` is refused once, and there.
fn refused(place: &str, texts: &[&str]) {
    for text in texts {
        assert_eq!(places(text), [place], "{text}");
    }
}

/// In each of `texts` every `${a}` becomes `"${V}"` and every `${d}`, which is between double quotes, `${V}`; a `${c}`
/// is in a comment and stays.
fn filled(texts: &[&str]) {
    for text in texts {
        let (reading, unexpanded) = ShellCommand::read(text);
        let found: Vec<_> = unexpanded.iter().map(|found| found.place).collect();
        assert_eq!((found, reading.bad.len()), (vec![], 0), "{text}");
        let mut wanted = text.replace("$${", "${");
        for (name, path) in &reading.text.environment {
            let quote = if path.head() == "d" { "" } else { "\"" };
            wanted = wanted.replace(&format!("${{{path}}}"), &format!("{quote}${{{name}}}{quote}"));
        }
        assert_eq!(reading.text.script, wanted, "{text}");
    }
}

#[test]
fn expansions_fit_their_quotes() {
    assert_eq!(script("echo ${a} \"x ${a}\" ${b}"), "echo \"${V1}\" \"x ${V1}\" \"${V2}\"");
    assert_eq!(script("echo \"$(cat ${a})\" ${b}"), "echo \"$(cat \"${V1}\")\" \"${V2}\"");
    assert_eq!(script("echo \"$(echo \"${a}\" ${b})${a}\""), "echo \"$(echo \"${V1}\" \"${V2}\")${V1}\"");
    assert_eq!(script("echo $${HOME} $HOME \\${a} \\' ${b}"), "echo ${HOME} $HOME \\${a} \\' \"${V1}\"");
    assert_eq!(script("# it's ${a}\necho ${b}"), "# it's ${a}\necho \"${V1}\"");
    assert_eq!(script("echo \"\\\"${a}\\\"\" \\\"${a}"), "echo \"\\\"${V1}\\\"\" \\\"\"${V1}\"");
    assert_eq!(script("echo $\"x ${a}\" ${a}"), "echo $\"x ${V1}\" \"${V1}\"");
    assert_eq!(script("echo \"$$\" $$ ${a} $$'x' $${X}"), "echo \"$$\" $$ \"${V1}\" $$'x' ${X}");
    assert_eq!(script("X=${a} y ${a}z"), "X=\"${V1}\" y \"${V1}\"z");
}

#[test]
fn one_variable_has_one_name() {
    let environment = ShellCommand::read("echo ${a} ${b.c} ${ a } ${b.c}").0.text.environment;
    let shown: Vec<String> = environment.iter().map(|(name, path)| format!("{name}={path}")).collect();
    assert_eq!(shown, ["SLUICE_VALUE_1=a", "SLUICE_VALUE_2=b.c"]);
}

#[test]
fn places_of_arguments() {
    filled(&[
        "case ${a} in ${a}) echo ${a};; (x|${a}) echo \"${d}\";; *) ;; esac; echo ${a}",
        "x=$(case y in y) echo ')' ;; esac) z ${a}",
        "echo \"$(case ${a} in (y) echo ${a};; esac)${d}\" ${a}",
        "case x in x) case y in y) z ${a};; esac;; esac; (echo ${a})",
        "case x in x) echo hi; esac >${a}; echo ${a}",
        "case x in\n  # it's\n  x) cat <<E ;;\n)'\nE\n  *) echo ${a};;\nesac\necho ${a}",
        "f() { echo ${a}; }; f ${a}; g () (echo ${a}); function h { echo ${a}; }",
        "{ echo ${a}; } | (cat; echo ${a}) && ( (echo ${a}); echo ${a})",
        "for x in ${a} b; do echo ${a}; done; for x do echo ${a}; done",
        "while read -r x; do echo ${a}; done < ${a} 2>> ${a} > \"${d}\"",
        "if ! [ -f ${a} ]; then echo ${a}; elif test ${a} = b; then :; fi",
        "cat <<<${a}; cat <<< \"x ${d}\"",
        "diff <(sort ${a}) >(cat ${a}) ${a}",
        "echo ${a} # it's ${c}\necho ${a}#b #'\necho ${a}",
        "echo a\\\n# ${a}\necho b \\\n  ${a} \\\n  \"c\\\nd ${d}\"",
        "echo $${X:-y} $${X/ #/-} ${a} $${X#\"}\"} $${#X} '$${X}' ${a} $${X:-$(echo ')' \"}\")} ${a}",
        "echo $'it' ${a} \"$'\" ${a}; echo \"it's\" ${a}",
        "echo $((1 + (2))) ${a} \"$(( $(f $(g)) ))${d}\" $[ x[1] ] ${a}; (( 1 )); echo ${a}",
        "[[ a == ]]b && -n $(x ']]') ]] && echo ${a}",
        "export X=${a} Y=\"${d}\" \"Z=${d}\"; readonly X=${a}; x[1]=${a}; echo x[${a}",
        "sh -c ${a}; bash -euo pipefail -c \"${d}\" && sudo sh -c ${a} >${a}",
        "sh -c 'echo \"$1\"' sh ${a}; sh run.sh -c x${a}; sh ${a} b; eval x > ${a}",
        "printf '%s\\n' ${a} ${a}; printf \"${d}\\n\"; printf ${a}; command -v ${a}",
        "make ENV=${a} RANDOM=${a}; ENV=${a} make",
        "trap 'rm x' EXIT; echo ${a}; echo eval ${a}; unset x; read x <${a}",
    ]);
}

#[test]
fn here_documents() {
    refused(
        "inside a here-document",
        &[
            "cat <<E\n${a}\nE\necho",
            "cat <<-'E F' x\n\t${a}\n\tE F\necho",
            "cat <<EO\"F\"\n${a}\nEOF\necho",
            "cat <<\\E\n${a}\nE",
            "cat << \\\n E\n${a}",
            "echo $(cat <<E\n${a}\nE\n)",
            "cat <<E\nE \n${a}",
            "cat <<E\nx\\\nE\n${a}\nE",
        ],
    );
    filled(&[
        "cat <<EO\"F\"\nit's\nEOF\necho ${a}",
        "cat <<A 2>${a} <<-B; echo ${a}\n'\nB\nA\n\"\n\tB\necho ${a}",
        "echo \"$(cat <<E\n)'\nE\n)\" ${a}",
        "(cat <<E\n(\nE\necho ${a}) | f() { cat <<E\n(\nE\n}; echo ${a}",
        "cat <<'E'\n$${X}\\\nE\necho ${a}",
        "cat <<''\nit's\n\necho ${a}",
        "cat <<E \"x\ny\"\n'\nE\necho ${a}",
        "echo $((1 << 2)) ${a}\necho ${a}",
    ]);
    refused(
        "after a here-document that shells read differently",
        &["cat <<$X\n$X\n${a}", "echo $(cat <<E) ${a}", "cat <<E $(echo\n) ${a}", "cat <<'E\n' ${a}", "cat << ;${a}"],
    );
}

#[test]
fn what_the_shell_does_not_expand() {
    refused("inside single quotes", &["echo '${a}'", "echo $'\\\\${a}'", "echo '\\${a}'", "x 'y' 'z\n${a}'"]);
    refused("after a quote that shells read differently", &["echo $'\\'${a}'", "echo \"$${x:-it's}\" ${a}"]);
    refused(
        "inside backquotes",
        &["echo `cat ${a}`", "echo \"`cat ${a}`\"", "echo `cat # ${a}`", "`echo \\`x ${a}\\``"],
    );
    filled(&["echo `cat # it's` ${a}", "echo `echo '` ${a}", "echo \"`echo \"x\"`${d}\" ${a}"]);
}

#[test]
fn what_the_shell_evaluates() {
    refused(
        "inside arithmetic",
        &[
            "echo $((1 + ${a}))",
            "echo $(( (1+(2)) + ${a} ))",
            "echo $(( $(f $(g)) + ${a} ))",
            "echo \"$(( \"1\" + ${a} ))\"",
            "echo $(( $(echo ${a}) ))",
            "echo $(\\\n( ${a} ))",
            "(( ${a} > 3 ))",
            "if ((${a} > 3)); then :; fi",
            "x && ((y = ${a}))",
            "for ((i = 0; i < ${a}; i++)); do :; done",
            "echo $[ ${a} ] \"$[ x[1] ]\"",
            "echo \"$[ x[1] + ${a} ]\"",
            "x[${a}]=1",
            "y=1 x[z$(echo ${a})]=1",
        ],
    );
    refused("inside `[[ ]]`", &["[[ ${a} -gt 3 ]]", "if [[ x && \"${a}\" -gt 3 ]]; then :; fi", "[[ ]]x ${a}"]);
    refused(
        "inside a shell expansion",
        &["echo $${x:${a}}", "echo $${x[${a}]}", "echo \"$${x:-\"${a}\"}\"", "echo $${x:-$${y:-$(z ${a})}}"],
    );
    refused("inside an array", &["x=(${a})", "declare -a x=([1]=${a})", "x+=(1 (2) ${a})"]);
    refused(
        "after `eval`",
        &[
            "eval ${a}",
            "eval \"x ${a}\"",
            "X=1 eval 'x' $(y ${a})",
            "ev\\\nal ${a}",
            "'eval' ${a}",
            "command eval ${a}",
        ],
    );
    refused("after `eval`", &[">x 2>&1 eval ${a}", "for x do eval ${a}; done", "f() { eval ${a}; }", "x; \\eval ${a}"]);
    refused(
        "after `eval`",
        &["case x in x) eval ${a};; esac", "if eval ${a}; then :; fi", "function f() { eval ${a}; }"],
    );
    refused("in a shell variable that the shell evaluates", &["RANDOM=${a}", "export PS4=${a}", "x && OPTIND=1${a} y"]);
    refused("as a name to declare", &["export ${a}", "local x ${a}=1", "declare x[${a}]=1"]);
    refused("after `trap`", &["trap ${a} EXIT", "trap \"rm ${a}\" EXIT"]);
    for (place, text) in [
        ("after `let`", "let x=${a}"),
        ("after `alias`", "alias x=${a}"),
        ("after `read`", "read ${a}"),
        ("after `unset`", "unset ${a}"),
        ("after `mapfile`", "readarray -C ${a} x"),
        ("after `complete`", "compgen -W ${a}"),
        ("after `printf -v`", "printf -v ${a} x"),
        ("after `printf -v`", "printf -vx[${a}] y"),
        ("as the format of `printf`", "printf ${a} x"),
        ("as the format of `printf`", "printf \"${a}\\n\" $x; y"),
        ("where `test` takes the name of a variable", "[ -v ${a} ]"),
        ("where `test` takes the name of a variable", "test $x ${a}"),
        ("after the declaration of a variable that the shell evaluates", "declare -i x; x=${a}"),
    ] {
        refused(place, &[text]);
    }
}

#[test]
fn texts_of_other_shells() {
    refused(
        "inside the text of `sh -c`",
        &[
            "sh -c \"echo ${a}\"",
            "sh -c 'echo ${a}'",
            "sh -c echo\\ ${a}",
            "sh -c ${a}x",
            "sh -c \"${a}\"x",
            "sh -c \"\"\"${a}\"",
            "sh -c \"$(cat ${a})\"",
            "bash -lc \"echo ${a}\"",
            "bash -euo pipefail -c \"echo ${a}\"",
            "/bin/sh -x -c -- \"echo ${a}\"",
            "env X=1 sudo -u x dash -c \"echo ${a}\"",
            "find . -exec sh -c \"echo ${a}\" \\;",
            "su user -c \"echo ${a}\"",
            "\"$SHELL\" -c \"echo ${a}\"",
            "$x/bash -c \"echo ${a}\"",
            "sh -c 2>x \"echo ${a}\"",
        ],
    );
}

#[test]
fn what_is_behind_a_broken_script_is_refused() {
    for (place, text) in [
        ("after a `)` that closes nothing", "echo x) ${a}"),
        ("after a `$$` that shells read differently", "echo \"$$(\" ${a} \")\""),
        ("after a `(` that opens nothing", "echo x(y) ${a}"),
        ("after a `((` that is not closed by `))`", "echo $((echo x); echo y) ${a}"),
        ("after a `((` that is not closed by `))`", "((echo x); echo ${a})"),
        ("after a `case` without its `in` or `esac`", "case x y ${a}"),
        ("after a `case` without its `in` or `esac`", "$(case x in y) z) ${a}"),
    ] {
        refused(place, &[text]);
    }
    let deep = "$(".repeat(100_000) + "${a}";
    refused("after too many open quotes and parentheses", &[&deep]);
}

#[test]
fn shell_expansions_must_be_said_to_be_such() {
    assert_eq!(
        script("echo ${A:-b} ${c}"),
        "echo ${A:-b} \"${V1}\" !`${A:-b}` is not a variable; `$${` leaves it to the shell"
    );
    assert_eq!(script("echo ${a"), "echo ${a !`${` without its `}`; `$${` leaves it to the shell");
}

#[test]
fn broken_scripts_end() {
    let signs = [
        "'", "\"", "`", "$(", "$((", "$[", "<<", "<<'", "<<E", "\n", "\\", "${", "$$", "$${", "<<-\\", "é", "${a}",
        "(", ")", "[[ ", " ", ";;", "x=(", "$'", "}", "<(",
    ];
    let parts: Vec<&str> = signs.into_iter().chain(["case x in ", "esac", "printf ", "sh -c "]).collect();
    for first in &parts {
        for second in &parts {
            for third in &parts {
                script(&[*first, *second, *third].concat());
            }
        }
    }
}

#[test]
fn long_scripts_take_their_length() {
    let mut many = String::new();
    for index in 0..40_000 {
        many.push_str(&format!("echo ${{a{index}}} \"x\" 'y' $(z) <<E\nE\n"));
    }
    assert_eq!(ShellCommand::read(&many).0.text.environment.len(), 40_000);
    let joined = "(\\\n".repeat(100_000) + &"$\\\n".repeat(100_000) + &"<<E ".repeat(100_000);
    ShellCommand::read(&joined);
}
