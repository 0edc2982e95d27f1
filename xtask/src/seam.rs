//! Part of `cargo xtask map`: checks that backends do not use more of UR. A backend should only be a driver:
//! `ur_sys`, `ur_adapter` and `ur_core` are reserved for `ur-core` (decision 0012). `seam.txt` lists the
//! files that still use them. Other files must not, and a file that no longer does is removed from the list,
//! so the list only gets shorter.
use std::collections::BTreeSet;

const BACKENDS: [&str; 4] = ["ur-cpu", "ur-cuda", "ur-level-zero", "ur-opencl"];
const OF_UR: [&str; 3] = ["ur_sys", "ur_adapter", "ur_core"];
const LIST: &str = "xtask/src/seam.txt";
/// The maximal length of the list, which is lowered when the list gets shorter.
const MOST: usize = 8;

/// Whether a file belongs to a backend and its text names one of UR's crates.
pub fn speaks_of_ur(file: &str, text: &str) -> bool {
    BACKENDS.iter().any(|backend| file.split('/').next() == Some(backend)) && speaks(text)
}
/// Returns a line for each file that [uses UR](speaks_of_ur) and is not listed.
pub fn grown(speak: &BTreeSet<String>) -> Vec<String> {
    let listed: BTreeSet<_> = include_str!("seam.txt").lines().map(str::to_string).collect();
    let done: Vec<_> = listed.difference(speak).map(String::as_str).collect();
    if !done.is_empty() {
        println!("{LIST} can do without {}", done.join(", "));
    }
    compare(&listed, speak, MOST)
}
fn compare(listed: &BTreeSet<String>, speak: &BTreeSet<String>, most: usize) -> Vec<String> {
    let unlisted = speak.difference(listed).map(|file| {
        format!(
            "{file} uses {} and is not in {LIST}: what it says of UR is ur-core's to say",
            OF_UR.join(", ")
        )
    });
    let longer = (listed.len() > most)
        .then(|| format!("{LIST} has {} files, and at most {most} may be in it", listed.len()));
    unlisted.chain(longer).collect()
}
/// Whether code names one of the crates; comments are ignored.
fn speaks(text: &str) -> bool {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut words = code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.any(|word| OF_UR.contains(&word))
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_speaks_of_ur_and_comments_do_not_count() {
        assert!(speaks("use ur_sys::ur_result_t;") && speaks("fn f() -> ur_core::Result<()> {}"));
        assert!(!speaks("//! As `ur_adapter` says.\n    // ur_core\nuse ur_hal::Driver;"));
        assert!(!speaks("use ur_system::Block; let our_core = 1;"));
    }
    #[test]
    fn the_list_may_not_grow_and_what_is_not_in_it_is_told() {
        let set = |files: &[&str]| files.iter().map(|file| (*file).to_string()).collect();
        let (listed, one): (BTreeSet<String>, BTreeSet<String>) = (set(&["a", "b"]), set(&["a"]));
        assert_eq!(compare(&listed, &listed, 2), [""; 0]);
        assert_eq!(compare(&listed, &one, 2), [""; 0], "it may get shorter");
        assert!(compare(&one, &listed, 2)[0].starts_with("b uses"));
        assert!(compare(&listed, &listed, 1)[0].contains("at most 1"));
    }
}
