//! Compiles OpenCL C with clang and llvm-spirv, if they are installed.
use std::{
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

/// The path of a tool, whose name may end with a version.
fn tool(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let names = [String::new()].into_iter().chain((14..=20).rev().map(|v| format!("-{v}")));
    let names: Vec<String> = names.map(|v| format!("{name}{v}")).collect();
    std::env::split_paths(&folders)
        .find_map(|folder| names.iter().map(|name| folder.join(name)).find(|path| path.is_file()))
}
/// The SPIR-V of a source; `None` if the compiler is not installed.
pub fn compiled(source: &str) -> Option<Vec<u8>> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (Some(clang), Some(translator)) = (tool("clang"), tool("llvm-spirv")) else {
        eprintln!("skipped: clang or llvm-spirv is not installed");
        return None;
    };
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("ze-software-{}-{n}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [text, code, module] = ["k.cl", "k.bc", "k.spv"].map(|name| folder.join(name));
    std::fs::write(&text, source).unwrap();
    let options = "-target spir64 -cl-std=CL2.0 -O1 -Xclang -finclude-default-header -emit-llvm -c";
    let mut clang = Command::new(clang);
    clang.args(options.split(' ')).arg(&text).arg("-o").arg(&code);
    assert!(clang.status().unwrap().success(), "clang refuses the source");
    let done = Command::new(translator).arg(&code).arg("-o").arg(&module).status().unwrap();
    assert!(done.success(), "llvm-spirv refuses the code");
    let bytes = std::fs::read(&module).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    Some(bytes)
}
