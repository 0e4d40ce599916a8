//! Names of users as names of folders and references.
//!
//! Two different names never give the same folder, whatever they consist of.

use sha2::{Digest, Sha256};

/// The longest name that stands for itself.
const LONGEST: usize = 40;

/// A safe name for a folder or a part of a reference. Lower-case names of letters, digits, `-` and `_` stay as they are;
/// any other becomes what is readable of it, a `+` and a digest of the whole name.
pub fn slug(name: &str) -> String {
    let plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-' || it == '_';
    // A leading `-` would look like an option.
    if !name.is_empty() && name.len() <= LONGEST && name.chars().all(plain) && !name.starts_with('-') {
        return name.to_owned();
    }
    let mut readable = String::new();
    for letter in name.chars().flat_map(char::to_lowercase) {
        if readable.len() >= LONGEST {
            break;
        }
        if plain(letter) && letter != '-' {
            readable.push(letter);
        } else if !readable.is_empty() && !readable.ends_with('-') {
            readable.push('-');
        }
    }
    let digest = Sha256::digest(name.as_bytes());
    let digest: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{}+{digest}", readable.trim_end_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_safe_slug_of_its_own() {
        let long = "x".repeat(10_000);
        let names = [
            "coffee", "Coffee", "COFFEE", "co ffee", "co/ffee", "co\\ffee", "co\nffee", "", ".", "..", "../..", "-rf",
            "--", "a\"b", "a'b", "$(id)", "`x`", "käse", "kaese", "日", "日本", "\u{0}", "a+b", "a.lock", "con",
            "a..b", "~", "*", &long,
        ];
        let slugs: Vec<String> = names.iter().map(|name| slug(name)).collect();
        for (name, slug) in names.iter().zip(&slugs) {
            assert!(slug.len() < 100 && !slug.is_empty() && !slug.starts_with(['-', '.']), "{name:?}: {slug}");
            assert!(slug.chars().all(|it| it.is_ascii_alphanumeric() || "-_+".contains(it)), "{name:?}: {slug}");
        }
        let different: std::collections::BTreeSet<&String> = slugs.iter().collect();
        assert_eq!(different.len(), names.len());
        // What a digest makes of a name cannot be another name's own.
        for name in slugs.iter().filter(|it| it.contains('+')) {
            assert_ne!(&slug(name), name);
        }
        assert_eq!(slug("coffee-shop_2"), "coffee-shop_2");
        assert!(slug("Bob's \"Café\"").starts_with("bob-s-caf+"));
    }
}
