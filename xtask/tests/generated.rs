//! What is committed is what would be made.

#[test]
fn generated_files_are_current() {
    for (path, content) in xtask::generated::files() {
        let committed = std::fs::read_to_string(xtask::root().join(&path)).unwrap_or_default();
        assert!(committed == content, "{path} is out of date: run `cargo xtask update` and commit it");
    }
}
