//! How long an open, or another question to an exporter, may take in all, whatever the exporter answers.
use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// How long an exporter may take to let us in and answer. Longer than a broker lets one importer keep others waiting.
pub(crate) const ANSWERED: Duration = Duration::from_secs(2);

/// Until when the exporter may take: [`ANSWERED`], and once more as long if this process was stopped meanwhile. That it was
/// stopped is concluded from how late an answer was read, which the exporter decides as well: hence once.
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
    /// Starts the time anew, if that has not been done yet.
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
