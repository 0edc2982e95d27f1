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
        let mut paths: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        paths.push(self.dist.adapter("null"));
        self.dist.ours(
            &self.words,
            &["init", "down", "init", "adapters-null", "count"],
            &[("UR_ADAPTERS_FORCE_LOAD", paths.join(","))],
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
fn an_adapter_whose_getter_refuses_is_told_of_once_and_the_others_work() {
    let world = world();
    for (name, body, said) in [
        ("version", "return UR_RESULT_ERROR_UNSUPPORTED_VERSION;", "another version"),
        ("refuse", "return UR_RESULT_ERROR_OUT_OF_RESOURCES;", "UR_RESULT_ERROR_OUT_OF_RESOURCES"),
        ("strange", "return (ur_result_t)12345;", "urGetAdapterProcAddrTable answers"),
        ("hollow", "table->pfnGet = NULL; return UR_RESULT_SUCCESS;", "no urAdapterGet"),
    ] {
        let ran = world.forced(&[world.dist.object(name, &source(body))]);
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

/// An adapter that is served by a thread which its constructor starts, and says when its process forks.
const THREADED: &str = "#include <pthread.h>\n#include <stdlib.h>\n\
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n\
    static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;\n\
    static int asked, answered;\n\
    static void *serve(void *none) {\n\
    pthread_mutex_lock(&lock);\n\
    for (;;) { while (!asked) pthread_cond_wait(&turn, &lock); asked = 0; answered = 1;\n\
    pthread_cond_broadcast(&turn); }\n\
    return none;\n}\n\
    static void forks(void) { abort(); }\n\
    __attribute__((constructor)) static void start(void) {\n\
    pthread_t thread;\n\
    pthread_create(&thread, NULL, serve, NULL);\n\
    pthread_atfork(forks, NULL, NULL);\n}\n";

#[test]
fn an_adapter_that_its_own_thread_serves_works_and_the_loader_does_not_fork_the_program() {
    let world = world();
    let body = "pthread_mutex_lock(&lock); asked = 1; pthread_cond_broadcast(&turn);\n\
         while (!answered) pthread_cond_wait(&turn, &lock);\n\
         answered = 0; pthread_mutex_unlock(&lock);";
    let threaded = world.dist.object("threaded", &format!("{THREADED}{}", source(body)));
    let ran = world.forced(&[threaded]);
    there(&ran, 2);
    assert_eq!(ran.complained, "");
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
