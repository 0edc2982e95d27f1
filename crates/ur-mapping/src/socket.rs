//! What the kernel tells of a socket through a call that takes any argument, and which has no safe form.
#![expect(unsafe_code, reason = "asks the kernel by ioctl")]
use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

/// How much of what was sent over a local socket its other end has not received yet. 0 is nothing; what another number
/// counts is the kernel's affair.
///
/// # Errors
/// What the kernel says; a filter may forbid the call.
pub fn unreceived(socket: &impl AsFd) -> io::Result<u32> {
    let mut left: libc::c_int = 0;
    // SAFETY: the descriptor is open as long as it is borrowed, and this call writes one integer.
    let asked = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut left) };
    if asked != 0 {
        return Err(io::Error::last_os_error());
    }
    u32::try_from(left).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
    };

    #[test]
    fn a_datagram_counts_until_it_was_received() {
        let flags = SocketFlags::CLOEXEC;
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        assert_eq!(unreceived(&one).unwrap(), 0);
        for _ in 0..2 {
            send(&one, b"word", SendFlags::empty()).unwrap();
        }
        let mut bytes = [0; 8];
        for _ in 0..2 {
            assert!(unreceived(&one).unwrap() > 0);
            recv(&other, &mut bytes, RecvFlags::PEEK).unwrap();
            assert!(unreceived(&one).unwrap() > 0, "it was only looked at");
            recv(&other, &mut bytes, RecvFlags::empty()).unwrap();
        }
        assert_eq!(unreceived(&one).unwrap(), 0);
        assert!(unreceived(&std::fs::File::open("/dev/null").unwrap()).is_err());
    }
}
