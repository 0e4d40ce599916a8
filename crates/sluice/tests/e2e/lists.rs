//! Lists and projects, to the letter: what cannot be is refused, and nothing is taken over by half.

use serde_json::json;

use super::home::{Home, run};

#[test]
fn a_status_that_nothing_can_have_is_a_mistake() {
    let home = Home::new();
    assert_eq!(home.refused(&["task", "list", "--status", "bogus"]), "2 bad_request");
    assert_eq!(home.refused(&["run", "list", "--status", "bogus"]), "2 bad_request");
    let told = home.sluice(&["task", "list", "--status", "bogus"]).stderr;
    assert!(told.contains("is no status of any task here") && told.contains("pending"), "{told}");
    for known in ["pending", "working", "done"] {
        assert_eq!(home.json(&["task", "list", "--status", known])["tasks"], json!([]));
    }
    assert_eq!(home.json(&["run", "list", "--status", "held"])["runs"], json!([]));
    assert_eq!(home.refused(&["task", "list", "--project", "nobody"]), "3 not_found");
}

#[test]
fn a_repository_is_one_project_and_a_name_is_no_path() {
    let home = Home::new();
    assert_eq!(home.refused(&["project", "add", "--name", "again"]), "1 exists");
    let told = home.sluice(&["project", "add", "--name", "again"]).stderr;
    assert!(told.contains("is the project `coffee` already"), "{told}");
    let link = home.path("link");
    std::os::unix::fs::symlink(home.repository(), &link).unwrap();
    assert_eq!(home.refused(&["project", "add", link.to_str().unwrap(), "--name", "linked"]), "1 exists");
    assert_eq!(home.refused(&["project", "update", "coffee", "--name", "cof/fee"]), "2 bad_request");
    home.json(&["project", "update", "coffee", "--name", "tea", "--pool-size", "3"]);
    let names = || -> Vec<String> {
        let list = home.json(&["project", "list"]);
        list["projects"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(), ["tea"]);
    // A list is taken over whole, or not at all.
    let second = home.path("second");
    std::fs::create_dir(&second).unwrap();
    run(home.program("git").args(["init", "--quiet", "--initial-branch=main"]).arg(&second)).done();
    let commit =
        ["-c", "user.name=S", "-c", "user.email=s@example.invalid", "commit", "--quiet", "--allow-empty", "-m", "x"];
    run(home.program("git").arg("-C").arg(&second).args(commit)).done();
    let file = home.path("projects.json");
    let import = |projects: serde_json::Value| {
        std::fs::write(&file, projects.to_string()).unwrap();
        home.sluice(&["project", "import", file.to_str().unwrap(), "--json"])
    };
    let good = json!({ "name": "second", "path": second });
    let ran = import(json!([good, { "name": "gone", "path": home.path("nowhere") }]));
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("nothing is imported"), "{ran:?}");
    assert_eq!(names(), ["tea"]);
    assert_ne!(import(json!([good, { "name": "twice", "path": second }])).code, 0);
    assert_ne!(import(json!([good, { "name": "a/b", "path": second }])).code, 0);
    assert_eq!(names(), ["tea"]);
    import(json!([good])).done();
    assert_eq!(names(), ["second", "tea"]);
}
