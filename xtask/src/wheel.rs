//! Files out of the wheels of a Unified Runtime that is shipped: fetched once by pip, which checks
//! their hash, and unpacked into `target/`.
use crate::dist::execute;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A wheel, as pip asks for it.
#[derive(Debug)]
pub struct Wheel {
    pub name: &'static str,
    pub hash: &'static str,
}

/// Has the headers.
pub const RUNTIME: Wheel = Wheel {
    name: "intel-sycl-rt==2026.2.0",
    hash: "sha256:ad920da1ffcb43edbc03422a7c85094997e6d578f9ab534743442af70bcbfaa1",
};
/// Has the loader and the adapters.
pub const LIBRARIES: Wheel = Wheel {
    name: "intel-cmplr-lib-ur==2026.2.0",
    hash: "sha256:0d0a5099aa2e1e38375b509c2a8182e719ed74aa656b2a800ddf6cfbd3384b80",
};
/// What these libraries need beside the C library, and where it is.
pub const BESIDE: &[(Wheel, &[&str])] = &[
    (
        Wheel {
            name: "intel-cmplr-lib-rt==2026.2.0",
            hash: "sha256:9f713083073a820d2496a6da8e8d4f3482aba6640f74521d25ea48dcebe72748",
        },
        &["libimf.so", "libintlc.so.5", "libirng.so", "libsvml.so"],
    ),
    (
        Wheel {
            name: "umf==1.2.0",
            hash: "sha256:238d186fdd9e9c0fe1489da95b19b0b79045fe26c4aa98bd0a022a2a3603c195",
        },
        &["libumf.so.1"],
    ),
    (
        Wheel {
            name: "tcmlib==1.6.0",
            hash: "sha256:46c2491988bfd18c4733eeb08aca6a386706a497b92cc51d155f37ddea003c14",
        },
        &["libhwloc.so.15"],
    ),
];

const UNPACK: &str = "import glob, os, sys, zipfile
for wheel in glob.glob(sys.argv[1] + '/*.whl'):
    with zipfile.ZipFile(wheel) as z:
        for name in z.namelist():
            if os.path.basename(name) in sys.argv[3:]:
                with open(os.path.join(sys.argv[2], os.path.basename(name)), 'wb') as f:
                    f.write(z.read(name))
    os.remove(wheel)
";

impl Wheel {
    /// The folder `to`, with the wheel's files of these names in it; fetches them if one is missing.
    ///
    /// # Errors
    /// Python or pip is missing, the wheel cannot be fetched, or it is not what it was.
    pub fn files(&self, names: &[&str], to: &Path) -> Result<PathBuf, String> {
        let missing = || names.iter().find(|name| !to.join(name).is_file());
        if missing().is_none() {
            return Ok(to.into());
        }
        let download = to.join("download");
        fs::create_dir_all(&download).map_err(|e| format!("{}: {e}", download.display()))?;
        let wanted = download.join("requirements.txt");
        fs::write(&wanted, format!("{} --hash={}\n", self.name, self.hash))
            .map_err(|e| format!("{}: {e}", wanted.display()))?;
        println!("fetching {} for {} (once)", self.name, names.join(", "));
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "-d"]);
        execute(pip.arg(&download).arg("-r").arg(&wanted))?;
        let mut unpack = Command::new("python3");
        unpack.args(["-c", UNPACK]).arg(&download).arg(to).args(names);
        execute(&mut unpack)?;
        fs::remove_dir_all(&download).map_err(|e| format!("{}: {e}", download.display()))?;
        match missing() {
            None => Ok(to.into()),
            Some(name) => Err(format!("{} has no {name}", self.name)),
        }
    }
}
