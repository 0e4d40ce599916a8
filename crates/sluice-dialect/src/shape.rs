//! The shape of a file: which keys a table may have, and what each may hold.
//!
//! One table of fields serves three purposes: it finds unknown, missing and ill-typed keys, it makes the JSON
//! Schema that editors complete from, and it is the reference for whoever writes a file. Deriving the reading from
//! structs (serde) was rejected: it stops at the first problem and loses places inside tagged tables.

mod conform;
mod schema;

pub use conform::conform;
pub use schema::schema;

#[derive(Debug)]
pub struct Shape {
    /// What it is, in messages: "a transition".
    pub what: &'static str,
    /// Its fields, in groups that several shapes share.
    pub groups: &'static [&'static [Field]],
    /// The field whose value decides which others go with it.
    pub tag: Option<Tag>,
}

/// The field that tells variants of a table apart: `type` of a step, `action` of a hook.
#[derive(Debug)]
pub struct Tag {
    pub key: &'static str,
    pub default: Option<&'static str>,
}

#[derive(Debug)]
pub struct Field {
    pub key: &'static str,
    pub kind: FieldKind,
    pub required: bool,
    /// The tags it goes with; all when empty.
    pub only: &'static [&'static str],
    /// What people who come from other formats call it.
    pub also: &'static [&'static str],
    /// How what it holds must be written, beside its type.
    pub forms: &'static [FieldForm],
    /// What it is for, in one sentence.
    pub doc: &'static str,
}

/// How something must be written, as far as one sees it without the rest of the file. Who lowers and checks a file says what is
/// wrong, with more words; this is what an editor is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldForm {
    /// A list or table has something in it; a length of time is not nothing.
    NotEmpty,
    /// A text, or each text of a list or table, says something.
    Filled,
    /// A text, each text of a list, or each key of a table of names is a name.
    Name,
    Kebab,
    /// A text is a heading of the second level.
    Heading,
    /// A text is none of these words, which have a meaning of their own.
    Not(&'static [&'static str]),
    /// A text is no key of a task that only the engine sets.
    Settable,
}

#[derive(Debug)]
pub enum FieldKind {
    Text,
    /// A whole number within bounds.
    Integer(i64, i64),
    Bool,
    /// `90s`, `5m`, `1h30m`, or a number of seconds.
    Duration,
    /// One of these words, in the case they are written here.
    Choice(&'static [&'static str]),
    ChoiceAnyCase(&'static [&'static str]),
    List(&'static FieldKind),
    Table(&'static Shape),
    /// A table whose keys are names that the author chooses.
    Named(&'static FieldKind),
    /// The first of these whose type fits.
    Either(&'static [FieldKind]),
    Any,
}

impl Field {
    /// A key that may be left out.
    pub const fn new(key: &'static str, kind: FieldKind, doc: &'static str) -> Self {
        Field { key, kind, required: false, only: &[], also: &[], forms: &[], doc }
    }

    pub const fn required(key: &'static str, kind: FieldKind, doc: &'static str) -> Self {
        Field { key, kind, required: true, only: &[], also: &[], forms: &[], doc }
    }

    /// The same, but only with these tags.
    pub const fn only(mut self, tags: &'static [&'static str]) -> Self {
        self.only = tags;
        self
    }

    /// Whether it can stand in a table tagged `tag`.
    pub fn goes_with(&self, tag: &str) -> bool {
        self.only.is_empty() || self.only.contains(&tag)
    }

    pub const fn form(mut self, forms: &'static [FieldForm]) -> Self {
        self.forms = forms;
        self
    }

    /// The same, known elsewhere by these words.
    pub const fn also(mut self, words: &'static [&'static str]) -> Self {
        self.also = words;
        self
    }
}

impl Shape {
    pub const fn new(what: &'static str, groups: &'static [&'static [Field]]) -> Self {
        Shape { what, groups, tag: None }
    }

    /// The same, with variants told apart by `key`.
    pub const fn tagged(mut self, key: &'static str, default: Option<&'static str>) -> Self {
        self.tag = Some(Tag { key, default });
        self
    }

    pub fn fields(&self) -> impl Iterator<Item = &'static Field> + use<> {
        self.groups.iter().flat_map(|group| group.iter())
    }

    pub fn field(&self, key: &str) -> Option<&'static Field> {
        self.fields().find(|field| field.key == key)
    }

    /// The field called `key` as it is with `tag`: a key may mean different things with different tags.
    pub fn field_for(&self, key: &str, tag: Option<&str>) -> Option<&'static Field> {
        self.fields()
            .find(|field| field.key == key && tag.is_some_and(|tag| field.goes_with(tag)))
            .or_else(|| self.field(key))
    }
}
