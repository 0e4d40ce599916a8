//! `cargo xtask api-clients`: three programs make clients of the API's document, and each of them lists, creates and answers
//! at a served home. A document that such a program cannot read is no use to most of its readers.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::json;

use crate::root;
use crate::served_home::{Home, Served, built, run, target, text};

/// The generators of Python clients, from PyPI; the second one needs Java.
const FROM_PYPI: [&str; 2] = ["openapi-python-client==0.26.2", "openapi-generator-cli==7.26.0"];
/// What the clients that they make need.
const FOR_CLIENTS: [&str; 5] = ["httpx", "attrs", "urllib3", "pydantic", "python-dateutil"];
/// The generator of TypeScript types, and what makes a program of them, from npm.
const FROM_NPM: [&str; 4] =
    ["openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@20.19.0"];

/// Makes the clients and runs them.
pub fn main() -> ExitCode {
    match clients() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("api-clients: {why}");
            ExitCode::FAILURE
        }
    }
}

fn clients() -> Result<(), String> {
    let (python, node) = tools()?;
    let home = Home::new(built()?)?;
    let served = Served::start(&home)?;
    let secret = text(&home.json(&["token", "create", "--scope", "person"])?["token"]["secret"])?;
    let colony = text(&served.post(&secret, "/v1/colonies", r#"{"name":"reef"}"#)?["colony_id"])?;
    let crab = json!({ "crab_id": "clawde", "colony_id": colony, "name": "Clawde", "role": "any" });
    served.post(&secret, "/v1/crabs/register", &crab.to_string())?;
    let document = root().join("docs/openapi.json");
    let at_home = |command: &mut Command| run(command.env("SLUICE_URL", &served.url).env("SLUICE_TOKEN", &secret));
    type Client<'a> = (&'a str, &'a dyn Fn() -> Result<Command, String>);
    let makers: [Client<'_>; 3] = [
        ("typescript", &|| typescript(&node, &home.folder, &document)),
        ("python", &|| python_client(&python, &home.folder, &document)),
        ("generator", &|| generator(&python, &home.folder, &document)),
    ];
    for (name, make) in makers {
        // A run that waits for a person: each client answers one.
        home.sluice(&["start", "gated"]).err().ok_or("the run does not wait for a person")?;
        let mut client = make().map_err(|why| format!("{name} cannot be made: {why}"))?;
        print!("{}", at_home(&mut client).map_err(|why| format!("{name}: {why}"))?);
    }
    Ok(())
}

/// The generators, in folders of their own, which are made when they are not there.
fn tools() -> Result<(PathBuf, PathBuf), String> {
    let folder = target().join("api-clients");
    let (python, node) = (folder.join("python"), folder.join("node"));
    let (done, wanted) = (folder.join("done"), format!("{FROM_PYPI:?}{FOR_CLIENTS:?}{FROM_NPM:?}"));
    if std::fs::read_to_string(&done).is_ok_and(|there| there == wanted) {
        return Ok((python, node));
    }
    let wrong = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(&node).map_err(wrong)?;
    eprintln!("installing {} from PyPI and {} from npm", FROM_PYPI.join(", "), FROM_NPM.join(", "));
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&python))?;
    run(Command::new(python.join("bin/pip")).args(["install", "--quiet"]).args(FROM_PYPI).args(FOR_CLIENTS))?;
    let quiet = ["install", "--silent", "--no-fund", "--no-audit"];
    run(Command::new("npm").current_dir(&node).args(quiet).args(FROM_NPM))?;
    std::fs::write(done, wanted).map_err(wrong)?;
    Ok((python, node))
}

/// A script of ours, where the client is that it uses.
fn script(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let to = folder.join(name);
    std::fs::copy(root().join("xtask/clients").join(name), &to).map_err(|error| format!("{name}: {error}"))?;
    Ok(to)
}

fn typescript(node: &Path, folder: &Path, document: &Path) -> Result<Command, String> {
    let folder = folder.join("typescript");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let linked = std::os::unix::fs::symlink(node.join("node_modules"), folder.join("node_modules"));
    linked.map_err(|error| error.to_string())?;
    std::fs::write(folder.join("package.json"), r#"{"type":"module"}"#).map_err(|error| error.to_string())?;
    let program = |name: &str| Command::new(node.join("node_modules/.bin").join(name));
    run(program("openapi-typescript").arg(document).arg("-o").arg(folder.join("api.d.ts")))?;
    let script = script(&folder, "typescript.ts")?;
    let strict = ["--strict", "--module", "nodenext", "--target", "es2022", "--types", "node", "--outDir"];
    run(program("tsc").current_dir(&folder).args(strict).arg(&folder).arg(&script))?;
    let mut client = Command::new("node");
    client.arg(folder.join("typescript.js"));
    Ok(client)
}

fn python_client(python: &Path, folder: &Path, document: &Path) -> Result<Command, String> {
    let made = folder.join("python-client");
    let mut generate = Command::new(python.join("bin/openapi-python-client"));
    // What it makes is tidied by programs that are not needed to run it.
    std::fs::write(folder.join("python-client.yml"), "post_hooks: []\n").map_err(|error| error.to_string())?;
    generate.args(["generate", "--config"]).arg(folder.join("python-client.yml"));
    run(generate.arg("--path").arg(document).arg("--output-path").arg(&made))?;
    let mut client = Command::new(python.join("bin/python"));
    client.arg(script(&made, "python.py")?);
    Ok(client)
}

fn generator(python: &Path, folder: &Path, document: &Path) -> Result<Command, String> {
    let made = folder.join("generated");
    let mut generate = Command::new(python.join("bin/openapi-generator-cli"));
    run(generate.args(["generate", "-g", "python", "-i"]).arg(document).arg("-o").arg(&made))?;
    let mut client = Command::new(python.join("bin/python"));
    client.arg(script(&made, "generator.py")?);
    Ok(client)
}
