//! `cargo xtask dist`: builds the files that other programs load and include into one folder: the loader, the
//! headers, and each adapter in a folder of its own, so that a search path can name exactly the wanted
//! adapters. The shared objects are linked here instead of by cargo, because cargo's own version script for
//! cdylibs excludes another one.
//!
//! All files are created in a staging folder and then renamed, so that a program that reads the folder, or a
//! concurrent `dist` into it, sees only complete files.
use crate::{
    leaf::{self, Object},
    parse, root,
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

type Result<T> = std::result::Result<T, String>;

/// What to build.
#[derive(clap::Args, Debug, Default)]
pub struct Request {
    /// Builds only this adapter (native_cpu, null, ...); may be given more than once
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// The output folder; target/dist if not given
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Builds without optimisation
    #[arg(long)]
    pub debug: bool,
    /// Removes symbols and debugging information also with --debug
    #[arg(long)]
    pub strip: bool,
    /// The linker to use instead of `cc`
    #[arg(long, value_name = "PROGRAM")]
    pub linker: Option<PathBuf>,
}

/// Builds what is requested; returns the shared objects in the order of the list of leaves.
pub fn run(request: &Request) -> Result<Vec<PathBuf>> {
    let spec = parse::spec(&root().join("spec"))?;
    let objects = leaf::chosen(&spec, &request.only)?;
    let out = request.out.clone().unwrap_or_else(|| target().join("dist"));
    let archives = archives(&objects, !request.debug)?;
    let staging = Staging::new(&out)?;
    let mut paths = Vec::new();
    for object in &objects {
        let (strip, linker) = (!request.debug || request.strip, request.linker.as_deref());
        let linker = linker.unwrap_or(Path::new("cc"));
        let path = Linked { object, strip, linker }.make(&archives, &staging)?;
        let size = fs::metadata(&path).map_err(|e| at(&path, &e))?.len();
        println!("{} {:.1} MiB", path.display(), size as f64 / f64::from(1 << 20));
        paths.push(path);
    }
    headers(&staging)?;
    println!("{}", out.join("include").display());
    // A folder that the user named may contain files of others: UR's own adapters have the same names.
    clear_flat(&objects, &out, request.out.is_none())?;
    Ok(paths)
}

/// Reports adapters that lie directly in the output folder, where older versions put them, and removes them
/// if the folder is `ours`; loaders would find these outdated files.
fn clear_flat(objects: &[Object], out: &Path, ours: bool) -> Result<()> {
    for Object { soname, .. } in objects.iter().filter(|object| !object.folder.is_empty()) {
        for name in [soname, soname.trim_end_matches(".0")] {
            let path = out.join(name);
            if path.symlink_metadata().is_err() {
                continue;
            }
            if ours {
                fs::remove_file(&path).map_err(|e| at(&path, &e))?;
                println!("{} removed: adapters have folders of their own now", path.display());
            } else {
                println!(
                    "{} is not of this build; if an earlier `dist` put it there, remove it",
                    path.display()
                );
            }
        }
    }
    Ok(())
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// A folder inside the output folder, in which files are created before they are renamed. No other `dist`
/// uses it. It is removed on drop.
struct Staging<'a> {
    folder: PathBuf,
    out: &'a Path,
}
impl<'a> Staging<'a> {
    fn new(out: &'a Path) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed); // Relaxed: only uniqueness matters
        let folder = out.join(format!(".dist-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|e| at(&folder, &e))?;
        Ok(Self { folder, out })
    }
    /// Returns the path at which to create a file of this name.
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
    /// Moves the file that was created under `name` to the folder `place`, relative to the output folder. A
    /// file that was there is replaced atomically, and programs that have it mapped keep the old one.
    fn publish(&self, name: &str, place: &Path) -> Result<PathBuf> {
        let place = self.out.join(place);
        fs::create_dir_all(&place).map_err(|e| at(&place, &e))?;
        let path = place.join(name);
        fs::rename(self.file(name), &path).map_err(|e| at(&path, &e))?;
        Ok(path)
    }
}
impl Drop for Staging<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Copies the folders of `include/`.
fn headers(staging: &Staging) -> Result<()> {
    let wrong = |e: std::io::Error| format!("include: {e}");
    for folder in fs::read_dir(root().join("include")).map_err(wrong)? {
        let folder = folder.map_err(wrong)?;
        let place = Path::new("include").join(folder.file_name());
        for header in fs::read_dir(folder.path()).map_err(wrong)? {
            let header = header.map_err(wrong)?;
            let name = header.file_name().to_string_lossy().into_owned();
            fs::copy(header.path(), staging.file(&name)).map_err(wrong)?;
            staging.publish(&name, &place)?;
        }
    }
    Ok(())
}

/// Returns cargo's target folder.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Returns a command of the cargo that runs this task, in the repository's root.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Arguments that select the workspace's programs in addition to the packages that are built. Cargo then uses
/// the same features of dependencies as for a build of the whole workspace, so that what `cargo test
/// --workspace` has built is not built again for a single adapter. The caller adds what is built: `--lib`,
/// because the programs' packages have no library, or `--bin`.
pub const WITH_PROGRAMS: [&str; 6] =
    ["--package", "causeway-cli", "--package", "ur-conformance", "--package", "xtask"];

/// Builds the conformance suite with cargo; returns its path.
pub fn suite() -> Result<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--bin", "ur-conformance"]).args(WITH_PROGRAMS);
    execute(&mut build)?;
    Ok(target().join("debug/ur-conformance"))
}

/// Builds the leaves with cargo; returns the folder of their static libraries.
fn archives(objects: &[Object], optimised: bool) -> Result<PathBuf> {
    let (profile, folder) = if optimised { ("release", "release") } else { ("dev", "debug") };
    // If the programs were selected too, the loader would have the adapters linked in, a feature that the
    // crate `causeway` enables.
    let (loader, adapters): (Vec<_>, Vec<_>) = objects.iter().partition(|o| o.package == "loader");
    for (objects, beside) in [(adapters, &WITH_PROGRAMS[..]), (loader, &[])] {
        if objects.is_empty() {
            continue;
        }
        let mut build = cargo();
        build.args(["build", "--quiet", "--lib", "--profile", profile]).args(beside);
        build.args(objects.iter().flat_map(|o| ["--package", o.package]));
        execute(&mut build)?;
    }
    Ok(target().join(folder))
}

/// A shared object to be linked.
struct Linked<'a> {
    object: &'a Object,
    strip: bool,
    linker: &'a Path,
}

impl Linked<'_> {
    /// Links the object and moves it to its folder, with the symbolic link by which compilers find it.
    fn make(&self, archives: &Path, staging: &Staging) -> Result<PathBuf> {
        let Object { soname, node, folder, .. } = self.object;
        let (object, script) = (staging.file(soname), staging.file("exports.map"));
        let listed: Vec<_> = self.object.symbols.iter().map(String::as_str).collect();
        let text = format!("{node} {{ global: {}; local: *; }};\n", listed.join("; "));
        fs::write(&script, text).map_err(|e| at(&script, &e))?;
        let mut cc = Command::new(self.linker);
        cc.arg("-shared").arg("-o").arg(&object);
        cc.arg(format!("-Wl,-soname,{soname}"));
        cc.arg(format!("-Wl,--version-script={}", script.display()));
        cc.args(["-Wl,--gc-sections", "-Wl,--build-id=sha1"]);
        if self.strip {
            cc.arg("-Wl,--strip-all");
        }
        // The objects' threads may outlive a dlclose.
        cc.args(["-Wl,-z,defs", "-Wl,-z,nodelete", "-Wl,-z,relro", "-Wl,-z,now"]);
        cc.args(listed.iter().map(|symbol| format!("-Wl,-u,{symbol}")));
        cc.arg(archives.join(&self.object.archive));
        cc.args(["-Wl,--as-needed", "-lgcc_s", "-lpthread", "-ldl", "-lm"]);
        execute(&mut cc)?;
        self.inspect(&object)?;
        let development = soname.trim_end_matches(".0");
        let link = staging.file(development);
        std::os::unix::fs::symlink(soname, &link).map_err(|e| at(&link, &e))?;
        let path = staging.publish(soname, Path::new(folder))?;
        staging.publish(development, Path::new(folder))?;
        Ok(path)
    }

    /// Fails if the object exports more than it should (for example an allocator, which would replace that of
    /// the host program), has another soname, or contains symbols that should be stripped.
    fn inspect(&self, object: &Path) -> Result<()> {
        let wrong = |what: String| Err(format!("{}: {what}", object.display()));
        let Object { node, soname, symbols, .. } = self.object;
        let listed = output("nm", &["-D", "--defined-only", "--format=just-symbols"], object)?;
        let exported: BTreeSet<_> = listed
            .lines()
            .filter_map(|l| l.split('@').next())
            .filter(|s| s != node)
            .map(str::to_string)
            .collect();
        if exported != *symbols {
            let off: Vec<_> = exported.symmetric_difference(symbols).collect();
            return wrong(format!("exports too much or too little: {off:?}"));
        }
        if !output("readelf", &["-dW"], object)?.contains(&format!("soname: [{soname}]")) {
            return wrong(format!("is not called {soname}"));
        }
        if self.strip && output("readelf", &["-SW"], object)?.contains(".symtab") {
            return wrong("is not stripped".to_string());
        }
        Ok(())
    }
}

/// Returns the output of a program of binutils for an object.
pub fn output(program: &str, arguments: &[&str], object: &Path) -> Result<String> {
    let out = Command::new(program).env("LC_ALL", "C").args(arguments).arg(object).output();
    let out = out.map_err(|e| format!("{program}: {e}; dist needs binutils"))?;
    match out.status.success() {
        true => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&out.stderr))),
    }
}

/// Runs a command to its end; fails if it fails.
pub fn execute(command: &mut Command) -> Result<()> {
    let program = command.get_program().display().to_string();
    let status = command
        .status()
        .map_err(|e| format!("{program}: {e}; dist needs cargo and a C compiler"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} failed ({status})")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The description of a shared object.
    fn wanted() -> Object {
        Object {
            package: "foo",
            folder: "foo".to_string(),
            soname: "libfoo.so.0".to_string(),
            node: "FOO_0".to_string(),
            archive: "libfoo.a".to_string(),
            symbols: ["urGetFoo".to_string()].into(),
        }
    }

    /// A shared object with the functions of `source`.
    fn object(name: &str, source: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("causeway-dist-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (c, object) = (folder.join(format!("{name}.c")), folder.join(name));
        fs::write(&c, source).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-fno-builtin", "-o"]).arg(&object).arg(&c);
        execute(cc.arg(format!("-Wl,-soname,{}", wanted().soname))).unwrap();
        object
    }

    /// Neither fails, a reader finds a complete object at any moment, and no files are left behind.
    #[test]
    fn two_dists_in_one_folder_at_a_time_do_not_break_each_other() {
        let folder = std::env::temp_dir().join(format!("causeway-dists-{}", std::process::id()));
        let (archives, out) = (folder.join("archives"), folder.join("out"));
        fs::create_dir_all(&archives).unwrap();
        let (c, o) = (archives.join("foo.c"), archives.join("foo.o"));
        fs::write(&c, "int urGetFoo(void) { return 0; }").unwrap();
        execute(Command::new("cc").args(["-fPIC", "-c", "-o"]).arg(&o).arg(&c)).unwrap();
        execute(Command::new("ar").arg("rc").arg(archives.join("libfoo.a")).arg(&o)).unwrap();
        let dist = || -> Result<()> {
            let (object, staging) = (wanted(), Staging::new(&out)?);
            let linked = Linked { object: &object, strip: false, linker: Path::new("cc") };
            linked.inspect(&linked.make(&archives, &staging)?)?;
            headers(&staging)
        };
        std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| (0..5).try_for_each(|_| dist())));
            threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), Ok(())));
        });
        let names = |folder: &Path| -> BTreeSet<_> {
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name()).collect()
        };
        assert_eq!(names(&out), ["foo", "include"].map(Into::into).into());
        assert_eq!(names(&out.join("foo")), ["libfoo.so", "libfoo.so.0"].map(Into::into).into());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_an_older_layout_left_is_removed_from_our_folder_and_from_no_other() {
        let out = std::env::temp_dir().join(format!("causeway-flat-{}", std::process::id()));
        fs::create_dir_all(out.join("foo")).unwrap();
        let lay = || {
            fs::write(out.join("libfoo.so.0"), "old").unwrap();
            let _there = std::os::unix::fs::symlink("libfoo.so.0", out.join("libfoo.so"));
            fs::write(out.join("foo/libfoo.so.0"), "new").unwrap();
            fs::write(out.join("libbar.so.0"), "nobody's").unwrap();
        };
        let is_there = |name: &str| out.join(name).symlink_metadata().is_ok();
        lay();
        clear_flat(&[wanted()], &out, false).unwrap();
        assert!(is_there("libfoo.so.0") && is_there("libfoo.so"));
        clear_flat(&[wanted()], &out, true).unwrap();
        assert!(!is_there("libfoo.so.0") && !is_there("libfoo.so"));
        assert!(is_there("foo/libfoo.so.0") && is_there("libbar.so.0"));
        // The loader is in the output folder itself and must stay.
        lay();
        let loader = Object { folder: String::new(), ..wanted() };
        clear_flat(&[loader], &out, true).unwrap();
        assert!(is_there("libfoo.so.0"));
        fs::remove_dir_all(out).unwrap();
    }

    #[test]
    fn an_object_that_brings_an_allocator_or_keeps_its_symbols_is_refused() {
        let inspect = |path: &Path, strip| {
            Linked { object: &wanted(), strip, linker: Path::new("cc") }.inspect(path)
        };
        let right = object("right", "int urGetFoo(void) { return 0; }");
        assert_eq!(inspect(&right, false), Ok(()));
        assert!(inspect(&right, true).unwrap_err().contains("not stripped"));
        let swapped =
            object("swapped", "int urGetFoo(void) { return 0; } void free(void *p) { (void)p; }");
        assert!(inspect(&swapped, false).unwrap_err().contains("free"));
        let lacking = object("lacking", "int other(void) { return 0; }");
        assert!(inspect(&lacking, false).unwrap_err().contains("urGetFoo"));
        fs::remove_dir_all(right.parent().unwrap()).unwrap();
    }
}
