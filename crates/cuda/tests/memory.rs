//! Memory as a C program has it, and across processes: this very binary, run again, is the other process. On
//! whatever driver of CUDA there is; without a device the tests say so and are skipped.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod c;

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
    ur_native_handle_t, ur_physical_mem_flags_t, ur_physical_mem_handle_t,
    ur_physical_mem_properties_t, ur_queue_handle_t, ur_result_t as R, ur_structure_type_t,
    ur_usm_alloc_info_t as Info, ur_usm_pool_desc_t, ur_usm_pool_flags_t, ur_usm_pool_handle_t,
    ur_usm_pool_info_t, ur_usm_type_t, ur_virtual_mem_access_flags_t as Access,
    ur_virtual_mem_granularity_info_t,
};

const NONE: ur_usm_pool_handle_t = ur_usm_pool_handle_t::NULL;

fn info<T: Copy + Default>(cuda: &Cuda, at: *const c_void, name: Info) -> Result<T, R> {
    let mut value = T::default();
    let (bytes, to) = (size_of::<T>(), (&raw mut value).cast());
    match call!(usm.get_mem_alloc_info(cuda.context, at, name, bytes, to, null_mut())) {
        R::SUCCESS => Ok(value),
        code => Err(code),
    }
}
fn type_of(cuda: &Cuda, at: *const c_void) -> ur_usm_type_t {
    ur_usm_type_t(info(cuda, at, Info::TYPE).unwrap())
}
fn numbers(seed: u32) -> [u32; 1024] {
    std::array::from_fn(|n| seed + n as u32)
}
fn alloc(cuda: &Cuda, bytes: usize) -> Result<*mut c_void, R> {
    let mut at = null_mut();
    match call!(usm.device_alloc(cuda.context, cuda.device, null(), NONE, bytes, &mut at)) {
        R::SUCCESS => Ok(at),
        code => Err(code),
    }
}

#[test]
fn every_address_of_an_allocation_tells_whose_it_is() {
    let Some(cuda) = Cuda::new() else { return };
    for bytes in [1, 4096, 1 << 20, 3 << 20, (64 << 20) + 1] {
        let at = cuda.device_memory(bytes);
        let last = at.wrapping_byte_add(bytes - 1);
        assert_eq!(type_of(&cuda, last), ur_usm_type_t::DEVICE);
        assert_eq!(info::<usize>(&cuda, last, Info::BASE_PTR), Ok(at.addr()));
        assert_eq!(info::<usize>(&cuda, last, Info::SIZE), Ok(bytes));
        assert_eq!(info::<usize>(&cuda, last, Info::DEVICE), Ok(cuda.device.0.addr()));
        assert_eq!(
            call!(usm.free(cuda.context, at.wrapping_byte_add(1))),
            R::ERROR_INVALID_MEM_OBJECT
        );
        cuda.free(at);
        assert_eq!(type_of(&cuda, last), ur_usm_type_t::UNKNOWN);
        assert_eq!(call!(usm.free(cuda.context, at)), R::ERROR_INVALID_MEM_OBJECT);
    }
    assert_eq!(alloc(&cuda, 0), Err(R::ERROR_INVALID_USM_SIZE));
    assert_eq!(alloc(&cuda, usize::MAX), Err(R::ERROR_INVALID_USM_SIZE));
}
#[test]
fn host_memory_is_the_hosts_too() {
    let Some(cuda) = Cuda::new() else { return };
    let (mut at, on_device) = (null_mut(), cuda.device_memory(4096));
    assert_eq!(call!(usm.host_alloc(cuda.context, null(), NONE, 4096, &mut at)), R::SUCCESS);
    assert_eq!(type_of(&cuda, at), ur_usm_type_t::HOST);
    cuda.write(on_device, &numbers(7));
    cuda.write(at, &cuda.read::<u32, 1024>(on_device));
    assert_eq!(unsafe { at.cast::<[u32; 1024]>().read() }, numbers(7));
    cuda.free(at);
    cuda.free(on_device);
}
#[test]
fn freed_memory_is_used_again_and_what_a_pool_holds_is_counted() {
    let Some(cuda) = Cuda::new() else { return };
    let (stype, flags) = (ur_structure_type_t::USM_POOL_DESC, ur_usm_pool_flags_t::default());
    let mut desc = ur_usm_pool_desc_t { stype, pNext: null(), flags };
    let mut pool = NONE;
    assert_eq!(call!(usm.pool_create(cuda.context, &mut desc, &mut pool)), R::SUCCESS);
    let used = || {
        let (name, mut bytes) = (ur_usm_pool_info_t::USED_CURRENT_EXP, 0_usize);
        let to = (&raw mut bytes).cast();
        assert_eq!(call!(usm.pool_get_info(pool, name, 8, to, null_mut())), R::SUCCESS);
        bytes
    };
    let mut first = null_mut();
    for round in 0..100 {
        let mut at = null_mut();
        let code =
            call!(usm.device_alloc(cuda.context, cuda.device, null(), pool, 1 << 20, &mut at));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(used(), 1 << 20);
        first = if round == 0 { at } else { first };
        assert_eq!(at, first, "nothing uses it: it is the same again");
        cuda.free(at);
        assert_eq!(used(), 0);
    }
    assert_eq!(call!(usm.pool_release(pool)), R::SUCCESS);
}
#[test]
fn memory_comes_and_goes_in_a_queues_order() {
    let Some(cuda) = Cuda::new() else { return };
    let (queue, mut at) = (cuda.queue, null_mut());
    for _ in 0..10 {
        let code = call!(enqueue_exp.usm_device_alloc_exp(
            queue,
            NONE,
            4096,
            null(),
            0,
            null(),
            &mut at,
            null_mut()
        ));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(type_of(&cuda, at), ur_usm_type_t::DEVICE);
        cuda.write(at, &numbers(3));
        assert_eq!(cuda.read::<u32, 1024>(at), numbers(3));
        let code = call!(enqueue_exp.usm_free_exp(queue, NONE, at, 0, null(), null_mut()));
        assert_eq!(code, R::SUCCESS);
        assert_eq!(type_of(&cuda, at), ur_usm_type_t::UNKNOWN);
    }
    assert_eq!(call!(queue.finish(queue)), R::SUCCESS);
    assert_ne!(queue, ur_queue_handle_t::NULL);
}
#[test]
fn registered_host_memory_is_known_until_it_is_not() {
    let Some(cuda) = Cuda::new() else { return };
    let mut memory = vec![0_u32; 1 << 16];
    let (at, bytes) = (memory.as_mut_ptr().cast::<c_void>(), 4 << 16);
    let register = || call!(usm_exp.host_alloc_register_exp(cuda.context, at, bytes, null()));
    assert_eq!(register(), R::SUCCESS);
    assert_eq!(register(), R::ERROR_INVALID_VALUE);
    assert_eq!(type_of(&cuda, at.wrapping_byte_add(100)), ur_usm_type_t::HOST);
    assert_eq!(call!(usm_exp.host_alloc_unregister_exp(cuda.context, at)), R::SUCCESS);
    assert_eq!(call!(usm_exp.host_alloc_unregister_exp(cuda.context, at)), R::ERROR_INVALID_VALUE);
    assert_eq!(type_of(&cuda, at), ur_usm_type_t::UNKNOWN);
}

struct Virtual {
    at: *mut c_void,
    bytes: usize,
}
fn granule(cuda: &Cuda) -> usize {
    let (mut bytes, name) = (0_usize, ur_virtual_mem_granularity_info_t::MINIMUM);
    let to = (&raw mut bytes).cast();
    let code = call!(virtual_mem.granularity_get_info(
        cuda.context,
        cuda.device,
        1,
        name,
        8,
        to,
        null_mut()
    ));
    assert_eq!(code, R::SUCCESS);
    bytes
}
fn physical(cuda: &Cuda, bytes: usize) -> ur_physical_mem_handle_t {
    let properties = ur_physical_mem_properties_t {
        stype: ur_structure_type_t::PHYSICAL_MEM_PROPERTIES,
        pNext: null_mut(),
        flags: ur_physical_mem_flags_t::ENABLE_IPC,
    };
    let mut memory = ur_physical_mem_handle_t::NULL;
    let code =
        call!(physical_mem.create(cuda.context, cuda.device, bytes, &properties, &mut memory));
    assert_eq!(code, R::SUCCESS);
    memory
}
fn map(cuda: &Cuda, memory: ur_physical_mem_handle_t, bytes: usize, access: Access) -> Virtual {
    let mut at = null_mut();
    assert_eq!(call!(virtual_mem.reserve(cuda.context, null(), bytes, &mut at)), R::SUCCESS);
    assert_eq!(call!(virtual_mem.map(cuda.context, at, bytes, memory, 0, access)), R::SUCCESS);
    Virtual { at, bytes }
}
fn unmap(cuda: &Cuda, Virtual { at, bytes }: Virtual) {
    assert_eq!(call!(virtual_mem.free(cuda.context, at, bytes)), R::ERROR_INVALID_VALUE);
    assert_eq!(call!(virtual_mem.unmap(cuda.context, at, bytes)), R::SUCCESS);
    assert_eq!(call!(virtual_mem.free(cuda.context, at, bytes)), R::SUCCESS);
}

#[test]
fn two_mappings_of_one_memory_show_the_same() {
    let Some(cuda) = Cuda::new() else { return };
    let bytes = 2 * granule(&cuda);
    let memory = physical(&cuda, bytes);
    let (one, other) = (
        map(&cuda, memory, bytes, Access::READ_WRITE),
        map(&cuda, memory, bytes, Access::READ_WRITE),
    );
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
    cuda.write(one.at, &numbers(11));
    assert_eq!(cuda.read::<u32, 1024>(other.at), numbers(11));
    let half = bytes / 2;
    assert_eq!(call!(virtual_mem.unmap(cuda.context, one.at, half)), R::ERROR_INVALID_VALUE);
    let code = call!(virtual_mem.set_access(cuda.context, one.at, bytes, Access::READ_ONLY));
    assert_eq!(code, R::SUCCESS);
    assert_eq!(cuda.read::<u32, 1024>(one.at), numbers(11));
    unmap(&cuda, one);
    assert_eq!(cuda.read::<u32, 1024>(other.at), numbers(11));
    unmap(&cuda, other);
}
#[test]
fn an_offset_that_the_driver_does_not_take_is_said_to_be_unsupported() {
    let Some(cuda) = Cuda::new() else { return };
    let granule = granule(&cuda);
    let (memory, mut at) = (physical(&cuda, 2 * granule), null_mut());
    assert_eq!(call!(virtual_mem.reserve(cuda.context, null(), granule, &mut at)), R::SUCCESS);
    for offset in [granule, 0] {
        let (context, access) = (cuda.context, Access::READ_WRITE);
        match call!(virtual_mem.map(context, at, granule, memory, offset, access)) {
            R::SUCCESS => {
                assert_eq!(call!(virtual_mem.unmap(context, at, granule)), R::SUCCESS);
            }
            code => assert_eq!(code, R::ERROR_UNSUPPORTED_FEATURE),
        }
    }
    let past =
        call!(virtual_mem.map(cuda.context, at, granule, memory, 2 * granule, Access::READ_WRITE));
    assert_eq!(past, R::ERROR_INVALID_VALUE);
    assert_eq!(call!(virtual_mem.free(cuda.context, at, granule)), R::SUCCESS);
    assert_eq!(call!(physical_mem.release(memory)), R::SUCCESS);
}

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
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "role", "--nocapture"]).env("CAUSEWAY_ROLE", "importer");
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
    let context = RawContext::from_addr(native as usize).unwrap();
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
