//! All exporters that this process is connected to: finding the connection to one, and keeping it for later use. The
//! requests over it are left to `fetch`.
use crate::{
    InstanceId, Result,
    envelope::Envelope,
    fetch::{Host, Table, Unreached, later},
    fork::PerFork,
    locked,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::Instant,
};

/// How many connections are kept although nothing is open over them.
const IDLE: usize = 32;

/// All exporters that this process is connected to. A connection is kept after everything that was opened over it has
/// been closed, so that the next open costs only one round trip.
#[derive(Default)]
struct Hosts {
    by_instance: HashMap<InstanceId, KnownHost>,
    by_id: HashMap<u64, Weak<Host>>,
    next: u64,
}
struct KnownHost {
    host: Arc<Host>,
    used: u64,
}
impl Hosts {
    fn known(&mut self, instance: InstanceId) -> Option<Arc<Host>> {
        self.next += 1;
        let kept = self.by_instance.get_mut(&instance)?;
        kept.used = self.next;
        Some(kept.host.clone())
    }
    /// Removes the least recently used idle connection, if too many are idle.
    fn excess(&mut self) -> Option<KnownHost> {
        let is_idle = |kept: &KnownHost| Arc::strong_count(&kept.host) == 1;
        let idle = self.by_instance.iter().filter(|(_, kept)| is_idle(kept));
        let idle: Vec<_> = idle.map(|(instance, kept)| (kept.used, *instance)).collect();
        let (_, oldest) = idle.iter().min().filter(|_| idle.len() > IDLE)?;
        self.by_instance.remove(oldest)
    }
}
static HOSTS: PerFork<Mutex<Hosts>> = PerFork::new();

/// The connection to the ticket's exporter: the existing one, or a new one made by the deadline.
pub(crate) fn to(envelope: &Envelope, deadline: Instant) -> Result<Arc<Host>, Unreached> {
    let hosts = HOSTS.get()?;
    if let Some(host) = locked(hosts).known(envelope.instance).filter(|host| !host.is_over()) {
        return Ok(host);
    }
    let fresh = Host::connect(envelope, (fresh_id()?, &All), deadline)?;
    let mut hosts = locked(hosts);
    let other = hosts.known(envelope.instance).filter(|other| !other.is_over());
    let (mut replaced, mut excess) = (None, None);
    if other.is_none() {
        hosts.next += 1;
        let kept = KnownHost { host: fresh.clone(), used: hosts.next };
        replaced = hosts.by_instance.insert(envelope.instance, kept);
        excess = hosts.excess();
    }
    drop(hosts); // before any host is dropped, which takes the lock
    drop((replaced, excess));
    Ok(other.unwrap_or(fresh)) // another thread may have connected first
}

/// A new number for a connection.
fn fresh_id() -> Result<u64> {
    let mut hosts = locked(HOSTS.get()?);
    hosts.next += 1;
    Ok(hosts.next)
}
struct All;
impl Table for All {
    fn enter(&self, host: &Arc<Host>) -> Result<()> {
        locked(HOSTS.get()?).by_id.insert(host.id(), Arc::downgrade(host));
        Ok(())
    }
    fn forget(&self, instance: InstanceId, id: u64) {
        let Some(hosts) = HOSTS.peek() else { return };
        let mut hosts = locked(hosts);
        let known = hosts.by_instance.get(&instance).is_some_and(|kept| kept.host.id() == id);
        let forgotten = known.then(|| hosts.by_instance.remove(&instance));
        drop(hosts); // before any host is dropped, which takes the lock
        drop(forgotten);
    }
    fn leave(&self, id: u64) {
        if let Some(hosts) = HOSTS.peek() {
            locked(hosts).by_id.remove(&id);
        }
    }
}

/// Reports the ended opens that no request has carried, if that is due. Runs on the watcher thread, and schedules the
/// next check if anything was closed since the last one.
pub(crate) fn say_closed() {
    let now = Instant::now();
    let Some(hosts) = HOSTS.peek().filter(|_| later::is_due(now)) else { return };
    let all: Vec<_> = locked(hosts).by_id.values().filter_map(Weak::upgrade).collect();
    if all.iter().filter(|host| host.say_ends()).count() > 0 {
        later::again(now);
    }
}
/// Whether the object behind a ticket may still be opened, under this ticket or another, as far as this process knows
/// without a request: it is connected to the exporter, which is alive and has not freed the object. A withdrawn export
/// does not change the result.
pub fn object_stands(ticket: &[u8]) -> bool {
    let Ok(envelope) = Envelope::parse(ticket) else { return false };
    let Some(hosts) = HOSTS.peek() else { return false };
    let host = locked(hosts).by_instance.get(&envelope.instance).map(|kept| kept.host.clone());
    host.is_some_and(|host| host.check().is_ok() && !host.has_freed(&envelope))
}
/// The connection with this number, if it still exists.
pub(crate) fn by_id(id: u64) -> Option<Arc<Host>> {
    HOSTS.peek().and_then(|hosts| locked(hosts).by_id.get(&id).and_then(Weak::upgrade))
}
