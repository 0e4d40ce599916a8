//! Enums of which each member has one word. The word stands once, beside its member.

/// Makes an enum of words, with `word` and `ALL`.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$of])* $variant,)+
        }

        impl $name {
            /// Every member, in the order of the declaration.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$variant,)+];

            /// The word for it, in files and for people.
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }
        }
    };
}

pub(crate) use words;
