//! Level Zero: measures our adapter beside the one that oneAPI ships (its second version), in one process,
//! alternately, on one software driver. The driver runs commands in the calling thread where possible, so
//! that mostly the adapters' own work is measured (`CAUSEWAY_LEVEL_ZERO=real` uses the machine's driver).
//! Needs the shipped adapter and its libraries: `UR_REFERENCE_LEVEL_ZERO`, or what the conformance task
//! installs under `target`.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
use causeway_benches::*;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::{
    ffi::c_void,
    fs,
    path::{Path, PathBuf},
    process::Command,
    ptr::{null, null_mut},
    time::{Duration, Instant},
};
use ur_sys::*;

/// Calls in one block.
const CALLS: u32 = 500;
/// Tells a process that its libraries are in place, and gives the path of the shipped adapter.
const READY: &str = "CAUSEWAY_BENCH_SHIPPED";

/// An adapter with its queues and the objects that are measured.
struct Adapter {
    table: &'static ur_dditable_t,
    context: ur_context_handle_t,
    device: ur_device_handle_t,
    /// In-order and out-of-order.
    queues: [ur_queue_handle_t; 2],
    kernel: ur_kernel_handle_t,
    host: *mut c_void,
    memory: *mut c_void,
}
impl Adapter {
    /// Starts it on the adapter's first device.
    fn start(table: &'static ur_dditable_t, adapter: ur_adapter_handle_t) -> Result<Self> {
        let (mut platform, mut device) = (ur_platform_handle_t::NULL, ur_device_handle_t::NULL);
        ur!(table, platform.get(adapter, 1, &mut platform, null_mut()))?;
        let all = ur_device_type_t::ALL;
        ur!(table, device.get(platform, all, 1, &mut device, null_mut()))?;
        let mut context = ur_context_handle_t::NULL;
        ur!(table, context.create(1, &device, null(), &mut context))?;
        let mut queues = [ur_queue_handle_t::NULL; 2];
        let flags = [ur_queue_flags_t::default(), ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE];
        for (queue, flags) in queues.iter_mut().zip(flags) {
            let stype = ur_structure_type_t::QUEUE_PROPERTIES;
            let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
            ur!(table, queue.create(context, device, &properties, queue))?;
        }
        let (mut host, mut memory, pool) = (null_mut(), null_mut(), ur_usm_pool_handle_t::NULL);
        ur!(table, usm.host_alloc(context, null(), pool, 4096, &mut host))?;
        ur!(table, usm.device_alloc(context, device, null(), pool, 4096, &mut memory))?;
        let (mut program, mut kernel) = (ur_program_handle_t::NULL, ur_kernel_handle_t::NULL);
        let code = nothing();
        let (at, bytes) = (code.as_ptr().cast(), size_of_val(code.as_slice()));
        ur!(table, program.create_with_il(context, at, bytes, null(), &mut program))?;
        ur!(table, program.build(context, program, null()))?;
        ur!(table, kernel.create(program, c"nothing".as_ptr(), &mut kernel))?;
        Ok(Self { table, context, device, queues, kernel, host, memory })
    }
    /// Opens the shipped adapter from a library.
    fn open(path: &Path) -> Result<Self> {
        type Getter = unsafe extern "C" fn(u32, *mut ur_adapter_dditable_t) -> ur_result_t;
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL)? };
        let getter = unsafe { *library.get::<Getter>(b"urGetAdapterProcAddrTable\0")? };
        let mut row: ur_adapter_dditable_t = unsafe { std::mem::zeroed() };
        let code = unsafe { getter(0xc, &mut row) };
        if code != ur_result_t::SUCCESS {
            return Err(format!("urGetAdapterProcAddrTable: {code:?}").into());
        }
        let mut adapter = ur_adapter_handle_t::NULL;
        let code = unsafe { row.get.ok_or("no urAdapterGet")?(1, &mut adapter, null_mut()) };
        if code != ur_result_t::SUCCESS {
            return Err(format!("urAdapterGet: {code:?}").into());
        }
        std::mem::forget(library); // never unloaded, because its threads may still run
        Self::start(unsafe { &**adapter.0.cast::<*const ur_dditable_t>() }, adapter)
    }
    fn ours() -> Result<Self> {
        let table = &ur_level_zero::TABLE_V2;
        let mut adapter = ur_adapter_handle_t::NULL;
        ur!(table, adapter.get(1, &mut adapter, null_mut()))?;
        Self::start(table, adapter)
    }
    fn finish_and_release(&self, event: ur_event_handle_t) -> Result<()> {
        ur!(self.table, event.wait(1, &event))?;
        Ok(ur!(self.table, event.release(event))?)
    }
    fn barrier(&self, queue: ur_queue_handle_t) -> Result<()> {
        let (mut event, none) = (ur_event_handle_t::NULL, null());
        ur!(self.table, enqueue.events_wait_with_barrier(queue, 0, none, &mut event))?;
        self.finish_and_release(event)
    }
    fn copy(&self, queue: ur_queue_handle_t, bytes: usize) -> Result<()> {
        let (mut event, to, from) = (ur_event_handle_t::NULL, self.memory, self.host);
        let none = null();
        ur!(self.table, enqueue.usm_memcpy(queue, false, to, from, bytes, 0, none, &mut event))?;
        self.finish_and_release(event)
    }
    fn launch(&self, queue: ur_queue_handle_t) -> Result<()> {
        let (mut event, one, zero) = (ur_event_handle_t::NULL, [1_usize], [0_usize]);
        ur!(
            self.table,
            enqueue_exp.kernel_launch_with_args_exp(
                queue,
                self.kernel,
                1,
                zero.as_ptr(),
                one.as_ptr(),
                one.as_ptr(),
                0,
                null(),
                null(),
                0,
                null(),
                &mut event,
            )
        )?;
        self.finish_and_release(event)
    }
    /// Creates an event that can be shared.
    fn event(&self) -> Result<ur_event_handle_t> {
        let desc = ur_exp_event_desc_t {
            stype: ur_structure_type_t::EXP_EVENT_DESC,
            pNext: null(),
            flags: ur_exp_event_flags_t::IPC_EXP,
        };
        let mut event = ur_event_handle_t::NULL;
        ur!(self.table, event_exp.create_exp(self.context, self.device, &desc, &mut event))?;
        Ok(event)
    }
    /// Gets a handle of the event, opens it in this process and releases the opened event; returns the
    /// handle.
    fn share(&self, event: ur_event_handle_t) -> Result<*mut c_void> {
        let (mut data, mut size, mut opened) = (null_mut(), 0, ur_event_handle_t::NULL);
        ur!(self.table, ipc_exp.get_event_handle_exp(event, &mut data, &mut size))?;
        ur!(self.table, ipc_exp.open_event_handle_exp(self.context, data, size, &mut opened))?;
        ur!(self.table, event.release(opened))?;
        Ok(data)
    }
    fn put(&self, data: *mut c_void) -> Result<()> {
        Ok(ur!(self.table, ipc_exp.put_event_handle_exp(self.context, data))?)
    }
}
/// SPIR-V of a kernel without parameters that does nothing.
fn nothing() -> Vec<u32> {
    let name = [u32::from_le_bytes(*b"noth"), u32::from_le_bytes(*b"ing\0")];
    let mut code = vec![0x0723_0203, 0x0001_0000, 0, 5, 0];
    code.extend([2 << 16 | 17, 4, 2 << 16 | 17, 5, 2 << 16 | 17, 6, 3 << 16 | 14, 2, 2]);
    code.extend([5 << 16 | 15, 6, 3, name[0], name[1]]);
    code.extend([2 << 16 | 19, 1, 3 << 16 | 33, 2, 1, 5 << 16 | 54, 1, 3, 0, 2]);
    code.extend([2 << 16 | 248, 4, 1 << 16 | 253, 1 << 16 | 56]);
    code
}

fn block(mut body: impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    (0..CALLS).try_for_each(|_| body())?;
    Ok(start.elapsed())
}
fn measure(shipped: &Path) -> Result<()> {
    let (ours, theirs) = (Adapter::ours()?, Adapter::open(shipped)?);
    pin(processors() - 1)?;
    type Body = fn(&Adapter, ur_queue_handle_t) -> Result<()>;
    let commands: [(&str, Body); 4] = [
        ("barrier", Adapter::barrier),
        ("copy of 64 B", |adapter, queue| adapter.copy(queue, 64)),
        ("copy of 1 KiB", |adapter, queue| adapter.copy(queue, 1024)),
        ("kernel of 1 item", Adapter::launch),
    ];
    for (number, order) in ["in order", "out of order"].into_iter().enumerate() {
        for (what, body) in commands {
            let what = format!("{what}, {order}, waited for");
            let (mine, other) = (ours.queues[number], theirs.queues[number]);
            let ours = || block(|| body(&ours, mine));
            let theirs = || block(|| body(&theirs, other));
            Comparison::of(what, BLOCKS, ours, theirs)?.report(CALLS, "shipped", 0.9);
        }
    }
    let (mine, other) = (ours.event()?, theirs.event()?);
    // One event stays shared, so that the thread that serves importers keeps running.
    for adapter in [&ours, &theirs] {
        let (mut data, mut size) = (null_mut(), 0);
        let event = adapter.event()?;
        ur!(adapter.table, ipc_exp.get_event_handle_exp(event, &mut data, &mut size))?;
    }
    let what = "event: get, open, release";
    let (ours, theirs) = (&ours, &theirs);
    let shares = |adapter, event| move || share_block(adapter, event);
    Comparison::of(what, BLOCKS, shares(ours, mine), shares(theirs, other))?
        .report(CALLS, "shipped", 0.5);
    let what = "event: get, open, release, put";
    let all = |adapter: &Adapter, event| block(|| adapter.put(adapter.share(event)?));
    Comparison::of(what, BLOCKS, || all(ours, mine), || all(theirs, other))?
        .report(CALLS, "shipped", 0.9);
    Ok(())
}
/// Times a block of shares; the puts are not timed.
fn share_block(adapter: &Adapter, event: ur_event_handle_t) -> Result<Duration> {
    const AT_ONCE: usize = 50;
    let (mut took, mut handles) = (Duration::ZERO, Vec::with_capacity(AT_ONCE));
    for _ in 0..CALLS as usize / AT_ONCE {
        let start = Instant::now();
        for _ in 0..AT_ONCE {
            handles.push(adapter.share(event)?);
        }
        took += start.elapsed();
        handles.drain(..).try_for_each(|handle| adapter.put(handle))?;
    }
    Ok(took)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
fn shipped() -> Option<PathBuf> {
    const NAME: &str = "libur_adapter_level_zero_v2.so.0";
    let given = std::env::var_os("UR_REFERENCE_LEVEL_ZERO").map(PathBuf::from);
    let installed = root().join("target/conformance/wheel").join(NAME);
    given.into_iter().chain([installed]).find_map(|path| path.canonicalize().ok())
}
/// Builds the software driver and puts it into a folder as `libze_loader.so.1`.
fn driver(folder: &Path) -> Result<()> {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--release", "--package", "ze-software"]);
    let out = build.args(["--message-format", "json"]).current_dir(root()).output()?;
    let told = String::from_utf8_lossy(&out.stdout).into_owned();
    let file = told.split('"').find(|word| word.ends_with("/libze_software.so"));
    fs::copy(file.ok_or("the driver was not built")?, folder.join("libze_loader.so.1"))?;
    Ok(())
}
fn main() -> Result<()> {
    if let Some(path) = std::env::var_os(READY) {
        return measure(Path::new(&path));
    }
    let Some(shipped) = shipped() else {
        println!("skipped: say where the shipped adapter is: UR_REFERENCE_LEVEL_ZERO=PATH");
        return Ok(());
    };
    let folder = std::env::temp_dir().join(format!("causeway-bench-ze-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    // With `real`, the dynamic linker finds the machine's driver.
    if std::env::var("CAUSEWAY_LEVEL_ZERO").as_deref() != Ok("real") {
        driver(&folder)?;
    }
    let beside = shipped.parent().ok_or("a file is in a folder")?;
    let mut again = again_in([folder.clone(), beside.to_owned()])?;
    again.env("ZE_SOFTWARE_INLINE", "1").env("UR_LOADER_USE_LEVEL_ZERO_V2", "1");
    let done = again.env(READY, &shipped).status()?;
    fs::remove_dir_all(&folder)?;
    if done.success() { Ok(()) } else { Err("the measuring process failed".into()) }
}
