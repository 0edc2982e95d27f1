//! The devices: how many exist, which are visible, and which can access each other's memory.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    attributes,
    code::{Answer, INVALID_DEVICE, INVALID_VALUE, OUT_OF_MEMORY},
    raw::{put, put_bytes},
};
use std::{
    env,
    ffi::c_char,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// A visible device; its ordinal is its index among the visible ones.
pub struct Device {
    /// Its index in the machine.
    pub index: u8,
    /// Its UUID, which is the same in every process.
    pub uuid: [u8; 16],
    used: AtomicU64,
}
impl Device {
    fn new(index: u8) -> Self {
        let mut uuid = *b"causeway soft 00";
        uuid[14] += index / 10;
        uuid[15] += index % 10;
        Self { index, uuid, used: AtomicU64::new(0) }
    }
    /// `GPU-` and the UUID, as `CUDA_VISIBLE_DEVICES` can name it.
    fn name(&self) -> String {
        let part = |from: usize, to: usize| hex::encode(&self.uuid[from..to]);
        let parts = [part(0, 4), part(4, 6), part(6, 8), part(8, 10), part(10, 16)];
        format!("GPU-{}", parts.join("-"))
    }
    /// Bytes of free memory.
    pub fn free(&self) -> u64 {
        total() - self.used.load(Ordering::Relaxed).min(total())
    }
    /// Allocates memory from the device, if enough is free.
    pub fn take(&self, bytes: u64) -> Answer {
        let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= total());
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(drop).map_err(|_| OUT_OF_MEMORY)
    }
    /// Frees what [`Device::take`] allocated.
    pub fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}
/// Reads a number from the environment.
pub fn number(name: &str, otherwise: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
/// Bytes of memory of each device.
pub fn total() -> u64 {
    static TOTAL: OnceLock<u64> = OnceLock::new();
    *TOTAL.get_or_init(|| number("SOFT_CUDA_MEMORY", 4096) << 20)
}
/// The visible devices, by ordinal. As with the real driver, the list in `CUDA_VISIBLE_DEVICES` ends at its
/// first invalid name.
pub fn all() -> &'static [Device] {
    static ALL: OnceLock<Vec<Device>> = OnceLock::new();
    ALL.get_or_init(|| {
        let there = || (0..number("SOFT_CUDA_DEVICES", 1).min(8) as u8).map(Device::new);
        let Ok(visible) = env::var("CUDA_VISIBLE_DEVICES") else { return there().collect() };
        let named = |name: &str| {
            let name = name.trim();
            let by_uuid = name.len() > 4 && name.starts_with("GPU-");
            there().find(|d| {
                if by_uuid { d.name().starts_with(name) } else { name.parse() == Ok(d.index) }
            })
        };
        visible.split(',').map_while(named).collect()
    })
}
/// Returns a device by ordinal.
pub fn of(ordinal: i32) -> Answer<&'static Device> {
    usize::try_from(ordinal).ok().and_then(|i| all().get(i)).ok_or(INVALID_DEVICE)
}
/// Returns the ordinal of the device with that UUID.
pub fn ordinal(uuid: &[u8]) -> Answer<i32> {
    all().iter().position(|d| d.uuid == uuid).map(|i| i as i32).ok_or(INVALID_DEVICE)
}
/// Whether a device can access the memory of another.
pub fn reaches(device: i32, peer: i32) -> bool {
    device == peer || number("SOFT_CUDA_PEER", 1) != 0
}

entries! {
    fn cuDeviceGetCount(to: *mut i32) {
        put(to, all().len() as i32)
    }
    fn cuDeviceGet(to: *mut i32, ordinal: i32) {
        of(ordinal)?;
        put(to, ordinal)
    }
    fn cuDeviceGetName(to: *mut c_char, room: i32, device: i32) {
        let name = format!("Software device {}\0", of(device)?.index);
        let room = usize::try_from(room).ok().filter(|room| *room > 0 && !to.is_null()).ok_or(INVALID_VALUE)?;
        put_bytes(to.cast(), room, name.as_bytes());
        put(to.wrapping_add(room - 1), 0)
    }
    fn cuDeviceGetUuid_v2(to: *mut [u8; 16], device: i32) {
        put(to, of(device)?.uuid)
    }
    fn cuDeviceTotalMem_v2(to: *mut usize, device: i32) {
        of(device)?;
        put(to, total() as usize)
    }
    fn cuDeviceGetAttribute(to: *mut i32, attribute: i32, device: i32) {
        put(to, attributes::of(attribute, of(device)?.index)?)
    }
    fn cuDeviceGetPCIBusId(to: *mut c_char, room: i32, device: i32) {
        let name = format!("0000:{:02X}:00.0\0", attributes::bus(of(device)?.index));
        if to.is_null() || (room as usize) < name.len() || room < 0 {
            return Err(INVALID_VALUE);
        }
        put_bytes(to.cast(), room as usize, name.as_bytes());
        Ok(())
    }
    fn cuDeviceGetExecAffinitySupport(to: *mut i32, kind: i32, device: i32) {
        of(device)?;
        if kind != 0 {
            return Err(INVALID_VALUE);
        }
        put(to, 0)
    }
    fn cuDeviceCanAccessPeer(to: *mut i32, device: i32, peer: i32) {
        of(device)?;
        of(peer)?;
        put(to, i32::from(device != peer && reaches(device, peer)))
    }
    fn cuDeviceGetP2PAttribute(to: *mut i32, attribute: i32, device: i32, peer: i32) {
        of(device)?;
        of(peer)?;
        if device == peer {
            return Err(INVALID_DEVICE);
        }
        let reaches = reaches(device, peer);
        match attribute {
            1 => put(to, 0),                          // rank
            2..=4 => put(to, i32::from(reaches)),     // access, atomics, arrays
            _ => Err(INVALID_VALUE),
        }
    }
}
