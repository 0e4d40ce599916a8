//! `sluice open`: a link to the page. It is printed and not handed to a browser: what opens browsers takes the link as an
//! argument, and every user of the machine can read the arguments of programs.

use serde_json::json;
use sluice_api::page_link::{MakePageLink, PageLinkAnswer};
use sluice_api::token::Scope;

use crate::args::OpenArgs;
use crate::engine::connect;
use crate::output::{CliExit, CliFailure, CliOutput, print, say};

pub(crate) fn run(arguments: &OpenArgs, output: CliOutput) -> Result<CliExit, CliFailure> {
    let scope = arguments.read.then_some(Scope::Read);
    let link: PageLinkAnswer = connect()?.post("/v1/page/links", &MakePageLink { scope })?;
    // The engine does not know by which name it is reached from here.
    let url = match std::env::var("SLUICE_URL") {
        Ok(base) if !base.is_empty() => format!("{}{}", base.trim_end_matches('/'), link.path),
        Ok(_) | Err(_) => link.url,
    };
    output.show(&json!({ "page": { "url": url, "expires_at": link.expires_at } }), || {
        say("open this link in a browser within two minutes; it works once:");
        print(&format!("{url}\n"));
    })
}
