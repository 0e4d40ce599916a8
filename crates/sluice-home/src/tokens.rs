//! The tokens of a home, by which those are known who ask over the network. Of a secret only its digest is kept.
//!
//! They stand in a file of the home that only its owner can read, beside the projects, and not in the store: a copy of
//! the store that is given away, or a server's store that others can look into, opens no door.

use std::fs::OpenOptions;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use sluice_api::problem::{Problem, Status};
use sluice_api::token::{Scope, Token};
use sluice_engine::loader::pin;
use sluice_worker::taskfile;
use subtle::ConstantTimeEq;

/// So many tokens can be in use at once.
const MOST_TOKENS: usize = 1000;
/// So many revoked ones are remembered, so that the log can name whoever still uses one.
const MOST_REVOKED: usize = 1000;
/// What every secret begins with, so that one that got lost is recognised.
pub(crate) const PREFIX: &str = "slu_";
/// The longest name of a token.
const LONGEST_NAME: usize = 100;

/// All tokens.
#[derive(Debug)]
pub struct Tokens {
    file: PathBuf,
    all: Mutex<Vec<Kept>>,
}

/// What is kept of a token.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    token: Token,
    digest: String,
}

impl Tokens {
    /// Those in this file; none when there is no file.
    pub fn read(file: PathBuf) -> Result<Tokens, Problem> {
        let unusable = |why: String| {
            Problem::fault(format!("{} cannot be used: {why}", file.display()))
                .hint("mend it, or move it away: then every token is void")
        };
        let all = match std::fs::read(&file) {
            Ok(bytes) => {
                let own = std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600));
                own.map_err(|error| unusable(error.to_string()))?;
                serde_json::from_slice(&bytes).map_err(|error| unusable(error.to_string()))?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(unusable(error.to_string())),
        };
        Ok(Tokens { file, all: Mutex::new(all) })
    }

    fn all(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them, oldest first.
    pub fn list(&self) -> Vec<Token> {
        self.all().iter().map(|kept| kept.token.clone()).collect()
    }

    /// Makes a token. Its secret is in this answer, and nowhere else ever again.
    pub fn create(&self, scope: Scope, name: Option<String>, task: Option<String>) -> Result<Token, Problem> {
        if name.as_ref().is_some_and(|name| name.len() > LONGEST_NAME || name.chars().any(char::is_control)) {
            return Err(Problem::bad_request(format!("a name has at most {LONGEST_NAME} bytes, on one line")));
        }
        let id = crate::clock::new_id().map_err(Problem::fault)?;
        let secret = secret("").map_err(Problem::fault)?;
        let created_at = format!("{:.3}", jiff::Timestamp::now());
        let token = Token { id, secret: None, scope, name, task, created_at, revoked_at: None };
        self.change(|all| {
            if all.iter().filter(|kept| kept.token.revoked_at.is_none()).count() >= MOST_TOKENS {
                let message = format!("there are {MOST_TOKENS} tokens already");
                return Err(Problem::new(Status::Refused, "too_many", message).hint("`sluice token revoke` ends one"));
            }
            all.push(Kept { token: token.clone(), digest: pin(secret.as_bytes()).to_string() });
            Ok(Token { secret: Some(secret), ..token })
        })
    }

    /// Ends the token whose id begins like this: from now on nobody is let in by it.
    pub fn revoke(&self, begins: &str) -> Result<Token, Problem> {
        self.change(|all| {
            let token = &mut meant(all, begins)?.token;
            token.revoked_at.get_or_insert_with(|| format!("{:.3}", jiff::Timestamp::now()));
            let token = token.clone();
            let mut surplus = all.iter().filter(|kept| kept.token.revoked_at.is_some()).count();
            all.retain(|kept| {
                let goes = kept.token.revoked_at.is_some() && surplus > MOST_REVOKED;
                surplus -= usize::from(goes);
                !goes
            });
            Ok(token)
        })
    }

    /// The token with this secret, revoked or not. All are compared to the end, so that the time it takes tells nothing.
    pub fn find(&self, secret: &str) -> Option<Token> {
        let digest = pin(secret.as_bytes()).to_string();
        self.all().iter().fold(None, |found, kept| match is_same(&kept.digest, &digest) {
            true => Some(kept.token.clone()),
            false => found,
        })
    }

    /// Changes the list and writes it; if it cannot be written it is not changed.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Kept>) -> Result<T, Problem>) -> Result<T, Problem> {
        let mut all = self.all();
        let mut changed = all.clone();
        let answer = change(&mut changed)?;
        let text = serde_json::to_vec_pretty(&changed).map_err(|error| Problem::fault(error.to_string()))?;
        let failed = |why: String| Problem::fault(format!("{} cannot be written: {why}", self.file.display()));
        // A file that is replaced keeps its mode, so that it is made first with the right one.
        let made = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.file);
        made.map_err(|error| failed(error.to_string()))?;
        taskfile::write(&self.file, &text).map_err(|error| failed(error.to_string()))?;
        *all = changed;
        Ok(answer)
    }
}

/// The only token whose id begins like this, or is exactly this. One that is revoked is meant only if no other can be.
fn meant<'a>(all: &'a mut [Kept], begins: &str) -> Result<&'a mut Kept, Problem> {
    let begin_so = |kept: &&Kept| !begins.is_empty() && kept.token.id.starts_with(begins);
    let ids = |revoked: bool| -> Vec<String> {
        let found = all.iter().filter(begin_so).filter(|kept| kept.token.revoked_at.is_some() == revoked);
        found.map(|kept| kept.token.id.clone()).collect()
    };
    let mut found = if all.iter().any(|kept| kept.token.id == begins) { vec![begins.to_owned()] } else { ids(false) };
    if found.is_empty() {
        found = ids(true);
    }
    if found.len() > 1 {
        let message = format!("`{begins}` could be any of: {}", found.join(", "));
        return Err(Problem::bad_request(message).hint("say more of it"));
    }
    all.iter_mut().find(|kept| found.contains(&kept.token.id)).ok_or_else(|| {
        Problem::not_found(format!("there is no token `{}`", crate::projects::shown(begins)))
            .hint("`sluice token list` shows all of them")
    })
}

/// Whether two digests are the same, in a time that does not say where they differ.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// A new secret of 256 random bits, with something readable in front.
pub(crate) fn secret(about: &str) -> Result<String, String> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    let random: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{PREFIX}{about}{random}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_by_its_digest_until_it_is_revoked_and_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("tokens.json");
        let tokens = Tokens::read(file.clone()).expect("no file is no token");
        let made = tokens.create(Scope::Read, Some("dashboard".into()), None).expect("made");
        let secret = made.secret.expect("shown once");
        let text = std::fs::read_to_string(&file).expect("written");
        assert!(!text.contains(&secret) && !text.contains(&secret[4..]), "{text}");
        assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(tokens.find(&secret).map(|token| token.id), Some(made.id.clone()));
        assert!(tokens.find("slu_").is_none() && tokens.find("").is_none());
        tokens.revoke(&made.id).expect("revoked");
        let again = Tokens::read(file.clone()).expect("read");
        assert!(again.find(&secret).expect("remembered").revoked_at.is_some());
        assert!(again.list().iter().all(|token| token.secret.is_none()));
        assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
        assert!(tokens.revoke("nobody").is_err() && tokens.revoke("").is_err());
        // The rest of an id is not needed where it is clear without.
        let other = tokens.create(Scope::Read, None, None).expect("made");
        let same = other.id.chars().zip(made.id.chars()).take_while(|(one, other)| one == other).count();
        assert_eq!(tokens.revoke(&other.id[..=same]).expect("revoked").id, other.id);
    }
}
