//! The yardstick: a bare descriptor that is passed between processes, imported and mapped.
use crate::raw;
use causeway_benches::Result;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketType, accept, bind, connect, listen,
    recv, recvmsg, send, sendmsg, socket,
};
use std::{
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
    thread,
};

/// The name of a socket through which a thread sends the descriptor of 1 GiB on request.
pub struct Door(String);
impl Door {
    pub fn open() -> Result<Self> {
        let name = format!("causeway-bench-cuda-{}", std::process::id());
        let door = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
        bind(&door, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        listen(&door, 1)?;
        // The memory lives as long as the process.
        let (_, fd) = raw::physical(super::GIB)?;
        thread::spawn(move || serve(&door, &fd));
        Ok(Self(name))
    }
    pub fn name(&self) -> &str {
        &self.0
    }
}
fn serve(door: &OwnedFd, fd: &OwnedFd) -> Result<()> {
    let peer = accept(door)?;
    let mut asked = [0u8; 1];
    while recv(&peer, &mut asked, RecvFlags::empty())?.0 == 1 {
        let fds = [fd.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        sendmsg(&peer, &[IoSlice::new(&[1])], &mut control, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

/// The receiving end.
pub struct Caller {
    socket: OwnedFd,
    bytes: usize,
}
impl Caller {
    pub fn connect(name: &str, bytes: usize) -> Result<Self> {
        let caller = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
        connect(&caller, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        Ok(Self { socket: caller, bytes })
    }
    /// Makes one round trip, imports and maps the memory, and sets the access.
    pub fn open(&self) -> Result<(u64, u64)> {
        send(&self.socket, &[1], SendFlags::NOSIGNAL)?;
        let mut answer = [0u8; 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        recvmsg(&self.socket, &mut [IoSliceMut::new(&mut answer)], &mut control, flags)?;
        let fd = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        raw::open(&fd.ok_or("no descriptor came")?, self.bytes)
    }
}
