//! Calls the driver through its C symbols, as a program does.
use libloading::Library;
use std::sync::OnceLock;

/// `call!("cuInit", 0 => u32)`: the symbol, and its arguments with their types.
macro_rules! call {
    ($name:literal $(, $argument:expr => $type:ty)*) => {{
        let f = unsafe { $crate::common::driver().get::<unsafe extern "C" fn($($type),*) -> i32>($name.as_bytes()) };
        let f = f.expect($name);
        unsafe { f($($argument),*) }
    }};
}
pub(crate) use call;
/// Loads and initialises the shared object beside this test.
pub fn driver() -> &'static Library {
    static DRIVER: OnceLock<Library> = OnceLock::new();
    DRIVER.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let places = ["libsoft_cuda.so", "../libsoft_cuda.so"];
        let found = || {
            let mut files = places.iter().map(|place| test.parent().unwrap().join(place));
            files.find(|file| file.exists())
        };
        // A test of this package alone does not build the shared object.
        let file = found().unwrap_or_else(|| {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
            let mut build = std::process::Command::new(cargo);
            let built = build.args(["build", "--quiet", "--package", "soft-cuda"]).status();
            assert!(built.is_ok_and(|status| status.success()), "the driver is not built");
            found().expect("cargo build --package soft-cuda makes libsoft_cuda.so")
        });
        let library = unsafe { Library::new(file) }.unwrap();
        let init = unsafe { library.get::<unsafe extern "C" fn(u32) -> i32>(b"cuInit") };
        assert_eq!(unsafe { init.unwrap()(0) }, 0);
        library
    })
}
/// Makes the primary context current on this thread.
pub fn current() {
    let mut context = 0;
    assert_eq!(call!("cuDevicePrimaryCtxRetain", &mut context => *mut u64, 0 => i32), 0);
    assert_eq!(call!("cuCtxPushCurrent_v2", context => u64), 0);
}
pub fn stream() -> u64 {
    let mut stream = 0;
    let made = call!("cuStreamCreateWithPriority", &mut stream => *mut u64, 1 => u32, 0 => i32);
    assert_eq!(made, 0);
    stream
}
