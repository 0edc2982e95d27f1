//! `cargo xtask dist`: what other programs load and include, in one folder. The shared objects
//! are linked here and not by cargo, whose cdylibs bring a version script that lets no other in.
use crate::{
    leaf::{self, Object},
    parse, root,
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T> = std::result::Result<T, String>;

/// What is to be made.
#[derive(clap::Args, Debug, Default)]
pub struct Request {
    /// Makes this adapter (native_cpu, null, ...) and not all; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Where to; target/dist if not given
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Builds quickly instead of well
    #[arg(long)]
    pub debug: bool,
}

/// Makes what is asked for; gives the shared objects in the order of the list of leaves.
pub fn run(request: &Request) -> Result<Vec<PathBuf>> {
    let spec = parse::spec(&root().join("spec"))?;
    let objects = leaf::chosen(&spec, &request.only)?;
    let out = request.out.clone().unwrap_or_else(|| target().join("dist"));
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let folder = archives(&objects, !request.debug)?;
    let mut paths = Vec::new();
    for object in objects {
        let path = out.join(&object.soname);
        Linked { object: &object, strip: !request.debug }.make(&folder, &path)?;
        let made = |e: std::io::Error| format!("{}: {e}", path.display());
        let development = out.join(object.soname.trim_end_matches(".0"));
        if development.symlink_metadata().is_ok() {
            fs::remove_file(&development).map_err(made)?;
        }
        std::os::unix::fs::symlink(&object.soname, &development).map_err(made)?;
        let size = fs::metadata(&path).map_err(made)?.len();
        println!("{} {:.1} MiB", path.display(), size as f64 / f64::from(1 << 20));
        paths.push(path);
    }
    headers(&out.join("include"))?;
    println!("{}", out.join("include").display());
    Ok(paths)
}

/// The folders of `include/`, into `to`.
fn headers(to: &Path) -> Result<()> {
    let wrong = |e: std::io::Error| format!("include, to {}: {e}", to.display());
    for folder in fs::read_dir(root().join("include")).map_err(wrong)? {
        let folder = folder.map_err(wrong)?;
        let to = to.join(folder.file_name());
        fs::create_dir_all(&to).map_err(wrong)?;
        for header in fs::read_dir(folder.path()).map_err(wrong)? {
            let header = header.map_err(wrong)?;
            fs::copy(header.path(), to.join(header.file_name())).map_err(wrong)?;
        }
    }
    Ok(())
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// A command of the cargo that runs this task, in the repository's root.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Has cargo build the leaves; gives the folder of their static libraries.
fn archives(objects: &[Object], optimised: bool) -> Result<PathBuf> {
    let (profile, folder) = if optimised { ("release", "release") } else { ("dev", "debug") };
    let mut build = cargo();
    build.args(["build", "--quiet", "--profile", profile]);
    build.args(objects.iter().flat_map(|o| ["--package", o.package]));
    execute(&mut build)?;
    Ok(target().join(folder))
}

/// A shared object in the making.
struct Linked<'a> {
    object: &'a Object,
    strip: bool,
}

impl Linked<'_> {
    fn make(&self, archives: &Path, object: &Path) -> Result<()> {
        let script = object.with_extension("map");
        let listed: Vec<_> = self.object.symbols.iter().map(String::as_str).collect();
        let text =
            format!("{} {{ global: {}; local: *; }};\n", self.object.node, listed.join("; "));
        fs::write(&script, text).map_err(|e| format!("{}: {e}", script.display()))?;
        // A program may have the old object mapped: a new file takes its place, it is not written over.
        let fresh = object.with_extension("new");
        let mut cc = Command::new("cc");
        cc.arg("-shared").arg("-o").arg(&fresh);
        cc.arg(format!("-Wl,-soname,{}", self.object.soname));
        cc.arg(format!("-Wl,--version-script={}", script.display()));
        cc.args(["-Wl,--gc-sections", "-Wl,--build-id=sha1"]);
        if self.strip {
            cc.arg("-Wl,--strip-all");
        }
        // Threads of ours may outlive a dlclose.
        cc.args(["-Wl,-z,defs", "-Wl,-z,nodelete", "-Wl,-z,relro", "-Wl,-z,now"]);
        cc.args(listed.iter().map(|symbol| format!("-Wl,-u,{symbol}")));
        cc.arg(archives.join(&self.object.archive));
        cc.args(["-Wl,--as-needed", "-lgcc_s", "-lpthread", "-ldl", "-lm"]);
        execute(&mut cc)?;
        self.inspect(&fresh)?;
        fs::rename(&fresh, object).map_err(|e| format!("{}: {e}", object.display()))?;
        fs::remove_file(&script).map_err(|e| format!("{}: {e}", script.display()))
    }

    /// Nothing leaves here that exports more than it should (an allocator, say, that would take the
    /// place of the host program's), bears another name, or carries symbols that were to be stripped.
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

fn output(program: &str, arguments: &[&str], object: &Path) -> Result<String> {
    let out = Command::new(program).env("LC_ALL", "C").args(arguments).arg(object).output();
    let out = out.map_err(|e| format!("{program}: {e}; dist needs binutils"))?;
    match out.status.success() {
        true => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&out.stderr))),
    }
}

/// Runs a command to its end.
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

    /// What a shared object is to be.
    fn wanted() -> Object {
        Object {
            package: "foo",
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

    #[test]
    fn an_object_that_brings_an_allocator_or_keeps_its_symbols_is_refused() {
        let inspect = |path: &Path, strip| Linked { object: &wanted(), strip }.inspect(path);
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
