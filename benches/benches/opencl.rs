//! OpenCL: measures our adapter beside the driver called directly, and beside the adapter that is linked into oneAPI's loader,
//! alternately in one process, on Intel's runtime for CPUs; opens beside those of the CPU's adapter. Needs the runtime (`OCL_ICD_FILENAMES`, or what the conformance task installs under `target`); the
//! loader is that of the differential task, or `UR_REFERENCE_LOADER`.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
#[path = "opencl/bare.rs"]
mod bare;
#[path = "opencl/shared.rs"]
mod shared;

use bare::Bare;
use causeway_benches::*;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::{
    ffi::{CStr, c_void},
    fs,
    path::{Path, PathBuf},
    ptr::{null, null_mut},
    time::{Duration, Instant},
};
use ur_sys::*;

/// Calls in one block.
const CALLS: u32 = 200;
/// Tells a process that its libraries are in place.
const READY: &str = "CAUSEWAY_BENCH_OPENCL";

/// An adapter with its queue and the objects that are measured.
struct Adapter {
    table: &'static ur_dditable_t,
    queue: ur_queue_handle_t,
    kernel: ur_kernel_handle_t,
    host: *mut c_void,
    memory: *mut c_void,
}
/// The first device of an adapter, and a context of it.
fn place(table: &ur_dditable_t) -> Result<(ur_context_handle_t, ur_device_handle_t)> {
    let mut adapter = ur_adapter_handle_t::NULL;
    ur!(table, adapter.get(1, &mut adapter, null_mut()))?;
    of_adapter(table, adapter)
}
fn of_adapter(
    table: &ur_dditable_t,
    adapter: ur_adapter_handle_t,
) -> Result<(ur_context_handle_t, ur_device_handle_t)> {
    let (mut platform, mut device) = (ur_platform_handle_t::NULL, ur_device_handle_t::NULL);
    ur!(table, platform.get(adapter, 1, &mut platform, null_mut()))?;
    ur!(table, device.get(platform, ur_device_type_t::ALL, 1, &mut device, null_mut()))?;
    let mut context = ur_context_handle_t::NULL;
    ur!(table, context.create(1, &device, null(), &mut context))?;
    Ok((context, device))
}
/// A kernel of a program in SPIR-V or, for our adapter, in OpenCL C.
fn built(
    table: &ur_dditable_t,
    (context, code): (ur_context_handle_t, &[u8]),
    name: &CStr,
) -> Result<ur_kernel_handle_t> {
    let (mut program, mut kernel) = (ur_program_handle_t::NULL, ur_kernel_handle_t::NULL);
    let at = code.as_ptr().cast();
    ur!(table, program.create_with_il(context, at, code.len(), null(), &mut program))?;
    ur!(table, program.build(context, program, null()))?;
    ur!(table, kernel.create(program, name.as_ptr(), &mut kernel))?;
    Ok(kernel)
}
impl Adapter {
    fn start(
        table: &'static ur_dditable_t,
        (context, device): (ur_context_handle_t, ur_device_handle_t),
    ) -> Result<Self> {
        let mut queue = ur_queue_handle_t::NULL;
        ur!(table, queue.create(context, device, null(), &mut queue))?;
        let (mut host, mut memory, pool) = (null_mut(), null_mut(), ur_usm_pool_handle_t::NULL);
        ur!(table, usm.device_alloc(context, device, null(), pool, 4096, &mut host))?;
        ur!(table, usm.device_alloc(context, device, null(), pool, 4096, &mut memory))?;
        let code: Vec<u8> = nothing().iter().flat_map(|word| word.to_ne_bytes()).collect();
        let kernel = built(table, (context, &code), c"nothing")?;
        Ok(Self { table, queue, kernel, host, memory })
    }
    /// The adapter that is linked into a loader. Its handles begin with its table.
    fn linked_into(loader: &Path) -> Result<Self> {
        let library = unsafe { Library::open(Some(loader), RTLD_NOW | RTLD_LOCAL)? };
        let library: &'static Library = Box::leak(Box::new(library));
        let start = unsafe { library.get::<ur_pfnLoaderInit_t>(b"urLoaderInit\0")? };
        let code = unsafe { start(ur_device_init_flags_t(0), ur_loader_config_handle_t::NULL) };
        if code != ur_result_t::SUCCESS {
            return Err(format!("urLoaderInit: {code:?}").into());
        }
        let get = unsafe { library.get::<ur_pfnAdapterGet_t>(b"urAdapterGet\0")? };
        let mut adapter = ur_adapter_handle_t::NULL;
        let code = unsafe { get(1, &mut adapter, null_mut()) };
        if code != ur_result_t::SUCCESS || adapter == ur_adapter_handle_t::NULL {
            return Err(format!("urAdapterGet: {code:?}").into());
        }
        let table = unsafe { &**adapter.0.cast::<*const ur_dditable_t>() };
        Self::start(table, of_adapter(table, adapter)?)
    }
    fn put(&self, event: *mut ur_event_handle_t) -> Result<()> {
        let (one, zero) = ([1_usize], [0_usize]);
        let (zero, one) = (zero.as_ptr(), one.as_ptr());
        let (queue, kernel, list) = (self.queue, self.kernel, null());
        Ok(ur!(
            self.table,
            enqueue_exp.kernel_launch_with_args_exp(
                queue,
                kernel,
                1,
                zero,
                one,
                one,
                0,
                null(),
                null(),
                0,
                list,
                event,
            )
        )?)
    }
    fn waited(&self, put: impl FnOnce(*mut ur_event_handle_t) -> Result<()>) -> Result<()> {
        let mut event = ur_event_handle_t::NULL;
        put(&mut event)?;
        ur!(self.table, event.wait(1, &event))?;
        Ok(ur!(self.table, event.release(event))?)
    }
    fn launch(&self) -> Result<()> {
        self.waited(|event| self.put(event))
    }
    fn launch_only(&self) -> Result<()> {
        self.put(null_mut())
    }
    fn finish(&self) -> Result<()> {
        Ok(ur!(self.table, queue.finish(self.queue))?)
    }
    fn copy(&self) -> Result<()> {
        let (queue, to, from, list) = (self.queue, self.memory, self.host, null());
        self.waited(|event| {
            Ok(ur!(self.table, enqueue.usm_memcpy(queue, false, to, from, 1024, 0, list, event))?)
        })
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

/// Times calls one by one.
fn block(mut body: impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    (0..CALLS).try_for_each(|_| body())?;
    Ok(start.elapsed())
}
/// Times calls that nobody waits for; the wait for all of them is not timed.
fn submitted(
    body: impl FnMut() -> Result<()>,
    finish: impl FnOnce() -> Result<()>,
) -> Result<Duration> {
    let took = block(body)?;
    finish()?;
    Ok(took)
}
fn measure() -> Result<()> {
    let table = &ur_opencl::TABLE;
    let (bare, ours) = (Bare::start()?, Adapter::start(table, place(table)?)?);
    commands(
        "driver",
        [1.3, 1.3, 1.3],
        &ours,
        [
            &|| block(|| bare.launch()),
            &|| submitted(|| bare.launch_only(), || bare.finish()),
            &|| block(|| bare.copy()),
        ],
    )?;
    match loader().map(|file| Adapter::linked_into(&file)).transpose()? {
        None => {
            println!("beside oneAPI's loader: skipped, say where it is: UR_REFERENCE_LOADER=PATH")
        }
        Some(theirs) => commands(
            "linked in",
            [1.0; 3],
            &ours,
            [
                &|| block(|| theirs.launch()),
                &|| submitted(|| theirs.launch_only(), || theirs.finish()),
                &|| block(|| theirs.copy()),
            ],
        )?,
    }
    shared::measure(&bare)
}
type Block<'a> = &'a dyn Fn() -> Result<Duration>;
fn commands(
    yardstick: &str,
    limits: [f64; 3],
    ours: &Adapter,
    theirs: [Block<'_>; 3],
) -> Result<()> {
    let mine: [(&str, Block<'_>); 3] = [
        ("kernel of 1 item, event, waited for", &|| block(|| ours.launch())),
        ("kernel of 1 item, no event, not waited for", &|| {
            submitted(|| ours.launch_only(), || ours.finish())
        }),
        ("copy of 1 KiB, event, waited for", &|| block(|| ours.copy())),
    ];
    for (((what, body), other), limit) in mine.into_iter().zip(theirs).zip(limits) {
        Comparison::of(what, BLOCKS, body, other)?.report(CALLS, yardstick, limit);
    }
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
fn found(name: &str, installed: &str) -> Option<PathBuf> {
    let given = std::env::var_os(name).map(PathBuf::from);
    given.into_iter().chain([root().join(installed)]).find_map(|path| path.canonicalize().ok())
}
fn loader() -> Option<PathBuf> {
    found("UR_REFERENCE_LOADER", "target/conformance/wheel/libur_loader.so.0")
}
fn main() -> Result<()> {
    if role().as_deref() == Some(shared::EXPORTER) {
        return shared::exporter();
    }
    if std::env::var_os(READY).is_some() {
        return measure();
    }
    let Some(driver) = found("OCL_ICD_FILENAMES", "target/opencl/venv/lib/libintelocl.so") else {
        println!("skipped: say where Intel's runtime is: OCL_ICD_FILENAMES=PATH/libintelocl.so");
        return Ok(());
    };
    // Where no other driver is listed.
    let vendors = std::env::temp_dir().join(format!("causeway-bench-cl-{}", std::process::id()));
    fs::create_dir_all(&vendors)?;
    let beside = |file: &Path| file.parent().map(Path::to_owned);
    let folders = beside(&driver).into_iter().chain(loader().and_then(|f| beside(&f)));
    let mut again = again_in(folders)?;
    again.env("OCL_ICD_FILENAMES", &driver).env("OCL_ICD_VENDORS", &vendors).env(READY, "1");
    let done = again.status()?;
    fs::remove_dir_all(&vendors)?;
    if done.success() { Ok(()) } else { Err("the measuring process failed".into()) }
}
