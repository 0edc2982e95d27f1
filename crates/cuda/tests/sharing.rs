//! Memory across processes: this very binary, run again, is the other process. On whatever driver of CUDA there is;
//! without a device the tests say so and are skipped.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod c;
#[path = "c/usm.rs"]
mod usm;

use c::*;
use std::{
    ffi::c_void,
    io::{BufRead, BufReader, Write},
    os::fd::{FromRawFd, OwnedFd},
    process::{Child, Command, Stdio},
    ptr::{null, null_mut},
    sync::Arc,
};
use ur_adapter::object::Backend;
use ur_adapters::cuda_family::driver::{self, Dialect, RawContext};
use ur_sys::{
    ur_native_handle_t, ur_physical_mem_handle_t, ur_result_t as R, ur_usm_alloc_info_t as Info,
    ur_usm_type_t, ur_virtual_mem_access_flags_t as Access,
};
use usm::*;

/// A ticket, given up when it is dropped.
struct Ticket<'c>(&'c Cuda, *mut c_void, usize);
fn share(cuda: &Cuda, at: *mut c_void) -> Result<Ticket<'_>, R> {
    let (mut bytes, mut size) = (null_mut(), 0);
    match call!(ipc_exp.get_mem_handle_exp(cuda.context, at, &mut bytes, &mut size)) {
        R::SUCCESS => Ok(Ticket(cuda, bytes, size)),
        code => Err(code),
    }
}
impl Ticket<'_> {
    fn bytes(&self) -> &[u8] {
        unsafe { std::slice::from_raw_parts(self.1.cast(), self.2) }
    }
    fn hex(&self) -> String {
        self.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        assert_eq!(call!(ipc_exp.put_mem_handle_exp(self.0.context, self.1)), R::SUCCESS);
    }
}
fn open(cuda: &Cuda, ticket: &[u8]) -> Result<*mut c_void, R> {
    let (mut at, bytes) = (null_mut(), ticket.as_ptr().cast_mut().cast());
    match call!(ipc_exp.open_mem_handle_exp(
        cuda.context,
        cuda.device,
        bytes,
        ticket.len(),
        &mut at
    )) {
        R::SUCCESS => Ok(at),
        code => Err(code),
    }
}
fn unhex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

/// The other process: opens what it is told to, answers the first number there, and adds one to all.
struct Other(Child, BufReader<std::process::ChildStdout>);
impl Other {
    fn new() -> Self {
        Self::with("CAUSEWAY_ROLE", "importer")
    }
    /// With one variable more in its environment.
    fn with(name: &str, value: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "role", "--nocapture"])
            .env("CAUSEWAY_ROLE", "importer")
            .env(name, value);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self(child, out)
    }
    fn ask(&mut self, what: &str) -> String {
        writeln!(self.0.stdin.as_mut().unwrap(), "{what}").unwrap();
        let answer = |line: String| line.split_once("answer ").map(|(_, text)| text.to_owned());
        let lines = (&mut self.1).lines().map(Result::unwrap);
        lines.into_iter().find_map(answer).expect("the other process answers")
    }
}
impl Drop for Other {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let ended = self.0.wait().unwrap();
        assert!(std::thread::panicking() || ended.success());
    }
}
#[test]
fn role() {
    if std::env::var_os("CAUSEWAY_ROLE").is_none() {
        return; // nobody's other process
    }
    let cuda = Cuda::new().expect("there is a device: the other process has it");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<_> = line.split(' ').collect();
        match *words {
            ["open", ticket] => match open(&cuda, &unhex(ticket)) {
                Ok(at) => {
                    let found: [u32; 1024] = cuda.read(at);
                    cuda.write(at, &found.map(|number| number + 1));
                    assert_eq!(open(&cuda, &unhex(ticket)), Ok(at), "opens share a mapping");
                    for _ in 0..2 {
                        let code = call!(ipc_exp.close_mem_handle_exp(cuda.context, at));
                        assert_eq!(code, R::SUCCESS);
                    }
                    let code = call!(ipc_exp.close_mem_handle_exp(cuda.context, at));
                    assert_eq!(code, R::ERROR_INVALID_VALUE);
                    println!("answer {} {}", found[0], found[1023]);
                }
                Err(code) => println!("answer {code:?}"),
            },
            ["open-for", number, ticket] => println!("answer {}", open_for(number, &unhex(ticket))),
            ["map", ticket, bytes] => {
                let (ticket, bytes) = (unhex(ticket), bytes.parse().unwrap());
                let mut memory = ur_physical_mem_handle_t::NULL;
                let code = call!(ipc_exp.open_phys_mem_handle_exp(
                    cuda.context,
                    cuda.device,
                    ticket.as_ptr().cast(),
                    ticket.len(),
                    &mut memory
                ));
                assert_eq!(code, R::SUCCESS);
                let mapped = map(&cuda, memory, bytes, Access::READ_WRITE);
                let code = call!(ipc_exp.close_phys_mem_handle_exp(cuda.context, memory));
                assert_eq!(code, R::SUCCESS);
                let found: [u32; 1024] = cuda.read(mapped.at);
                cuda.write(mapped.at, &found.map(|number| number + 1));
                unmap(&cuda, mapped);
                println!("answer {} {}", found[0], found[1023]);
            }
            ["lie", how] => {
                let lie = lie(&cuda, how);
                let hex: String = lie.bytes().iter().map(|b| format!("{b:02x}")).collect();
                println!("answer {hex}");
                std::mem::forget(lie); // it stands as long as this process does
            }
            _ => panic!("{line:?} is nothing that is done here"),
        }
    }
}
/// Opens a ticket for the device with that number in this process, in a context of its own.
fn open_for(number: &str, ticket: &[u8]) -> String {
    let number: usize = number.parse().unwrap();
    let Some(cuda) = Cuda::of(number) else { return "none".into() };
    match open(&cuda, ticket) {
        Ok(at) => {
            let found: [u32; 1024] = cuda.read(at);
            let code = call!(ipc_exp.close_mem_handle_exp(cuda.context, at));
            assert_eq!(code, R::SUCCESS);
            format!("{} {}", found[0], found[1023])
        }
        Err(_) => ur_adapter::error::last_error().unwrap_or_default(),
    }
}
#[test]
fn another_device_opens_by_peer_access_or_says_that_there_is_none() {
    let Some(cuda) = Cuda::new() else { return };
    let at = cuda.device_memory(4096);
    cuda.write(at, &numbers(60));
    let ticket = share(&cuda, at).unwrap();
    let mut others = vec![Other::new()];
    if Cuda::of(1).is_some() {
        // In another order there: devices are told by what they are, and not by their number.
        others.push(Other::with("CUDA_VISIBLE_DEVICES", "1,0"));
    }
    for mut other in others {
        for number in [0, 1] {
            let answer = other.ask(&format!("open-for {number} {}", ticket.hex()));
            match &*answer {
                "60 1083" => {}
                "none" => println!("skipped: there is no second device"),
                why => assert!(why.contains("no peer access"), "{why}"),
            }
        }
    }
    drop(ticket);
    cuda.free(at);
}
/// An export as a hostile process would make it: all is in order but what the driver has to judge.
fn lie(cuda: &Cuda, how: &str) -> ur_ipc::Export {
    let at = cuda.device_memory(4096);
    let device = ur_ipc::device_of(share(cuda, at).unwrap().bytes().try_into().unwrap());
    let file = |path: &str| Arc::new(std::fs::File::open(path).unwrap().into());
    let driver = |fd, exposes, bytes: &[u8]| ur_ipc::Payload::Driver {
        fd,
        base: 0,
        exposes,
        bytes: bytes.into(),
    };
    let granule = granule(cuda) as u64;
    let payload = match how {
        "other-kind" => driver(file("/dev/null"), granule, &[1]),
        "other-kind-as-pool" => {
            driver(file("/dev/null"), granule, &[[2].as_slice(), &[0; 64]].concat())
        }
        "a-file" => driver(file("/proc/self/exe"), granule, &[1]),
        "no-form" => driver(file("/dev/null"), granule, &[]),
        "unknown-form" => driver(file("/dev/null"), granule, &[9, 9]),
        "odd-length" => driver(file("/dev/null"), granule + 1, &[1]),
        "no-length" => driver(file("/dev/null"), u64::MAX, &[1]),
        "no-handle" => ur_ipc::Payload::Bytes(vec![0xff; 73].into()),
        "a-zero-handle" => ur_ipc::Payload::Bytes([[3].as_slice(), &[0; 72]].concat().into()),
        "short-bytes" => ur_ipc::Payload::Bytes([3, 0].as_slice().into()),
        "larger" => {
            let (mut fd, mut handle) = (-1_i32, 0);
            let properties = driver::layout::AllocationProp {
                handle_types: 1,
                location: driver::layout::Location { kind: 1, id: 0 },
                ..Default::default()
            };
            beside(cuda, |driver| unsafe {
                let made = driver.physical_create(&mut handle, granule as usize, &properties, 0);
                assert_eq!(made.status(), Some(0));
                let made = driver.physical_export((&raw mut fd).cast(), handle, 1, 0);
                assert_eq!(made.status(), Some(0));
            });
            driver(Arc::new(unsafe { OwnedFd::from_raw_fd(fd) }), 4 * granule, &[1])
        }
        other => panic!("{other} is no lie"),
    };
    let (kind, backend) = (ur_ipc::Kind::Memory, Backend::Cuda as u16);
    let (object, offset, length, size) = (1 << 40, 0, 4096, 4096);
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
    let Some(cuda) = Cuda::new() else { return };
    let mut other = Other::new();
    for how in [
        "other-kind",
        "other-kind-as-pool",
        "a-file",
        "no-form",
        "unknown-form",
        "odd-length",
        "no-length",
        "no-handle",
        "a-zero-handle",
        "short-bytes",
        "larger",
    ] {
        let ticket = unhex(&other.ask(&format!("lie {how}")));
        assert_eq!(open(&cuda, &ticket), Err(R::ERROR_INVALID_VALUE), "{how}");
    }
    let at = cuda.device_memory(4096);
    crosses(&cuda, at); // and all is as it was
    cuda.free(at);
}
/// Another process reads what is at `at` and writes it; the same here, where it opens as what it is.
fn crosses(cuda: &Cuda, at: *mut c_void) {
    let ticket = share(cuda, at).unwrap();
    cuda.write(at, &numbers(100));
    let mut other = Other::new();
    assert_eq!(other.ask(&format!("open {}", ticket.hex())), "100 1123");
    assert_eq!(cuda.read::<u32, 1024>(at), numbers(101));
    assert_eq!(other.ask(&format!("open {}", ticket.hex())), "101 1124");
    assert_eq!(open(cuda, ticket.bytes()), Ok(at));
    assert_eq!(call!(ipc_exp.close_mem_handle_exp(cuda.context, at)), R::SUCCESS);
}

#[test]
fn memory_crosses_whole_and_from_any_address() {
    let Some(cuda) = Cuda::new() else { return };
    for (bytes, offset) in [(4096, 0), (8192, 4096), (1 << 20, 512), (40 << 20, 33 << 20)] {
        let at = cuda.device_memory(bytes);
        crosses(&cuda, at.wrapping_byte_add(offset));
        cuda.free(at);
    }
}
#[test]
fn memory_of_a_queues_order_crosses() {
    let Some(cuda) = Cuda::new() else { return };
    let (queue, mut at) = (cuda.queue, null_mut());
    let code = call!(enqueue_exp.usm_device_alloc_exp(
        queue,
        NONE,
        8192,
        null(),
        0,
        null(),
        &mut at,
        null_mut()
    ));
    assert_eq!(code, R::SUCCESS);
    crosses(&cuda, at);
    assert_eq!(call!(enqueue_exp.usm_free_exp(queue, NONE, at, 0, null(), null_mut())), R::SUCCESS);
}
#[test]
fn a_ticket_ends_with_its_memory() {
    let Some(cuda) = Cuda::new() else { return };
    let at = cuda.device_memory(4096);
    let ticket = share(&cuda, at).unwrap();
    cuda.free(at);
    let answer = Other::new().ask(&format!("open {}", ticket.hex()));
    assert!(answer.contains("INVALID_VALUE"), "{answer}");
    assert_eq!(open(&cuda, ticket.bytes()), Err(R::ERROR_INVALID_VALUE));
    assert!(share(&cuda, at).is_err());
}
#[test]
fn physical_memory_crosses() {
    let Some(cuda) = Cuda::new() else { return };
    let bytes = 2 * granule(&cuda);
    let memory = physical(&cuda, bytes);
    let mapped = map(&cuda, memory, bytes, Access::READ_WRITE);
    cuda.write(mapped.at, &numbers(40));
    let (mut data, mut size) = (null_mut(), 0);
    let code = call!(ipc_exp.get_phys_mem_handle_exp(cuda.context, memory, &mut data, &mut size));
    assert_eq!(code, R::SUCCESS);
    let hex = |at| format!("{:02x}", unsafe { data.cast::<u8>().add(at).read() });
    let ticket: String = (0..size).map(hex).collect();
    assert_eq!(Other::new().ask(&format!("map {ticket} {bytes}")), "40 1063");
    assert_eq!(cuda.read::<u32, 1024>(mapped.at), numbers(41));
    assert_eq!(call!(ipc_exp.put_phys_mem_handle_exp(cuda.context, data)), R::SUCCESS);
    unmap(&cuda, mapped);
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
}

/// Works with the driver itself, as a library in the same process does, in the same primary context.
fn beside<T>(cuda: &Cuda, work: impl FnOnce(&driver::Driver) -> T) -> T {
    let mut native: ur_native_handle_t = 0;
    assert_eq!(call!(context.get_native_handle(cuda.context, &mut native)), R::SUCCESS);
    let driver = driver::Cuda::driver();
    let context = RawContext::from_addr(native).unwrap();
    assert_eq!(unsafe { driver.context_push(context) }.status(), Some(0));
    let result = work(driver);
    let mut popped = None;
    assert_eq!(unsafe { driver.context_pop(&mut popped) }.status(), Some(0));
    result
}
#[test]
fn what_a_library_allocated_crosses_by_the_drivers_old_handle() {
    let Some(cuda) = Cuda::new() else { return };
    let mut at = 0_u64;
    let made = beside(&cuda, |driver| unsafe { driver.alloc(&mut at, 4 << 20) }.status());
    assert_eq!(made, Some(0));
    let pointer = std::ptr::with_exposed_provenance_mut::<c_void>(at as usize);
    assert_eq!(type_of(&cuda, pointer), ur_usm_type_t::DEVICE);
    crosses(&cuda, pointer.wrapping_byte_add(1 << 20));
    let ticket = share(&cuda, pointer).unwrap();
    beside(&cuda, |driver| assert_eq!(unsafe { driver.free(at) }.status(), Some(0)));
    assert_eq!(open(&cuda, ticket.bytes()), Err(R::ERROR_INVALID_VALUE), "it was freed");
    assert!(share(&cuda, pointer).is_err());
}
/// Virtual memory of a library's, of two granules.
fn mapped_beside(cuda: &Cuda, handle_types: i32) -> u64 {
    let bytes = 2 * granule(cuda);
    let location = driver::layout::Location { kind: 1, id: 0 };
    let properties =
        driver::layout::AllocationProp { handle_types, location, ..Default::default() };
    let access = driver::layout::AccessDesc { location, flags: 3 };
    let (mut at, mut handle) = (0_u64, 0_u64);
    beside(cuda, |driver| unsafe {
        let made = driver.physical_create(&mut handle, bytes, &properties, 0);
        assert_eq!(made.status(), Some(0));
        assert_eq!(driver.address_reserve(&mut at, 8 * bytes, 0, 0, 0).status(), Some(0));
        at += bytes as u64; // not where the reservation begins
        assert_eq!(driver.physical_map(at, bytes, 0, handle, 0).status(), Some(0));
        assert_eq!(driver.set_access(at, bytes, &access, 1).status(), Some(0));
        assert_eq!(driver.physical_release(handle).status(), Some(0));
    });
    at
}
#[test]
fn what_a_library_mapped_crosses_by_its_own_descriptor() {
    let Some(cuda) = Cuda::new() else { return };
    let at = mapped_beside(&cuda, 1);
    let pointer = std::ptr::with_exposed_provenance_mut::<c_void>(at as usize + 4096);
    assert_eq!(info::<usize>(&cuda, pointer, Info::BASE_PTR), Ok(at as usize));
    assert_eq!(info::<usize>(&cuda, pointer, Info::SIZE), Ok(2 * granule(&cuda)));
    crosses(&cuda, pointer);
}
#[test]
fn what_a_library_mapped_without_handle_types_is_refused_with_a_reason() {
    let Some(cuda) = Cuda::new() else { return };
    let at = mapped_beside(&cuda, 0);
    let pointer = std::ptr::with_exposed_provenance_mut::<c_void>(at as usize);
    assert_eq!(share(&cuda, pointer).err(), Some(R::ERROR_INVALID_VALUE));
    let why = ur_adapter::error::last_error().unwrap_or_default();
    assert!(why.contains("expandable_segments"), "{why}");
}
#[test]
fn what_a_library_has_from_a_pool_of_its_own_is_refused_with_a_reason() {
    let Some(cuda) = Cuda::new() else { return };
    let mut at = 0_u64;
    beside(&cuda, |driver| {
        let mut pool = None;
        assert_eq!(unsafe { driver.pool_default(&mut pool, 0) }.status(), Some(0));
        let made = unsafe { driver.pool_alloc(&mut at, 4096, pool.unwrap(), None) };
        assert_eq!(made.status(), Some(0));
    });
    let pointer = std::ptr::with_exposed_provenance_mut::<c_void>(at as usize);
    assert_eq!(share(&cuda, pointer).err(), Some(R::ERROR_INVALID_VALUE));
    let why = ur_adapter::error::last_error().unwrap_or_default();
    assert!(why.contains("POSIX handle types"), "{why}");
    beside(&cuda, |driver| assert_eq!(unsafe { driver.free(at) }.status(), Some(0)));
}
