//! Settings of a server with which it can lose what it said was stored.
//!
//! Nothing here changes them: they are the server's, and others may have a reason for them.

use super::link::{PostgresLink, PostgresTrouble};
use crate::StoreError;

/// A setting that can lose commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// The setting and what it is: `fsync = off`.
    pub setting: String,
    /// What the store can lose with this setting.
    pub means: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

struct PostgresSettings {
    fsync: String,
    full_page_writes: String,
    /// The default of a session that does not set it.
    synchronous_commit: String,
    synchronous_standby_names: String,
    standbys: i64,
}

/// Reads the settings of the server, and names those that can lose commits.
pub(super) fn hazards(link: &mut PostgresLink) -> Result<Vec<Hazard>, StoreError> {
    let sql = "SELECT current_setting('fsync'), current_setting('full_page_writes'),
        (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
        current_setting('synchronous_standby_names'),
        (SELECT count(*) FROM pg_stat_replication)";
    let settings = link.run(async |session| {
        let row = session.client.query_one(sql, &[]).await.map_err(PostgresTrouble::from)?;
        Ok(PostgresSettings {
            fsync: row.get(0),
            full_page_writes: row.get(1),
            synchronous_commit: row.get::<_, Option<String>>(2).unwrap_or_default(),
            synchronous_standby_names: row.get(3),
            standbys: row.get(4),
        })
    })?;
    Ok(found(&settings))
}

fn found(settings: &PostgresSettings) -> Vec<Hazard> {
    let mut found = Vec::new();
    let mut add = |setting: String, means, remedy| found.push(Hazard { setting, means, remedy });
    if settings.fsync == "off" {
        add(
            "fsync = off".into(),
            "a crash of the server's machine loses commits and can destroy the whole database",
            "set fsync = on in postgresql.conf, and reload",
        );
    }
    if settings.full_page_writes == "off" {
        add(
            "full_page_writes = off".into(),
            "a power cut can leave half-written pages that no recovery mends",
            "set full_page_writes = on in postgresql.conf, and reload",
        );
    }
    if ["off", "local"].contains(&settings.synchronous_commit.as_str()) {
        add(
            format!("synchronous_commit = {}", settings.synchronous_commit),
            "a crash or a failover loses the last commits of clients that do not ask for more; Sluice asks for `on` on its own connections",
            "set synchronous_commit = on in postgresql.conf, and reload, if other programs count on their commits",
        );
    }
    if settings.standbys > 0 && settings.synchronous_standby_names.is_empty() {
        let are = if settings.standbys == 1 { "1 standby follows" } else { "standbys follow" };
        add(
            format!("synchronous_standby_names is empty while {are} asynchronously"),
            "when a standby is promoted, the last commits are lost: steps that have ended run again, and what was answered is forgotten",
            "name a standby in synchronous_standby_names, e.g. 'FIRST 1 (*)', and reload",
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> PostgresSettings {
        let on = || "on".to_owned();
        let (fsync, full_page_writes, synchronous_commit) = (on(), on(), on());
        PostgresSettings {
            fsync,
            full_page_writes,
            synchronous_commit,
            synchronous_standby_names: String::new(),
            standbys: 0,
        }
    }

    #[test]
    fn each_setting_that_loses_commits_is_named() {
        let names = |settings: PostgresSettings| found(&settings).into_iter().map(|it| it.setting).collect::<Vec<_>>();
        assert!(names(settings()).is_empty());
        assert_eq!(names(PostgresSettings { fsync: "off".into(), ..settings() }), ["fsync = off"]);
        assert_eq!(
            names(PostgresSettings { full_page_writes: "off".into(), ..settings() }),
            ["full_page_writes = off"]
        );
        for weak in ["off", "local"] {
            let found = names(PostgresSettings { synchronous_commit: weak.into(), ..settings() });
            assert_eq!(found, [format!("synchronous_commit = {weak}")]);
        }
        let asynchronous = "synchronous_standby_names is empty while 1 standby follows asynchronously";
        assert_eq!(names(PostgresSettings { standbys: 1, ..settings() }), [asynchronous]);
        assert!(
            names(PostgresSettings { standbys: 1, synchronous_standby_names: "*".into(), ..settings() }).is_empty()
        );
    }
}
