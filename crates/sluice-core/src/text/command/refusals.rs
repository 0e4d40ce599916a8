//! Why a variable cannot stand where it stands, in words. It decides nothing.

#[derive(Debug, PartialEq, Eq)]
pub(super) struct VariableRefusal {
    /// Completes "`${x}` stands …".
    pub(super) place: &'static str,
    pub(super) way_out: &'static str,
}

const fn refusal(place: &'static str, way_out: &'static str) -> VariableRefusal {
    VariableRefusal { place, way_out }
}

const PROGRAM: &str = "let a program compute: `$(expr ${x} + 1)`";
const SPLIT_UP: &str = "put this part into a step of its own, or into a file that the command runs";
const ARGUMENT: &str = "pass it as an argument: `sh -c 'echo \"$1\"' sh ${x}`";
const NAME: &str = "the shell evaluates names given there: write the name itself, or use `set -- ${x}` and `$1`";

pub(super) static SINGLE_QUOTES: VariableRefusal = refusal("inside single quotes", "use double quotes or none");
pub(super) static HERE_DOCUMENT: VariableRefusal =
    refusal("inside a here-document", "print it instead: `printf '%s\\n' ${x} | …`");
pub(super) static ARITHMETIC: VariableRefusal = refusal("inside arithmetic", PROGRAM);
pub(super) static BACKQUOTES: VariableRefusal = refusal("inside backquotes", "write `$(…)` instead of backquotes");
pub(super) static EXPANSION: VariableRefusal =
    refusal("inside a shell expansion", "assign it to a shell variable first: `x=${x}`, then `$${y:-$x}`");
pub(super) static DOUBLE_BRACKETS: VariableRefusal =
    refusal("inside `[[ ]]`", "use `[ … ]`, which compares without evaluating");
pub(super) static ARRAY: VariableRefusal =
    refusal("inside an array", "`sh` need not have arrays: use `set -- ${x}` and `\"$@\"`");
pub(super) static SHELL_TEXT: VariableRefusal = refusal("inside the text of `sh -c`", ARGUMENT);
pub(super) static EVAL: VariableRefusal =
    refusal("after `eval`", "run the command without `eval`, or `sh -c ${x}` if the value is a command");
pub(super) static LET: VariableRefusal = refusal("after `let`", PROGRAM);
pub(super) static TRAP: VariableRefusal =
    refusal("after `trap`", "assign it to a shell variable first: `x=${x}; trap 'rm -f \"$x\"' EXIT`");
pub(super) static ALIAS: VariableRefusal = refusal("after `alias`", "write a function: `f() { command ${x} \"$@\"; }`");
pub(super) static READ: VariableRefusal = refusal("after `read`", NAME);
pub(super) static UNSET: VariableRefusal = refusal("after `unset`", NAME);
pub(super) static MAPFILE: VariableRefusal = refusal("after `mapfile`", NAME);
pub(super) static COMPLETE: VariableRefusal = refusal("after `complete`", NAME);
pub(super) static DECLARED: VariableRefusal = refusal("as a name to declare", NAME);
pub(super) static TESTED: VariableRefusal = refusal("where `test` takes the name of a variable", NAME);
pub(super) static PRINT_VARIABLE: VariableRefusal = refusal("after `printf -v`", "use `x=$(printf …)`");
pub(super) static FORMAT: VariableRefusal =
    refusal("as the format of `printf`", "write the format: `printf '%s\\n' ${x}`");
pub(super) static EVALUATED: VariableRefusal =
    refusal("in a shell variable that the shell evaluates", "use a shell variable of another name");

// From here on the scanner does not know what the shell is doing.
pub(super) static AFTER_PARENTHESIS: VariableRefusal = refusal("after a `)` that closes nothing", SPLIT_UP);
pub(super) static AFTER_OPENING: VariableRefusal = refusal("after a `(` that opens nothing", SPLIT_UP);
pub(super) static AFTER_DOUBLE: VariableRefusal =
    refusal("after a `((` that is not closed by `))`", "write `( (` for a subshell in a subshell");
pub(super) static AFTER_CASE: VariableRefusal = refusal("after a `case` without its `in` or `esac`", SPLIT_UP);
pub(super) static AFTER_QUOTE: VariableRefusal = refusal("after a quote that shells read differently", SPLIT_UP);
pub(super) static AFTER_DOCUMENT: VariableRefusal =
    refusal("after a here-document that shells read differently", SPLIT_UP);
pub(super) static AFTER_DOLLARS: VariableRefusal = refusal("after a `$$` that shells read differently", SPLIT_UP);
pub(super) static AFTER_INTEGER: VariableRefusal =
    refusal("after the declaration of a variable that the shell evaluates", "declare it without `-i` and `-n`");
pub(super) static TOO_DEEP: VariableRefusal = refusal("after too many open quotes and parentheses", SPLIT_UP);
