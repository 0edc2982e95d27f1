//! The second way to obtain a descriptor: `pidfd_getfd(2)`. It is used when the exporter's broker cannot be reached,
//! and never after the broker has refused. Nothing in the ticket is trusted until the exporter's sealed ledger confirms
//! it.
use crate::{
    Error, ErrorKind, Result,
    access::is_dead,
    envelope::{Envelope, SocketScope, Transport},
    exports::refusal,
    fetch::gone_error,
    identity::identity,
    ledger::{Reader, State},
    protocol::Verdict,
    shared_memory::SharedMemory,
    standing::{ArrivedPayload, Fetched, Ledger, Standing},
};
use rustix::{
    fs::fstat,
    io::Errno,
    process::{ForeignRawFd, Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};
use std::{
    fs,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

/// Whether the ticket allows this way at all: the exporter offers it, and runs in this process's pid namespace.
pub(crate) fn is_open(envelope: &Envelope) -> bool {
    let here = identity().map_or(0, |identity| identity.origin.pid_namespace);
    envelope.transport == Transport::Descriptor
        && envelope.scope == SocketScope::Private
        && envelope.ledger_descriptor >= 0
        && here != 0
        && envelope.origin.pid_namespace == here
}

/// Takes the object's descriptor from the exporter's process.
///
/// # Errors
/// [`ErrorKind::Denied`], naming the check that refused; [`ErrorKind::KernelLacks`]; [`ErrorKind::ExporterGone`]; and
/// [`ErrorKind::Withdrawn`] or [`ErrorKind::Freed`] if the export no longer stands.
pub(crate) fn fetch(envelope: &Envelope) -> Result<Fetched> {
    let pid = i32::try_from(envelope.origin.pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(gone_error)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| match e {
        Errno::SRCH => gone_error(),
        e => Error::system("open a pidfd of the exporter (pidfd_open)", e),
    })?;
    let ledger = take(&pidfd, envelope.ledger_descriptor)?;
    // The ledger must be sealed, of the right size, and of the instance that the ticket names: a reused pid or
    // descriptor number fails here.
    let ledger = Reader::of(ledger.as_fd(), envelope.instance.0, envelope.ledger).map_err(|e| {
        let why = "the process that has the exporter's pid now could not prove to be the exporter";
        Error::new(ErrorKind::ExporterGone, format!("{why} ({e}): ask for a new ticket"))
    })?;
    let (line, tag) = (envelope.index, envelope.tag());
    let stands = |ledger: &Reader| match ledger.check(line, tag, envelope.generation) {
        _ if is_dead(&pidfd) => Err(gone_error()),
        State::Live => Ok(()),
        State::Withdrawn | State::Forgotten => Err(refusal(Verdict::Withdrawn)),
        State::Freed => Err(refusal(Verdict::Freed)),
    };
    stands(&ledger)?;
    let number = ledger.descriptor(line).ok_or_else(|| {
        let why = "the exporter's broker cannot be reached, and it does not offer this object in any other way: make its socket directory reachable";
        Error::new(ErrorKind::Unreachable, why)
    })?;
    let fd = take(&pidfd, number)?;
    // The exporter closes the descriptor only after the ledger says "withdrawn": as the export still stands, the
    // descriptor that was taken is the object's.
    stands(&ledger)?;
    let exposes = fstat(&fd).map_err(|e| Error::system("look at the descriptor", e))?.st_size;
    let exposes = u64::try_from(exposes).unwrap_or(0);
    let memory = SharedMemory::verify(fd, exposes, false)?;
    if !memory.has(0, envelope.size) {
        return Err(refusal(Verdict::Nonsense));
    }
    let standing = Standing::Unconnected(Arc::new(pidfd), Ledger::Reader(Arc::new(ledger)));
    let payload = ArrivedPayload::Memory { memory: Arc::new(memory), base: 0 };
    // Such an object has memory of its own, which is never reused, so it needs no lease. The tag identifies it.
    Ok(Fetched { payload, object: tag, standing, lease: None })
}

fn take(pidfd: &OwnedFd, number: i32) -> Result<OwnedFd> {
    pidfd_getfd(pidfd, number as ForeignRawFd, PidfdGetfdFlags::empty()).map_err(|e| match e {
        Errno::SRCH => gone_error(),
        Errno::BADF => refusal(Verdict::Withdrawn).with_errno(e.raw_os_error()),
        Errno::PERM => denied(),
        Errno::NOSYS => {
            let why = "pidfd_getfd is not there: the kernel is older than 5.6, or a seccomp filter hides it";
            Error::new(ErrorKind::KernelLacks, why).with_errno(e.raw_os_error())
        }
        e => Error::system("take a descriptor out of the exporter (pidfd_getfd)", e),
    })
}

/// The error of a denied call; it names the check that refused, as far as this process can find out.
fn denied() -> Error {
    let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let filtered =
        status.lines().any(|l| l.strip_prefix("Seccomp:").is_some_and(|v| v.trim() == "2"));
    let gate = match yama.trim() {
        "1" | "2" | "3" => format!("Yama (kernel.yama.ptrace_scope is {})", yama.trim()),
        _ if filtered => "a seccomp filter, or the check for CAP_SYS_PTRACE".into(),
        _ => {
            "the exporter is of another user or not dumpable, and this process lacks CAP_SYS_PTRACE"
                .into()
        }
    };
    let why = format!("the kernel denied pidfd_getfd; the gate: {gate}");
    Error::new(ErrorKind::Denied, why).with_errno(Errno::PERM.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, InstanceId, Kind, arena, token::Secret};
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    use std::os::fd::AsRawFd;

    /// Memory of this process that only the ledger offers, with the ticket that a broker would have issued.
    fn offered() -> (OwnedFd, arena::Line, Envelope) {
        let fd = memfd_create("m", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, 4096).unwrap();
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        let identity = identity().unwrap();
        let mut envelope = Envelope {
            kind: Kind::Memory,
            transport: Transport::Descriptor,
            backend: 1,
            scope: SocketScope::Private,
            uid: rustix::process::geteuid().as_raw(),
            instance: identity.instance,
            origin: identity.origin,
            directory: 0,
            device: [0; 16],
            secret: Secret::fresh().unwrap(),
            index: 0,
            generation: 0,
            ledger: 0,
            slot: 0,
            slot_generation: 0,
            ledger_descriptor: -1,
            offset: 0,
            length: 4096,
            size: 4096,
        };
        let line = arena::line(Access::SameUser, envelope.tag(), fd.as_raw_fd()).unwrap();
        envelope.index = line.index();
        envelope.generation = line.generation();
        envelope.ledger = line.arena().number();
        envelope.ledger_descriptor = line.arena().descriptors().unwrap().1.as_raw_fd();
        (fd, line, envelope)
    }
    fn kind(envelope: &Envelope) -> Option<ErrorKind> {
        fetch(envelope).err().map(|e| e.kind())
    }

    #[test]
    fn what_the_ledger_proves_is_taken_and_nothing_else() {
        let (_fd, line, envelope) = offered();
        assert!(is_open(&envelope));
        assert!(!is_open(&Envelope { transport: Transport::Driver, ..envelope }));
        match fetch(&envelope) {
            Err(e) if e.kind() == ErrorKind::Denied => return, // a seccomp filter forbids the call
            fetched => assert!(matches!(
                fetched.unwrap().payload,
                ArrivedPayload::Memory { base: 0, memory } if memory.bytes() == 4096
            )),
        }
        let forged = Envelope { length: 4095, ..envelope };
        assert_eq!(kind(&forged), Some(ErrorKind::Withdrawn), "the tag vouches for the range");
        let stranger = Envelope { instance: InstanceId([7; 16]), ..envelope };
        assert_eq!(kind(&stranger), Some(ErrorKind::ExporterGone), "a reused pid");
        let no_ledger = Envelope { ledger_descriptor: 0, ..envelope };
        assert_eq!(kind(&no_ledger), Some(ErrorKind::ExporterGone), "a reused descriptor");
        line.end_freed();
        assert_eq!(kind(&envelope), Some(ErrorKind::Freed));
    }
    #[test]
    fn a_dead_pid_is_a_gone_exporter() {
        let (_fd, _line, mut envelope) = offered();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        envelope.origin.pid = child.id();
        child.wait().unwrap();
        assert_eq!(kind(&envelope), Some(ErrorKind::ExporterGone));
        envelope.origin.pid_namespace += 1;
        assert!(!is_open(&envelope));
    }
}
