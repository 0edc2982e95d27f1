//! A lease: keeps an opened object in place, and reports its end to the exporter.
use super::{Held, Host};
use crate::{Kind, Object};
use std::sync::Arc;

/// One open, reported as ended when this is dropped.
pub(crate) struct Lease {
    host: Held,
    kind: Kind,
    object: u64,
    /// The size of the whole object.
    bytes: u64,
}
/// The end of an open of at least this size is reported at once: the exporter may have freed the object, and keeps its
/// memory until then.
const LARGE: u64 = 64 << 20;

impl Lease {
    pub(super) fn new(host: &Arc<Host>, (kind, object): Object, bytes: u64) -> Self {
        Self { host: Held::new(host), kind, object, bytes }
    }
    /// Whether the exporter still knows of it.
    pub(crate) fn stands(&self) -> bool {
        !self.host.is_over()
    }
}
impl Drop for Lease {
    fn drop(&mut self) {
        self.host.end_lease((self.kind, self.object), self.bytes >= LARGE);
    }
}
