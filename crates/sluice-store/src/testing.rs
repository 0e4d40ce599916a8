//! A PostgreSQL of one's own, for tests: made in a temporary folder, gone when the test program ends.
//!
//! It listens on a socket in that folder and on no port, so it meets no other server. Never touches a server that was
//! there before: before the first statement it is asked where its data stand.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::{Client, NoTls};

/// `nobody`: PostgreSQL refuses to run as root.
const NOBODY: u32 = 65_534;

/// A PostgreSQL server with a folder of its own.
pub struct Cluster {
    folder: PathBuf,
    programs: PathBuf,
    /// Holds a pipe open; when it closes, because this program ends in whatever way, the server is stopped.
    keeper: Child,
    databases: AtomicU32,
}

impl Cluster {
    /// The cluster of this test program, started by the test that asks first.
    pub fn shared() -> &'static Cluster {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(Cluster::start)
    }

    /// Whether PostgreSQL is on this machine.
    pub fn is_installed() -> bool {
        programs().is_some()
    }

    /// Makes a cluster and starts its server.
    ///
    /// # Panics
    /// If PostgreSQL is not installed (Debian: `apt-get install postgresql`) or does not start.
    pub fn start() -> Cluster {
        let programs = programs().expect("PostgreSQL is not installed: apt-get install postgresql");
        let folder = tempfile::Builder::new().prefix("sluice-pg-").tempdir().unwrap().keep();
        if is_root() {
            chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        let data = folder.join("data");
        let (data, socket) = (data.to_str().unwrap(), folder.to_str().unwrap());
        let arguments = ["--auth=trust", "--username=sluice", "--encoding=UTF8", "--locale=C", "--pgdata", data];
        succeed(as_nobody(&programs.join("initdb")).args(arguments), &folder);
        let settings = format!("listen_addresses = ''\nunix_socket_directories = '{socket}'\nmax_connections = 60\n");
        let file = folder.join("data/postgresql.auto.conf");
        fs::write(&file, settings).unwrap();
        let keeper = keeper(&programs, &folder);
        let cluster = Cluster { folder, programs, keeper, databases: AtomicU32::new(0) };
        cluster.resume();
        let expected = cluster.folder.join("data");
        cluster.ask(|client| async move {
            let row = client.query_one("SHOW data_directory", &[]).await.unwrap();
            assert_eq!(Path::new(row.get::<_, &str>(0)), expected, "another server answered");
        });
        cluster
    }

    /// Starts the server and waits until it answers.
    pub fn resume(&self) {
        let data = self.folder.join("data");
        let log = self.folder.join("log");
        let mut command = as_nobody(&self.programs.join("pg_ctl"));
        command.args(["start", "--wait", "--silent", "--pgdata"]).arg(data).arg("--log").arg(log);
        succeed(&mut command, &self.folder);
    }

    /// Stops the server as a crash would: no checkpoint, no farewell to its clients.
    pub fn halt(&self) {
        let data = self.folder.join("data");
        let mut command = as_nobody(&self.programs.join("pg_ctl"));
        succeed(command.args(["stop", "--wait", "--mode", "immediate", "--pgdata"]).arg(data), &self.folder);
    }

    /// A new, empty database, as the address of a store.
    pub fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let sql = format!("CREATE DATABASE {name}");
        self.ask(|client| async move { client.batch_execute(&sql).await.unwrap() });
        self.address(&name)
    }

    /// Does something as another client of a database would, at an address that [`Cluster::database`] gave.
    pub fn execute(&self, address: &str, sql: &str) {
        ask(address, |client| async move { client.batch_execute(sql).await.unwrap() });
    }

    fn address(&self, database: &str) -> String {
        format!("postgres://sluice@/{database}?host={}", self.folder.display())
    }

    fn ask<F: Future<Output = ()>>(&self, work: impl FnOnce(Client) -> F) {
        ask(&self.address("postgres"), work);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

fn ask<F: Future<Output = ()>>(address: &str, work: impl FnOnce(Client) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
        drop(tokio::spawn(connection));
        work(client).await;
    });
}

/// A shell that waits for its input to end and then stops the server and removes the folder. A destructor would not
/// do: statics have none, and a program that is killed runs none.
fn keeper(programs: &Path, folder: &Path) -> Child {
    let script = "cat >/dev/null; \"$0\" stop --silent --wait --mode immediate --pgdata \"$1/data\" >/dev/null 2>&1; rm -rf \"$1\"";
    let mut shell = as_nobody(Path::new("/bin/sh"));
    shell.arg("-c").arg(script).arg(programs.join("pg_ctl")).arg(folder);
    // A group of its own: what interrupts the tests must not interrupt the tidying up.
    shell.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Where the newest PostgreSQL of this machine has its programs, if there is one.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let found = versions.filter_map(|it| it.ok()?.file_name().to_str()?.parse::<u32>().ok()).max();
    if let Some(version) = found {
        return Some(format!("/usr/lib/postgresql/{version}/bin").into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).find(|folder| folder.join("initdb").exists())
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0)
}

/// A program, run by an unprivileged user, in a folder that this user may enter.
fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").env("LC_ALL", "C").stdin(Stdio::null());
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Runs a program; its output goes to a file, because a server keeps open what it was started with.
fn succeed(command: &mut Command, folder: &Path) {
    let path = folder.join("output");
    let output = fs::File::create(&path).unwrap();
    let status = command.stdout(output.try_clone().unwrap()).stderr(output).status().unwrap();
    let logs = || ["output", "log"].map(|name| fs::read_to_string(folder.join(name)).unwrap_or_default()).join("\n");
    assert!(status.success(), "{command:?} failed: {status}\n{}", logs());
}
