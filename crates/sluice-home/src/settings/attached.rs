//! Which store a home is attached to: written down when it is first opened, and held to from then on. An engine on
//! another store, one that is older than what wrote here, or one that finds the store gone, is refused: each of them
//! would look like an empty home, and what is made there would be lost to this one.
//!
//! No password is ever written down; where one is needed it stands in `PGPASSWORD`.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sluice_api::Problem;
use sluice_engine::codec::FORMAT;
use sluice_os::file::{Durability, write_atomically};
use sluice_store::Store;

use crate::settings::config::HomeConfig;
use crate::settings::places::HomePaths;

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct StoreAttachment {
    format: u32,
    /// The version of Sluice that wrote here last.
    sluice: String,
    /// What the store is called in messages.
    store: String,
    address: String,
    /// It is the home's own file, wherever the home is moved or copied to.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    own: bool,
}

/// A store that may be opened for this home.
#[derive(Debug, PartialEq, Eq)]
pub struct StoreChoice {
    pub address: String,
    /// What it is called in messages: never with a password.
    pub name: String,
}

/// The store of a home: the one that is asked for, else that of `config.toml`, else the one it has, else one of its own.
pub fn choose(places: &HomePaths, config: &HomeConfig, asked: Option<String>) -> Result<StoreChoice, Problem> {
    let known = read(places)?;
    let set = config.store.address.clone();
    let before = known.as_ref().map(|known| known.address.clone());
    let address = asked.or(set).or(before).unwrap_or_else(|| places.store());
    let name = Store::name_of(&address).map_err(|error| crate::settings::store::closed(&error))?;
    let Some(known) = known else { return Ok(StoreChoice { address, name }) };
    if known.store != name {
        let message = format!("the store of this home is {}, and {name} is asked for", known.store);
        return Err(Problem::unavailable(message).hint(format!(
            "leave --store, SLUICE_STORE and [store] out; to give the home another store for good, remove {}",
            places.attached().display()
        )));
    }
    match address.strip_prefix("sqlite:").map(Path::new) {
        Some(file) if !file.metadata().is_ok_and(|file| file.len() > 0) => {
            let is = if file.exists() { "is empty now" } else { "is not there any more" };
            let message = format!("this home had its store in {}, and it {is}", file.display());
            let attached = places.attached().display().to_string();
            Err(Problem::unavailable(message).hint(match newest_saved(file).map(|(saved, at)| (saved.display().to_string(), at)) {
                Some((saved, at)) => format!(
                    "`sluice restore FILE` puts a backup back, and {saved} is what an engine saved of it at {at:.0}; \
                     to begin with an empty store, remove {attached} and move {saved} elsewhere"
                ),
                None => format!("`sluice restore FILE` puts a backup back; to begin with an empty store, remove {attached}"),
            }))
        }
        Some(_) | None => Ok(StoreChoice { address, name }),
    }
}

/// A store in a file must hold what an engine saved of it when the file was lost under it. One that does not is an older
/// one, and what is made there is lost when the other is put back.
pub fn must_hold_what_was_saved(choice: &StoreChoice, store: &Store) -> Result<(), Problem> {
    let saved = choice.address.strip_prefix("sqlite:").and_then(|file| newest_saved(Path::new(file)));
    let Some((saved, at)) = saved else { return Ok(()) };
    // One that cannot be read is no reason to stay away.
    let Ok(there) = Store::reach_of_file(&saved) else { return Ok(()) };
    let here = store.reach().map_err(|error| crate::settings::store::closed(&error))?;
    if here.is_none_or(|here| here >= there) {
        return Ok(());
    }
    let (name, saved) = (&choice.name, saved.display());
    let message =
        format!("the store {name} is older than {saved}, which an engine saved at {at:.0} when the store was lost");
    Err(Problem::unavailable(message).hint(format!(
        "`sluice restore {saved}` brings back what is missing; to go on without it, move that file elsewhere"
    )))
}

/// What an engine saved last of a store whose file was removed under it, and when: it stays there for as long as its owner
/// wants, and may be of an earlier time than what is missing now.
fn newest_saved(file: &Path) -> Option<(PathBuf, Timestamp)> {
    let written = |path: PathBuf| {
        let at = Timestamp::try_from(path.metadata().ok()?.modified().ok()?).ok()?;
        Some((path, at))
    };
    all_saved(file).into_iter().filter_map(written).max_by_key(|(_, at)| *at)
}

fn all_saved(file: &Path) -> Vec<PathBuf> {
    let (Some(name), Some(folder)) = (file.file_name().and_then(|name| name.to_str()), file.parent()) else {
        return Vec::new();
    };
    let begins = format!("{name}.saved-");
    let is_saved = |name: &str| {
        name.strip_prefix(&begins).is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_str().is_some_and(is_saved)).map(|entry| entry.path()).collect()
}

/// A person has put a store in its place that holds less than what engines saved: that stays, under other names, which are
/// given. No engine asks for it any more.
pub fn pass_over_saved(store: &Path) -> std::io::Result<Vec<PathBuf>> {
    let here = Store::reach_of_file(store).unwrap_or(u64::MAX);
    let mut passed_over = Vec::new();
    for saved in all_saved(store) {
        if Store::reach_of_file(&saved).is_ok_and(|there| there > here) {
            let to = free_name(&saved, "passed-over");
            std::fs::rename(&saved, &to)?;
            passed_over.push(to);
        }
    }
    Ok(passed_over)
}

/// The first name beside a file that is not taken: the file's own, this ending, and a number.
pub(crate) fn free_name(path: &Path, ending: &str) -> PathBuf {
    let names = (1u32..).map(|number| PathBuf::from(format!("{}.{ending}-{number}", path.display())));
    names.into_iter().find(|name| !name.exists()).unwrap_or_else(|| path.with_extension(ending))
}

/// Writes down which store the home has, once that has been opened.
pub fn remember(places: &HomePaths, choice: &StoreChoice) -> Result<(), Problem> {
    let attached = StoreAttachment {
        format: FORMAT,
        sluice: env!("CARGO_PKG_VERSION").to_owned(),
        store: choice.name.clone(),
        address: Store::without_password(&choice.address),
        own: choice.address == places.store(),
    };
    if read(places)?.as_ref() == Some(&attached) {
        return Ok(());
    }
    let file = places.attached();
    let text = serde_json::to_vec_pretty(&attached).unwrap_or_default();
    write_atomically(&file, &text, Durability::Synced).map_err(|error| {
        Problem::unavailable(format!("{} cannot be written: {error}", file.display()))
            .hint("make room on its disk, or make its folder writable, and try again")
    })
}

/// What the store of a home is called, if one is known.
pub fn name(places: &HomePaths) -> Result<Option<String>, Problem> {
    Ok(read(places)?.map(|known| known.store))
}

fn read(places: &HomePaths) -> Result<Option<StoreAttachment>, Problem> {
    let file = places.attached();
    let bytes = match std::fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Problem::unavailable(format!("{} cannot be read: {error}", file.display()))),
    };
    let broken = |error: serde_json::Error| {
        Problem::unavailable(format!("{} says which store this home has, and cannot be read: {error}", file.display()))
            .hint("mend it, or remove it if the home's store is its own store.db")
    };
    let mut attached: StoreAttachment = serde_json::from_slice(&bytes).map_err(broken)?;
    if attached.format > FORMAT {
        let message = format!(
            "Sluice {} wrote this home (format {}), and this is Sluice {}, which knows up to format {FORMAT}",
            attached.sluice,
            attached.format,
            env!("CARGO_PKG_VERSION")
        );
        return Err(Problem::unavailable(message).hint("use that version of Sluice, or a later one"));
    }
    if attached.own || is_moved(&attached, places) {
        attached.address = places.store();
        attached.store = Store::name_of(&attached.address).map_err(|error| crate::settings::store::closed(&error))?;
    }
    Ok(Some(attached))
}

/// Whether the store of a home that an earlier version wrote is its own file, which is now where the home is.
fn is_moved(attached: &StoreAttachment, places: &HomePaths) -> bool {
    let path = |address: &str| address.strip_prefix("sqlite:").map(PathBuf::from);
    let (Some(before), Some(own)) = (path(&attached.address), path(&places.store())) else { return false };
    before != own && !before.exists() && own.exists() && before.file_name() == own.file_name()
}
