//! What can be asked of a home in the words of one design document: colonies and crabs, grimoires and workflows. The answers
//! are those of [`crate::ask`], put into the document's terms.

mod coven;
mod crabitat;
