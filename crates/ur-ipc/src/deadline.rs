//! The total time that an open, or another request to an exporter, may take, whatever the exporter answers.
use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// How long an exporter may take to accept the connection and answer. It exceeds the time for which one importer can
/// make a broker delay the others.
pub(crate) const ANSWERED: Duration = Duration::from_secs(2);

/// The end of the time that the exporter may take: [`ANSWERED`], extended once by the same time if this process seems
/// to have been stopped meanwhile. It is extended only once because a stop is inferred from how late an answer was
/// read, which the exporter can influence too.
pub(crate) struct Deadline {
    at: Cell<Instant>,
    is_renewed: Cell<bool>,
}
impl Deadline {
    pub fn new() -> Self {
        Self { at: Cell::new(Instant::now() + ANSWERED), is_renewed: Cell::new(false) }
    }
    pub fn at(&self) -> Instant {
        self.at.get()
    }
    /// Restarts the time, unless that has been done already.
    pub fn renew(&self) {
        if !self.is_renewed.replace(true) {
            self.at.set(Instant::now() + ANSWERED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_renewed_once() {
        let begun = Instant::now();
        let deadline = Deadline::new();
        deadline.at.set(begun);
        deadline.renew();
        let renewed = deadline.at();
        assert!(renewed >= begun + ANSWERED);
        deadline.renew();
        assert_eq!(deadline.at(), renewed);
    }
}
