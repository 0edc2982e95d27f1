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
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};
use ur_adapter::object::Backend;
use ur_cuda::driver::{self, Dialect, RawContext};
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
        hex::encode(self.bytes())
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
            ["open", ticket] => match open(&cuda, &hex::decode(ticket).unwrap()) {
                Ok(at) => {
                    let found: [u32; 1024] = cuda.read(at);
                    cuda.write(at, &found.map(|number| number + 1));
                    assert_eq!(
                        open(&cuda, &hex::decode(ticket).unwrap()),
                        Ok(at),
                        "opens share a mapping"
                    );
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
            ["open-for", number, ticket] => {
                println!("answer {}", open_for(number, &hex::decode(ticket).unwrap()))
            }
            ["open-behind-a-gate", ticket] => {
                close_gate(&cuda);
                let opened = open(&cuda, &hex::decode(ticket).unwrap()).unwrap();
                let code = call!(ipc_exp.close_mem_handle_exp(cuda.context, opened));
                assert_eq!(code, R::SUCCESS);
                let is_first = !GATE.swap(true, SeqCst);
                assert_eq!(call!(queue.finish(cuda.queue)), R::SUCCESS);
                println!("answer {}", if is_first { "no wait" } else { "waited for the gate" });
            }
            ["map", ticket, bytes] => {
                let (ticket, bytes) = (hex::decode(ticket).unwrap(), bytes.parse().unwrap());
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
                println!("answer {}", hex::encode(lie.bytes()));
                std::mem::forget(lie); // it stands as long as this process does
            }
            _ => panic!("{line:?} is nothing that is done here"),
        }
    }
}
/// Whether the gate is open.
static GATE: AtomicBool = AtomicBool::new(false);
/// The queue stands still until the gate opens, or for half a minute: then it opens by itself.
fn close_gate(cuda: &Cuda) {
    unsafe extern "C" fn stand(_: *mut c_void) {
        let begun = std::time::Instant::now();
        while !GATE.load(SeqCst) {
            if begun.elapsed() > std::time::Duration::from_secs(30) {
                GATE.store(true, SeqCst);
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    let (queue, none) = (cuda.queue, null_mut());
    let code =
        call!(enqueue_exp.host_task_exp(queue, Some(stand), none, null(), 0, null(), null_mut()));
    assert_eq!(code, R::SUCCESS);
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
#[test]
fn memory_of_a_device_that_the_importer_does_not_see_is_opened_or_refused_with_its_name() {
    let Some(cuda) = Cuda::new() else { return };
    if Cuda::of(1).is_none() {
        return println!("skipped: it takes 2 devices to hide one");
    }
    let at = cuda.device_memory(4096);
    cuda.write(at, &numbers(60));
    let ticket = share(&cuda, at).unwrap();
    let answer =
        Other::with("CUDA_VISIBLE_DEVICES", "1").ask(&format!("open-for 0 {}", ticket.hex()));
    println!("the driver's answer for a device that is not seen: {answer}");
    let says_why = answer.contains("GPU-") && answer.contains("CUDA_VISIBLE_DEVICES");
    assert!(answer == "60 1083" || says_why, "{answer}");
    drop(ticket);
    cuda.free(at);
}
/// An export as a hostile process would make it: all is in order but what the driver has to judge.
fn lie(cuda: &Cuda, how: &str) -> ur_ipc::Export {
    let at = cuda.device_memory(4096);
    let tickets = ur_ipc::Importer::<()>::new(ur_ipc::Kind::Memory, Backend::Cuda as u16);
    let ticket = share(cuda, at).unwrap();
    let told = |device| Ok::<_, ur_ipc::Error>(device);
    let (_, device) = tickets.open(ticket.bytes(), told, |_, _| unreachable!()).unwrap();
    drop(ticket);
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
        "beyond-the-handle" | "far-beyond-the-handle" => {
            let (mut at, mut handle) = (0, [0_u8; 64]);
            beside(cuda, |driver| unsafe {
                assert_eq!(driver.alloc(&mut at, 4 << 20).status(), Some(0));
                assert_eq!(driver.ipc_get_memory(&raw mut handle, at).status(), Some(0));
            });
            let offset = if how == "beyond-the-handle" { (4 << 20) - 4095 } else { u64::MAX };
            let bytes = [&[3][..], &handle, &offset.to_le_bytes()].concat();
            ur_ipc::Payload::Bytes(bytes.into())
        }
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
        "beyond-the-handle",
        "far-beyond-the-handle",
        "larger",
    ] {
        let ticket = hex::decode(other.ask(&format!("lie {how}"))).unwrap();
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
fn beside<T>(cuda: &Cuda, work: impl FnOnce(&driver::Driver<driver::Cuda>) -> T) -> T {
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
    let why = ur_adapter::error::last_error().unwrap_or_default();
    assert!(why.contains("reason freed"), "{why}");
    assert!(share(&cuda, pointer).is_err());
}
#[test]
fn memory_by_the_old_handle_is_opened_and_closed_while_a_queue_stands_still() {
    let Some(cuda) = Cuda::new() else { return };
    let mut at = 0_u64;
    let made = beside(&cuda, |driver| unsafe { driver.alloc(&mut at, 1 << 20) }.status());
    assert_eq!(made, Some(0));
    let ticket =
        share(&cuda, std::ptr::with_exposed_provenance_mut::<c_void>(at as usize)).unwrap();
    let answer = Other::new().ask(&format!("open-behind-a-gate {}", ticket.hex()));
    assert_eq!(answer, "no wait");
    drop(ticket);
    beside(&cuda, |driver| assert_eq!(unsafe { driver.free(at) }.status(), Some(0)));
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
/// Physical memories of those lengths, in granules, mapped one behind the other in a larger reservation, as PyTorch's
/// expandable segments are; more of them follow at `next`.
struct Segment {
    at: u64,
    next: u64,
}
impl Segment {
    fn new(cuda: &Cuda, granules: &[usize]) -> Self {
        let mut at = 0_u64;
        let bytes = 4096 * granule(cuda);
        beside(cuda, |driver| {
            let reserved = unsafe { driver.address_reserve(&mut at, bytes, 0, 0, 0) };
            assert_eq!(reserved.status(), Some(0));
        });
        let mut segment = Self { at, next: at };
        segment.grow(cuda, granules);
        segment
    }
    fn grow(&mut self, cuda: &Cuda, granules: &[usize]) {
        for &count in granules {
            self.map(cuda, self.next, count * granule(cuda));
            self.next += (count * granule(cuda)) as u64;
        }
    }
    fn map(&self, cuda: &Cuda, at: u64, bytes: usize) {
        self.map_as(cuda, at, bytes, 1);
    }
    fn map_as(&self, cuda: &Cuda, at: u64, bytes: usize, handle_types: i32) {
        let location = driver::layout::Location { kind: 1, id: 0 };
        let properties =
            driver::layout::AllocationProp { handle_types, location, ..Default::default() };
        let access = driver::layout::AccessDesc { location, flags: 3 };
        let mut handle = 0_u64;
        beside(cuda, |driver| unsafe {
            let made = driver.physical_create(&mut handle, bytes, &properties, 0);
            assert_eq!(made.status(), Some(0));
            assert_eq!(driver.physical_map(at, bytes, 0, handle, 0).status(), Some(0));
            assert_eq!(driver.set_access(at, bytes, &access, 1).status(), Some(0));
            assert_eq!(driver.physical_release(handle).status(), Some(0));
        });
    }
    /// The address so many bytes behind the beginning.
    fn place(&self, offset: usize) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.at as usize + offset)
    }
}
#[test]
fn what_a_library_mapped_in_many_pieces_crosses_whole() {
    let Some(cuda) = Cuda::new() else { return };
    let granule = granule(&cuda);
    let pieces = [vec![1, 2, 1], vec![10; 10], vec![1; 154]];
    for granules in pieces {
        let segment = Segment::new(&cuda, &granules);
        let last = granules[..granules.len() - 1].iter().sum::<usize>() * granule;
        // The first bytes, those on both sides of the first seam and of the last one.
        for offset in [0, granules[0] * granule - 2048, last - 2048] {
            crosses(&cuda, segment.place(offset));
        }
    }
}
#[test]
fn a_segment_that_grows_keeps_its_tickets_and_one_that_is_mapped_anew_ends_them() {
    let Some(cuda) = Cuda::new() else { return };
    let granule = granule(&cuda);
    let mut segment = Segment::new(&cuda, &[1, 1]);
    let first = share(&cuda, segment.place(0)).unwrap();
    segment.grow(&cuda, &[1, 1]);
    let seam = segment.place(3 * granule - 2048);
    let whole = share(&cuda, segment.place(0)).unwrap();
    crosses(&cuda, seam);
    let mut other = Other::new();
    for ticket in [&first, &whole] {
        cuda.write(segment.place(0), &numbers(100));
        assert_eq!(other.ask(&format!("open {}", ticket.hex())), "100 1123");
    }
    // Somebody else's memory at the same addresses: nobody is led there by an old ticket.
    let middle = segment.at + granule as u64;
    beside(&cuda, |driver| {
        let gone = unsafe { driver.physical_unmap(middle, granule) };
        assert_eq!(gone.status(), Some(0));
    });
    segment.map(&cuda, middle, granule);
    let fresh = share(&cuda, segment.place(0)).unwrap();
    for ticket in [&first, &whole] {
        assert!(other.ask(&format!("open {}", ticket.hex())).contains("INVALID_VALUE"));
    }
    cuda.write(segment.place(0), &numbers(200));
    assert_eq!(other.ask(&format!("open {}", fresh.hex())), "200 1223");
    crosses(&cuda, segment.place(granule - 2048));
}
/// A library's pool whose memory can be shared.
fn pool_beside(cuda: &Cuda) -> driver::RawPool {
    let location = driver::layout::Location { kind: 1, id: 0 };
    let properties = driver::layout::PoolProps { handle_types: 1, location, ..Default::default() };
    let mut pool = None;
    beside(cuda, |driver| {
        let made = unsafe { driver.pool_create(&mut pool, &properties) };
        assert_eq!(made.status(), Some(0));
    });
    pool.unwrap()
}
/// Memory of that pool, allocated in the order of the default stream and waited for.
fn from_pool(cuda: &Cuda, pool: driver::RawPool, bytes: usize) -> *mut c_void {
    let mut at = 0_u64;
    beside(cuda, |driver| unsafe {
        assert_eq!(driver.pool_alloc(&mut at, bytes, pool, None).status(), Some(0));
        assert_eq!(driver.stream_synchronize(None).status(), Some(0));
    });
    std::ptr::with_exposed_provenance_mut(at as usize)
}
fn free_to_pool(cuda: &Cuda, at: *mut c_void) {
    beside(cuda, |driver| unsafe {
        assert_eq!(driver.free_async(at.addr() as u64, None).status(), Some(0));
        assert_eq!(driver.stream_synchronize(None).status(), Some(0));
    });
}
#[test]
fn a_librarys_memory_that_was_freed_and_allocated_anew_at_its_address_is_another_object() {
    let Some(cuda) = Cuda::new() else { return };
    let pool = pool_beside(&cuda);
    let linear = |bytes| {
        let mut at = 0_u64;
        let made = beside(&cuda, |driver| unsafe { driver.alloc(&mut at, bytes) }.status());
        assert_eq!(made, Some(0));
        std::ptr::with_exposed_provenance_mut::<c_void>(at as usize)
    };
    let free = |at: *mut c_void| {
        let freed = beside(&cuda, |driver| unsafe { driver.free(at.addr() as u64) }.status());
        assert_eq!(freed, Some(0));
    };
    type Ways<'a> = (&'a str, &'a dyn Fn(usize) -> *mut c_void, &'a dyn Fn(*mut c_void));
    let ways: [Ways<'_>; 2] = [
        ("cuMemAlloc", &linear, &free),
        ("a pool", &|bytes| from_pool(&cuda, pool, bytes), &|at| free_to_pool(&cuda, at)),
    ];
    let mut other = Other::new();
    for (name, alloc, free) in ways {
        // The same length, and a shorter one, at the same address where the driver takes it again.
        for bytes in [4 << 20, 2 << 20] {
            let at = alloc(4 << 20);
            let old = share(&cuda, at).unwrap();
            cuda.write(at, &numbers(300));
            assert_eq!(other.ask(&format!("open {}", old.hex())), "300 1323", "{name}");
            free(at);
            let again = alloc(bytes);
            if again != at {
                println!("{name}: the driver did not take the address again");
            }
            let fresh = share(&cuda, again).unwrap();
            if again == at {
                let answer = other.ask(&format!("open {}", old.hex()));
                assert!(answer.contains("INVALID_VALUE"), "{name}, {bytes}: {answer}");
            }
            cuda.write(again, &numbers(400));
            assert_eq!(other.ask(&format!("open {}", fresh.hex())), "400 1423", "{name}");
            drop((old, fresh));
            free(again);
        }
    }
    beside(&cuda, |driver| {
        assert_eq!(unsafe { driver.pool_destroy(pool) }.status(), Some(0));
    });
}
/// Where the range of a ticket begins within its object: a field of the envelope.
fn offset_of(ticket: &Ticket<'_>) -> usize {
    let bytes = ticket.bytes();
    let field = bytes.len() - 44;
    u64::from_le_bytes(bytes[field..field + 8].try_into().unwrap()) as usize
}
#[test]
fn of_two_shared_runs_that_end_together_the_nearer_is_meant_whenever_it_is_asked_for() {
    let Some(cuda) = Cuda::new() else { return };
    let granule = granule(&cuda);
    let segment = Segment::new(&cuda, &[1; 8]);
    let (starts, mut kept) = ([6, 4, 2, 0], vec![]);
    for start in starts {
        kept.push(share(&cuda, segment.place(start * granule)).unwrap()); // none of those before holds it
        assert_eq!(offset_of(kept.last().unwrap()), 0, "{start}");
    }
    for _ in 0..8 {
        for start in starts {
            let again = share(&cuda, segment.place((start + 1) * granule)).unwrap();
            assert_eq!(offset_of(&again), granule, "{start}: another run was taken");
        }
    }
    crosses(&cuda, segment.place(5 * granule - 2048));
}
#[test]
fn a_handle_of_what_lies_behind_a_mapping_that_was_replaced_still_leads_there() {
    let Some(cuda) = Cuda::new() else { return };
    let granule = granule(&cuda);
    let segment = Segment::new(&cuda, &[1; 4]);
    let old = share(&cuda, segment.place(0)).unwrap();
    beside(&cuda, |driver| {
        let gone = unsafe { driver.physical_unmap(segment.at + granule as u64, granule) };
        assert_eq!(gone.status(), Some(0));
    });
    segment.map(&cuda, segment.at + granule as u64, granule);
    // Behind it nothing has changed, for this process and for another one.
    let behind = share(&cuda, segment.place(2 * granule)).unwrap();
    assert_eq!(open(&cuda, behind.bytes()), Ok(segment.place(2 * granule)));
    let code = call!(ipc_exp.close_mem_handle_exp(cuda.context, segment.place(2 * granule)));
    assert_eq!(code, R::SUCCESS);
    crosses(&cuda, segment.place(2 * granule));
    // What it is a part of is another object, and who opens the old handle is told so.
    assert_eq!(open(&cuda, old.bytes()), Err(R::ERROR_INVALID_VALUE));
    let mut other = Other::new();
    let anew = share(&cuda, segment.place(granule)).unwrap();
    assert_eq!(offset_of(&anew), 0, "it was shared with what lay there before");
    assert!(other.ask(&format!("open {}", old.hex())).contains("INVALID_VALUE"));
}
/// How often the driver is called to share `at` again, with an export of it standing; `None` for a driver that does
/// not count.
fn calls_of_warm_get(cuda: &Cuda, at: *mut c_void) -> Option<u64> {
    let library = unsafe { libloading::Library::new("libcuda.so.1") }.unwrap();
    let calls = unsafe { library.get::<unsafe extern "C" fn() -> u64>(b"softCudaCalls") }.ok()?;
    let kept = share(cuda, at).unwrap();
    let before = unsafe { calls() };
    let again = share(cuda, at).unwrap();
    let made = unsafe { calls() } - before;
    drop((kept, again));
    Some(made)
}
#[test]
fn to_get_a_handle_of_a_librarys_memory_again_asks_the_driver_once_for_each_mapping_and_no_more() {
    let Some(cuda) = Cuda::new() else { return };
    let mut linear = 0_u64;
    let made = beside(&cuda, |driver| unsafe { driver.alloc(&mut linear, 4 << 20) }.status());
    assert_eq!(made, Some(0));
    let linear = std::ptr::with_exposed_provenance_mut::<c_void>(linear as usize);
    let pool = pool_beside(&cuda);
    let pooled = from_pool(&cuda, pool, 4 << 20);
    // The current context is queried, pushed and popped.
    const BASIS: u64 = 3;
    match calls_of_warm_get(&cuda, linear) {
        None => println!("skipped: this driver does not count its calls"),
        Some(calls) => {
            assert_eq!(calls, BASIS + 1, "cuMemAlloc");
            assert_eq!(calls_of_warm_get(&cuda, pooled), Some(BASIS + 1), "a pool");
            for count in [1, 5, 48] {
                let segment = Segment::new(&cuda, &vec![1; count]);
                let calls = calls_of_warm_get(&cuda, segment.place(4096));
                assert_eq!(calls, Some(BASIS + count as u64 + 1), "{count} mappings");
                // What lies before the address is not looked at.
                let last = segment.place((count - 1) * granule(&cuda));
                assert_eq!(calls_of_warm_get(&cuda, last), Some(BASIS + 2), "the last of {count}");
            }
        }
    }
    free_to_pool(&cuda, pooled);
    beside(&cuda, |driver| unsafe {
        assert_eq!(driver.pool_destroy(pool).status(), Some(0));
        assert_eq!(driver.free(linear.addr() as u64).status(), Some(0));
    });
}
#[test]
fn a_segment_beside_mappings_that_cannot_be_shared_is_got_again_as_cheaply() {
    let Some(cuda) = Cuda::new() else { return };
    let granule = granule(&cuda);
    let segment = Segment::new(&cuda, &[1, 1]);
    let alone = calls_of_warm_get(&cuda, segment.place(0));
    segment.map_as(&cuda, segment.next, granule, 0); // no descriptors of it
    match alone {
        None => println!("skipped: this driver does not count its calls"),
        some => assert_eq!(calls_of_warm_get(&cuda, segment.place(0)), some),
    }
    crosses(&cuda, segment.place(granule - 2048));
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
