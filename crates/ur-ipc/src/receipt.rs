//! Whether a peer has received what it was sent, as the kernel says: then the peer need not say so, which would wake this
//! process once more for each open.
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use std::{os::fd::AsFd, sync::LazyLock};
use ur_mapping::unreceived;

/// Whether the kernel tells. Filters may forbid the question, and kernels in software may not know the answer: so it is
/// tried once.
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
/// Whether the other end has received all that it was sent. Not known to have, where the kernel does not tell.
pub(crate) fn is_received(socket: &impl AsFd) -> bool {
    unreceived(socket).is_ok_and(|left| left == 0)
}
