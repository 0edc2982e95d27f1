//! This process's identity towards its peers: a random instance id, drawn at first use and again after a fork. Boot id,
//! pid, start time and namespace are used only in messages, because pids are reused, and start times can repeat with
//! them.
use crate::{Error, Result, fork::PerFork, locked, waiting::uninterrupted};
use rustix::rand::{GetRandomFlags, getrandom};
use siphasher::sip::SipHasher24;
use std::{fmt, fs, hash::Hasher, os::unix::fs::MetadataExt, sync::Mutex};

/// Identifies one exporting process among all that ever existed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub(crate) [u8; 16]);

impl InstanceId {
    /// The id as bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}
impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InstanceId({self})")
    }
}

/// Where and when a process runs, as far as it can tell; 0 means "unknown" in each field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Origin {
    /// Hash of the boot id, which is the same in all containers of a host unless a container shows its own.
    pub boot: u64,
    /// Hash of the machine id.
    pub host: u64,
    pub pid: u32,
    /// Inode of the pid namespace.
    pub pid_namespace: u64,
    /// In clock ticks after boot.
    pub start_time: u64,
}
impl Origin {
    fn here() -> Self {
        let pid = std::process::id();
        Self {
            boot: hash_of_file(&["/proc/sys/kernel/random/boot_id"]),
            host: hash_of_file(&["/etc/machine-id", "/var/lib/dbus/machine-id"]),
            pid,
            pid_namespace: fs::metadata("/proc/self/ns/pid").map_or(0, |m| m.ino()),
            start_time: start_time(pid).unwrap_or(0),
        }
    }
}

/// What this process draws once and keeps until it ends or forks.
pub(crate) struct Identity {
    pub instance: InstanceId,
    /// The key under which the issued envelopes are hashed.
    pub key: [u8; 16],
    pub origin: Origin,
}

/// This process's identity.
///
/// # Errors
/// If the kernel gives no random bytes.
pub(crate) fn identity() -> Result<&'static Identity> {
    static IDENTITY: PerFork<Identity> = PerFork::new();
    IDENTITY.get_or_try(|| {
        Ok(Identity { instance: InstanceId(random()?), key: random()?, origin: Origin::here() })
    })
}

/// The instance id of this process: 128 random bits, others after each fork.
///
/// # Errors
/// If the kernel gives no random bytes.
pub fn instance() -> Result<InstanceId> {
    identity().map(|identity| identity.instance)
}

/// Random bytes that were drawn and not used yet: the last `left` bytes of the array.
struct Store {
    bytes: [u8; 256],
    left: usize,
}
/// Returns unpredictable random bytes, at most 256. They are drawn 256 at a time, because a ticket needs only a few.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    static STORE: PerFork<Mutex<Store>> = PerFork::new();
    let store = STORE.get_or_try(|| Ok(Mutex::new(Store { bytes: [0; 256], left: 0 })))?;
    let mut store = locked(store);
    if store.left < N {
        (store.bytes, store.left) = (draw()?, 256);
    }
    let from = 256 - store.left;
    let mut bytes = [0; N];
    let taken = &mut store.bytes[from..from + N];
    bytes.copy_from_slice(taken);
    taken.fill(0); // they are part of a secret from here on
    store.left -= N;
    Ok(bytes)
}
fn draw<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let got = uninterrupted(|| getrandom(&mut bytes, GetRandomFlags::empty()))
        .map_err(|e| Error::system("draw random bytes (getrandom)", e))?;
    debug_assert_eq!(got, N); // the kernel never returns fewer for requests of up to 256 bytes
    Ok(bytes)
}

/// A keyed hash. The key is either secret to this process or a constant.
pub(crate) fn hash(key: &[u8; 16], bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write(bytes);
    hasher.finish()
}

fn hash_of_file(paths: &[&str]) -> u64 {
    let text = paths.iter().find_map(|path| fs::read(path).ok());
    text.map_or(0, |text| hash(b"causeway origin ", text.trim_ascii()).max(1))
}

/// When a process of this pid namespace started, in clock ticks after boot; `None` if there is no such process.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name in parentheses may itself contain spaces and parentheses; the numbers follow the last one.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_drawn_once_and_says_where_it_is() {
        let identity = identity().unwrap();
        assert_eq!(instance().unwrap(), identity.instance);
        assert_ne!(identity.instance.0, [0; 16]);
        assert_eq!(identity.origin.pid, std::process::id());
        assert_eq!(start_time(std::process::id()), Some(identity.origin.start_time));
        assert_ne!(identity.origin.boot, 0);
        assert_eq!(identity.instance.to_string().len(), 32);
    }
    #[test]
    fn a_process_that_is_not_there_has_no_start_time() {
        assert_eq!(start_time(u32::MAX), None);
    }
}
