//! Queries about sockets through `ioctl` and `getsockopt`, for which there is no safe interface.
#![expect(unsafe_code, reason = "asks the kernel by ioctl and getsockopt")]
use std::{
    io,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
};

/// How much of what was sent over a local socket the other end has not received yet. 0 means that it has received
/// everything; the unit of other values depends on the kernel.
///
/// # Errors
/// The kernel's error; a filter may forbid the call.
pub fn unreceived(socket: &impl AsFd) -> io::Result<u32> {
    let mut left: libc::c_int = 0;
    // SAFETY: the descriptor stays open while it is borrowed, and this request writes one integer.
    let asked = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut left) };
    if asked != 0 {
        return Err(io::Error::last_os_error());
    }
    u32::try_from(left).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

/// The process that made the other end of a local socket, as the kernel shows it to this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// Its process id; 0 if it is not in this process's pid namespace.
    pub pid: i32,
    /// Its effective user.
    pub uid: u32,
}
/// The process that made the other end of a local socket (`SO_PEERCRED`). Rustix is not used because its type for a pid
/// cannot be 0.
///
/// # Errors
/// The kernel's error.
pub fn peer_credentials(socket: &impl AsFd) -> io::Result<Credentials> {
    let mut found = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    // SAFETY: `SO_PEERCRED` returns a `ucred`, whose three integers may have any value.
    unsafe { option(socket, libc::SO_PEERCRED, &mut found) }?;
    Ok(Credentials { pid: found.pid, uid: found.uid })
}
/// A pidfd of the process that made the other end of a local socket (`SO_PEERPIDFD`), close-on-exec.
///
/// # Errors
/// The kernel's error: `ENOPROTOOPT` before Linux 6.5.
pub fn peer_pidfd(socket: &impl AsFd) -> io::Result<OwnedFd> {
    const SO_PEERPIDFD: libc::c_int = 77; // in every architecture that Rust's std supports, except SPARC and PA-RISC
    let mut fd: libc::c_int = -1;
    // SAFETY: `SO_PEERPIDFD` returns an integer.
    unsafe { option(socket, SO_PEERPIDFD, &mut fd) }?;
    if fd < 0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // SAFETY: the kernel made the descriptor in this call, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
/// Reads an option of a socket.
///
/// # Safety
/// `T` must be the kernel's type for that option, and valid for any bytes.
unsafe fn option<T>(socket: &impl AsFd, name: libc::c_int, to: &mut T) -> io::Result<()> {
    let mut size = size_of::<T>() as libc::socklen_t;
    let (fd, to) = (socket.as_fd().as_raw_fd(), std::ptr::from_mut(to).cast());
    // SAFETY: the descriptor stays open while it is borrowed, and `size` is the size of `to`.
    let asked = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, to, &raw mut size) };
    match asked {
        0 if size as usize == size_of::<T>() => Ok(()),
        0 => Err(io::ErrorKind::InvalidData.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
    };

    #[test]
    fn the_other_end_of_a_pair_is_this_process() {
        let flags = SocketFlags::CLOEXEC;
        let (one, _other) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let (pid, uid) = (rustix::process::getpid(), rustix::process::geteuid());
        let us = Credentials { pid: pid.as_raw_nonzero().get(), uid: uid.as_raw() };
        assert_eq!(peer_credentials(&one).unwrap(), us);
        match peer_pidfd(&one) {
            Ok(pidfd) => {
                let about = format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd());
                let about = std::fs::read_to_string(about).unwrap();
                assert!(about.lines().any(|line| line == format!("Pid:\t{}", us.pid)), "{about}");
            }
            Err(e) => assert_eq!(e.raw_os_error(), Some(libc::ENOPROTOOPT), "{e}"),
        }
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(peer_credentials(&file).unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
    }
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
