//! The memory of devices: memfds, whose names let another process's driver identify them by their
//! descriptors.
use crate::{
    code::{Answer, INVALID_VALUE, OPERATING_SYSTEM, UNKNOWN},
    device, space,
};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create, readlink,
};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

/// The use of a memfd; a descriptor of one kind is not accepted for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Linear,
    Physical,
    Pool,
}
/// A memfd with the contents of device memory.
pub struct Backing {
    file: Option<OwnedFd>,
    /// The address where all of it is mapped if the file is closed: opened memory then costs no descriptor.
    parked: Option<u64>,
    pub bytes: u64,
    /// The device's ordinal in this process.
    pub device: i32,
    /// Whether it counts towards this process's use of the device's memory.
    counted: bool,
}
fn name(kind: Kind, device: i32) -> Answer<String> {
    let uuid = hex::encode(device::of(device)?.uuid);
    Ok(format!("soft-cuda-{kind:?}-{uuid}"))
}
impl Backing {
    /// Allocates memory; with `counted`, subtracts it from the device's free memory, and fails if that is too
    /// small.
    pub fn new(kind: Kind, device: i32, bytes: u64, counted: bool) -> Answer<Self> {
        if counted {
            device::of(device)?.take(bytes)?;
        }
        let make = || {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let file = memfd_create(name(kind, device)?, flags).map_err(|_| OPERATING_SYSTEM)?;
            ftruncate(&file, bytes).map_err(|_| OPERATING_SYSTEM)?;
            // Real device memory has a fixed size, too.
            let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
            fcntl_add_seals(&file, seals).map_err(|_| OPERATING_SYSTEM)?;
            Ok(file)
        };
        let made = make();
        if made.is_err() && counted {
            device::of(device)?.give(bytes);
        }
        made.map(|file| Self { file: Some(file), parked: None, bytes, device, counted })
    }
    /// Takes over a descriptor of another process's memory.
    pub fn of(kind: Kind, file: OwnedFd) -> Answer<Self> {
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let link = readlink(link, Vec::new()).map_err(|_| UNKNOWN)?;
        let link = link.to_string_lossy().into_owned();
        let uuid = link
            .strip_prefix(&format!("/memfd:soft-cuda-{kind:?}-"))
            .and_then(|rest| rest.get(..32));
        let digits = uuid.ok_or(UNKNOWN)?;
        let uuid = hex::decode(digits).map_err(|_| UNKNOWN)?;
        let device = device::ordinal(&uuid)?;
        let bytes = fstat(&file).map_err(|_| UNKNOWN)?.st_size as u64;
        Ok(Self { file: Some(file), parked: None, bytes, device, counted: false })
    }
    /// Closes the file; the memory stays mapped, and can be mapped again.
    pub fn park(mut self) -> Answer<Self> {
        self.parked = Some(space::park(self.bytes, self.file()?)?);
        self.file = None;
        Ok(self)
    }
    /// Maps all of it for devices at `at`.
    pub fn map(&self, at: u64) -> Answer {
        match self.parked {
            Some(parked) => space::again(parked, at, self.bytes),
            None => space::map(at, self.bytes, self.file()?, 0),
        }
    }
    /// Returns the file, unless the memory is parked.
    pub fn file(&self) -> Answer<BorrowedFd<'_>> {
        self.file.as_ref().map(|f| f.as_fd()).ok_or(INVALID_VALUE)
    }
    /// Identifies the file.
    pub fn inode(&self) -> Answer<u64> {
        fstat(self.file()?).map(|s| s.st_ino).map_err(|_| OPERATING_SYSTEM)
    }
}
impl Drop for Backing {
    fn drop(&mut self) {
        if let Some(parked) = self.parked {
            space::host_free(parked, self.bytes);
        }
        if self.counted
            && let Ok(device) = device::of(self.device)
        {
            device.give(self.bytes);
        }
    }
}
