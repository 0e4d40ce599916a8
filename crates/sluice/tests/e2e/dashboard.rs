//! The dashboard as a person uses it: the real binary in a terminal of tmux, driven by keys.

use rustix::process::{Pid, Signal, kill_process};

use super::home::Home;
use super::page::Browser;
use super::process;
use super::seen::Seen;

/// `reviewed`, where a person first approves and then merges.
fn tasted(home: &Home) {
    let reviewed = home.sluice(&["workflow", "show", "reviewed"]).done().stdout;
    let mine = reviewed
        .replace("\nname: reviewed\n", "\nname: tasted\n")
        .replace("  done:\n    terminal: true\n", "  approved:\n    terminal: false\n  done:\n    terminal: true\n")
        .replace(
            "  - from: reviewing\n    to: done\n",
            "  - { from: reviewing, to: approved }\n\n  - from: approved\n    to: done\n",
        );
    let folder = home.repository().join(".sluice/workflows");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("tasted.yml"), mine).unwrap();
    let checked = home.sluice(&["check", ".sluice/workflows/tasted.yml"]);
    assert_eq!(checked.code, 0, "{checked:?}");
}

/// Fills in the form of a new task.
fn creates(seen: &Seen, branch: &str, summary: &str) {
    seen.types("c");
    seen.shows("create a task");
    // The project is filled in; the typing begins at the branch.
    for field in [branch, summary, "tasted"] {
        seen.types(field);
        seen.presses("Enter");
    }
    seen.types("demo");
    seen.presses("Enter");
}

/// Whether this is a line of its own: what an agent says stands in its summary too, which tells it to.
fn has_line(screen: &str, line: &str) -> bool {
    screen.lines().any(|it| it.trim_end() == line)
}

/// The whole way by keys alone, in one dashboard: create, watch, attach and come back, peek, answer, a message to the agent, diff with
/// a comment at a line, request changes, approve, merge; and another task that is cancelled and whose work is restored.
#[test]
fn a_person_does_everything_by_keys_in_one_go() {
    let home = Home::new();
    tasted(&home);
    let seen = Seen::start(&home, (120, 40), "");
    seen.shows("There is no task and no run.");
    let script = "demo: say \"the kettle sings\"; write Questions \"hot or cold?\"; update clarification; \
                  wait for notification; edit latte.txt \"milk first\"; work once; edit latte.txt \"steamed milk\"; work";
    creates(&seen, "latte", script);

    // Watch, attach and come back.
    seen.shows("NEEDS YOU (1)");
    let id = home.json(&["task", "list"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    seen.types("n");
    seen.types("i");
    seen.until("the terminal", |screen| screen.contains("[terminal]") && has_line(screen, "the kettle sings"));
    seen.types("a");
    seen.until("the session", |screen| has_line(screen, "the kettle sings") && !screen.contains("[?]"));
    seen.presses("C-b");
    seen.types("d");
    seen.shows("[?]");
    assert_eq!(home.task(&id)["session"], "active");
    seen.types("q");
    seen.shows("NEEDS YOU (1)");

    // Peek, answer, and tell the agent more.
    seen.types(" ");
    seen.until("the options", |screen| screen.contains("[1] working") && screen.contains("[2] attach"));
    seen.types("1");
    seen.shows("WORKING (1)");
    seen.types("N");
    seen.shows("message to the agent");
    seen.types("hot");
    seen.presses("Enter");

    // Diff with a comment at a line, and back to the agent with it.
    home.until_status(&id, "reviewing");
    seen.until("the review", |screen| screen.contains("NEEDS YOU (1)") && screen.contains("[X] request changes"));
    seen.types("d");
    seen.shows("+milk first");
    // Down to the line that was added: the head of the file, that of the hunk, the line.
    seen.types("jj");
    seen.types("c");
    seen.shows("comment on latte.txt:1");
    seen.types("steam it");
    seen.presses("Enter");
    seen.shows("1 comment for [X]");
    seen.types("X");
    seen.shows("request changes: what should be different?");
    seen.types("almost");
    seen.presses("Enter");
    home.until(&id, "sent back", |_| {
        home.history(&id).iter().filter(|event| event["data"]["to"] == "reviewing").count() == 2
    });
    let file = std::fs::read_to_string(home.home_file(&id)).unwrap();
    assert!(file.contains("almost") && file.contains("`latte.txt` line 1: steam it"), "{file}");

    // What has come since is seen, approved and merged.
    seen.until("the new work", |screen| screen.contains("+steamed milk") && screen.contains("[A] approve"));
    seen.types("A");
    seen.shows("approve latte: approved");
    seen.shows("[m]erge");
    seen.types("m");
    seen.shows("merge latte? Its work goes into the default branch. [y] yes");
    seen.types("y");
    seen.shows("merge latte: done");
    assert!(home.git(&["show", "main:latte.txt"]).contains("steamed milk"));
    seen.types("q");
    seen.shows("DONE TODAY (1)");

    // Undo: what was cancelled is brought back.
    creates(&seen, "mocha", "demo: edit cup.txt \"half\"; say \"the cup is half full\"; hang");
    seen.shows("WORKING (1)");
    seen.types("g");
    seen.types("i");
    seen.until("the terminal", |screen| has_line(screen, "the cup is half full"));
    seen.types("x");
    seen.shows("cancel mocha?");
    seen.types("y");
    seen.shows("cancel mocha: cancelled");
    seen.types("u");
    seen.shows("restore the kept work into the folder");
    seen.presses("Enter");
    seen.until("the restored work", |screen| screen.contains("restore mocha into") && screen.contains(": done"));
    assert_eq!(std::fs::read_to_string(home.path("mocha-restored/cup.txt")).unwrap().trim(), "half");
    seen.types("q");
    seen.shows("DONE TODAY (2)");
    seen.types("q");
    seen.shows("ended");
}

/// A terminal that tells of focus, the mouse or pasted text, which no one asked for, does not stop the keys.
#[test]
fn keys_go_on_after_what_the_terminal_tells_unasked() {
    let home = Home::new();
    let seen = Seen::start(&home, (120, 40), "");
    seen.shows("There is no task and no run.");
    // CSI I and CSI O: focus; CSI < 0;9;9 M: the mouse; CSI 200 ~ … CSI 201 ~: a paste.
    seen.sends(&["1b", "5b", "49"]);
    seen.sends(&["1b", "5b", "4f"]);
    seen.sends(&["1b", "5b", "3c", "30", "3b", "39", "3b", "39", "4d"]);
    seen.sends(&["1b", "5b", "32", "30", "30", "7e", "71", "1b", "5b", "32", "30", "31", "7e"]);
    seen.types("?");
    seen.shows("Board keys");
}

/// A signal that ends the dashboard leaves the terminal as it was before.
#[test]
fn the_terminal_is_given_back_when_a_signal_ends_the_dashboard() {
    for signal in [Signal::TERM, Signal::HUP] {
        let home = Home::new();
        let seen = Seen::start(&home, (80, 24), "");
        seen.shows("There is no task and no run.");
        assert_eq!(seen.told("#{alternate_on}"), "1");
        assert!(seen.settings().contains("-icanon"), "{}", seen.settings());
        kill_process(Pid::from_raw(seen.pid()).unwrap(), signal).unwrap();
        seen.shows("ended");
        let settings = seen.settings();
        assert!(!settings.contains("-icanon") && !settings.contains("-echo "), "{signal:?}: {settings}");
        assert_eq!((seen.told("#{alternate_on}"), seen.told("#{cursor_flag}")), ("0".to_owned(), "1".to_owned()));
    }
}

/// An engine that is stopped holds its connections, and says nothing: the dashboard says so, and goes on with it.
#[test]
fn an_engine_that_is_stopped_does_not_look_alive() {
    let home = Home::new();
    let seen = Seen::start(&home, (120, 40), "");
    seen.shows("There is no task and no run.");
    let engine = home.engine_pid();
    process::stop(engine);
    seen.until("that it is silent", |screen| {
        screen.lines().next().is_some_and(|line| line.contains("engine does not answer"))
    });
    process::go_on(engine);
    seen.shows("the engine is back");
    home.json(&["task", "create", "latte", "Milk", "--no-spawn"]);
    seen.until("what happens since", |screen| screen.contains("latte") && !screen.contains("engine does not answer"));
}

/// The page and the dashboard share their saved views: neither loses one of the other, and each shows the same rows.
#[test]
fn a_view_is_saved_beside_those_of_the_page_and_shows_the_same() {
    let home = Home::new();
    for branch in ["latte", "mocha"] {
        home.json(&["task", "create", branch, "Milk", "--no-spawn", "--harness", "demo"]);
    }
    let seen = Seen::start(&home, (120, 40), "");
    seen.until("both", |screen| screen.contains("latte") && screen.contains("mocha"));
    // The dashboard has read the views before the page saves one.
    seen.types("1");
    seen.shows("there is no view 1");
    let mut browser = Browser::logged_in(&home, &[]);
    let key = browser.key();
    let view = [("key", key.as_str()), ("act", "save_view"), ("name", "of the page"), ("q", "latte"), ("back", "/")];
    assert_eq!(browser.post("/page/views", &view).status, 303);
    seen.types("/");
    seen.types("DEMO moch");
    seen.presses("Enter");
    seen.until("one", |screen| screen.contains("mocha") && !screen.contains("latte"));
    seen.types("S");
    seen.shows("name of the view");
    seen.types("mine");
    seen.presses("Enter");
    seen.shows("save view 2: done");
    let page = browser.get("/?q=DEMO%20moch").body;
    assert!(page.contains("of the page") && page.contains("mine"), "{page}");
    assert_eq!(page.matches("id=\"row-task-").count(), 1, "{page}");
    seen.types("1");
    seen.until("the view of the page", |screen| screen.contains("latte") && !screen.contains("mocha"));
}

/// What waits is seen and answered in place; what was cancelled is brought back.
#[test]
fn a_question_is_peeked_at_and_answered_and_kept_work_is_restored() {
    let home = Home::new();
    let script = "worker: edit cup.txt \"half\"; write Questions \"hot or cold?\"; update clarification; wait for notification; hang";
    let seen = Seen::start(&home, (100, 30), "--ascii");
    let id = home.create("brew", script, &[]);
    seen.shows("clarification");
    seen.types("n");
    seen.types(" ");
    seen.until("the options", |screen| screen.contains("[1] working") && screen.contains("[2] attach"));
    seen.types("1");
    home.until(&id, "at work", |task| task["status"] == "working");
    seen.shows("WORKING (1)");
    seen.types("x");
    seen.shows("cancel brew?");
    seen.types("y");
    seen.shows("cancel brew: cancelled");
    seen.types("u");
    seen.shows("restore the kept work into the folder");
    seen.presses("Enter");
    seen.until("the restored work", |screen| screen.contains("restore brew into") && screen.contains(": done"));
    assert_eq!(std::fs::read_to_string(home.path("brew-restored/cup.txt")).unwrap().trim(), "half");
    assert!(seen.screen().is_ascii(), "{}", seen.screen());
}

/// The terminal gets other sizes while agents work and tasks come: each size is drawn whole, and no row is missed.
#[test]
fn a_terminal_that_is_resized_while_agents_work_is_drawn_whole() {
    let home = Home::new();
    home.sluice(&["project", "update", "coffee", "--pool-size", "4"]).done();
    let seen = Seen::start(&home, (120, 40), "");
    seen.shows("There is no task and no run.");
    for (number, size) in [(80, 24), (200, 60), (40, 10), (120, 40)].into_iter().enumerate() {
        seen.resizes(size);
        home.create(&format!("cup-{number}"), "worker: say \"the kettle sings\"; hang", &[]);
        let has_come = |screen: &str| screen.contains(&format!("cup-{number}"));
        seen.fills(size, "the whole screen", has_come);
        // The session has a terminal of its own, and the agent in it goes on.
        seen.types("G");
        seen.types("i");
        seen.fills(size, "the session", |screen| screen.contains("the kettle sings"));
        seen.types("q");
        seen.fills(size, "the board", has_come);
    }
}

/// A recipe is started from a form of its inputs; the run is watched, and its gate is answered in the inbox.
#[test]
fn a_recipe_is_started_from_its_inputs_and_answered_in_the_inbox() {
    let home = Home::new();
    let steps = "input: [{ name: word, required: true }]\nsteps:\n  - { name: speak, type: script, command: 'echo said ${input.word}' }\n  \
                 - { name: approve, type: gate, command: 'false', message: 'Is it right?' }\n  \
                 - { name: end, type: script, command: 'echo over' }\n";
    super::recipes::grimoire(&home, "talk", steps);
    let seen = Seen::start(&home, (120, 40), "");
    seen.shows("There is no task and no run.");
    seen.types("b");
    seen.shows("start a recipe in coffee");
    seen.types("talk");
    seen.presses("Enter");
    seen.shows("start talk in coffee");
    seen.types("hello");
    seen.presses("Enter");
    seen.shows("NEEDS YOU (1)");
    seen.types("g");
    seen.types("i");
    seen.until("the steps", |screen| {
        screen.contains("speak") && screen.contains("approve") && screen.contains("said hello")
    });
    seen.types(":");
    seen.types("inb");
    seen.presses("Tab");
    seen.shows(":inbox");
    seen.presses("Enter");
    seen.shows("INBOX 1 of 1");
    seen.shows("Is it right?");
    seen.until("the options", |screen| screen.contains("[2] skip"));
    seen.types("2");
    seen.shows("Nothing waits for you.");
    seen.types("q");
    seen.types("q");
    seen.shows("DONE TODAY (1)");
}

/// A recipe that repeats is listed with its next turn, and is gone when the repeat is ended.
#[test]
fn what_repeats_is_listed_with_when_it_begins_next() {
    let home = Home::new();
    let recipe = "repeat: { every: 2h, keep: 3 }\nsteps:\n  - { name: look, type: script, command: 'true' }\n";
    super::recipes::grimoire(&home, "patrol", recipe);
    let seen = Seen::start(&home, (120, 40), "");
    seen.shows("There is no task and no run.");
    seen.types(":sched");
    seen.presses("Tab");
    seen.shows(":schedules");
    seen.presses("Enter");
    seen.shows("nothing repeats");
    let id = super::recipes::begin(&home, &["patrol"]);
    let rests = seen.shows("next in 1h");
    let line = rests.lines().find(|line| line.contains("patrol")).unwrap();
    assert!(line.contains("completed run 1 · 2h after its end") && line.contains(&id), "{line}");
    home.sluice(&["run", "cancel", &id]).done();
    seen.shows("nothing repeats");
}

/// A workflow of one's own without a way to `cancelled`: the key is in no footer, and does nothing.
#[test]
fn keys_follow_the_workflow_of_the_task() {
    let home = Home::new();
    let folder = home.repository().join(".sluice/workflows");
    std::fs::create_dir_all(&folder).unwrap();
    let workflow = "name: brewing\nversion: 1\ndescription: Tea\nstates:\n  pending: {}\n  brewing: {}\n  poured: { terminal: true }\n\
                    transitions:\n  - { from: pending, to: brewing }\n  - { from: brewing, to: poured }\n";
    std::fs::write(folder.join("brewing.yml"), workflow).unwrap();
    let checked = home.sluice(&["check", ".sluice/workflows/brewing.yml"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    home.json(&["task", "create", "tea", "Make tea", "--workflow", "brewing", "--no-spawn"]);
    let seen = Seen::start(&home, (200, 50), "");
    seen.shows("tea");
    let footer = seen.footer();
    assert!(footer.contains("[d]iff") && !footer.contains("ancel") && !footer.contains("erge"), "{footer}");
    seen.types("x");
    seen.types("m");
    // What comes after them is dealt with after them.
    seen.types("?");
    let help = seen.shows("cancel it (not now)");
    assert!(!help.contains("tea?") && help.contains("merge the work (not now)"), "{help}");
    assert_eq!(home.json(&["task", "list"])["tasks"][0]["status"], "pending");
}

/// Without a terminal there is the board once, and a line for a status bar.
#[test]
fn the_board_is_printed_once_and_in_a_few_characters() {
    let home = Home::new();
    let empty = home.sluice(&["dashboard", "--once"]).done().stdout;
    assert!(empty.contains("There is no task and no run."), "{empty}");
    let id = home.create("latte", "worker: work\nreviewer: review pass", &[]);
    home.until_status(&id, "reviewing");
    let board = home.sluice(&["dashboard", "--once", "--ascii"]).done().stdout;
    assert!(board.is_ascii() && board.contains("latte"), "{board}");
    assert_eq!(home.json(&["dashboard", "--once"])["rows"][0]["id"], id.as_str());
    assert_eq!(home.sluice(&["status", "--short"]).done().stdout, "▲1 ●0\n");
    assert_eq!(home.sluice(&["status", "--short", "--ascii"]).done().stdout, "!1 *0\n");
    let status = home.sluice(&["status"]).done().stdout;
    assert!(status.contains("1 "), "{status}");
    let refused = home.sluice(&["dashboard"]);
    assert!(refused.code == 1 && refused.stderr.contains("--once"), "{refused:?}");
}
