//! Environment variables that list paths, `UR_ADAPTERS_FORCE_LOAD` and `UR_ADAPTERS_SEARCH_PATH`: values
//! separated by commas. Double quotes around a value protect commas in it.
use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
};

/// Whether a value means yes: y, yes, t, true or 1, in upper or lower case.
pub(crate) fn is_on(value: &OsStr) -> bool {
    let yes = ["y", "yes", "t", "true", "1"];
    yes.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Returns the paths of a list; empty items are ignored.
///
/// # Errors
/// Returns what is wrong with the list.
pub(crate) fn list(value: &OsStr) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    let mut path = Vec::new();
    let mut quoted = false;
    for byte in value.as_bytes() {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => paths.push(std::mem::take(&mut path)),
            _ => path.push(*byte),
        }
    }
    if quoted {
        return Err("a quotation mark is not closed".to_string());
    }
    paths.push(path);
    let paths = paths.into_iter().filter(|path| !path.is_empty());
    Ok(paths.map(|path| OsString::from_vec(path).into()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(value: &str) -> Result<Vec<PathBuf>, String> {
        list(OsStr::new(value))
    }
    #[test]
    fn paths_stand_between_commas_and_may_be_quoted() {
        let paths = |all: &[&str]| Ok(all.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(parsed(""), paths(&[]));
        assert_eq!(parsed(",,"), paths(&[]));
        assert_eq!(parsed("/a"), paths(&["/a"]));
        assert_eq!(parsed("/a,/b:c,/d e;f"), paths(&["/a", "/b:c", "/d e;f"]));
        assert_eq!(parsed("\"/a,b\",\"/c\""), paths(&["/a,b", "/c"]));
        assert!(parsed("\"/a,b").unwrap_err().contains("not closed"));
    }
    #[test]
    fn yes_is_one_of_five_words_and_all_else_is_no() {
        assert!(["1", "y", "YES", "t", "True"].iter().all(|word| is_on(OsStr::new(word))));
        let no = ["", "0", "no", "on", "2", " 1", "truth"];
        assert!(no.iter().all(|word| !is_on(OsStr::new(word))));
    }
}
