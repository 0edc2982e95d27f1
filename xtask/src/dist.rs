//! `cargo xtask dist`: what another program loads and includes, in one folder. The shared object
//! is linked here and not by cargo, whose cdylibs bring a version script that lets no other in.
use crate::{model::Spec, names, parse, root};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T> = std::result::Result<T, String>;

/// What a loader opens, and the version that its symbols carry.
const SONAME: &str = "libur_adapter_native_cpu.so.0";
const SYMBOLS: &str = "LIBUR_ADAPTER_NATIVE_CPU_0.0";

/// Builds into `out` (`target/dist` if not given); without `optimised` it is a quick build for tests.
pub fn run(out: Option<PathBuf>, optimised: bool) -> Result<()> {
    let out = out.unwrap_or_else(|| target().join("dist"));
    let made = |e: std::io::Error| format!("{}: {e}", out.display());
    fs::create_dir_all(out.join("include/unified-runtime")).map_err(made)?;
    let spec = parse::spec(&root().join("spec"))?;
    let object = out.join(SONAME);
    link(&spec, &archive(optimised)?, &object, optimised)?;
    let development = out.join(SONAME.trim_end_matches(".0"));
    if development.symlink_metadata().is_ok() {
        fs::remove_file(&development).map_err(made)?;
    }
    std::os::unix::fs::symlink(SONAME, &development).map_err(made)?;
    for header in
        fs::read_dir(root().join("include/unified-runtime")).map_err(|e| format!("include: {e}"))?
    {
        let header = header.map_err(|e| format!("include: {e}"))?;
        fs::copy(header.path(), out.join("include/unified-runtime").join(header.file_name()))
            .map_err(made)?;
    }
    let size = fs::metadata(&object).map_err(made)?.len();
    println!("{} {:.1} MiB", object.display(), size as f64 / f64::from(1 << 20));
    println!("{}", out.join("include").display());
    Ok(())
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Has cargo build the leaf; gives its static library.
fn archive(optimised: bool) -> Result<PathBuf> {
    let (profile, folder) = if optimised { ("release", "release") } else { ("dev", "debug") };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.current_dir(root()).args([
        "build",
        "--quiet",
        "--package",
        "native-cpu",
        "--profile",
        profile,
    ]);
    execute(&mut build)?;
    Ok(target().join(folder).join("libnative_cpu.a"))
}

fn link(spec: &Spec, archive: &Path, object: &Path, strip: bool) -> Result<()> {
    let getters: Vec<_> = spec.tables.iter().map(|t| names::getter(&t.member)).collect();
    let script = object.with_extension("map");
    let text = format!("{SYMBOLS} {{ global: {}; local: *; }};\n", getters.join("; "));
    fs::write(&script, text).map_err(|e| format!("{}: {e}", script.display()))?;
    // A program may have the old object mapped: a new file takes its place, it is not written over.
    let fresh = object.with_extension("new");
    let mut cc = Command::new("cc");
    cc.arg("-shared").arg("-o").arg(&fresh).arg(format!("-Wl,-soname,{SONAME}"));
    cc.arg(format!("-Wl,--version-script={}", script.display()));
    cc.args(["-Wl,--gc-sections", "-Wl,--build-id=sha1"]);
    if strip {
        cc.arg("-Wl,--strip-all");
    }
    // Threads of ours may outlive a dlclose.
    cc.args(["-Wl,-z,defs", "-Wl,-z,nodelete", "-Wl,-z,relro", "-Wl,-z,now"]);
    cc.args(getters.iter().map(|g| format!("-Wl,-u,{g}"))).arg(archive);
    cc.args(["-Wl,--as-needed", "-lgcc_s", "-lpthread", "-ldl", "-lm"]);
    execute(&mut cc)?;
    inspect(&fresh, &getters, strip)?;
    fs::rename(&fresh, object).map_err(|e| format!("{}: {e}", object.display()))?;
    fs::remove_file(&script).map_err(|e| format!("{}: {e}", script.display()))
}

/// Nothing leaves here that exports more than its getters (an allocator, say, that would take the
/// place of the host program's), bears another name, or carries symbols that were to be stripped.
fn inspect(object: &Path, getters: &[String], stripped: bool) -> Result<()> {
    let wrong = |what: String| Err(format!("{}: {what}", object.display()));
    let symbols = output("nm", &["-D", "--defined-only", "--format=just-symbols"], object)?;
    let exported: BTreeSet<_> =
        symbols.lines().filter_map(|l| l.split('@').next()).filter(|s| *s != SYMBOLS).collect();
    let intended: BTreeSet<_> = getters.iter().map(String::as_str).collect();
    if exported != intended {
        let off: Vec<_> = exported.symmetric_difference(&intended).collect();
        return wrong(format!("exports too much or too little: {off:?}"));
    }
    if !output("readelf", &["-dW"], object)?.contains(&format!("soname: [{SONAME}]")) {
        return wrong(format!("is not called {SONAME}"));
    }
    if stripped && output("readelf", &["-SW"], object)?.contains(".symtab") {
        return wrong("is not stripped".to_string());
    }
    Ok(())
}
fn output(program: &str, arguments: &[&str], object: &Path) -> Result<String> {
    let out = Command::new(program).env("LC_ALL", "C").args(arguments).arg(object).output();
    let out = out.map_err(|e| format!("{program}: {e}; dist needs binutils"))?;
    match out.status.success() {
        true => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&out.stderr))),
    }
}

fn execute(command: &mut Command) -> Result<()> {
    let program = command.get_program().display().to_string();
    let status = command
        .status()
        .map_err(|e| format!("{program}: {e}; dist needs cargo and a C compiler"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} failed ({status})")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shared object with the functions of `source`.
    fn object(name: &str, source: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("causeway-dist-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (c, object) = (folder.join(format!("{name}.c")), folder.join(name));
        fs::write(&c, source).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-fno-builtin", "-o"]).arg(&object).arg(&c);
        execute(cc.arg(format!("-Wl,-soname,{SONAME}"))).unwrap();
        object
    }

    #[test]
    fn an_object_that_brings_an_allocator_or_keeps_its_symbols_is_refused() {
        let getters = ["urGetFoo".to_string()];
        let right = object("right", "int urGetFoo(void) { return 0; }");
        assert_eq!(inspect(&right, &getters, false), Ok(()));
        assert!(inspect(&right, &getters, true).unwrap_err().contains("not stripped"));
        let swapped =
            object("swapped", "int urGetFoo(void) { return 0; } void free(void *p) { (void)p; }");
        assert!(inspect(&swapped, &getters, false).unwrap_err().contains("free"));
        let lacking = object("lacking", "int other(void) { return 0; }");
        assert!(inspect(&lacking, &getters, false).unwrap_err().contains("urGetFoo"));
        fs::remove_dir_all(right.parent().unwrap()).unwrap();
    }
}
