//! The yardstick for many small opens: a pool of the Unified Memory Framework over shared system memory.
//! `CAUSEWAY_BENCH_UMF` names the library, which PyPI's wheel `umf` contains.
use causeway_benches::Result;
use libloading::os::unix::Library;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    time::{Duration, Instant},
};

/// The environment variable with the library's path.
pub const VARIABLE: &str = "CAUSEWAY_BENCH_UMF";
/// `UMF_MEM_MAP_SHARED`
const SHARED: i32 = 2;

type Handle = *mut c_void;

/// The size of a pool's slabs, the same as in the CPU adapter.
const SLAB: usize = 2 << 20;

/// How allocations are backed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Each allocation by itself: each open makes its own system calls.
    Alone,
    /// Parts of slabs: the first open in a slab maps it, and later opens do not ask the exporter, not even
    /// whether it still shares.
    Pooled,
}

/// Whether the environment names a library.
pub fn is_there() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// A pool over shared memory.
pub struct Pool {
    library: Library,
    pool: Handle,
}

macro_rules! call {
    ($library:expr, $name:literal, ($($type:ty),*), $($argument:expr),*) => {{
        let entry = unsafe {
            $library.get::<unsafe extern "C" fn($($type),*) -> i32>(concat!($name, "\0").as_bytes())
        }?;
        match unsafe { entry($($argument),*) } {
            0 => {}
            code => return Err(format!(concat!($name, " failed: {}"), code).into()),
        }
    }};
}

impl Pool {
    /// Creates a pool with the library that the environment names.
    pub fn new(shape: Shape) -> Result<Self> {
        let path = std::env::var_os(VARIABLE).ok_or("the environment names no library of UMF's")?;
        let library = unsafe { Library::new(path) }?;
        let ops = |name: &[u8]| -> Result<*const c_void> {
            let entry = unsafe { library.get::<unsafe extern "C" fn() -> *const c_void>(name) }?;
            Ok(unsafe { entry() })
        };
        let (mut params, mut provider) = (null_mut::<c_void>(), null_mut::<c_void>());
        let (mut slabs, mut pool) = (null_mut::<c_void>(), null_mut::<c_void>());
        call!(library, "umfOsMemoryProviderParamsCreate", (*mut Handle), &mut params);
        call!(library, "umfOsMemoryProviderParamsSetVisibility", (Handle, i32), params, SHARED);
        let os = ops(b"umfOsMemoryProviderOps\0")?;
        call!(
            library,
            "umfMemoryProviderCreate",
            (*const c_void, Handle, *mut Handle),
            os,
            params,
            &mut provider
        );
        let kind = match shape {
            Shape::Alone => ops(b"umfProxyPoolOps\0")?,
            Shape::Pooled => {
                call!(library, "umfDisjointPoolParamsCreate", (*mut Handle), &mut slabs);
                call!(library, "umfDisjointPoolParamsSetSlabMinSize", (Handle, usize), slabs, SLAB);
                ops(b"umfDisjointPoolOps\0")?
            }
        };
        call!(
            library,
            "umfPoolCreate",
            (*const c_void, Handle, *const c_void, u32, *mut Handle),
            kind,
            provider,
            slabs.cast_const(),
            0,
            &mut pool
        );
        Ok(Self { library, pool })
    }
    /// Allocates `bytes` and shares them; returns the handle for an importer.
    pub fn share(&self, bytes: usize) -> Result<Vec<u8>> {
        let name = b"umfPoolMalloc\0";
        let malloc = unsafe {
            self.library.get::<unsafe extern "C" fn(Handle, usize) -> *mut c_void>(name)
        }?;
        let at = unsafe { malloc(self.pool, bytes) };
        if at.is_null() {
            return Err("umfPoolMalloc failed".into());
        }
        let (mut handle, mut size) = (null::<u8>(), 0usize);
        call!(
            self.library,
            "umfGetIPCHandle",
            (*const c_void, *mut *const u8, *mut usize),
            at,
            &mut handle,
            &mut size
        );
        Ok(unsafe { std::slice::from_raw_parts(handle, size) }.to_vec())
    }
    /// Opens all handles; returns the time.
    pub fn open(&self, handles: &mut [Vec<u8>]) -> Result<Duration> {
        let mut handler = null_mut::<c_void>();
        call!(self.library, "umfPoolGetIPCHandler", (Handle, *mut Handle), self.pool, &mut handler);
        let start = Instant::now();
        for handle in handles {
            let mut at = null_mut::<c_void>();
            call!(
                self.library,
                "umfOpenIPCHandle",
                (Handle, *mut c_void, *mut *mut c_void),
                handler,
                handle.as_mut_ptr().cast(),
                &mut at
            );
        }
        Ok(start.elapsed())
    }
}
