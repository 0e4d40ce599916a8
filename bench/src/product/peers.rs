//! Programs beside which Sluice is measured. They are installed by name, into the folder of the build; one that cannot be
//! had is named, and the rest goes on without it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::langgraph::LangGraph;
use super::restate::RestateProgram;
use crate::machine::run;

/// The releases that are measured.
const LANGGRAPH: [&str; 2] = ["langgraph==1.2.22", "langgraph-checkpoint-sqlite==3.1.2"];
const RESTATE: [&str; 2] = ["@restatedev/restate-server@1.7.12", "@restatedev/restate-sdk@1.17.2"];

/// The peers that can be had here.
#[derive(Default)]
pub struct Peers {
    /// GNU make and Ninja, as they are started.
    pub builders: Vec<&'static str>,
    /// LangGraph with its SQLite checkpointer.
    pub langgraph: Option<LangGraph>,
    /// Restate's server and its SDK.
    pub restate: Option<RestateProgram>,
}

impl Peers {
    /// Installs what is not there, and says what could not be had.
    pub fn install(folder: &Path) -> Peers {
        std::fs::create_dir_all(folder).unwrap();
        let builders = [("make", "make"), ("ninja", "ninja-build")];
        let builders = builders.into_iter().filter(|(program, package)| had(program, packaged(program, package)));
        Peers {
            builders: builders.map(|(program, _)| program).collect(),
            langgraph: langgraph(folder).map_err(|why| missing("LangGraph", &why)).ok(),
            restate: restate(folder).map_err(|why| missing("Restate", &why)).ok(),
        }
    }
}

fn missing(name: &str, why: &str) {
    println!("without {name}: {}", why.trim_end());
}

fn had(name: &str, found: Result<(), String>) -> bool {
    found.map_err(|why| missing(name, &why)).is_ok()
}

/// A program of a package of the system.
fn packaged(program: &str, package: &str) -> Result<(), String> {
    let is_there = || run(Command::new(program).arg("--version")).map(drop);
    if is_there().is_ok() {
        return Ok(());
    }
    let is_root = run(Command::new("id").arg("-u"))?.trim() == "0";
    let apt = |arguments: &[&str]| match is_root {
        true => run(Command::new("apt-get").args(arguments)),
        false => run(Command::new("sudo").args(["-n", "apt-get"]).args(arguments)),
    };
    apt(&["update", "-qq"])?;
    apt(&["install", "-y", "-qq", "--no-install-recommends", package])?;
    is_there()
}

/// A Python environment of its own, with LangGraph from PyPI.
fn langgraph(folder: &Path) -> Result<LangGraph, String> {
    let environment = folder.join("langgraph");
    let is_new = !has(&environment, &LANGGRAPH);
    if is_new {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        run(Command::new(environment.join("bin/pip")).args(["install", "--quiet"]).args(LANGGRAPH))?;
        record(&environment, &LANGGRAPH)?;
    }
    let script = written(&environment.join("langgraph_peer.py"), include_str!("../../product/langgraph_peer.py"))?;
    Ok(LangGraph { python: environment.join("bin/python"), script })
}

/// Restate's server and SDK from npm: the server is a program inside of a package.
fn restate(folder: &Path) -> Result<RestateProgram, String> {
    let place = folder.join("restate");
    if !has(&place, &RESTATE) {
        std::fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        written(&place.join("package.json"), "{\"private\": true}\n")?;
        let mut npm = Command::new("npm");
        run(npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund"]).args(RESTATE).current_dir(&place))?;
        record(&place, &RESTATE)?;
    }
    // The SDK is found beside the script.
    let script = written(&place.join("restate_peer.mjs"), include_str!("../../product/restate_peer.mjs"))?;
    let server = match std::env::consts::ARCH {
        "aarch64" => "restate-server-linux-arm64",
        _ => "restate-server-linux-x64",
    };
    let server = place.join("node_modules/@restatedev").join(server).join("bin/restate-server");
    run(Command::new(&server).arg("--version"))?;
    run(Command::new("node").arg("--version"))?;
    Ok(RestateProgram { server, script })
}

/// Whether these releases were installed there whole.
fn has(folder: &Path, releases: &[&str]) -> bool {
    std::fs::read_to_string(folder.join("installed")).is_ok_and(|text| text == releases.join("\n"))
}

fn record(folder: &Path, releases: &[&str]) -> Result<(), String> {
    written(&folder.join("installed"), &releases.join("\n")).map(drop)
}

fn written(path: &Path, text: &str) -> Result<PathBuf, String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.to_owned())
}
