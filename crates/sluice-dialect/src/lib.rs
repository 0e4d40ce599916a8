//! The outside of a definition: the files it is read from and the findings that are printed about them.
//!
//! [`read`] turns YAML and TOML into one [`tree`] in which everything knows its place; [`mod@format`] makes that a draft
//! of the core, whichever of the four formats it is; [`mod@load`] goes the whole way from bytes to a checked definition;
//! [`catalogue`] finds the definitions that can be used at a place; [`report`] prints findings for people and machines.
//! [`pin`] keeps a definition so that it can be loaded again as it was. Only [`catalogue`] and [`prompts`] open files. Everything else is given bytes and gives back values, so that it can
//! be tested with a text.

pub mod builtin;
pub mod catalogue;
pub mod duration;
mod finding;
pub mod format;
pub mod load;
mod locate;
pub mod pin;
pub mod prompts;
pub mod read;
pub mod report;
pub mod shape;
pub mod source;
mod toml;
pub mod tree;
mod yaml;

pub use format::DefinitionFormat;
pub use load::{Definition, DefinitionFile, LoadedDefinition, load};
pub use pin::DefinitionPin;
pub use source::Sources;
