//! What a command's environment can carry. Values reach commands that way and no other, so what no system could start
//! is found here, where it can be said which value it was, and not by a worker that fails to start a program.

use crate::text::ShellCommand;

/// The most bytes of one entry, name and value together. Linux takes strings of up to 131,072 bytes; the `=` between
/// the two and the NUL at the end belong to them. The same is true of the script.
pub const LONGEST_ENTRY: usize = 128 * 1024 - 2;
/// The most bytes of script and values of one command. Linux takes 2 MiB where nobody has changed it, and what the
/// worker's own environment holds comes on top.
pub const MOST_IN_ALL: usize = 1024 * 1024;

/// The values of a command by the names of their variables; or what is wrong with one of them.
pub fn carried(command: &ShellCommand, values: Vec<String>) -> Result<Vec<(String, String)>, String> {
    let mut size = fitting("the command", LONGEST_ENTRY, &command.script)?;
    let mut environment = Vec::with_capacity(values.len());
    for ((name, path), value) in command.environment.iter().zip(values) {
        size += name.len() + fitting(&format!("`{path}`"), LONGEST_ENTRY.saturating_sub(name.len()), &value)?;
        environment.push((name.clone(), value));
    }
    match size > MOST_IN_ALL {
        true => Err(format!(
            "the values of the command have {size} bytes together, and its environment can carry {MOST_IN_ALL}: write \
             what is long into a file"
        )),
        false => Ok(environment),
    }
}

/// The size of a text for which there is so much room.
fn fitting(what: &str, room: usize, text: &str) -> Result<usize, String> {
    if text.contains('\0') {
        return Err(format!("{what} holds a NUL byte, which no command can be given"));
    }
    if text.len() > room {
        return Err(format!(
            "{what} has {} bytes, and at most {room} reach a command in one piece: write what is long into a file",
            text.len()
        ));
    }
    Ok(text.len() + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::ValuePath;

    fn command(values: usize) -> ShellCommand {
        let value = |number| (format!("V{number}"), ValuePath::new(format!("v{number}"), []));
        ShellCommand { script: "x".into(), environment: (0..values).map(value).collect() }
    }

    #[test]
    fn up_to_the_limit_and_no_further() {
        let fits = "x".repeat(LONGEST_ENTRY - 2);
        assert_eq!(carried(&command(1), vec![fits.clone()]).unwrap(), [("V0".to_owned(), fits.clone())]);
        let error = carried(&command(1), vec![fits.clone() + "x"]).unwrap_err();
        assert_eq!(
            error,
            "`v0` has 131069 bytes, and at most 131068 reach a command in one piece: write what is long into a file"
        );
        assert!(carried(&command(7), vec![fits.clone(); 7]).is_ok());
        let error = carried(&command(9), vec![fits; 9]).unwrap_err();
        assert!(error.starts_with("the values of the command have 1179651 bytes together"), "{error}");
    }

    #[test]
    fn no_nul() {
        let error = carried(&command(2), vec!["a".into(), "b\0c".into()]).unwrap_err();
        assert_eq!(error, "`v1` holds a NUL byte, which no command can be given");
    }
}
