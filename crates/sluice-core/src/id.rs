//! The ids of tasks, runs and workers, and the numbers of what is handed out. They are text and numbers, and must not be mixed
//! up with one another, nor with what a person typed: that may be the beginning of an id, and is one only when it was found.
//!
//! Nothing here makes a new id: that takes random numbers, which the core has not.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use crate::name::LONGEST;

macro_rules! ids {
    ($($(#[doc = $doc:literal])+ $name:ident;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The id as it is written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = MalformedId;

            fn from_str(text: &str) -> Result<$name, MalformedId> {
                if is_id(text) { Ok($name(text.to_owned())) } else { Err(MalformedId(text.to_owned())) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
    )+};
}

ids! {
    /// The id of a task: `k3f9abcdef`, or `k3f9abcdef-2-1-whole` if it is a step of a run.
    TaskId;
    /// The id of a run: `k3f9abcdef`, or `k3f9abcdef-r7` if it is a later turn of a patrol.
    RunId;
}

/// The id of a worker: the one that it gave, or that it was given when it registered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkerId(pub String);

impl WorkerId {
    /// The id as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for WorkerId {
    fn from(id: &str) -> WorkerId {
        WorkerId(id.to_owned())
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for WorkerId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The number under which an effect was handed out: every time it is, it gets another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dispatch(pub u64);

impl fmt::Display for Dispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that was given as an id, and cannot be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedId(pub String);

impl fmt::Display for MalformedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no id: an id has up to {LONGEST} letters, digits, `-` and `_`", self.0)
    }
}

impl std::error::Error for MalformedId {}

/// Ids end up in names of files, branches and sessions, which are taken apart at dots and slashes.
fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= LONGEST
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_files_and_sessions_is_an_id() {
        for text in ["k3f9abcdef", "k3f9abcdef-2-1-whole", "k3f9abcdef-r7", "2222222222", &"a".repeat(LONGEST)] {
            assert_eq!(text.parse::<TaskId>().map(String::from).as_deref(), Ok(text));
            assert_eq!(text.parse::<RunId>().map(String::from).as_deref(), Ok(text));
        }
        for text in ["", "..", "a.1", "run/a", "a b", "a\n", "ä", &"a".repeat(LONGEST + 1)] {
            assert_eq!(text.parse::<TaskId>(), Err(MalformedId(text.to_owned())));
        }
    }
}
