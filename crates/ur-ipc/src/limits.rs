//! How many connections a broker keeps at once, and how they are shared out. The number follows from this process's
//! limit on descriptors. It is divided among processes rather than users, because all importers may belong to one user.
use std::sync::OnceLock;

/// The environment variable that sets how many connections other processes may have to this one.
pub(crate) const VARIABLE: &str = "CAUSEWAY_MAX_IMPORTERS";

/// Descriptors per connection: the socket and a pidfd of the peer.
const EACH: usize = 2;
/// Descriptors left to the program whatever the variable asks for; at most a quarter of its limit.
const LEFT: usize = 64;
/// The most connections: choosing one to close takes time proportional to their number.
const MOST: usize = 4096;

/// The limits at this moment; a program may change its descriptor limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// Connections in total.
    pub all: usize,
    /// Connections of one process, which needs one for each copy of this library in it.
    pub of_process: usize,
    /// Connections of all other users together, so that some stay free for this process's own user.
    pub of_others: usize,
    /// Answers with descriptors that peers have not read yet. A grant has at most four, and the kernel stops this user
    /// from sending descriptors once as many as its limit on open descriptors are in flight.
    pub unread: usize,
    /// Unread answers of one process: a process that reads nothing makes only its own requests wait.
    pub unread_of_process: usize,
}
impl Limits {
    pub fn now() -> Self {
        let soft = ur_mapping::descriptor_limit();
        Self::under(usize::try_from(soft).unwrap_or(usize::MAX), asked())
    }
    /// The limits for a given descriptor limit: five eighths of the descriptors, so 320 connections at 1,024; or as
    /// many connections as were asked for.
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

/// The number that the environment asks for. It is read once, and first by one of the program's own threads: C programs
/// change their environment, and a background thread must not read it meanwhile.
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
