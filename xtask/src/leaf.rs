//! The shared objects that `dist` links, with their names and exports. A new adapter needs an entry here, and
//! a leaf crate whose `src/lib.rs` is one line of `ur_adapter::leaf!`.

use crate::{emit, model::Spec, names};
use std::collections::BTreeSet;

/// An adapter that has a leaf crate.
#[derive(Debug)]
pub struct Leaf {
    /// The package of the leaf, which is also the name of its folder in `adapters/`.
    pub package: &'static str,
    /// Exports of the shared object besides the getters, from the leaf's module `also`; usually none.
    pub also: &'static [&'static str],
}

/// All leaves, in the order in which `dist` builds them.
pub const LEAVES: &[Leaf] = &[
    Leaf { package: "native-cpu", also: &[] },
    Leaf { package: "cuda", also: &[] },
    Leaf { package: "level-zero", also: &[] },
    Leaf { package: "level-zero-v2", also: &[] },
    Leaf { package: "opencl", also: &[] },
    Leaf { package: "null", also: &[] },
    Leaf {
        package: "mock",
        also: &["cwMockReset", "cwMockSetAfter", "cwMockSetBefore", "cwMockSetReplace"],
    },
];

/// The name of the loader for `--only`. It is no adapter, and its leaf is written by hand.
pub const LOADER: &str = "loader";

/// A shared object that `dist` links from the static library of a leaf.
#[derive(Debug)]
pub struct Object {
    pub package: &'static str,
    /// The folder where `dist` puts it, relative to the output folder: one of its own for each adapter.
    pub folder: String,
    pub soname: String,
    /// The version of its symbols.
    pub node: String,
    /// The file name of the static library.
    pub archive: String,
    /// All symbols that it exports.
    pub symbols: BTreeSet<String>,
}

impl Object {
    fn adapter(leaf: &Leaf, spec: &Spec) -> Self {
        let getters = spec.tables.iter().map(|t| names::getter(&t.member));
        let also = leaf.also.iter().map(|name| (*name).to_string());
        Self {
            package: leaf.package,
            folder: leaf.name(),
            soname: leaf.soname(),
            node: leaf.node(),
            archive: leaf.archive(),
            symbols: getters.chain(also).collect(),
        }
    }
    /// The loader, which exports every entry, every getter and every print function.
    pub fn loader(spec: &Spec) -> Self {
        let getters = spec.tables.iter().map(|t| names::getter(&t.member));
        let entries = spec.entries().map(|entry| entry.name.clone());
        let printers = emit::print::exported(spec);
        Self {
            package: LOADER,
            folder: String::new(),
            soname: "libur_loader.so.0".to_string(),
            node: "LIBUR_LOADER_0.12".to_string(),
            archive: "libloader.a".to_string(),
            symbols: getters.chain(entries).chain(printers).collect(),
        }
    }
}

impl Leaf {
    /// The name of the adapter for `--only` and in file names.
    pub fn name(&self) -> String {
        self.package.replace('-', "_")
    }
    /// The file that a loader opens.
    pub fn soname(&self) -> String {
        format!("libur_adapter_{}.so.0", self.name())
    }
    /// The version of its symbols.
    pub fn node(&self) -> String {
        format!("LIBUR_ADAPTER_{}_0.0", self.name().to_ascii_uppercase())
    }
    /// The file name of the static library.
    pub fn archive(&self) -> String {
        format!("lib{}.a", self.name())
    }
}

/// Returns the named objects, or all if no names are given.
pub fn chosen(spec: &Spec, names: &[String]) -> Result<Vec<Object>, String> {
    let adapters = LEAVES.iter().map(|leaf| (leaf.name(), Object::adapter(leaf, spec)));
    let mut all: Vec<_> = adapters.collect();
    all.push((LOADER.to_string(), Object::loader(spec)));
    if let Some(stranger) = names.iter().find(|n| !all.iter().any(|(name, _)| name == *n)) {
        let known: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
        return Err(format!("there is no adapter {stranger}; there are {}", known.join(", ")));
    }
    let wanted = |name: &String| names.is_empty() || names.contains(name);
    Ok(all.into_iter().filter(|(name, _)| wanted(name)).map(|(_, object)| object).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse, root};

    #[test]
    fn a_leaf_is_named_after_its_package_and_strangers_are_refused() {
        let spec = parse::spec(&root().join("spec")).unwrap();
        let [cpu] = &chosen(&spec, &["native_cpu".to_string()]).unwrap()[..] else {
            panic!("one is asked for")
        };
        assert_eq!(cpu.soname, "libur_adapter_native_cpu.so.0");
        assert_eq!(cpu.node, "LIBUR_ADAPTER_NATIVE_CPU_0.0");
        assert_eq!(cpu.archive, "libnative_cpu.a");
        assert_eq!(chosen(&spec, &[]).unwrap().len(), LEAVES.len() + 1);
        assert!(chosen(&spec, &["fpga".to_string()]).unwrap_err().contains("native_cpu"));
    }
}
