//! What a C compiler makes of a set of headers: every fact of the ABI as a name and a value.
use super::scan::{Declared, Function, scan};
use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T> = std::result::Result<T, String>;
/// Maps the name of a fact (`offset of ur_x_t.flags`) to its value (`16`).
pub type Facts = BTreeMap<String, String>;

/// The reference uses `bool` without including `stdbool.h`.
const HEADERS: &str = "#include <stdbool.h>\n#include \"unified-runtime/ur_api.h\"\n#include \"unified-runtime/ur_ddi.h\"\n#include \"unified-runtime/ur_print.h\"\n";

/// A set of headers (in `include/unified-runtime/`) and the folder for the programs that evaluate it.
pub struct Headers {
    include: PathBuf,
    work: PathBuf,
    pub declared: Declared,
}
impl Headers {
    /// Reads the headers; creates `work`.
    pub fn read(include: &Path, work: &Path) -> Result<Self> {
        fs::create_dir_all(work).map_err(|e| format!("{}: {e}", work.display()))?;
        let (include, work) = (include.to_path_buf(), work.to_path_buf());
        let source = work.join("headers.c");
        write(&source, HEADERS)?;
        let preprocess = |how: &str| {
            // The reference declares a struct inside a prototype, which compilers warn about.
            let arguments = ["-std=c11", "-w", "-E", how].map(str::to_string);
            run(
                "cc",
                arguments.into_iter().chain([format!("-I{}", include.display()), display(&source)]),
            )
        };
        let declared = scan(&preprocess("-P")?, &preprocess("-dM")?)
            .map_err(|e| format!("{}: {e}", include.display()))?;
        Ok(Self { include, work, declared })
    }

    /// Returns all facts: types as they are written, numbers as the C compiler computes them.
    pub fn facts(&self) -> Result<Facts> {
        let mut facts = Facts::new();
        let d = &self.declared;
        for (name, of) in &d.aliases {
            facts.insert(format!("alias {name}"), of.clone());
        }
        for f in &d.functions {
            facts.insert(format!("function {}", f.name), signature(f));
        }
        for f in &d.pointers {
            facts.insert(format!("function type {}", f.name), signature(f));
        }
        for r in &d.records {
            for (at, (member, of)) in r.members.iter().enumerate() {
                facts.insert(format!("type of {}.{member}", r.name), of.clone());
                facts.insert(format!("place of {}.{member}", r.name), at.to_string());
            }
        }
        for (e, names) in &d.enums {
            facts.extend(names.iter().map(|n| (format!("enumeration of {n}"), e.clone())));
        }
        facts.extend(d.macros.iter().map(|m| (format!("macro {m}"), "takes arguments".into())));
        for line in self.compiled("facts", &self.program())?.lines() {
            let (name, value) =
                line.split_once(" = ").ok_or(format!("the program said `{line}`"))?;
            facts.insert(name.to_string(), value.to_string());
        }
        Ok(facts)
    }

    /// The program that prints the numbers.
    fn program(&self) -> String {
        let d = &self.declared;
        let mut s = format!("{HEADERS}#include <stdio.h>\n");
        s.push_str("#define N(what, n) printf(\"%s = %lld\\n\", what, (long long)(n))\n");
        s.push_str("int main(void) {\n");
        let mut number = |what: &str, n: &str| {
            let _ = writeln!(s, "    N(\"{what}\", {n});");
        };
        for (e, names) in &d.enums {
            number(&format!("size of {e}"), &format!("sizeof({e})"));
            names.iter().for_each(|n| number(&format!("value of {n}"), n));
        }
        for (a, _) in &d.aliases {
            number(&format!("size of {a}"), &format!("sizeof({a})"));
        }
        for r in &d.records {
            number(&format!("size of {}", r.name), &format!("sizeof({})", r.name));
            number(&format!("alignment of {}", r.name), &format!("_Alignof({})", r.name));
            for (m, _) in &r.members {
                let of = &r.name;
                number(&format!("offset of {of}.{m}"), &format!("offsetof({of}, {m})"));
                number(&format!("size of {of}.{m}"), &format!("sizeof((({of} *)0)->{m})"));
            }
        }
        for m in &d.macros {
            let argument = match m.as_str() {
                "UR_BIT" => "5",
                "UR_MAKE_VERSION" => "2, 7",
                _ => "0x2000c",
            };
            number(&format!("value of {m}({argument})"), &format!("{m}({argument})"));
        }
        for c in &d.constants {
            let _ = writeln!(
                s,
                "    _Generic(({c}), char *: 1, default: 0) ? printf(\"value of {c} = %s\\n\", (const char *)(size_t)({c})) : N(\"value of {c}\", (size_t)({c}));"
            );
        }
        s.push_str("    return 0;\n}\n");
        s
    }
    fn compiled(&self, name: &str, program: &str) -> Result<String> {
        let (source, binary) = (self.work.join(format!("{name}.c")), self.work.join(name));
        write(&source, program)?;
        let include = format!("-I{}", self.include.display());
        let to = ["-std=c11", "-w", &include, &display(&source), "-o", &display(&binary)]
            .map(String::from);
        run("cc", to)?;
        run(&display(&binary), [])
    }

    /// Lets the compiler compare this set's declarations with those of `other`: it rejects a function or a
    /// type that is declared twice in different ways.
    pub fn redeclares(&self, other: &Headers) -> Result<()> {
        let mut s = String::from(HEADERS);
        for (f, open, close) in other
            .declared
            .functions
            .iter()
            .map(|f| (f, " ", ""))
            .chain(other.declared.pointers.iter().map(|f| (f, " (*", ")")))
        {
            let word = if close.is_empty() { "" } else { "typedef " };
            let params = if f.params.is_empty() { "void".into() } else { f.params.join(", ") };
            // Declared only in a prototype, it would be a different type there.
            let params = params
                .replace("ur_loader_tear_down_params_t", "struct ur_loader_tear_down_params_t");
            let _ = writeln!(s, "{word}{}{open}{}{close}({params});", f.returns, f.name);
        }
        s.push_str("int main(void) { return 0; }\n");
        self.compiled("redeclared", &s).map(|_| ())
    }

    /// Checks that the headers compile as C++.
    pub fn compile_as_cpp(&self) -> Result<()> {
        let source = self.work.join("headers.cpp");
        write(&source, HEADERS)?;
        let include = format!("-I{}", self.include.display());
        let arguments = [
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-fsyntax-only",
            &include,
            &display(&source),
        ];
        run("c++", arguments.map(String::from)).map(|_| ())
    }
}

fn signature(f: &Function) -> String {
    format!("({}) -> {}", f.params.join(", "), f.returns)
}
fn display(path: &Path) -> String {
    path.display().to_string()
}
fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
/// Runs a program and returns its output.
pub fn run(program: &str, arguments: impl IntoIterator<Item = String>) -> Result<String> {
    let out = Command::new(program).args(arguments).output().map_err(|e| {
        format!("{program}: {e}; abi-diff needs a C compiler and python3 on the PATH")
    })?;
    if out.status.success() {
        return String::from_utf8(out.stdout).map_err(|e| format!("{program}: {e}"));
    }
    let said = String::from_utf8_lossy(&out.stderr);
    let said: Vec<_> = said.lines().take(20).collect();
    Err(format!("{program} failed ({}):\n{}", out.status, said.join("\n")))
}
