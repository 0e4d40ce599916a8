//! The tokens of a home, by which those are known who ask over the network. Of a secret only its digest is kept.
//!
//! They stand in a file of the home that only its owner can read, beside the projects, and not in the store: a copy of
//! the store that is given away, or a server's store that others can look into, opens no door.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sluice_api::problem::{Problem, ProblemStatus};
use sluice_api::token::{Scope, Token};
use sluice_api::work::PROJECT_GROUP;
use sluice_core::machine::RefusalCode;
use sluice_dialect::duration;
use sluice_engine::loader::pin;
use sluice_os::file::{Durability, FileDraft};
use sluice_worker::names::{is_same, secret};

use crate::settings::ids::LOCAL;
use crate::settings::ids::only;
use crate::settings::projects::shown;

/// So many tokens can be in use at once.
const MOST_TOKENS: usize = 1000;
/// So many revoked ones are remembered, so that the log can name a caller who still uses one.
const MOST_REVOKED: usize = 1000;
/// The longest time that a token can be good, unless it is for ever: ten years.
const LONGEST_PERIOD: Duration = Duration::from_secs(10 * 366 * 24 * 3600);
const SHORTEST_PERIOD: Duration = Duration::from_secs(1);
const LONGEST_NAME: usize = 100;
/// What stands behind a name in the name of a browser's session.
pub const PAGE_MARK: &str = " (page)";

#[derive(Debug)]
pub struct Tokens {
    file: PathBuf,
    all: Mutex<Vec<TokenRecord>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct TokenRecord {
    token: Token,
    digest: String,
    /// It has been told that it ended by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    told: bool,
    /// It is the session of a browser: it opens the page and nothing else, and to log out ends it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    page: bool,
    /// The id of the token that a browser has shown for this session: it is revoked with that token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

/// A token that no caller is let in by any more, and the browsers' sessions that ended with it.
#[derive(Debug)]
pub struct RevokedToken {
    pub token: Token,
    pub sessions: Vec<Token>,
}

/// What a record is of: a token that a person gives to a program, or the session of a browser.
enum RecordKind<'a> {
    Token,
    PageSession { from: Option<&'a Token> },
}

#[derive(Clone, Debug)]
pub struct TokenRequest {
    pub scope: Scope,
    pub name: Option<String>,
    /// The task that an agent's token speaks for.
    pub task: Option<String>,
    /// The colony that a worker's token is bound to.
    pub colony: Option<String>,
    /// The only role that a worker's token can register as.
    pub role: Option<String>,
    pub expires: Option<Duration>,
}

pub fn is_expired(token: &Token) -> bool {
    let ends = token.expires_at.as_ref().and_then(|at| at.parse::<Timestamp>().ok());
    ends.is_some_and(|ends| ends <= Timestamp::now())
}

/// How long a token is good: a length of time of at least a second.
pub fn period(text: &str) -> Result<Duration, Problem> {
    let unusable = |why: &str| {
        let message = format!("`{}` is not a length of time: {why}", crate::settings::projects::shown(text));
        Problem::bad_request(message).hint(duration::FORMS)
    };
    let length = duration::read(text, LONGEST_PERIOD).map_err(|error| unusable(&error.to_string()))?;
    if length < SHORTEST_PERIOD { Err(unusable("it is shorter than a second")) } else { Ok(length) }
}

impl Tokens {
    /// Those in this file; none when there is no file.
    pub fn read(file: PathBuf) -> Result<Tokens, Problem> {
        let unusable = |why: String| {
            Problem::fault(format!("{} cannot be used: {why}", file.display()))
                .hint("fix the file, or move it away: then every token is void")
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

    fn all(&self) -> MutexGuard<'_, Vec<TokenRecord>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them, oldest first.
    pub fn list(&self) -> Vec<Token> {
        self.all().iter().map(|kept| kept.token.clone()).collect()
    }

    /// Makes a token. Its secret is in this answer, and nowhere else ever again.
    pub fn create(&self, wanted: TokenRequest) -> Result<Token, Problem> {
        self.make(wanted, &RecordKind::Token)
    }

    /// Makes the session of a browser at the page, in the name of this person or token. One that comes from a token ends
    /// no later than that token.
    pub fn create_page_session(
        &self,
        scope: Scope,
        name: &str,
        lasts: Duration,
        from: Option<&Token>,
    ) -> Result<Token, Problem> {
        let room = name.floor_char_boundary(LONGEST_NAME - PAGE_MARK.len());
        let name = Some(format!("{}{PAGE_MARK}", &name[..room]));
        let wanted = TokenRequest { scope, name, task: None, colony: None, role: None, expires: Some(lasts) };
        self.make(wanted, &RecordKind::PageSession { from })
    }

    fn make(&self, wanted: TokenRequest, kind: &RecordKind<'_>) -> Result<Token, Problem> {
        let TokenRequest { scope, name, task, colony, role, expires } = wanted;
        if name.as_ref().is_some_and(|name| name.len() > LONGEST_NAME || name.chars().any(char::is_control)) {
            return Err(Problem::bad_request(format!("a name has at most {LONGEST_NAME} bytes, on one line")));
        }
        let id = crate::settings::clock::new_id().map_err(Problem::fault)?;
        let secret = secret("").map_err(Problem::fault)?;
        let now = Timestamp::now();
        let ends = expires.map(|length| now.checked_add(length)).transpose();
        let ends = ends.map_err(|error| Problem::bad_request(error.to_string()))?;
        let (page, from) = match kind {
            RecordKind::Token => (false, None),
            RecordKind::PageSession { from } => (true, *from),
        };
        let last = from.and_then(|from| from.expires_at.as_ref()?.parse::<Timestamp>().ok());
        let ends = ends.into_iter().chain(last).min();
        let (created_at, expires_at) = (format!("{now:.3}"), ends.map(|ends| format!("{ends:.3}")));
        let token =
            Token { id, secret: None, scope, name, task, colony, role, created_at, expires_at, revoked_at: None };
        self.change(|all| {
            // It may have been revoked since it was looked at.
            let is_over = |from: &Token| all.iter().any(|it| it.token.id == from.id && it.token.revoked_at.is_some());
            if from.is_some_and(is_over) {
                let message = "the token of this session has been revoked";
                return Err(Problem::new(ProblemStatus::Unauthorized, "token_revoked", message));
            }
            let is_good = |kept: &&TokenRecord| kept.token.revoked_at.is_none() && !is_expired(&kept.token);
            if all.iter().filter(is_good).count() >= MOST_TOKENS {
                let message = format!("there are {MOST_TOKENS} tokens already");
                return Err(
                    Problem::new(ProblemStatus::Refused, "too_many", message).hint("`sluice token revoke` ends one")
                );
            }
            let digest = pin(secret.as_bytes()).to_string();
            let from = from.map(|from| from.id.clone());
            all.push(TokenRecord { token: token.clone(), digest, told: false, page, from });
            Ok(Token { secret: Some(secret), ..token })
        })
    }

    /// Ends the token whose id begins like this: from now on no caller is let in by it, nor by a session that came from it.
    pub fn revoke(&self, begins: &str) -> Result<RevokedToken, Problem> {
        self.change(|all| {
            let place = only(all.iter().map(|kept| kept.token.id.as_str()), begins)?.ok_or_else(|| {
                Problem::not_found(format!("there is no token `{}`", shown(begins)))
                    .hint("`sluice token list` shows all of them")
            })?;
            let now = format!("{:.3}", Timestamp::now());
            let token = &mut all[place].token;
            token.revoked_at.get_or_insert_with(|| now.clone());
            let token = token.clone();
            let of_it = |kept: &&mut TokenRecord| {
                kept.from.as_ref() == Some(&token.id) && kept.token.revoked_at.is_none() && !is_expired(&kept.token)
            };
            let end = |kept: &mut TokenRecord| {
                kept.token.revoked_at = Some(now.clone());
                kept.token.clone()
            };
            let sessions = all.iter_mut().filter(of_it).map(end).collect();
            let is_over = |kept: &TokenRecord| kept.token.revoked_at.is_some() || kept.told;
            let mut surplus = all.iter().filter(|kept| is_over(kept)).count();
            all.retain(|kept| {
                let goes = is_over(kept) && surplus > MOST_REVOKED;
                surplus -= usize::from(goes);
                !goes
            });
            Ok(RevokedToken { token, sessions })
        })
    }

    /// Whether the token of this id is in force; none if there is no such token.
    pub fn is_in_force(&self, id: &str) -> Option<bool> {
        let all = self.all();
        let token = &all.iter().find(|kept| kept.token.id == id)?.token;
        Some(token.revoked_at.is_none() && !is_expired(token))
    }

    /// Whether the token of this id is the session of a browser.
    pub fn is_page_session(&self, id: &str) -> bool {
        self.all().iter().any(|kept| kept.page && kept.token.id == id)
    }

    /// Whether a session of a browser is in force.
    pub fn has_page_sessions(&self) -> bool {
        let is_good = |kept: &TokenRecord| kept.page && kept.token.revoked_at.is_none() && !is_expired(&kept.token);
        self.all().iter().any(is_good)
    }

    /// The ids of the tokens in force that workers of this group have.
    pub fn of_group(&self, group: &str) -> Vec<String> {
        let all = self.all();
        let tokens = all.iter().map(|kept| &kept.token).filter(|token| token.revoked_at.is_none());
        tokens.filter(|token| token.colony.as_deref() == Some(group)).map(|token| token.id.clone()).collect()
    }

    pub fn group_of(&self, id: &str) -> Option<String> {
        self.all().iter().find(|kept| kept.token.id == id)?.token.colony.clone()
    }

    /// A worker with this token registers with a colony, as something. A token that is bound to no colony yet is bound to
    /// this one from now on. Nobody with a token does the work of this machine.
    pub fn bind(&self, id: &str, colony: &str, role: &str) -> Result<(), Problem> {
        let makes = match colony.strip_prefix(PROJECT_GROUP) {
            Some(project) => {
                format!(
                    "`sluice token create --scope worker --project {}` makes a token for that project",
                    shown(project)
                )
            }
            None if colony == LOCAL => {
                "`sluice token create --scope worker --colony C` makes a token for a colony".to_owned()
            }
            None => {
                format!("`sluice token create --scope worker --colony {}` makes a token for that colony", shown(colony))
            }
        };
        let refused = |why: String| {
            Problem::new(ProblemStatus::Forbidden, RefusalCode::NotYours.as_str(), format!("Not allowed: {why}"))
        };
        let no = |why: String| refused(why).hint(makes.clone());
        if colony == LOCAL {
            return Err(no(format!("the work of the colony `{LOCAL}` is done by the engine's own machine alone")));
        }
        let find = |all: &[TokenRecord]| all.iter().position(|kept| kept.token.id == id);
        let gone = || no("this token is not known any more".to_owned());
        let all = self.all().clone();
        let token = find(&all).map(|place| all[place].token.clone()).ok_or_else(gone)?;
        if let Some(own) = token.role.as_ref().filter(|own| *own != role) {
            let hint = format!(
                "use `role={own}`; `sluice token create --scope worker --role R` makes a token for another role"
            );
            return Err(refused(format!("this token is for the role `{own}`")).hint(hint));
        }
        match &token.colony {
            Some(own) if own == colony => Ok(()),
            Some(own) => Err(no(match own.strip_prefix(PROJECT_GROUP) {
                Some(project) => format!("this token is for the project `{project}`"),
                None => format!("this token is for the colony {own}"),
            })),
            None => self.change(|all| {
                let place = find(all).ok_or_else(gone)?;
                all[place].token.colony.get_or_insert_with(|| colony.to_owned());
                Ok(())
            }),
        }
    }

    /// Those that have ended by themselves since this was last asked.
    pub fn newly_expired(&self) -> Result<Vec<Token>, Problem> {
        let is_new = |kept: &TokenRecord| !kept.told && kept.token.revoked_at.is_none() && is_expired(&kept.token);
        if !self.all().iter().any(is_new) {
            return Ok(Vec::new());
        }
        self.change(|all| {
            let new = all.iter_mut().filter(|kept| is_new(kept));
            Ok(new
                .map(|kept| {
                    kept.told = true;
                    kept.token.clone()
                })
                .collect())
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
    fn change<T>(&self, change: impl FnOnce(&mut Vec<TokenRecord>) -> Result<T, Problem>) -> Result<T, Problem> {
        let mut all = self.all();
        let mut changed = all.clone();
        let answer = change(&mut changed)?;
        let text = serde_json::to_vec_pretty(&changed).map_err(|error| Problem::fault(error.to_string()))?;
        let failed = |why: String| Problem::fault(format!("{} cannot be written: {why}", self.file.display()));
        let write = || {
            let draft = FileDraft::private(&self.file, Durability::Synced)?;
            draft.write(&text)?;
            draft.place()
        };
        write().map_err(|error: std::io::Error| failed(error.to_string()))?;
        *all = changed;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_by_its_digest_until_it_is_revoked_and_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("tokens.json");
        let tokens = Tokens::read(file.clone()).expect("no file is no token");
        let wanted =
            TokenRequest { scope: Scope::Read, name: None, task: None, colony: None, role: None, expires: None };
        let made = tokens.create(TokenRequest { name: Some("dashboard".into()), ..wanted.clone() }).expect("made");
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
        let other = tokens.create(wanted).expect("made");
        let same = other.id.chars().zip(made.id.chars()).take_while(|(one, other)| one == other).count();
        assert_eq!(tokens.revoke(&other.id[..=same]).expect("revoked").token.id, other.id);
    }

    #[test]
    fn a_session_ends_with_its_token_and_has_a_name_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = Tokens::read(folder.path().join("tokens.json")).expect("no file is no token");
        let (name, expires) = ("é".repeat(LONGEST_NAME / 2), Some(Duration::from_secs(60)));
        let wanted = TokenRequest {
            scope: Scope::Person,
            name: Some(name.clone()),
            task: None,
            colony: None,
            role: None,
            expires,
        };
        let from = tokens.create(wanted).expect("made");
        let lasts = Duration::from_secs(3600);
        let session = tokens.create_page_session(Scope::Person, &name, lasts, Some(&from)).expect("made");
        assert_eq!(session.expires_at, from.expires_at, "it lasts no longer than its token");
        let own = session.name.expect("a name");
        assert!(own.ends_with("é (page)") && own.len() <= LONGEST_NAME, "{own}");
        let other = tokens.create_page_session(Scope::Read, "ada", lasts, None).expect("made");
        assert!(tokens.is_page_session(&session.id) && !tokens.is_page_session(&from.id));
        let ended: Vec<String> =
            tokens.revoke(&from.id).expect("revoked").sessions.into_iter().map(|token| token.id).collect();
        assert_eq!(ended, [session.id]);
        assert!(tokens.find(&other.secret.expect("a secret")).expect("there").revoked_at.is_none());
        let again = tokens.create_page_session(Scope::Person, &name, lasts, Some(&from));
        assert_eq!(again.expect_err("refused").code, "token_revoked");
    }

    #[test]
    fn a_worker_token_is_for_one_colony_and_never_for_this_machine() {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = Tokens::read(folder.path().join("tokens.json")).expect("no file is no token");
        let free =
            TokenRequest { scope: Scope::Worker, name: None, task: None, colony: None, role: None, expires: None };
        let bound = TokenRequest { colony: Some("reef".into()), role: Some("coder".into()), ..free.clone() };
        let bound = tokens.create(bound).expect("made").id;
        assert!(tokens.bind(&bound, "reef", "coder").is_ok());
        assert!(tokens.bind(&bound, "reef", "any").is_err());
        assert!(tokens.bind(&bound, "bay", "coder").is_err());
        assert!(tokens.bind(&bound, LOCAL, "coder").is_err());
        // One that was made without a colony is bound by its first use, also after a restart.
        let free = tokens.create(free).expect("made").id;
        assert!(tokens.bind(&free, LOCAL, "any").is_err());
        assert!(tokens.bind(&free, "bay", "any").is_ok());
        let again = Tokens::read(folder.path().join("tokens.json")).expect("read");
        assert!(again.bind(&free, "reef", "any").is_err() && again.bind(&free, "bay", "coder").is_ok());
        assert!(tokens.bind("nobody", "bay", "any").is_err());
    }

    #[test]
    fn a_token_is_good_for_a_second_or_ten_years() {
        assert_eq!(period("30d").expect("read"), Duration::from_secs(30 * 24 * 3600));
        assert_eq!(period("1s").expect("read"), Duration::from_secs(1));
        assert_eq!(period("2w").expect("read"), Duration::from_secs(14 * 24 * 3600));
        for wrong in ["", "d", "0d", "999ms", "-1d", "30", "1y", "99999w", "1é"] {
            assert!(period(wrong).is_err(), "{wrong}");
        }
    }
}
