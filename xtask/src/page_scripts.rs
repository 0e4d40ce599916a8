//! What drives a browser at the page: Debian's Chromium, and the scripts of `xtask/page/` with a home of their own. The driver
//! and the checker of accessibility come from npm into the target folder; the product needs neither them nor Node.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::root;
use crate::served_home::{Home, run, target};

/// The driver of browsers, and the checker of accessibility, from npm.
const FROM_NPM: [&str; 2] = ["playwright-core@1.56.0", "axe-core@4.10.3"];
/// Where Debian puts the browser, and what others call it.
const BROWSERS: [&str; 3] = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/// Runs a script to its end with a home of its own; its pictures go into this folder.
pub(crate) fn play(script: &str, program: PathBuf, pictures: &Path, settings: &[(&str, String)]) -> Result<(), String> {
    let browser = BROWSERS.into_iter().find(|path| Path::new(path).exists());
    let browser = browser.ok_or("no Chromium is here; install Debian's package `chromium`")?;
    let tools = tools()?;
    let home = Home::new(program)?;
    let mut command = home.command("node");
    command.arg(root().join("xtask/page").join(script)).envs(settings.iter().map(|(name, value)| (name, value)));
    command.env("PAGE_PROGRAM", &home.program).env("PAGE_FOLDER", &home.folder).env("PAGE_TOOLS", tools);
    command.env("PAGE_PICTURES", pictures).env("PAGE_CHROMIUM", browser);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("{script} has failed; pictures are in {}", pictures.display())),
        Err(error) => Err(format!("node cannot be started: {error}")),
    }
}

/// The folder of what npm installs, which is made when it is not there.
fn tools() -> Result<PathBuf, String> {
    let folder = target().join("page-test/node");
    let (done, wanted) = (folder.join("done"), format!("{FROM_NPM:?}"));
    if std::fs::read_to_string(&done).is_ok_and(|there| there == wanted) {
        return Ok(folder);
    }
    let wrong = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(&folder).map_err(wrong)?;
    eprintln!("installing {} from npm", FROM_NPM.join(", "));
    run(Command::new("npm")
        .current_dir(&folder)
        .args(["install", "--silent", "--no-fund", "--no-audit"])
        .args(FROM_NPM))?;
    std::fs::write(folder.join("package.json"), "{}").map_err(wrong)?;
    std::fs::write(done, wanted).map_err(wrong)?;
    Ok(folder)
}
