//! Checks the directories in which sockets for sharing can be made.
use serde::Serialize;
use ur_ipc::doctor::{Place, VARIABLE, places};

/// The report on one directory.
#[derive(Serialize)]
pub struct Finding {
    place: String,
    /// Whether it is for exports to other users.
    for_others: bool,
    /// Whether exports to this user use it now.
    used: bool,
    works: bool,
    finding: String,
}

impl Finding {
    /// Whether exports to this user use it now.
    pub fn is_used(&self) -> bool {
        self.used
    }
}

/// Checks every directory, in the order in which exporters try them.
pub fn examine() -> Vec<Finding> {
    judge(&places())
}
fn judge(places: &[Place]) -> Vec<Finding> {
    let mut taken = false;
    let mut finding = |place: &Place| {
        let works = place.trouble.is_none();
        let used = works && !place.for_others && !taken;
        taken |= used;
        let (path, for_others) = (place.path.display().to_string(), place.for_others);
        Finding { place: path, for_others, used, works, finding: sentence(place) }
    };
    places.iter().map(&mut finding).collect()
}
fn sentence(place: &Place) -> String {
    if let Some(trouble) = &place.trouble {
        return format!("cannot be used: {trouble}");
    }
    match place.exporters.len() {
        0 => "can be used".into(),
        1 => "can be used; 1 socket of an exporter is there".into(),
        count => format!("can be used; {count} sockets of exporters are there"),
    }
}

/// The findings as lines.
pub fn lines(findings: &[Finding]) -> String {
    let line = |one: &Finding| {
        let mark = if one.used { "*" } else { " " };
        let whom = if one.for_others { "with other users" } else { "with this user" };
        format!("{mark} sharing {whom}  {}: {}\n", one.place, one.finding)
    };
    findings.iter().map(line).collect()
}

/// Returns advice if no directory can be used.
pub fn complaint(findings: &[Finding]) -> Option<String> {
    let possible = findings.iter().any(|one| one.used);
    (!possible).then(|| {
        format!(
            "nothing can be shared: none of the directories above can be used; set {VARIABLE} to one of your own"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str, for_others: bool, trouble: Option<&str>, exporters: usize) -> Place {
        let exporters = vec!["0".repeat(32); exporters];
        Place { path: path.into(), for_others, trouble: trouble.map(str::to_owned), exporters }
    }

    #[test]
    fn the_first_directory_that_can_be_used_is_marked_and_those_for_others_are_not() {
        let found = judge(&[
            place("/a", false, Some("others can write it"), 0),
            place("/b", false, None, 2),
            place("/c", false, None, 0),
            place("/d", true, None, 1),
        ]);
        assert_eq!(
            lines(&found),
            "  sharing with this user  /a: cannot be used: others can write it\n\
             * sharing with this user  /b: can be used; 2 sockets of exporters are there\n  \
             sharing with this user  /c: can be used\n  \
             sharing with other users  /d: can be used; 1 socket of an exporter is there\n"
        );
        assert_eq!(complaint(&found), None);
    }
    #[test]
    fn where_only_others_could_be_shared_with_it_is_said_what_to_do() {
        let found = judge(&[place("/a", false, Some("no"), 0), place("/d", true, None, 0)]);
        assert!(complaint(&found).unwrap().contains("set CAUSEWAY_DIR"));
    }
}
