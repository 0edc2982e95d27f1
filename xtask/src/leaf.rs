//! The adapters that are shared objects of their own: what each is called, and where its entry
//! points are. The generator of leaf crates and `dist` both go by this list and by nothing else. For
//! a new one: a line here, a folder with the manifest of another leaf and an empty `src/lib.rs`
//! (without which cargo reads no manifest at all), then `cargo xtask generate`.

/// An adapter with a leaf crate.
#[derive(Debug)]
pub struct Leaf {
    /// The package of the leaf, which is also its folder in `crates/`.
    pub package: &'static str,
    /// Where the adapter's table is, as a path that Rust can use.
    pub table: &'static str,
    /// What the shared object exports beside the getters, from a module `also` that the leaf has for
    /// it; mostly nothing.
    pub also: &'static [&'static str],
}

/// All of them, in the order in which `dist` makes them.
pub const LEAVES: &[Leaf] = &[
    Leaf { package: "native-cpu", table: "ur_adapters::cpu::TABLE", also: &[] },
    Leaf { package: "cuda", table: "ur_adapters::cuda_family::CUDA_TABLE", also: &[] },
    Leaf { package: "null", table: "ur_adapters::null::TABLE", also: &[] },
    Leaf {
        package: "mock",
        table: "ur_adapters::mock::MOCK_TABLE",
        also: &["cwMockReset", "cwMockSetAfter", "cwMockSetBefore", "cwMockSetReplace"],
    },
];

impl Leaf {
    /// What `--only` and file names call the adapter.
    pub fn name(&self) -> String {
        self.package.replace('-', "_")
    }
    /// What logs call the adapter, and the environment variable that asks for them.
    pub fn logs(&self) -> String {
        self.name().to_ascii_uppercase()
    }
    /// What a loader opens.
    pub fn soname(&self) -> String {
        format!("libur_adapter_{}.so.0", self.name())
    }
    /// The version that the symbols carry.
    pub fn node(&self) -> String {
        format!("LIBUR_ADAPTER_{}_0.0", self.logs())
    }
    /// What cargo calls the static library.
    pub fn archive(&self) -> String {
        format!("lib{}.a", self.name())
    }
}

/// Those of the names given; all if none is.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Leaf>, String> {
    if let Some(stranger) = names.iter().find(|n| !LEAVES.iter().any(|l| l.name() == **n)) {
        let known: Vec<_> = LEAVES.iter().map(Leaf::name).collect();
        return Err(format!("there is no adapter {stranger}; there are {}", known.join(", ")));
    }
    Ok(LEAVES.iter().filter(|l| names.is_empty() || names.contains(&l.name())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_is_named_after_its_package_and_strangers_are_refused() {
        let [cpu] = chosen(&["native_cpu".to_string()]).unwrap()[..] else {
            panic!("one is asked for")
        };
        assert_eq!(cpu.soname(), "libur_adapter_native_cpu.so.0");
        assert_eq!(cpu.node(), "LIBUR_ADAPTER_NATIVE_CPU_0.0");
        assert_eq!(cpu.archive(), "libnative_cpu.a");
        assert_eq!(chosen(&[]).unwrap().len(), LEAVES.len());
        assert!(chosen(&["fpga".to_string()]).unwrap_err().contains("native_cpu"));
    }
}
