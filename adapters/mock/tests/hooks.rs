//! `causeway/mock.h`, as a C program uses it and as a C++ compiler reads it.
use std::{path::PathBuf, process::Command};

/// A folder with the shared object and the headers, gone when the test ends.
struct Dist(PathBuf);

impl Dist {
    fn build() -> Self {
        let dir = std::env::temp_dir().join(format!("causeway-mock-{}", std::process::id()));
        let mut dist = Command::new(env!("CARGO"));
        dist.args(["run", "--quiet", "--package", "xtask", "--", "dist", "--debug"]);
        let dist = dist.args(["--only", "mock", "--out"]).arg(&dir);
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let out = dist.current_dir(root).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        Self(dir)
    }
    /// Compiles a program of `clients/` against the headers and the shared object.
    fn compile(&self, compiler: &[&str], source: &str) -> PathBuf {
        let program = self.0.join(source).with_extension("out");
        let mut cc = Command::new(compiler[0]);
        cc.args(&compiler[1..]).args(["-Wall", "-Wextra", "-Werror", "-pedantic"]);
        cc.arg("-I").arg(self.0.join("include"));
        cc.arg(format!("{}/tests/clients/{source}", env!("CARGO_MANIFEST_DIR")));
        cc.arg("-o").arg(&program).arg(self.0.join("mock/libur_adapter_mock.so.0"));
        let out = cc.arg(format!("-Wl,-rpath,{}/mock", self.0.display())).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        program
    }
}
impl Drop for Dist {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_c_program_puts_hooks_before_after_and_in_the_place_of_entries() {
    let dist = Dist::build();
    // The same program in both languages: a C++ compiler reads the header, too.
    for (compiler, source) in
        [(&["cc", "-std=c99"], "hooks.c"), (&["c++", "-std=c++17"], "hooks.cpp")]
    {
        let program = dist.compile(compiler, source);
        let out = Command::new("timeout").arg("60").arg(program).output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
        assert_eq!(said, "hooks: all as said\n");
    }
}
