//! The shared objects that `dist` links, and what each is called and exports. For a new adapter: a line here, and
//! a leaf crate, whose `src/lib.rs` is one line of `ur_adapter::leaf!`.

use crate::{emit, model::Spec, names};
use std::collections::BTreeSet;

/// An adapter with a leaf crate.
#[derive(Debug)]
pub struct Leaf {
    /// The package of the leaf, which is also its folder in `adapters/`.
    pub package: &'static str,
    /// What the shared object exports beside the getters, from a module `also` that the leaf has for
    /// it; mostly nothing.
    pub also: &'static [&'static str],
}

/// All of them, in the order in which `dist` makes them.
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

/// What `--only` calls the loader, which is no adapter: its leaf is written by hand.
pub const LOADER: &str = "loader";

/// A shared object, as `dist` links it from the static library of a leaf.
#[derive(Debug)]
pub struct Object {
    pub package: &'static str,
    /// Where `dist` puts it, relative to its folder: an adapter in one of its own.
    pub folder: String,
    pub soname: String,
    /// The version that the symbols carry.
    pub node: String,
    /// What cargo calls the static library.
    pub archive: String,
    /// All that it exports.
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
    /// The loader: every entry, every getter and every function that prints.
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
    /// What `--only` and file names call the adapter.
    pub fn name(&self) -> String {
        self.package.replace('-', "_")
    }
    /// What a loader opens.
    pub fn soname(&self) -> String {
        format!("libur_adapter_{}.so.0", self.name())
    }
    /// The version that the symbols carry.
    pub fn node(&self) -> String {
        format!("LIBUR_ADAPTER_{}_0.0", self.name().to_ascii_uppercase())
    }
    /// What cargo calls the static library.
    pub fn archive(&self) -> String {
        format!("lib{}.a", self.name())
    }
}

/// Those of the names given; all if none is.
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
