//! Memory across processes: this very binary, run again, is the other process. On whatever driver of Level Zero there
//! is; without a device the tests say so and are skipped.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod c;
#[path = "c/other.rs"]
mod other;
#[path = "../../cuda/tests/c/usm.rs"]
mod usm;

use c::*;
use other::Other;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::{
    ffi::c_void,
    os::fd::OwnedFd,
    ptr::null_mut,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use ur_adapter::object::Backend;
use ur_level_zero::driver::{self, RawContext, RawDevice};
use ur_sys::{
    ur_physical_mem_handle_t, ur_physical_mem_info_t as PhysicalInfo, ur_result_t as R,
    ur_usm_alloc_info_t as Info, ur_usm_type_t, ur_virtual_mem_access_flags_t as Access,
};
use usm::*;

/// A ticket, given up when it is dropped.
struct Ticket<'c>(&'c Zero, *mut c_void, usize);
fn share(zero: &Zero, at: *mut c_void) -> Result<Ticket<'_>, R> {
    let (mut bytes, mut size) = (null_mut(), 0);
    match call!(ipc_exp.get_mem_handle_exp(zero.context, at, &mut bytes, &mut size)) {
        R::SUCCESS => Ok(Ticket(zero, bytes, size)),
        code => Err(code),
    }
}
impl Ticket<'_> {
    fn bytes(&self) -> &[u8] {
        unsafe { std::slice::from_raw_parts(self.1.cast(), self.2) }
    }
    fn hex(&self) -> String {
        hex::encode(self.bytes())
    }
}
impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        assert_eq!(call!(ipc_exp.put_mem_handle_exp(self.0.context, self.1)), R::SUCCESS);
    }
}
fn open(zero: &Zero, ticket: &[u8]) -> Result<*mut c_void, R> {
    let (context, device) = (zero.context, zero.device);
    let (mut at, mut given) = (null_mut(), ticket.to_vec());
    let bytes = given.as_mut_ptr().cast();
    let code = call!(ipc_exp.open_mem_handle_exp(context, device, bytes, given.len(), &mut at));
    assert_eq!(given, ticket, "the caller's bytes are the caller's");
    if code == R::SUCCESS { Ok(at) } else { Err(code) }
}
fn close(zero: &Zero, at: *mut c_void) -> R {
    call!(ipc_exp.close_mem_handle_exp(zero.context, at))
}

#[test]
fn role() {
    if std::env::var_os("CAUSEWAY_ROLE").is_none() {
        return; // nobody's other process
    }
    let zero = Zero::new().expect("there is a device: the other process has it");
    let mut mine = vec![];
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<_> = line.split(' ').collect();
        let answer = match *words {
            ["read-and-add", ticket] => read_and_add(&zero, &hex::decode(ticket).unwrap()),
            // And stays open.
            ["open", ticket] => match open(&zero, &hex::decode(ticket).unwrap()) {
                Ok(at) => format!("{}", zero.read::<u32, 1024>(at)[0]),
                Err(code) => format!("{code:?}"),
            },
            ["share", bytes, first] => {
                let at = zero.device_memory(bytes.parse().unwrap());
                zero.write(at, &numbers(first.parse().unwrap()));
                let ticket = share(&zero, at).unwrap();
                let text = ticket.hex();
                std::mem::forget(ticket); // it stands as long as this process does
                mine.push(at as usize);
                text
            }
            ["mine", index] => {
                let at = std::ptr::with_exposed_provenance(mine[index.parse::<usize>().unwrap()]);
                format!("{}", zero.read::<u32, 1024>(at)[0])
            }
            ["map", ticket, bytes] => {
                map_and_add(&zero, &hex::decode(ticket).unwrap(), bytes.parse().unwrap())
            }
            ["lie", how] => {
                let lie = lie(&zero, how);
                let text = hex::encode(lie.bytes());
                std::mem::forget(lie); // it stands as long as this process does
                text
            }
            _ => panic!("{line:?} is nothing that is done here"),
        };
        println!("answer {answer}");
    }
    std::mem::forget(zero); // what it shares is not freed
}
/// Opens memory, answers the first and the last number there, and adds one to all.
fn read_and_add(zero: &Zero, ticket: &[u8]) -> String {
    let at = match open(zero, ticket) {
        Ok(at) => at,
        Err(code) => return format!("{code:?}"),
    };
    let found: [u32; 1024] = zero.read(at);
    zero.write(at, &found.map(|number| number + 1));
    assert_eq!(open(zero, ticket), Ok(at), "opens share a mapping");
    assert_eq!(type_of(zero, at), ur_usm_type_t::DEVICE);
    assert_eq!([close(zero, at), close(zero, at)], [R::SUCCESS; 2]);
    assert_eq!(close(zero, at), R::ERROR_INVALID_VALUE);
    format!("{} {}", found[0], found[1023])
}
fn open_physical(zero: &Zero, ticket: &[u8]) -> Result<ur_physical_mem_handle_t, R> {
    let (context, device) = (zero.context, zero.device);
    let (mut memory, bytes) = (ur_physical_mem_handle_t::NULL, ticket.as_ptr().cast());
    let size = ticket.len();
    match call!(ipc_exp.open_phys_mem_handle_exp(context, device, bytes, size, &mut memory)) {
        R::SUCCESS => Ok(memory),
        code => Err(code),
    }
}
/// The same with physical memory, whose handle goes while it is mapped.
fn map_and_add(zero: &Zero, ticket: &[u8], bytes: usize) -> String {
    let memory = match open_physical(zero, ticket) {
        Ok(memory) => memory,
        Err(code) => return format!("{code:?}"),
    };
    let (mut size, mut whose) = (0_usize, ur_sys::ur_device_handle_t::NULL);
    for (name, to) in [
        (PhysicalInfo::SIZE, (&raw mut size).cast::<c_void>()),
        (PhysicalInfo::DEVICE, (&raw mut whose).cast()),
    ] {
        assert_eq!(call!(physical_mem.get_info(memory, name, 8, to, null_mut())), R::SUCCESS);
    }
    assert_eq!((size, whose), (bytes, zero.device));
    let mapped = map(zero, memory, bytes, Access::READ_WRITE);
    assert_eq!(call!(ipc_exp.close_phys_mem_handle_exp(zero.context, memory)), R::SUCCESS);
    let found: [u32; 1024] = zero.read(mapped.at);
    zero.write(mapped.at, &found.map(|number| number + 1));
    unmap(zero, mapped);
    format!("{} {}", found[0], found[1023])
}
/// An export as a hostile process would make it: all is in order but what the driver has to judge.
fn lie(zero: &Zero, how: &str) -> ur_ipc::Export {
    let at = zero.device_memory(4096);
    let tickets = ur_ipc::Importer::<()>::new(ur_ipc::Kind::Memory, Backend::LevelZero as u16);
    let ticket = share(zero, at).unwrap();
    let told = |device| Ok::<_, ur_ipc::Error>(device);
    let (_, device) = tickets.open(ticket.bytes(), told, |_, _| unreachable!()).unwrap();
    drop(ticket);
    let file = |path: &str| Arc::new(std::fs::File::open(path).unwrap().into());
    let driver = |fd, form: u8, rest: usize| ur_ipc::Payload::Driver {
        fd,
        base: 0,
        exposes: 1 << 16,
        bytes: [&[form][..], &vec![0; rest]].concat().into(),
    };
    let bytes = |form: u8, fill: u8, rest: usize| {
        ur_ipc::Payload::Bytes([&[form][..], &vec![fill; rest]].concat().into())
    };
    let payload = match how {
        "other-kind" => driver(file("/dev/null"), 2, 64),
        "other-kind-with-a-handle" => driver(file("/dev/null"), 3, 64),
        "a-file" => driver(file("/proc/self/exe"), 3, 64),
        "physical-form" => driver(file("/dev/null"), 1, 0),
        "no-form" => ur_ipc::Payload::Driver {
            fd: file("/dev/null"),
            base: 0,
            exposes: 1 << 16,
            bytes: [].as_slice().into(),
        },
        "unknown-form" => driver(file("/dev/null"), 9, 64),
        "short-handle" => driver(file("/dev/null"), 2, 63),
        "no-handle" => bytes(4, 0xff, 72),
        "a-zero-handle" => bytes(4, 0, 72),
        "short-bytes" => bytes(4, 0, 1),
        // No lie of its own: but all who say so say it of the same bytes.
        "one-for-all" => {
            static FILE: std::sync::OnceLock<Arc<OwnedFd>> = std::sync::OnceLock::new();
            let fd = FILE.get_or_init(|| {
                let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
                let fd = memfd_create("one-for-all", flags).unwrap();
                rustix::fs::ftruncate(&fd, 1 << 16).unwrap();
                fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW).unwrap();
                Arc::new(fd)
            });
            driver(Arc::clone(fd), 3, 64)
        }
        other => panic!("{other} is no lie"),
    };
    let (kind, backend) = (ur_ipc::Kind::Memory, Backend::LevelZero as u16);
    static OBJECT: AtomicU64 = AtomicU64::new(1 << 40);
    let (object, offset, length, size) = (OBJECT.fetch_add(1, Ordering::Relaxed), 0, 4096, 4096);
    let access = ur_ipc::Access::SameUser;
    ur_ipc::export(ur_ipc::Offer {
        kind,
        backend,
        device,
        object,
        offset,
        length,
        size,
        payload,
        access,
    })
    .unwrap()
}
#[test]
fn what_a_hostile_exporter_sends_is_refused_by_driver_or_us() {
    let Some(zero) = Zero::new() else { return };
    let mut other = Other::new();
    for how in [
        "other-kind",
        "other-kind-with-a-handle",
        "a-file",
        "physical-form",
        "no-form",
        "unknown-form",
        "short-handle",
        "no-handle",
        "a-zero-handle",
        "short-bytes",
    ] {
        let ticket = hex::decode(other.ask(&format!("lie {how}"))).unwrap();
        assert_eq!(open(&zero, &ticket), Err(R::ERROR_INVALID_VALUE), "{how}");
    }
    let at = zero.device_memory(4096);
    crosses(&zero, at); // and all is as it was
    zero.free(at);
}
#[test]
fn a_ticket_with_a_changed_byte_is_refused() {
    let Some(zero) = Zero::new() else { return };
    let at = zero.device_memory(4096);
    let ticket = share(&zero, at).unwrap();
    for changed in 0..ticket.bytes().len() {
        let mut bytes = ticket.bytes().to_vec();
        bytes[changed] ^= 0x40;
        assert!(open(&zero, &bytes).is_err(), "byte {changed}");
    }
    for length in [0, 1, ticket.bytes().len() - 1] {
        assert!(open(&zero, &ticket.bytes()[..length]).is_err(), "{length} bytes");
    }
    drop(ticket);
    zero.free(at);
}
/// Another process reads what is at `at` and writes it; the same here, where it opens as what it is.
fn crosses(zero: &Zero, at: *mut c_void) {
    let ticket = share(zero, at).unwrap();
    zero.write(at, &numbers(100));
    let mut other = Other::new();
    assert_eq!(other.ask(&format!("read-and-add {}", ticket.hex())), "100 1123");
    assert_eq!(zero.read::<u32, 1024>(at), numbers(101));
    assert_eq!(other.ask(&format!("read-and-add {}", ticket.hex())), "101 1124");
    assert_eq!(open(zero, ticket.bytes()), Ok(at));
    assert_eq!(close(zero, at), R::SUCCESS);
}
#[test]
fn memory_crosses_whole_and_from_any_address() {
    let Some(zero) = Zero::new() else { return };
    for (bytes, offset) in [(4096, 0), (8192, 4096), (1 << 20, 512), (40 << 20, 33 << 20)] {
        let at = zero.device_memory(bytes);
        crosses(&zero, at.wrapping_byte_add(offset));
        zero.free(at);
    }
}
#[test]
fn memory_of_a_queues_order_crosses() {
    let Some(zero) = Zero::new() else { return };
    let (queue, mut at, none) = (zero.queue, null_mut(), null_mut());
    let nothing = std::ptr::null();
    let code = call!(enqueue_exp.usm_device_alloc_exp(
        queue,
        NONE,
        8192,
        nothing,
        0,
        std::ptr::null(),
        &mut at,
        none
    ));
    assert_eq!(code, R::SUCCESS);
    crosses(&zero, at);
    let waits = std::ptr::null();
    assert_eq!(call!(enqueue_exp.usm_free_exp(queue, NONE, at, 0, waits, none)), R::SUCCESS);
    zero.finish();
}
#[test]
fn a_ticket_ends_with_its_memory() {
    let Some(zero) = Zero::new() else { return };
    let at = zero.device_memory(4096);
    let ticket = share(&zero, at).unwrap();
    zero.free(at);
    let answer = Other::new().ask(&format!("read-and-add {}", ticket.hex()));
    assert!(answer.contains("INVALID_VALUE"), "{answer}");
    assert_eq!(open(&zero, ticket.bytes()), Err(R::ERROR_INVALID_VALUE));
    assert!(share(&zero, at).is_err());
}
#[test]
fn memory_that_was_freed_stays_with_who_has_it_open_and_is_nobody_elses() {
    let Some(zero) = Zero::new() else { return };
    let at = zero.device_memory(4096);
    zero.write(at, &numbers(7));
    let ticket = share(&zero, at).unwrap();
    let mut other = Other::new();
    assert_eq!(other.ask(&format!("open {}", ticket.hex())), "7");
    zero.free(at);
    for _ in 0..64 {
        let next = zero.device_memory(4096);
        assert_ne!(next, at, "another process has it open");
        zero.write(next, &numbers(0));
        // Never freed while the other lives, so that each is another one.
    }
}
#[test]
fn many_opens_share_one_mapping_and_close_in_any_order() {
    let Some(zero) = Zero::new() else { return };
    let mut other = Other::new();
    let ticket = hex::decode(other.ask("share 8192 30")).unwrap();
    let second = hex::decode(other.ask("share 8192 60")).unwrap();
    let (at, there) = (open(&zero, &ticket).unwrap(), open(&zero, &second).unwrap());
    assert_ne!(at, there);
    for _ in 0..1000 {
        assert_eq!(open(&zero, &ticket), Ok(at));
    }
    assert_eq!(close(&zero, there), R::SUCCESS); // the one that was opened last
    assert_eq!(close(&zero, there), R::ERROR_INVALID_VALUE);
    for left in (0..=1000).rev() {
        assert_eq!(zero.read::<u32, 1024>(at), numbers(30), "{left} opens are left");
        assert_eq!(close(&zero, at), R::SUCCESS);
    }
    assert_eq!(close(&zero, at), R::ERROR_INVALID_VALUE);
    assert_eq!(open(&zero, &second).map(|at| zero.read::<u32, 1024>(at)), Ok(numbers(60)));
}
#[test]
fn opened_memory_is_neither_freed_nor_shared_again() {
    let Some(zero) = Zero::new() else { return };
    let mut other = Other::new();
    let ticket = hex::decode(other.ask("share 4096 1")).unwrap();
    let at = open(&zero, &ticket).unwrap();
    assert_eq!(call!(usm.free(zero.context, at)), R::ERROR_INVALID_MEM_OBJECT);
    assert!(share(&zero, at).is_err());
    assert_eq!(info::<usize>(&zero, at, Info::SIZE), Ok(4096));
    assert_eq!(close(&zero, at), R::SUCCESS);
}
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
/// Drivers that import by descriptor keep one for each import: of a chunk with many allocations there is one import.
#[test]
fn all_that_is_open_of_one_chunk_takes_one_descriptor_of_the_driver() {
    let name = "all_that_is_open_of_one_chunk_takes_one_descriptor_of_the_driver";
    if !is_inside(name, &[("ZE_SOFTWARE_IPC", "xe2-new"), ("ZE_SOFTWARE_IMPORT_FD", "owned")]) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let mut other = Other::new();
    let tickets: Vec<_> = (0..100)
        .map(|n| hex::decode(other.ask(&format!("share 4096 {}", n * 2000))).unwrap())
        .collect();
    let first = open(&zero, &tickets[0]).unwrap();
    // The first command makes what the queue keeps: pools of events have descriptors of their own.
    assert_eq!(zero.read::<u32, 1024>(first), numbers(0));
    let before = descriptors();
    let all: Vec<_> = tickets[1..].iter().map(|ticket| open(&zero, ticket).unwrap()).collect();
    let more = descriptors() - before;
    assert!(more < 10, "{more} descriptors for 99 allocations");
    for (n, at) in (0..).zip([first].iter().chain(&all)) {
        assert_eq!(zero.read::<u32, 1024>(*at), numbers(n * 2000), "the one with number {n}");
    }
    // The one that the driver was asked for first goes first, and the others stay.
    assert_eq!(close(&zero, first), R::SUCCESS);
    for (n, at) in (1..).zip(all) {
        assert_eq!(zero.read::<u32, 1024>(at), numbers(n * 2000));
        assert_eq!(close(&zero, at), R::SUCCESS);
    }
    eventually("the driver lets go of it", || descriptors() < before);
}
/// Two objects of an exporter that have the same bytes are two mappings here: nobody's close ends the other's.
#[test]
fn objects_of_a_hostile_exporter_that_overlap_are_opened_each_by_itself() {
    let name = "objects_of_a_hostile_exporter_that_overlap_are_opened_each_by_itself";
    if !is_inside(name, &[]) {
        return;
    }
    let Some(zero) = Zero::new() else { return };
    let mut other = Other::new();
    let [one, two] = [(); 2].map(|()| hex::decode(other.ask("lie one-for-all")).unwrap());
    let (at, there) = (open(&zero, &one).unwrap(), open(&zero, &two).unwrap());
    assert_ne!(at, there);
    zero.write(at, &numbers(5));
    assert_eq!(zero.read::<u32, 1024>(there), numbers(5));
    assert_eq!(close(&zero, at), R::SUCCESS);
    assert_eq!(zero.read::<u32, 1024>(there), numbers(5));
    assert_eq!(open(&zero, &one).map(|at| close(&zero, at)), Ok(R::SUCCESS));
    assert_eq!(close(&zero, there), R::SUCCESS);
}
/// Tries until it is so, for ten seconds.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < end, "not within ten seconds: {what}");
        std::thread::yield_now();
    }
}
#[test]
fn what_a_killed_exporter_shared_can_be_used_and_closed_but_not_opened() {
    let Some(zero) = Zero::new() else { return };
    let mut other = Other::new();
    let ticket = hex::decode(other.ask("share 1048576 12")).unwrap();
    let at = open(&zero, &ticket).unwrap();
    other.kill();
    assert_eq!(zero.read::<u32, 1024>(at), numbers(12), "the driver keeps what is open");
    zero.write(at, &numbers(13));
    assert_eq!(zero.read::<u32, 1024>(at), numbers(13));
    eventually("the death is known", || open(&zero, &ticket).is_err());
    assert_eq!(close(&zero, at), R::SUCCESS);
    assert!(open(&zero, &ticket).is_err());
    let here = zero.device_memory(4096);
    crosses(&zero, here); // and nothing else is the worse for it
    zero.free(here);
}
#[test]
fn memory_that_a_killed_importer_had_open_is_used_again() {
    let Some(zero) = Zero::new() else { return };
    let at = zero.device_memory(4096);
    zero.write(at, &numbers(70));
    let mut other = Other::new();
    let ticket = share(&zero, at).unwrap();
    assert_eq!(other.ask(&format!("open {}", ticket.hex())), "70");
    drop(ticket);
    zero.free(at);
    other.kill();
    let mut kept = vec![];
    eventually("the address is given again", || {
        let next = zero.device_memory(4096);
        kept.push(next);
        if kept.len() > 4096 {
            kept.drain(..).for_each(|at| zero.free(at));
        }
        next == at
    });
    kept.into_iter().for_each(|at| zero.free(at));
}

fn share_physical(zero: &Zero, memory: ur_physical_mem_handle_t) -> (Vec<u8>, *mut c_void) {
    let (mut data, mut size) = (null_mut(), 0);
    let code = call!(ipc_exp.get_phys_mem_handle_exp(zero.context, memory, &mut data, &mut size));
    assert_eq!(code, R::SUCCESS);
    (unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) }.to_vec(), data)
}
#[test]
fn physical_memory_crosses() {
    let Some(zero) = Zero::new() else { return };
    let bytes = 2 * granule(&zero);
    let memory = physical(&zero, bytes);
    let mapped = map(&zero, memory, bytes, Access::READ_WRITE);
    zero.write(mapped.at, &numbers(40));
    let (ticket, data) = share_physical(&zero, memory);
    let mut other = Other::new();
    let answer = other.ask(&format!("map {} {bytes}", hex::encode(&ticket)));
    assert_eq!(answer, "40 1063");
    assert_eq!(zero.read::<u32, 1024>(mapped.at), numbers(41));
    // Here it is another handle of the same memory, without the driver.
    let again = open_physical(&zero, &ticket).unwrap();
    let twice = map(&zero, again, bytes, Access::READ_ONLY);
    assert_eq!(zero.read::<u32, 1024>(twice.at), numbers(41));
    unmap(&zero, twice);
    assert_eq!(call!(ipc_exp.close_phys_mem_handle_exp(zero.context, again)), R::SUCCESS);
    assert_eq!(call!(ipc_exp.put_phys_mem_handle_exp(zero.context, data)), R::SUCCESS);
    unmap(&zero, mapped);
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
    let answer = other.ask(&format!("map {} {bytes}", hex::encode(&ticket)));
    assert!(answer.contains("INVALID"), "{answer}");
}

/// Works with the driver itself, as a library in the same process does, in the same context.
fn beside<T>(zero: &Zero, work: impl FnOnce(&driver::Driver, RawContext, RawDevice) -> T) -> T {
    let context = RawContext::from_addr(zero.native()).unwrap();
    let device = RawDevice::from_addr(zero.native_device()).unwrap();
    work(driver::driver(), context, device)
}
#[test]
fn what_a_library_allocated_crosses_until_it_is_freed() {
    let Some(zero) = Zero::new() else { return };
    let mut at = null_mut();
    beside(&zero, |driver, context, device| {
        let desc = ze_sys::ze_device_mem_alloc_desc_t {
            stype: ze_sys::ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
            ..Default::default()
        };
        let made = unsafe { driver.mem_alloc_device(context, &desc, 4 << 20, 0, device, &mut at) };
        assert_eq!(made.status(), Some(0));
    });
    assert_eq!(type_of(&zero, at), ur_usm_type_t::DEVICE);
    crosses(&zero, at.wrapping_byte_add(1 << 20));
    let ticket = share(&zero, at).unwrap();
    beside(&zero, |driver, context, _| {
        assert_eq!(unsafe { driver.mem_free(context, at) }.status(), Some(0));
    });
    assert_eq!(open(&zero, ticket.bytes()), Err(R::ERROR_INVALID_VALUE), "it was freed");
    assert!(share(&zero, at).is_err());
}

#[test]
fn processes_that_see_other_devices_share_what_both_see() {
    let name = "processes_that_see_other_devices_share_what_both_see";
    if !is_inside(name, &[("ZE_SOFTWARE_DEVICES", "2")]) {
        return;
    }
    let [Some(first), Some(second)] = [0, 1].map(Zero::of) else { panic!("there are two") };
    let all = [&first, &second].map(|zero| (zero, zero.device_memory(4096)));
    for (number, (zero, at)) in (40..).zip(all) {
        zero.write(at, &numbers(number));
    }
    // The other's only device is our second.
    let mut other = Other::with(&[("ZE_AFFINITY_MASK", "1")]);
    let [hidden, seen] = all.map(|(zero, at)| share(zero, at).unwrap());
    assert_eq!(other.ask(&format!("open {}", seen.hex())), "41");
    assert!(
        other.ask(&format!("open {}", hidden.hex())).contains("ERROR"),
        "a device it does not see"
    );
    drop((hidden, seen));
    all.into_iter().for_each(|(zero, at)| zero.free(at));
}
