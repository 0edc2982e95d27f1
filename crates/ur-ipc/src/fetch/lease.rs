//! What keeps an object as it was opened: one open, told to its exporter when it ends.
use super::{Held, Host};
use crate::Kind;
use std::sync::Arc;

/// One open, given back when it is dropped.
pub(crate) struct Lease {
    host: Held,
    kind: Kind,
    object: u64,
}
impl Lease {
    pub(super) fn new(host: &Arc<Host>, kind: Kind, object: u64) -> Self {
        Self { host: Held::new(host), kind, object }
    }
}
impl Drop for Lease {
    fn drop(&mut self) {
        self.host.end_lease((self.kind, self.object));
    }
}
