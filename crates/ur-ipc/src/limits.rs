//! How many connections a broker keeps at once, and how they are shared out: by what this process may open, and among
//! processes rather than among users, since all importers may be one user's.
use std::sync::OnceLock;

/// Names, in the environment, the most connections that other processes may have to this one.
pub(crate) const VARIABLE: &str = "CAUSEWAY_MAX_IMPORTERS";

/// Descriptors of one connection: the socket, and the pidfd of whom it belongs to.
const EACH: usize = 2;
/// Left to the program, whatever it is told to keep for importers; of few descriptors, a quarter.
const LEFT: usize = 64;
/// Looking for one to close takes time for each there is.
const MOST: usize = 4096;

/// The limits as they are at this moment: a program may change its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// Connections in all.
    pub all: usize,
    /// Of one process. It needs one for each copy of this library in it.
    pub of_process: usize,
    /// Of other users than this process's own together, so that they leave room for its own.
    pub of_others: usize,
    /// Answers with descriptors that their askers have not read yet: a grant has at most four, and at as many of them as
    /// its limit on descriptors the kernel would let this user send no more.
    pub unread: usize,
    /// Of these, one process's: whoever reads nothing makes only its own process wait.
    pub unread_of_process: usize,
}
impl Limits {
    pub fn now() -> Self {
        let soft = ur_mapping::descriptor_limit();
        Self::under(usize::try_from(soft).unwrap_or(usize::MAX), asked())
    }
    /// Under a limit on descriptors: five eighths of them, so 320 connections at 1,024; or as many as were asked for.
    fn under(descriptors: usize, asked: Option<usize>) -> Self {
        let possible = (descriptors - LEFT.min(descriptors / 4)) / EACH;
        let all = asked.unwrap_or(descriptors / 16 * 5).min(possible).clamp(4, MOST);
        let unread = (descriptors / 16).clamp(4, 64);
        Self {
            all,
            of_process: (all / 16).clamp(4, 64),
            of_others: all / 2,
            unread,
            unread_of_process: (unread / 4).max(2),
        }
    }
}

/// What the environment asks for. Read once, and first by a thread of the program's own: C programs change their
/// environment, and no thread in the background may read it meanwhile.
pub(crate) fn asked() -> Option<usize> {
    static ASKED: OnceLock<Option<usize>> = OnceLock::new();
    *ASKED.get_or_init(|| {
        let asked = std::env::var(VARIABLE).ok().filter(|_| !ur_mapping::is_privileged());
        asked.and_then(|text| text.trim().parse().ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_limit_on_descriptors_has_room_for_256_importers() {
        let limits = Limits::under(1024, None);
        assert!(limits.all >= 256 && limits.all * EACH <= 1024 - 256, "{limits:?}");
        assert!(limits.of_process < limits.all / 8, "no process can take them all");
        assert!(limits.unread * 4 < 1024 && limits.unread_of_process < limits.unread);
    }
    #[test]
    fn who_asks_for_more_than_there_can_be_gets_what_there_can_be() {
        assert_eq!(Limits::under(1024, Some(10)).all, 10);
        assert_eq!(Limits::under(1024, Some(400)).all, 400);
        assert_eq!(Limits::under(1024, Some(100_000)).all, 480);
        assert_eq!(Limits::under(usize::MAX, None).all, MOST);
        assert_eq!(Limits::under(8, Some(0)).all, 4);
    }
    #[test]
    fn a_process_with_few_descriptors_has_its_five_sixteenths_for_importers_too() {
        for descriptors in [32, 64, 128, 256, 1024] {
            let all = Limits::under(descriptors, None).all;
            assert_eq!(all, descriptors / 16 * 5, "of {descriptors}");
        }
    }
}
