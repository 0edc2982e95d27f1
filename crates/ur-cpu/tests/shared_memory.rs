//! Memory shared by two processes. The test binary runs itself again as the peer, which does what
//! lines on its standard input say and answers each with a line.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
use std::{
    ffi::c_void,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    ptr::{null, null_mut},
    time::{Duration, Instant},
};
use ur_cpu::TABLE;
use ur_sys::*;

const OK: ur_result_t = ur_result_t::SUCCESS;
const PAGE: usize = 4096;
const DEADLINE: Duration = Duration::from_secs(30);
const ROLE: &str = "CAUSEWAY_TEST_PEER";

/// One process's view of the adapter.
#[derive(Clone, Copy)]
struct Here {
    context: ur_context_handle_t,
    device: ur_device_handle_t,
}
impl Here {
    fn new() -> Self {
        let (mut adapter, mut platform) = (ur_adapter_handle_t::NULL, ur_platform_handle_t::NULL);
        let (mut device, mut context) = (ur_device_handle_t::NULL, ur_context_handle_t::NULL);
        unsafe {
            assert_eq!(TABLE.adapter.get.unwrap()(1, &mut adapter, null_mut()), OK);
            assert_eq!(TABLE.platform.get.unwrap()(adapter, 1, &mut platform, null_mut()), OK);
            let get = TABLE.device.get.unwrap();
            let all = ur_device_type_t::ALL;
            assert_eq!(get(platform, all, 1, &mut device, null_mut()), OK);
            assert_eq!(TABLE.context.create.unwrap()(1, &device, null(), &mut context), OK);
        }
        Self { context, device }
    }
    fn alloc(self, size: usize) -> *mut u8 {
        let (mut at, pool) = (null_mut(), ur_usm_pool_handle_t::NULL);
        let alloc = TABLE.usm.device_alloc.unwrap();
        let got = unsafe { alloc(self.context, self.device, null(), pool, size, &mut at) };
        assert_eq!(got, OK);
        at.cast()
    }
    fn free(self, at: *mut u8) -> ur_result_t {
        unsafe { TABLE.usm.free.unwrap()(self.context, at.cast()) }
    }
    fn info(self, at: *mut u8, name: ur_usm_alloc_info_t) -> usize {
        let (mut value, get) = (0_usize, TABLE.usm.get_mem_alloc_info.unwrap());
        let to = (&raw mut value).cast();
        assert_eq!(unsafe { get(self.context, at.cast(), name, 8, to, null_mut()) }, OK);
        value
    }
    fn get(self, at: *mut u8) -> Result<(*mut c_void, Vec<u8>), ur_result_t> {
        let (mut data, mut size) = (null_mut(), 0);
        let get = TABLE.ipc_exp.get_mem_handle_exp.unwrap();
        match unsafe { get(self.context, at.cast(), &mut data, &mut size) } {
            OK => {}
            code => return Err(code),
        }
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) };
        Ok((data, bytes.to_vec()))
    }
    fn put(self, data: *mut c_void) -> ur_result_t {
        unsafe { TABLE.ipc_exp.put_mem_handle_exp.unwrap()(self.context, data) }
    }
    fn open(self, bytes: &[u8]) -> Result<*mut u8, ur_result_t> {
        let (mut at, open) = (null_mut(), TABLE.ipc_exp.open_mem_handle_exp.unwrap());
        let data = bytes.as_ptr().cast_mut().cast();
        match unsafe { open(self.context, self.device, data, bytes.len(), &mut at) } {
            OK => Ok(at.cast()),
            code => Err(code),
        }
    }
    fn close(self, at: *mut u8) -> ur_result_t {
        unsafe { TABLE.ipc_exp.close_mem_handle_exp.unwrap()(self.context, at.cast()) }
    }
    fn physical(self, size: usize) -> ur_physical_mem_handle_t {
        let stype = ur_structure_type_t::PHYSICAL_MEM_PROPERTIES;
        let flags = ur_physical_mem_flags_t::ENABLE_IPC;
        let properties = ur_physical_mem_properties_t { stype, pNext: null_mut(), flags };
        let mut memory = ur_physical_mem_handle_t::NULL;
        let create = TABLE.physical_mem.create.unwrap();
        let got = unsafe { create(self.context, self.device, size, &properties, &mut memory) };
        assert_eq!(got, OK);
        memory
    }
    fn get_physical(self, memory: ur_physical_mem_handle_t) -> (*mut c_void, Vec<u8>) {
        let (mut data, mut size) = (null_mut(), 0);
        let get = TABLE.ipc_exp.get_phys_mem_handle_exp.unwrap();
        assert_eq!(unsafe { get(self.context, memory, &mut data, &mut size) }, OK);
        (data, unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) }.to_vec())
    }
    fn open_physical(self, bytes: &[u8]) -> Result<ur_physical_mem_handle_t, ur_result_t> {
        let mut memory = ur_physical_mem_handle_t::NULL;
        let open = TABLE.ipc_exp.open_phys_mem_handle_exp.unwrap();
        let data = bytes.as_ptr().cast();
        match unsafe { open(self.context, self.device, data, bytes.len(), &mut memory) } {
            OK => Ok(memory),
            code => Err(code),
        }
    }
    fn map(self, memory: ur_physical_mem_handle_t, size: usize) -> *mut u8 {
        let (mut at, table) = (null_mut(), &TABLE.virtual_mem);
        let access = ur_virtual_mem_access_flags_t::READ_WRITE;
        unsafe {
            assert_eq!(table.reserve.unwrap()(self.context, null(), size, &mut at), OK);
            assert_eq!(table.map.unwrap()(self.context, at, size, memory, 0, access), OK);
        }
        at.cast()
    }
}

fn said(result: Result<usize, ur_result_t>) -> String {
    result.map_or_else(|code| format!("code {}", code.0), |number| format!("ok {number}"))
}
fn code(result: ur_result_t) -> String {
    said(if result == OK { Ok(0) } else { Err(result) })
}

/// What the peer does with one line.
fn obey(here: Here, line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().collect();
    let number = |which: usize| words[which].parse::<usize>().unwrap();
    let at = |which: usize| std::ptr::with_exposed_provenance_mut::<u8>(number(which));
    match words[0] {
        "open" => said(here.open(&hex::decode(words[1]).unwrap()).map(|at| at.expose_provenance())),
        "close" => code(here.close(at(1))),
        "free" => code(here.free(at(1))),
        "get" => match here.get(at(1)) {
            Ok((_, bytes)) => hex::encode(&bytes),
            Err(code) => said(Err(code)),
        },
        "base" => said(Ok(here.info(at(1), ur_usm_alloc_info_t::BASE_PTR))),
        "size" => said(Ok(here.info(at(1), ur_usm_alloc_info_t::SIZE))),
        "read" => said(Ok(usize::from(unsafe { at(1).read_volatile() }))),
        "write" => {
            unsafe { at(1).write_volatile(number(2) as u8) };
            code(OK)
        }
        "alloc" => said(Ok(here.alloc(number(1)).expose_provenance())),
        "map" => match here.open_physical(&hex::decode(words[1]).unwrap()) {
            Ok(memory) => {
                let at = here.map(memory, number(2)).expose_provenance();
                format!("ok {at} {}", hex::encode(&here.get_physical(memory).1))
            }
            Err(code) => said(Err(code)),
        },
        "limit" => {
            let limit = Some(number(1) as u64);
            let resource = rustix::process::Resource::Nofile;
            let both = rustix::process::Rlimit { current: limit, maximum: limit };
            rustix::process::setrlimit(resource, both).unwrap();
            code(OK)
        }
        "descriptors" => said(Ok(std::fs::read_dir("/proc/self/fd").unwrap().count())),
        other => panic!("the peer does not know how to {other}"),
    }
}

/// Not a test: what the other process runs.
#[test]
fn peer() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let here = Here::new();
    println!("\nready");
    for line in std::io::stdin().lines() {
        println!("{}", obey(here, &line.unwrap()));
    }
}

struct Peer {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}
impl Peer {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "peer", "--nocapture", "--test-threads=1"])
            .env(ROLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut peer = Self { child, to, from: BufReader::new(from) };
        while peer.line() != "ready" {}
        peer
    }
    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.from.read_line(&mut line).unwrap(), 0, "the peer ended");
        line.trim().to_string()
    }
    fn ask(&mut self, what: &str) -> String {
        writeln!(self.to, "{what}").unwrap();
        self.line()
    }
    fn number(&mut self, what: &str) -> usize {
        let answer = self.ask(what);
        let number = answer.strip_prefix("ok ").unwrap_or_else(|| panic!("{what}: {answer}"));
        number.parse().unwrap()
    }
    fn refuses(&mut self, what: &str, code: ur_result_t) {
        assert_eq!(self.ask(what), format!("code {}", code.0), "{what}");
    }
}
impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
const INVALID: ur_result_t = ur_result_t::ERROR_INVALID_VALUE;

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn any_part_of_any_allocation_is_seen_from_both_sides() {
    let (here, mut peer) = (Here::new(), Peer::start());
    for size in [100, 5000, 1 << 20, 40 << 20] {
        let at = here.alloc(size);
        for offset in [0, size / 3, size - 1] {
            let inner = at.wrapping_add(offset);
            unsafe { inner.write_volatile(17) };
            let (data, ticket) = here.get(inner).unwrap();
            let there = peer.number(&format!("open {}", hex::encode(&ticket)));
            assert_eq!(peer.number(&format!("read {there}")), 17);
            peer.number(&format!("write {there} 93"));
            assert_eq!(unsafe { inner.read_volatile() }, 93);
            assert_eq!(peer.number(&format!("base {there}")), there - offset);
            assert_eq!(peer.number(&format!("size {there}")), size, "and no neighbour");
            assert_eq!(here.put(data), OK);
            assert_eq!(peer.number(&format!("read {there}")), 93, "it stays after Put");
            peer.refuses(&format!("open {}", hex::encode(&ticket)), INVALID);
            peer.number(&format!("close {there}"));
        }
        assert_eq!(here.free(at), OK);
    }
}
#[test]
fn opens_are_counted_and_what_was_opened_is_only_closed() {
    let (here, mut peer) = (Here::new(), Peer::start());
    let at = here.alloc(10_000);
    let (_, whole) = here.get(at).unwrap();
    let (_, part) = here.get(at.wrapping_add(4000)).unwrap();
    let there = peer.number(&format!("open {}", hex::encode(&whole)));
    assert_eq!(peer.number(&format!("open {}", hex::encode(&whole))), there);
    let inner = peer.number(&format!("open {}", hex::encode(&part)));
    assert_eq!(inner, there + 4000, "opens of one allocation share a mapping");
    peer.refuses(&format!("free {there}"), ur_result_t::ERROR_INVALID_MEM_OBJECT);
    peer.refuses(&format!("get {there}"), INVALID);
    peer.refuses(&format!("close {}", there + 8), INVALID);
    peer.number(&format!("close {there}"));
    peer.number(&format!("close {there}"));
    peer.refuses(&format!("close {there}"), INVALID);
    peer.number(&format!("write {inner} 5"));
    assert_eq!(unsafe { at.add(4000).read_volatile() }, 5);
    peer.number(&format!("close {inner}"));
    assert_eq!(here.free(at), OK);
}
/// An allocation between two others: memory that is all free is given back to the system, and its addresses
/// with it, but not while one of its neighbours is in use.
fn amid(here: &Here, size: usize) -> [*mut u8; 3] {
    [(); 3].map(|()| here.alloc(size))
}
/// Waits until an allocation of this size has this address. Each round takes one block more: one that comes back between the rounds
/// may lie below all that a round has freed.
fn lent_again(here: &Here, at: *mut u8, size: usize) {
    let mut count = 20;
    eventually("the block is lent again", || {
        let blocks: Vec<_> = (0..count).map(|_| here.alloc(size)).collect();
        let came = blocks.contains(&at);
        blocks.into_iter().for_each(|block| assert_eq!(here.free(block), OK));
        count = 100.min(count + 1);
        came
    });
}

#[test]
fn a_block_is_nobody_elses_while_another_process_has_it_open() {
    let (here, mut peer) = (Here::new(), Peer::start());
    // A size that no other test of this process allocates: the block would come next.
    let size = 300_000;
    let [below, at, above] = amid(&here, size);
    let (_, ticket) = here.get(at).unwrap();
    let there = peer.number(&format!("open {}", hex::encode(&ticket)));
    peer.number(&format!("write {there} 71"));
    assert_eq!(here.free(at), OK);
    peer.refuses(&format!("open {}", hex::encode(&ticket)), INVALID);
    let others: Vec<_> = (0..20).map(|_| here.alloc(size)).collect();
    assert!(!others.contains(&at));
    for other in others {
        unsafe { other.write_bytes(0, size) };
        assert_eq!(here.free(other), OK);
    }
    assert_eq!(peer.number(&format!("read {there}")), 71);
    peer.number(&format!("close {there}"));
    lent_again(&here, at, size);
    [below, above].into_iter().for_each(|block| assert_eq!(here.free(block), OK));
}
#[test]
fn the_death_of_an_importer_gives_its_blocks_back() {
    let (here, mut peer) = (Here::new(), Peer::start());
    let size = 150_000;
    let [below, at, above] = amid(&here, size);
    let (_, ticket) = here.get(at).unwrap();
    peer.number(&format!("open {}", hex::encode(&ticket)));
    assert_eq!(here.free(at), OK);
    assert_ne!(here.alloc(size), at);
    drop(peer);
    lent_again(&here, at, size);
    [below, above].into_iter().for_each(|block| assert_eq!(here.free(block), OK));
}
#[test]
fn physical_memory_is_mapped_on_both_sides_and_shared_on() {
    let (here, mut peer, mut third) = (Here::new(), Peer::start(), Peer::start());
    for pages in [1, 3, 600] {
        let memory = here.physical(pages * PAGE);
        let at = here.map(memory, pages * PAGE);
        let last = at.wrapping_add(pages * PAGE - 1);
        unsafe { last.write_volatile(33) };
        let (_, ticket) = here.get_physical(memory);
        let answer = peer.ask(&format!("map {} {}", hex::encode(&ticket), pages * PAGE));
        let (there, onward) = answer.strip_prefix("ok ").unwrap().split_once(' ').unwrap();
        let there = there.parse::<usize>().unwrap() + pages * PAGE - 1;
        assert_eq!(peer.number(&format!("read {there}")), 33);
        peer.number(&format!("write {there} 44"));
        assert_eq!(unsafe { last.read_volatile() }, 44);
        let answer = third.ask(&format!("map {onward} {}", pages * PAGE));
        let (third_at, _) = answer.strip_prefix("ok ").unwrap().split_once(' ').unwrap();
        let third_at = third_at.parse::<usize>().unwrap() + pages * PAGE - 1;
        third.number(&format!("write {third_at} 55"));
        assert_eq!(unsafe { last.read_volatile() }, 55);
    }
}
#[test]
fn ten_thousand_exports_live_under_a_limit_of_1024_descriptors() {
    let (here, mut exporter) = (Here::new(), Peer::start());
    exporter.number("limit 1024");
    let mut last = (0, String::new());
    for round in 0..10_000_usize {
        let size = [64, 3000, 20_000, 70_000][round % 4];
        let size = if round % 20 == 0 { 1 << 20 } else { size };
        let at = exporter.number(&format!("alloc {size}"));
        last = (at, exporter.ask(&format!("get {at}")));
        assert!(!last.1.starts_with("code"), "{round}: {}", last.1);
    }
    assert!(exporter.number("descriptors") < 1024);
    exporter.number(&format!("write {} 12", last.0));
    let at = here.open(&hex::decode(&last.1).unwrap()).unwrap();
    assert_eq!(unsafe { at.read_volatile() }, 12);
    assert_eq!(here.close(at), OK);
}
#[test]
fn a_forked_child_has_none_of_its_parents_memory_and_harms_none() {
    use std::{io, os::unix::process::CommandExt};
    let here = Here::new();
    let (small, large) = (here.alloc(100_000), here.alloc(3 << 20));
    let memory = here.physical(2 * PAGE);
    let mapped = here.map(memory, 2 * PAGE);
    let all = [(small, 100_000), (large, 3 << 20), (mapped, 2 * PAGE)];
    for (at, size) in all {
        unsafe { at.write_bytes(8, size) };
    }
    let (handle, _) = here.get(small).unwrap();
    let (small, large) = (small.expose_provenance(), large.expose_provenance());
    let (handle, context) = (handle.expose_provenance(), here.context.0.expose_provenance());
    let (device, memory) = (here.device.0.expose_provenance(), memory.0.expose_provenance());
    let in_child = move || {
        let at = std::ptr::with_exposed_provenance_mut::<u8>;
        let handle_of = std::ptr::with_exposed_provenance_mut::<c_void>;
        let here = Here {
            context: ur_context_handle_t(handle_of(context)),
            device: ur_device_handle_t(handle_of(device)),
        };
        let failed = |what: &'static str| Err(io::Error::other(what));
        for inherited in [small, large] {
            if here.free(at(inherited)) == OK {
                return failed("freed its parent's memory");
            }
            if here.get(at(inherited)).is_ok() {
                return failed("shared its parent's memory");
            }
        }
        if here.put(handle_of(handle)) == OK {
            return failed("withdrew its parent's export");
        }
        // Whether it may go or not: its memory is the parent's.
        let memory = ur_physical_mem_handle_t(handle_of(memory));
        unsafe { TABLE.physical_mem.release.unwrap()(memory) };
        Ok(())
    };
    let mut command = Command::new("true");
    unsafe { command.pre_exec(in_child) };
    assert!(command.status().unwrap().success());
    let at = std::ptr::with_exposed_provenance_mut::<u8>;
    for (at, size) in [(at(small), 100_000), (at(large), 3 << 20), (mapped, 2 * PAGE)] {
        assert!((0..size).step_by(PAGE).all(|offset| unsafe { at.add(offset).read() } == 8));
    }
    assert_eq!(here.free(at(small)), OK);
    assert_eq!(here.free(at(large)), OK);
}
