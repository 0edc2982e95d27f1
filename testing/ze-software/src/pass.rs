//! A socket through which other processes get descriptors of this process's shared memory, for when `/proc`
//! cannot be used: processes that do not permit it, and other PID namespaces. Processes of other users get
//! nothing.
#![expect(unsafe_code, reason = "asks a socket for its peer's user")]
use crate::{inject::Answer, ticket::known_file};
use rustix::{
    fd::OwnedFd,
    io::retry_on_intr,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags,
    },
};
use std::{
    io::{IoSlice, IoSliceMut, Read as _, Write as _},
    os::{
        fd::{AsFd as _, AsRawFd as _},
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    sync::Mutex,
    time::Duration,
};
use ur_lock::locked;
use ze_sys::*;

/// How long either side may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The process, and the number in its socket's name. A forked child makes its own socket.
static SERVED: Mutex<Option<(u32, u64)>> = Mutex::new(None);

fn address(name: u64) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("ze-software-{name:016x}"))
}
/// The number in the name of this process's socket, which the first call creates.
///
/// # Errors
/// `ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY` if the socket or its thread cannot be created.
pub fn name() -> Answer<u64> {
    let mut served = locked(&SERVED);
    let process = std::process::id();
    if let Some((of, name)) = *served
        && of == process
    {
        return Ok(name);
    }
    let name = serve().map_err(|_| ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)?;
    *served = Some((process, name));
    Ok(name)
}
fn serve() -> std::io::Result<u64> {
    let mut name = [0_u8; 8];
    rustix::rand::getrandom(&mut name, rustix::rand::GetRandomFlags::empty())?;
    let name = u64::from_ne_bytes(name);
    let listener = UnixListener::bind_addr(&address(name)?)?;
    let answer = move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // Ignores invalid requests and closed connections.
            let _answered = give(stream);
        }
    };
    ur_mapping::start_thread("ze-software-ipc", answer)?;
    Ok(name)
}
/// The user of the process at the other end. (Not rustix's function, which fails if that process has no
/// number in this process's PID namespace.)
fn user(stream: &UnixStream) -> std::io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    let (socket, to) = (stream.as_raw_fd(), (&raw mut peer).cast());
    // SAFETY: `to` points to a `ucred`, which is `size` bytes long.
    let code =
        unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, to, &raw mut size) };
    if code == 0 { Ok(peer.uid) } else { Err(std::io::Error::last_os_error()) }
}
fn give(mut stream: UnixStream) -> std::io::Result<()> {
    let peer = user(&stream)?;
    if peer != rustix::process::geteuid().as_raw() && peer != 0 {
        return Ok(());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut number = [0; 8];
    stream.read_exact(&mut number)?;
    let Some(page) = known_file(u64::from_ne_bytes(number)) else { return Ok(()) };
    let descriptors = [page.file().0.as_fd()];
    let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let (bytes, flags) = ([IoSlice::new(&[1])], SendFlags::NOSIGNAL);
    retry_on_intr(|| rustix::net::sendmsg(&stream, &bytes, &mut control, flags))?;
    Ok(())
}
/// The memory with this number, from the process with the socket `name`.
pub fn fetch(name: u64, number: u64) -> Option<OwnedFd> {
    let mut stream = UnixStream::connect_addr(&address(name).ok()?).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(&number.to_ne_bytes()).ok()?;
    let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let (mut byte, flags) = ([0], RecvFlags::CMSG_CLOEXEC);
    let mut bytes = [IoSliceMut::new(&mut byte)];
    retry_on_intr(|| rustix::net::recvmsg(&stream, &mut bytes, &mut control, flags)).ok()?;
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cell::Own, ticket};

    #[test]
    fn memory_that_was_shared_is_had_by_the_socket_and_no_other() {
        let own = Own::new().expect("a cell");
        ticket::event(&own, 0).expect("a handle");
        let (file, _) = own.seat().0.place().0.file();
        let number = rustix::fs::fstat(file).expect("a file").st_ino;
        let name = name().expect("a socket");
        let fetched = fetch(name, number).expect("it is passed");
        assert_eq!(rustix::fs::fstat(&fetched).expect("a file").st_ino, number);
        assert!(fetch(name, number ^ 1).is_none(), "there is no such memory");
        assert!(fetch(name ^ 1, number).is_none(), "there is no such socket");
    }
}
