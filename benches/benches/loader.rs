//! Measures our loader beside the one that oneAPI ships, in one process, on an adapter that does nothing,
//! alternately: a call compared with the same call through the adapter's own table, with one adapter, with
//! two, and with layers; and the start. Needs a C compiler, and the shipped loader: `UR_REFERENCE_LOADER`, or
//! the runtime that `cargo test -p native-cpu` installs under `target/sycl`.
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
const CALLS: u32 = 20_000;
/// Starts of new processes.
const STARTS: usize = 61;

/// The functions of one loader.
struct Loader {
    _library: Library,
    init: ur_pfnLoaderInit_t,
    down: ur_pfnLoaderTearDown_t,
    adapters: ur_pfnAdapterGet_t,
    calls: Calls,
}
/// The functions that are measured, with one, five and eight arguments.
#[derive(Clone, Copy)]
struct Calls {
    flush: ur_pfnQueueFlush_t,
    info: ur_pfnEventGetInfo_t,
    copy: ur_pfnEnqueueUSMMemcpy_t,
}

impl Loader {
    fn open(path: &Path) -> Result<Self> {
        unsafe {
            let library = Library::open(Some(path), RTLD_NOW | RTLD_LOCAL)?;
            Ok(Self {
                init: *library.get(b"urLoaderInit\0")?,
                down: *library.get(b"urLoaderTearDown\0")?,
                adapters: *library.get(b"urAdapterGet\0")?,
                calls: Calls {
                    flush: *library.get(b"urQueueFlush\0")?,
                    info: *library.get(b"urEventGetInfo\0")?,
                    copy: *library.get(b"urEnqueueUSMMemcpy\0")?,
                },
                _library: library,
            })
        }
    }
    /// Starts it; returns how long that took.
    fn start(&self) -> Result<Duration> {
        let begin = Instant::now();
        let code =
            unsafe { (self.init)(ur_device_init_flags_t(0), ur_loader_config_handle_t::NULL) };
        let took = begin.elapsed();
        if code != ur_result_t::SUCCESS {
            return Err(format!("urLoaderInit: {code:?}").into());
        }
        Ok(took)
    }
    fn stop(&self) -> Result<()> {
        match unsafe { (self.down)() } {
            ur_result_t::SUCCESS => Ok(()),
            code => Err(format!("urLoaderTearDown: {code:?}").into()),
        }
    }
    /// Returns an object of the first adapter, and the adapter's own functions.
    fn object(&self, adapters: u32) -> Result<(*mut c_void, Calls)> {
        let mut all = [ur_adapter_handle_t::NULL; 4];
        let mut count = 0;
        let code = unsafe { (self.adapters)(4, all.as_mut_ptr(), &mut count) };
        if code != ur_result_t::SUCCESS || count != adapters {
            return Err(format!("{count} adapters and not {adapters}: {code:?}").into());
        }
        let table = unsafe { &**all[0].0.cast::<*const ur_dditable_t>() };
        let calls = Calls {
            flush: table.queue.flush.ok_or("no urQueueFlush")?,
            info: table.event.get_info.ok_or("no urEventGetInfo")?,
            copy: table.enqueue.usm_memcpy.ok_or("no urEnqueueUSMMemcpy")?,
        };
        Ok((all[0].0, calls))
    }
}

/// Times a block of calls of one kind.
fn block(which: usize, calls: &Calls, object: *mut c_void) -> Duration {
    let (queue, event) = (ur_queue_handle_t(object), ur_event_handle_t(object));
    let name = ur_event_info_t::REFERENCE_COUNT;
    let mut value = 0_u32;
    let at = (&raw mut value).cast();
    let calls = std::hint::black_box(*calls);
    let begin = Instant::now();
    for _ in 0..CALLS {
        let code = match which {
            0 => unsafe { (calls.flush)(queue) },
            1 => unsafe { (calls.info)(event, name, 4, at, null_mut()) },
            _ => unsafe { (calls.copy)(queue, true, at, at, 4, 0, null(), null_mut()) },
        };
        std::hint::black_box(code);
    }
    begin.elapsed()
}

/// Measures one mode of both loaders, alternately with the same calls made directly.
fn mode(
    what: &str,
    ours: &Loader,
    theirs: &Loader,
    adapters: &[PathBuf],
    layers: &str,
    most: f64,
) -> Result<()> {
    let list: Vec<_> = adapters.iter().map(|path| path.display().to_string()).collect();
    unsafe { std::env::set_var("UR_ADAPTERS_FORCE_LOAD", list.join(",")) };
    unsafe { std::env::set_var("UR_ENABLE_LAYERS", layers) };
    ours.start()?;
    theirs.start()?;
    let (object, bare) = ours.object(adapters.len() as u32)?;
    theirs.object(adapters.len() as u32)?;
    for (which, name) in ["urQueueFlush", "urEventGetInfo", "urEnqueueUSMMemcpy"].iter().enumerate()
    {
        let mut times: [Vec<Duration>; 4] = Default::default();
        for round in 0..BLOCKS {
            let all = [&bare, &ours.calls, &theirs.calls, &bare];
            for step in 0..4 {
                let at = (round + step) % 4;
                times[at].push(block(which, all[at], object));
            }
        }
        let [bare, ours, theirs, again] =
            times.each_mut().map(|times| median(times).as_secs_f64() * 1e9 / f64::from(CALLS));
        let (over, their) = (ours - bare, theirs - bare);
        let ratio = over / their;
        let verdict = if ratio <= most { "as promised" } else { "MORE than promised" };
        println!(
            "{what:<24} {name:<20} direct {bare:>6.2} ns  ours +{over:>7.2}  shipped +{their:>7.2}  ratio {ratio:.2} \
             (at most {most}), control {:.2}: {verdict}",
            bare / again
        );
    }
    ours.stop()?;
    theirs.stop()
}

/// Measures starts in this process, alternately.
fn starts(ours: &Loader, theirs: &Loader, adapter: &Path) -> Result<()> {
    unsafe { std::env::set_var("UR_ADAPTERS_FORCE_LOAD", adapter) };
    unsafe { std::env::set_var("UR_ENABLE_LAYERS", "") };
    let cycle = |loader: &Loader| {
        let took = loader.start()?;
        loader.stop()?;
        Ok(took)
    };
    Comparison::of("urLoaderInit, again", BLOCKS, || cycle(ours), || cycle(theirs))?
        .report(1, "shipped", 1.0);
    Ok(())
}
/// Measures starts in new processes.
fn first_starts(ours: &Path, theirs: &Path) -> Result<()> {
    let once = |what: &str, path: &Path| {
        let out = Command::new(std::env::current_exe()?).arg(what).arg(path).output()?;
        let nanoseconds: u64 = String::from_utf8(out.stdout)?.trim().parse()?;
        Ok(Duration::from_nanos(nanoseconds))
    };
    let start = |path: &Path| once("start", path);
    Comparison::of("urLoaderInit, first", STARTS, || start(ours), || start(theirs))?
        .report(1, "shipped", 1.0);
    // Work that is not done at the start may have been done when the file was loaded.
    let whole = |path: &Path| once("load", path);
    let what = "dlopen and urLoaderInit, first";
    Comparison::of(what, STARTS, || whole(ours), || whole(theirs))?.report(1, "shipped", 1.0);
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
/// Builds two adapters that do nothing.
fn adapters(folder: &Path) -> Result<[PathBuf; 2]> {
    let [first, second] = ["one", "two"].map(|name| folder.join(format!("libnothing_{name}.so")));
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC", "-I"]).arg(root().join("include"));
    let done = cc.arg(root().join("benches/probes/nothing.c")).arg("-o").arg(&first).status()?;
    if !done.success() {
        return Err("the C compiler failed".into());
    }
    fs::copy(&first, &second)?;
    Ok([first, second])
}
/// Builds our loader as it is shipped.
fn ours(folder: &Path) -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("CAUSEWAY_LOADER") {
        return Ok(given.into());
    }
    let mut dist = Command::new(env!("CARGO"));
    dist.args(["run", "--quiet", "--package", "xtask", "--", "dist", "--only", "loader", "--out"]);
    if !dist.arg(folder).current_dir(root()).status()?.success() {
        return Err("the loader was not built".into());
    }
    Ok(folder.join("libur_loader.so.0"))
}
fn theirs() -> Result<PathBuf> {
    let given = std::env::var_os("UR_REFERENCE_LOADER").map(PathBuf::from);
    let path = given.unwrap_or_else(|| root().join("target/sycl/venv/lib/libur_loader.so.0"));
    match path.exists() {
        true => Ok(path.canonicalize()?),
        false => {
            Err(format!("{} is not there: say UR_REFERENCE_LOADER=PATH", path.display()).into())
        }
    }
}

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, word, path] = arguments.as_slice() {
        let begin = Instant::now();
        let start = Loader::open(Path::new(path))?.start()?;
        let took = if word == "load" { begin.elapsed() } else { start };
        println!("{}", took.as_nanos());
        return Ok(());
    }
    let folder = std::env::temp_dir().join(format!("causeway-bench-loader-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let (ours_path, theirs_path) = (ours(&folder)?, theirs()?);
    let [first, second] = adapters(&folder)?;
    let size = |path: &Path| fs::metadata(path).map(|file| file.len() as f64 / f64::from(1 << 20));
    println!("size: ours {:.1} MiB, shipped {:.1} MiB", size(&ours_path)?, size(&theirs_path)?);
    let (ours, theirs) = (Loader::open(&ours_path)?, Loader::open(&theirs_path)?);
    pin(processors() - 1)?;
    let (one, two) = (&[first.clone()][..], &[first.clone(), second][..]);
    mode("two adapters", &ours, &theirs, two, "", 0.7)?;
    mode("one adapter", &ours, &theirs, one, "", 1.0)?;
    mode("parameter validation", &ours, &theirs, one, "UR_LAYER_PARAMETER_VALIDATION", 1.0)?;
    mode("tracing without a sink", &ours, &theirs, one, "UR_LAYER_TRACING", 1.0)?;
    starts(&ours, &theirs, &first)?;
    first_starts(&ours_path, &theirs_path)?;
    fs::remove_dir_all(&folder)?;
    Ok(())
}
