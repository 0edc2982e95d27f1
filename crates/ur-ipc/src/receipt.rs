//! Whether the kernel reports that a peer has received what it was sent. If it does, the peer need not acknowledge it,
//! which would wake this process once more for each open.
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use std::{os::fd::AsFd, sync::LazyLock};
use ur_mapping::unreceived;

/// Whether the kernel reports this. A seccomp filter may forbid the query, and user-space kernels may not support it,
/// so it is tried once on a pair of sockets.
pub(crate) fn is_told() -> bool {
    static IS_TOLD: LazyLock<bool> = LazyLock::new(|| tried().unwrap_or(false));
    *IS_TOLD
}
fn tried() -> Option<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).ok()?;
    let before = unreceived(&one).ok()?;
    send(&one, &[1], SendFlags::NOSIGNAL).ok()?;
    let sent = unreceived(&one).ok()?;
    recv(&other, &mut [0u8], RecvFlags::empty()).ok()?;
    Some((before, sent > 0, unreceived(&one).ok()?) == (0, true, 0))
}
/// Whether the other end has received everything that it was sent; `false` where the kernel does not tell.
pub(crate) fn is_received(socket: &impl AsFd) -> bool {
    unreceived(socket).is_ok_and(|left| left == 0)
}
