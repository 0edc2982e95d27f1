//! Files that call themselves adapters and are none, and variables full of garbage: each is told of
//! once and clearly, nothing crashes, and what works beside them works.
mod common;
use common::{Dist, Shared, client::Ran};
use std::{fs, path::PathBuf, sync::Arc};

/// An adapter whose first getter does what is put into it.
fn source(body: &str) -> String {
    format!(
        "#include <stdlib.h>\n#include <unistd.h>\n#include <unified-runtime/ur_ddi.h>\n\
         static ur_adapter_handle_t object[1];\n\
         ur_result_t get(uint32_t room, ur_adapter_handle_t *to, uint32_t *count);\n\
         ur_result_t get(uint32_t room, ur_adapter_handle_t *to, uint32_t *count) {{\n\
         if (count) *count = 1;\nif (room && to) to[0] = (ur_adapter_handle_t)object;\nreturn UR_RESULT_SUCCESS;\n}}\n\
         ur_result_t urGetAdapterProcAddrTable(ur_api_version_t version, struct ur_adapter_dditable_t *table) {{\n\
         (void)version;\n{body}\ntable->pfnGet = get;\nreturn UR_RESULT_SUCCESS;\n}}\n"
    )
}

struct World {
    dist: Dist,
    words: PathBuf,
}
fn world() -> Arc<World> {
    static WORLD: Shared<World> = Shared::new();
    WORLD.get(|| {
        let dist = Dist::build("garbage", &["null"]);
        let words = dist.client("words.c");
        World { dist, words }
    })
}
impl World {
    /// What comes of these files before the null adapter, in two starts.
    fn forced(&self, files: &[PathBuf]) -> Ran {
        self.forced_with(files, "cache")
    }
    /// The same, with a folder of this name for what the loader notes for other processes.
    fn forced_with(&self, files: &[PathBuf], cache: &str) -> Ran {
        let mut paths: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        paths.push(self.dist.adapter("null"));
        let cache = self.dist.0.join(cache).display().to_string();
        let environment = [("UR_ADAPTERS_FORCE_LOAD", paths.join(",")), ("XDG_CACHE_HOME", cache)];
        self.dist.ours(
            &self.words,
            &["init", "down", "init", "adapters-null", "count"],
            &environment,
        )
    }
}
/// The lines in which the loader complained.
fn complaints(ran: &Ran) -> Vec<&str> {
    ran.complained.lines().collect()
}
/// Whether `count` adapters were there in both starts.
fn there(ran: &Ran, count: u32) {
    let expected = format!("init 0\ndown 0\ninit 0\nadapters-null 0\n  {count}\n");
    assert!(ran.well && ran.said == expected, "{}\n{}", ran.said, ran.complained);
}

#[test]
fn a_file_that_is_no_shared_object_of_this_machine_is_told_of_once_and_left_out() {
    let world = world();
    let whole = fs::read(world.dist.adapter("null")).unwrap();
    let mut other = whole.clone();
    other[18] ^= 0xff;
    let write = |name: &str, bytes: &[u8]| {
        let path = world.dist.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let folder = world.dist.0.join("folder.so");
    fs::create_dir(&folder).unwrap();
    let text =
        "This is a text and not a shared object, long enough to be read as the start of one.\n";
    for (file, said) in [
        (write("text.so", text.as_bytes()), "not a shared object"),
        (write("short.so", b"\x7fELF"), "too short"),
        (write("empty.so", b""), "too short"),
        (write("cut.so", &whole[..100_000]), "cut off"),
        (write("start.so", &whole[..5000]), "cut off"),
        (write("other.so", &other), "another machine"),
        (folder, "folder"),
    ] {
        let ran = world.forced(std::slice::from_ref(&file));
        there(&ran, 1);
        let [complaint] = complaints(&ran)[..] else { panic!("{}", ran.complained) };
        let named = complaint.contains(&file.display().to_string());
        assert!(named && complaint.contains(said), "{said}: {complaint}");
    }
}

#[test]
fn an_adapter_that_fails_in_its_getter_is_told_of_once_and_the_others_work() {
    let world = world();
    for (name, body, said) in [
        ("crash", "*(volatile int *)0 = 1;", "signal 11"),
        ("abort", "abort();", "signal 6"),
        ("leave", "exit(3);", "ends the process with status 3"),
        ("signal", "kill(getpid(), 9);", "signal 9"),
        ("version", "return UR_RESULT_ERROR_UNSUPPORTED_VERSION;", "another version"),
        ("refuse", "return UR_RESULT_ERROR_OUT_OF_RESOURCES;", "UR_RESULT_ERROR_OUT_OF_RESOURCES"),
        ("strange", "return (ur_result_t)12345;", "urGetAdapterProcAddrTable answers"),
        ("hollow", "table->pfnGet = NULL; return UR_RESULT_SUCCESS;", "no urAdapterGet"),
    ] {
        let body = if name == "signal" {
            format!("#include <signal.h>\n{}", source(body))
        } else {
            source(body)
        };
        let ran = world.forced(&[world.dist.object(name, &body)]);
        there(&ran, 1);
        let [complaint] = complaints(&ran)[..] else { panic!("{name}: {}", ran.complained) };
        assert!(complaint.contains(said), "{name}: {complaint}");
    }
    let none = world.dist.object("none", "int nothing;\n");
    let ran = world.forced(&[none]);
    there(&ran, 1);
    assert!(ran.complained.contains("exports no urGetAdapterProcAddrTable"), "{}", ran.complained);
    assert_eq!(ran.complained.lines().count(), 1, "{}", ran.complained);
}

#[test]
fn several_that_crash_are_each_found_out_and_a_good_one_between_them_works() {
    let world = world();
    let crash = |name: &str| world.dist.object(name, &source("abort();"));
    let good = world.dist.object("good", &source(""));
    let ran = world.forced(&[crash("first"), good, crash("second"), crash("third")]);
    there(&ran, 2);
    assert_eq!(complaints(&ran).len(), 3, "{}", ran.complained);
}

#[test]
fn a_file_that_lived_is_tried_once_for_all_processes_until_it_changes() {
    let world = world();
    // Each process that asks for tables leaves a byte, the child that tries it and the program alike.
    let count = world.dist.0.join("asked");
    let body = format!(
        "static int asked; if (!asked++) {{ FILE *f = fopen(\"{}\", \"a\"); fputc('x', f); fclose(f); }}",
        count.display()
    );
    let body = format!("#include <stdio.h>\n{}", source(&body));
    let file = world.dist.object("counted", &body);
    let asked = || fs::read(&count).map_or(0, |bytes| bytes.len());
    let run = || there(&world.forced_with(std::slice::from_ref(&file), "cache-tried"), 2);
    run();
    assert_eq!(asked(), 2, "the child and the program");
    run();
    assert_eq!(asked(), 3, "the program alone");
    let crash = world.dist.object("counted", &source("abort();"));
    let ran = world.forced_with(&[crash], "cache-tried");
    there(&ran, 1);
    assert_eq!(complaints(&ran).len(), 1, "{}", ran.complained);
}

#[test]
fn what_a_getter_prints_is_printed_once() {
    let world = world();
    let talks = world.dist.object("talks", &source("(void)!write(2, \"hello\\n\", 6);"));
    let ran = world.forced(&[talks]);
    there(&ran, 2);
    assert_eq!(ran.complained, "hello\n");
}

#[test]
fn variables_full_of_garbage_are_warned_of_and_ignored() {
    let world = world();
    let null = world.dist.adapter("null");
    let forced = ("UR_ADAPTERS_FORCE_LOAD", null.clone());
    let adapters = ["init", "adapters-null", "count"];
    let many = "/x,".repeat(10_000);
    for (variable, value, said) in [
        ("UR_ADAPTERS_FORCE_LOAD", "/nowhere/x.so", "there is no /nowhere/x.so"),
        ("UR_ADAPTERS_FORCE_LOAD", "/a.so:/b.so", "separated by commas"),
        ("UR_ADAPTERS_FORCE_LOAD", "\"/a.so", "quotation mark"),
        ("UR_ADAPTERS_FORCE_LOAD", ",,,", "names nothing"),
        ("UR_ADAPTERS_FORCE_LOAD", "/usr/lib/libx.a", "static library"),
        ("UR_ADAPTERS_FORCE_LOAD", &many, "there is no /x"),
        ("UR_ADAPTERS_SEARCH_PATH", "/nowhere", "there is no folder /nowhere"),
        ("UR_ADAPTERS_SEARCH_PATH", "\"", "quotation mark"),
        ("ONEAPI_DEVICE_SELECTOR", "nonsense", "rules out no adapter"),
        ("ONEAPI_DEVICE_SELECTOR", ";;;", "rules out no adapter"),
        ("UR_LOG_LOADER", "loud", "UR_LOG_LOADER is ignored"),
    ] {
        let ran = world.dist.ours(&world.words, &adapters, &[(variable, value.to_string())]);
        let fine = ran.well && ran.said == "init 0\nadapters-null 0\n  0\n";
        assert!(
            fine && ran.complained.contains(said),
            "{variable}={value}: {}\n{}",
            ran.said,
            ran.complained
        );
    }
    let deep = ("UR_ADAPTERS_DEEP_BIND", "perhaps".to_string());
    let ran = world.dist.ours(&world.words, &adapters, &[forced, deep]);
    assert!(
        ran.well && ran.said.ends_with("  1\n") && ran.complained.is_empty(),
        "{}",
        ran.complained
    );
}

#[test]
fn a_log_can_go_to_a_file_and_says_what_was_looked_for() {
    let world = world();
    let log = world.dist.0.join("loader.log");
    let environment = [
        ("UR_LOG_LOADER", format!("level:info;output:file,{}", log.display())),
        ("UR_ADAPTERS_SEARCH_PATH", world.dist.adapters().display().to_string()),
    ];
    let ran = world.dist.ours(&world.words, &["init", "adapters-null", "count"], &environment);
    assert!(ran.well && ran.complained.is_empty(), "{}", ran.complained);
    let said = fs::read_to_string(log).unwrap();
    let order: Vec<_> = said.lines().filter(|line| line.contains("adapter hip")).collect();
    let [searched, own, system] = order[..] else { panic!("{said}") };
    assert!(searched.contains(&world.dist.adapters().display().to_string()), "{searched}");
    assert!(own.contains(&world.dist.loader().display().to_string()), "{own}");
    assert!(system.ends_with("there is no libur_adapter_hip.so.0"), "{system}");
}

#[test]
fn without_any_adapter_the_loader_starts_and_lists_none() {
    let world = world();
    let words = ["init", "adapters", "adapters-null", "count", "down", "adapters"];
    let ran = world.dist.ours(&world.words, &words, &[]);
    let expected = "init 0\nadapters 0\nadapters-null 0\n  0\ndown 0\nadapters 37\n";
    assert!(
        ran.well && ran.said == expected && ran.complained.is_empty(),
        "{}{}",
        ran.said,
        ran.complained
    );
}
