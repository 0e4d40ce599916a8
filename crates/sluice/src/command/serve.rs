//! `sluice serve`: the engine of this home, in the foreground and over the network.

use std::path::PathBuf;

use serde_json::{Value, json};
use sluice_api::Client;
use sluice_server::{EngineOptions, NetworkDoor, NetworkOptions};

use crate::args::ServeArgs;
use crate::engine::{make_home, places, starting, wait_for_end, with_few_heaps};
use crate::output::{CliExit, CliFailure, CliOutput, print, print_bytes, say};

pub(crate) fn run(arguments: ServeArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    with_few_heaps();
    let ServeArgs { listen, store, prompts, tls_cert, tls_key, cors } = arguments;
    let places = places()?.with_prompts(prompts.map(folder).transpose()?);
    make_home(&places)?;
    // From here on no command starts an engine in the background.
    let starting = starting(&places)?;
    let engine = Client::new(&places.socket())?;
    let runs = engine.health();
    // An engine that runs asks by itself who wants it to end.
    if runs.is_err() {
        sluice_home::ask::denied::must_be_person(&places, "serve")?;
    }
    if let Some(url) = runs.as_ref().ok().and_then(|health| health.serves.as_ref()) {
        let message = format!("this home is served already, at {url}");
        return Err(
            CliFailure::new(CliExit::Conflict, "already_served", message).hint("`sluice stop` ends that engine")
        );
    }
    // Whatever is wrong with the door is told before the engine that runs is asked to make way.
    let network = NetworkDoor::bind(&NetworkOptions { listen, tls: tls_cert.zip(tls_key), cors })?;
    if network.is_exposed() {
        say("warning: this address has no TLS; anyone on the network path can read tokens and answers");
        say("hint: --tls-cert and --tls-key encrypt it; or listen at 127.0.0.1 behind a proxy that does");
    }
    if runs.is_ok() {
        engine.post::<Value>("/v1/stop", &json!({}))?;
    }
    wait_for_end(&places);
    let url = network.url();
    let environment = || std::env::var("SLUICE_STORE").ok().filter(|address| !address.is_empty());
    let store = store.or_else(environment);
    sluice_server::run(&places, EngineOptions { store, network: Some(network) }, move || {
        match output {
            CliOutput::Json => print_bytes(format!("{}\n", json!({ "listening": url })).as_bytes()),
            CliOutput::People => print(&format!("listening on {url}\n")),
        }
        drop(starting);
    })?;
    Ok(CliExit::Done)
}

/// A folder that is there, wherever the engine stands.
fn folder(path: PathBuf) -> Result<PathBuf, CliFailure> {
    path.canonicalize().ok().filter(|path| path.is_dir()).ok_or_else(|| {
        let message = format!("--prompts: there is no folder {}", path.display());
        CliFailure::new(CliExit::NotFound, "not_found", message)
            .hint("it holds `workflows/*.toml` and the prompt files")
    })
}
