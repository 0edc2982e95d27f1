//! `cargo xtask cycles`: finds files of a crate that import each other, directly or through other files. Such
//! files can only be understood together. Crates without cycles must stay without; in the others the number
//! of files in cycles may only decrease.
//!
//! An import is a path from one file to an item of another, through any re-exports. A re-export itself is no
//! import, and code that is compiled only for tests is ignored.
use crate::{CRATES, root};
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};
use syn::{Item, UseTree, Visibility};

type Result<T> = std::result::Result<T, String>;

/// The crates with cycles, and the maximal number of files in them. All other crates have none.
const MOST_FILES: &[(&str, usize)] = &[
    ("causeway", 13),
    ("causeway-cli", 2),
    ("soft-cuda", 13),
    ("ur-adapter", 3),
    ("ur-conformance", 73),
    ("ur-cpu", 14),
    ("ur-cuda", 27),
    ("ur-level-zero", 46),
    ("ur-loader", 13),
    ("ur-opencl", 14),
    ("ur-mock", 2),
    ("xtask", 21),
    ("ze-software", 26),
];

/// A path of names from the crate's root.
type Names = Vec<String>;

/// A module: its file, and the meanings of its names.
#[derive(Default)]
struct Module {
    file: usize,
    items: BTreeSet<String>,
    /// The names that `use` imports into it.
    names: BTreeMap<String, Names>,
    globs: Vec<Names>,
}
/// The parts of a crate that matter for imports.
#[derive(Default)]
struct Crate {
    files: Vec<String>,
    modules: BTreeMap<Names, Module>,
    /// Paths in the code: the module that contains each, and its names.
    paths: Vec<(Names, Names)>,
}

/// Prints the cycles of every crate; fails if more files are in them than the limit allows.
pub fn run() -> Result<()> {
    let mut wrong = Vec::new();
    for folder in crates()? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let one = Crate::read(&folder.join("src"))?;
        let circles = circles(&one.imports());
        let files: usize = circles.iter().map(Vec::len).sum();
        for circle in &circles {
            let files: Vec<_> = circle.iter().map(|file| one.files[*file].as_str()).collect();
            println!("{name}: {}", files.join(" → "));
        }
        let most = MOST_FILES.iter().find(|(known, _)| *known == name).map_or(0, |(_, most)| *most);
        if files > most {
            wrong.push(format!("{name}: {files} files import each other; at most {most} may"));
        } else if files < most {
            println!(
                "{name}: {files} files are left; MOST_FILES of xtask/src/cycles.rs says {most}"
            );
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n  ")) }
}
fn crates() -> Result<Vec<PathBuf>> {
    let mut all = vec![root().join("xtask")];
    for folder in CRATES.map(|folder| root().join(folder)) {
        let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        all.extend(entries.flatten().map(|entry| entry.path()));
    }
    all.retain(|path| path.join("src").is_dir());
    all.sort();
    Ok(all)
}

impl Crate {
    fn read(src: &Path) -> Result<Self> {
        let mut one = Self::default();
        let begin = ["lib.rs", "main.rs"].map(|name| src.join(name));
        let begin = begin.iter().find(|path| path.exists());
        let begin = begin.ok_or(format!("{}: no lib.rs", src.display()))?;
        one.file(src, begin, Vec::new())?;
        Ok(one)
    }
    fn file(&mut self, src: &Path, path: &Path, module: Names) -> Result<()> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let parsed = syn::parse_file(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        self.files.push(path.strip_prefix(src).unwrap_or(path).display().to_string());
        self.module(src, self.files.len() - 1, module, parsed.items)
    }
    fn module(&mut self, src: &Path, file: usize, at: Names, items: Vec<Item>) -> Result<()> {
        self.modules.insert(at.clone(), Module { file, ..Module::default() });
        for item in items.into_iter().filter(|item| !is_test(item)) {
            if let Some(name) = name(&item) {
                self.modules.entry(at.clone()).or_default().items.insert(name);
            }
            match item {
                Item::Mod(inner) => {
                    let below: Names =
                        at.iter().cloned().chain([inner.ident.to_string()]).collect();
                    match inner.content {
                        Some((_, items)) => self.module(src, file, below, items)?,
                        None => {
                            let place = src.join(below.join("/"));
                            let files = [place.with_extension("rs"), place.join("mod.rs")];
                            // Modules in other places, by `#[path]`, are ignored.
                            if let Some(path) = files.iter().find(|path| path.exists()) {
                                self.file(src, path, below)?;
                            }
                        }
                    }
                }
                Item::Use(import) => {
                    let passed_on = !matches!(import.vis, Visibility::Inherited);
                    self.import(&at, &mut Vec::new(), import.tree, passed_on);
                }
                other => self.scan(&at, other.to_token_stream()),
            }
        }
        Ok(())
    }
    fn import(&mut self, at: &Names, before: &mut Names, tree: UseTree, passed_on: bool) {
        let module = self.modules.entry(at.clone()).or_default();
        let (name, target) = match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(at, before, *path.tree, passed_on);
                before.pop();
                return;
            }
            UseTree::Group(group) => {
                for tree in group.items {
                    self.import(at, before, tree, passed_on);
                }
                return;
            }
            UseTree::Glob(_) => {
                module.globs.push(before.clone());
                (None, before.clone())
            }
            UseTree::Name(name) if name.ident == "self" => (before.last().cloned(), before.clone()),
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                (Some(name.clone()), before.iter().cloned().chain([name]).collect())
            }
            UseTree::Rename(name) => {
                let target = before.iter().cloned().chain([name.ident.to_string()]).collect();
                (Some(name.rename.to_string()), target)
            }
        };
        if let Some(name) = name {
            module.names.insert(name, target.clone());
        }
        if !passed_on {
            self.paths.push((at.clone(), target));
        }
    }
    /// Finds the paths in the tokens of an item.
    fn scan(&mut self, at: &Names, tokens: TokenStream) {
        let mut path = Names::new();
        let mut colons = 0;
        // A single name can only refer to another file through `use …::*`.
        let shortest = if self.modules[at].globs.is_empty() { 2 } else { 1 };
        let keep = |one: &mut Self, path: &mut Names| {
            if path.len() >= shortest {
                one.paths.push((at.clone(), std::mem::take(path)));
            }
            path.clear();
        };
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        keep(self, &mut path);
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                other => {
                    keep(self, &mut path);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.scan(at, group.stream());
                    }
                }
            }
        }
        keep(self, &mut path);
    }

    /// Returns the files that each file imports from.
    fn imports(&self) -> Vec<BTreeSet<usize>> {
        let mut imports = vec![BTreeSet::new(); self.files.len()];
        for (at, path) in &self.paths {
            let from = self.modules[at].file;
            if let Some(to) = self.resolve(at, path, 0).filter(|to| *to != from) {
                imports[from].insert(to);
            }
        }
        imports
    }
    /// Returns the file that contains the target of a path; `None` for a path into another crate.
    fn resolve(&self, at: &Names, path: &[String], depth: usize) -> Option<usize> {
        let (first, mut rest) = path.split_first()?;
        if rest.is_empty() && matches!(first.as_str(), "crate" | "self" | "super") {
            return None; // a visibility, or a value
        }
        let mut place = match first.as_str() {
            "crate" => Vec::new(),
            "self" => at.clone(),
            "super" => at.split_last()?.1.to_vec(),
            _ => {
                rest = path;
                at.clone()
            }
        };
        // A path that begins with neither a module nor an import is one into another crate, or to an item of
        // this module.
        let mut has_begun = rest.len() < path.len();
        while let Some((name, after)) = rest.split_first() {
            if name == "super" {
                place.pop();
                rest = after;
                continue;
            }
            let below: Names = place.iter().cloned().chain([name.clone()]).collect();
            if self.modules.contains_key(&below) {
                (place, rest, has_begun) = (below, after, true);
                continue;
            }
            let module = self.modules.get(&place)?;
            if module.items.contains(name) || depth > 8 {
                break;
            }
            if let Some(target) = module.names.get(name).filter(|target| target.as_slice() != path)
            {
                let target: Names = target.iter().chain(after).cloned().collect();
                return self.resolve(&place, &target, depth + 1);
            }
            let through =
                module.globs.iter().filter(|_| has_begun || path.len() == 1).find_map(|glob| {
                    let target: Names = glob.iter().chain([name]).cloned().collect();
                    self.resolve(&place, &target, depth + 1)
                        .filter(|file| self.has_item(*file, name))
                });
            if through.is_some() {
                return through;
            }
            break;
        }
        has_begun.then(|| self.modules.get(&place).map(|module| module.file)).flatten()
    }
    fn has_item(&self, file: usize, name: &str) -> bool {
        self.modules.values().any(|module| module.file == file && module.items.contains(name))
    }
}

/// Whether an item is compiled only for tests.
fn is_test(item: &Item) -> bool {
    let attributes = match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        let words = attribute.meta.to_token_stream().to_string();
        words.starts_with("cfg") && words.contains("test") && !words.contains("not (test)")
    })
}
fn name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}

/// Returns the sets of files that all reach each other, where possible in the order in which they import.
fn circles(imports: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let reach: Vec<BTreeSet<usize>> = (0..imports.len())
        .map(|from| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
            while let Some(file) = next.pop() {
                next.extend(imports[file].iter().copied().filter(|to| seen.insert(*to)));
            }
            seen
        })
        .collect();
    let (mut done, mut all) = (BTreeSet::new(), Vec::new());
    for from in 0..imports.len() {
        if !reach[from].contains(&from) || done.contains(&from) {
            continue;
        }
        let mut left: BTreeSet<_> =
            reach[from].iter().copied().filter(|to| reach[*to].contains(&from)).collect();
        let (mut circle, mut at) = (Vec::new(), from);
        while left.remove(&at) {
            circle.push(at);
            done.insert(at);
            let next = imports[at].iter().find(|to| left.contains(to));
            at = next.or(left.first()).copied().unwrap_or(at);
        }
        all.push(circle);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let src = std::env::temp_dir().join(format!("cycles-{}-{next}", std::process::id()));
        for (name, text) in files {
            let path = src.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let one = Crate::read(&src).unwrap();
        fs::remove_dir_all(&src).unwrap();
        let named = |circle: &Vec<usize>| circle.iter().map(|at| one.files[*at].clone()).collect();
        circles(&one.imports()).iter().map(named).collect()
    }

    #[test]
    fn files_that_import_each_other_are_a_circle_by_whatever_path() {
        let root = ("lib.rs", "mod a; mod b; pub use b::Second; pub struct Own;");
        for back in [
            "use crate::Second;",
            "use super::b::*;",
            "use crate::*; type T = Second;",
            "fn f() { crate::b::g(1); }",
        ] {
            let files = [root, ("a.rs", back), ("b.rs", "use crate::a; pub struct Second;")];
            assert_eq!(circle_of(&files), [["a.rs", "b.rs"]], "{back}");
        }
        let inner = [("lib.rs", "mod a; fn f() { a::g(); }"), ("a.rs", "use super::f;")];
        assert_eq!(circle_of(&inner), [["lib.rs", "a.rs"]]);
    }
    #[test]
    fn what_passes_names_on_and_what_only_tests_need_is_no_circle() {
        let root = ("lib.rs", "mod a; mod b; pub use a::First; pub use b::{Second, deep::Third};");
        let a = ("a.rs", "use crate::{Second, Third}; pub struct First; use std::fmt;");
        let b = ("b.rs", "pub mod deep; pub struct Second; #[cfg(test)] mod t { use crate::a; }");
        let deep = ("b/deep.rs", "pub struct Third;");
        assert_eq!(circle_of(&[root, a, b, deep]), [[""; 0]; 0]);
    }
}
