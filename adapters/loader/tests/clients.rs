//! C programs that are linked once and run on our loader and on the one that oneAPI ships: what they
//! see is the same, but for the differences that are listed here with their reasons.
mod common;
use common::{Dist, Shared, client::Ran, on, root, shipped};
use std::{path::PathBuf, process::Command, sync::Arc};

struct World {
    dist: Dist,
    words: PathBuf,
}
fn world() -> Arc<World> {
    static WORLD: Shared<World> = Shared::new();
    WORLD.get(|| {
        let dist = Dist::build("clients", &["null", "mock", "native_cpu"]);
        let words = dist.client("words.c");
        World { dist, words }
    })
}
impl World {
    fn force(&self, adapters: &[&str]) -> (&'static str, String) {
        let paths: Vec<_> = adapters.iter().map(|name| self.dist.adapter(name)).collect();
        ("UR_ADAPTERS_FORCE_LOAD", paths.join(","))
    }
    fn search(&self) -> (&'static str, String) {
        ("UR_ADAPTERS_SEARCH_PATH", self.dist.adapters().display().to_string())
    }
    fn ours(&self, words: &str, environment: &[(&str, String)]) -> Ran {
        let words: Vec<_> = words.split(' ').collect();
        self.dist.ours(&self.words, &words, environment)
    }
    /// What the program says on our loader, having said the same on the other, if that is there.
    fn same(&self, words: &str, environment: &[(&str, String)]) -> String {
        let ours = self.ours(words, environment);
        assert!(ours.well, "{words}: {}\n{}", ours.said, ours.complained);
        if let Some(folder) = shipped() {
            let split: Vec<_> = words.split(' ').collect();
            let theirs = on(&folder, &self.words, &split, environment);
            assert!(theirs.well, "{words}, shipped: {}\n{}", theirs.said, theirs.complained);
            assert_eq!(ours.said, theirs.said, "{words} {environment:?}");
        }
        ours.said
    }
}

#[test]
fn adapters_platforms_and_devices_are_listed_the_same() {
    let world = world();
    let all = "init adapters platforms devices down";
    let said = world.same(all, &[world.force(&["native_cpu"])]);
    assert!(said.contains("backend 5") && said.contains("device type 4"), "{said}");
    world.same(all, &[world.force(&["null", "native_cpu"])]);
    // The other loader has an OpenCL adapter of its own, which may find a driver.
    let selected = ("ONEAPI_DEVICE_SELECTOR", "native_cpu:*".to_string());
    let found = world.same("init adapters-null count", &[world.search(), selected]);
    assert!(found.contains("  1\n"), "{found}");
    let intercepted = [world.force(&["native_cpu"]), ("UR_ENABLE_LOADER_INTERCEPT", "1".into())];
    world.same(all, &intercepted);
}

#[test]
fn calls_before_the_start_and_after_the_end_answer_the_same() {
    let world = world();
    let force = [world.force(&["native_cpu"])];
    let said = world.same("adapters nothing down", &force);
    assert!(said.lines().all(|line| line.ends_with("37")), "{said}");
    world.same("init init adapters down adapters down", &force);
    world.same("init down down", &force);
    let after = world.ours("init adapters down adapters nothing", &force).said;
    assert!(
        after.ends_with(
            "null device 37\nnull queue 37\nno events 37\nno devices 37\nnull in a list 37\n"
        ),
        "{after}"
    );
}

#[test]
fn arguments_that_are_wrong_answer_the_same() {
    let world = world();
    let force = [world.force(&["native_cpu"])];
    world.same("init adapters nothing", &force);
    world.same("init-strange adapters init-gpu adapters", &force);
    world.same(
        "init adapters-null count adapters-none adapters-zero adapters-nowhere adapters-one count",
        &force,
    );
    world.same("selected-null init table table-null selected-null", &force);
    // With two adapters the other loader crashes here.
    let two = world.ours("init adapters nothing", &[world.force(&["native_cpu", "null"])]);
    let said = "null device 46\nnull queue 46\nno events 4\nno devices 49\nnull in a list 46\n";
    assert!(two.well && two.said.ends_with(said), "{}\n{}", two.said, two.complained);
}

#[test]
fn configurations_are_made_asked_and_released_the_same() {
    let world = world();
    let force = [world.force(&["native_cpu"])];
    world.same("config retain release release config-null retain-null release-null", &force);
    world.same("config mock-null where where-null layer-null layer=UR_LAYER_TRACING", &force);
    world
        .same("config layer=UR_LAYER_FOO layer=UR_LAYER_FULL_VALIDATION init down release", &force);
    let said = world.ours("config describe release release retain describe", &force).said;
    // A released configuration is told from a live one, which the other loader does not try.
    let expected = [
        "references 0\n  1 in 4\nnowhere 48\nno size 49\nno place 48\nstrange 53\nnull config 46\n",
        "release 0\nrelease 45\nretain 45\n",
    ];
    assert!(expected.iter().all(|part| said.contains(part)), "{said}");
}

#[test]
fn the_mock_stands_for_all_others_when_a_configuration_says_so() {
    let world = world();
    let words = "config mock init adapters platforms devices down";
    let path = shipped().unwrap_or_else(|| world.dist.loader());
    // Both find it among the system's libraries.
    let environment = [(
        "LD_LIBRARY_PATH",
        format!("{}:{}", world.dist.loader().display(), world.dist.adapters().display()),
    )];
    let ours = world.ours(words, &environment);
    assert!(ours.well && ours.said.contains("platform Causeway mock"), "{}", ours.said);
    let environment =
        [("LD_LIBRARY_PATH", format!("{}:{}", path.display(), world.dist.adapters().display()))];
    let theirs = world.ours(words, &environment);
    assert_eq!(ours.said, theirs.said);
    let searched = world.ours(words, &[world.search()]);
    assert_eq!(ours.said, searched.said);
}

#[test]
fn devices_are_selected_the_same() {
    let world = world();
    for selector in [
        "*:*",
        "native_cpu:*",
        "NATIVE_CPU:CPU",
        "*:0",
        "*:1",
        "native_cpu:gpu",
        "cuda:*",
        "!*:*",
        "!native_cpu:*",
        "!*:gpu",
        "*:*;!native_cpu:0",
        "native_cpu:0,",
        "native_cpu:*;",
        "native_cpu:*.*",
        "native_cpu:0.0",
        "native_cpu:0,0.0",
        "native_cpu:0.9",
        "native_cpu:*.*.*",
        "!native_cpu:0.0",
        "native_cpu:*.*;!native_cpu:0.0",
        "foo:*",
        "native_cpu",
        ":",
        ";",
        "native_cpu:*.0",
        "native_cpu:0.0.0.0",
    ] {
        let environment =
            [world.force(&["native_cpu"]), ("ONEAPI_DEVICE_SELECTOR", selector.to_string())];
        // The other loader answers ADAPTER_SPECIFIC when it is asked for devices and their number at once.
        let said = |ran: Ran| ran.said.replace("selected 66", "selected 0");
        let ours = world.ours("init adapters selected down", &environment);
        assert!(ours.well, "{selector}");
        if let Some(folder) = shipped() {
            let words = ["init", "adapters", "selected", "down"];
            let theirs = on(&folder, &world.words, &words, &environment);
            assert_eq!(said(ours), said(theirs), "{selector}");
        }
    }
}

#[test]
fn the_selector_rules_out_adapters_before_they_are_opened() {
    let world = world();
    for (selector, filter, count) in [
        ("native_cpu:*", "1", 1),
        ("cuda:*", "1", 0),
        ("cuda:*", "0", 1),
        ("!native_cpu:*", "1", 0),
        ("!*:cpu", "yes", 0),
        ("*:gpu", "TRUE", 0),
        ("*:gpu", "no", 1),
    ] {
        let environment = [
            world.search(),
            ("ONEAPI_DEVICE_SELECTOR", selector.to_string()),
            ("UR_LOADER_PRELOAD_FILTER", filter.to_string()),
        ];
        let ours = world.ours("init adapters-null count", &environment);
        assert!(ours.said.ends_with(&format!("  {count}\n")), "{selector} {filter}: {}", ours.said);
        // Where nothing is ruled out, the other one has its OpenCL adapter too.
        if filter == "1" && count != 0 {
            world.same("init adapters-null count", &environment);
        }
    }
}

#[test]
fn a_thousand_starts_and_ends_and_those_of_sixteen_threads_leave_nothing() {
    let world = world();
    let cycles = world.dist.client("cycles.c");
    for adapter in ["null", "native_cpu"] {
        let ran = world.dist.ours(&cycles, &[], &[world.force(&[adapter])]);
        assert!(
            ran.well && ran.said == "cycles: fine\n",
            "{adapter}: {}{}",
            ran.said,
            ran.complained
        );
    }
}

#[test]
fn the_tour_of_the_cpu_adapter_runs_on_either() {
    let world = world();
    let program = world.dist.0.join("tour");
    let source = root().join("adapters/native-cpu/tests/clients/loader.c");
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-I"]).arg(root().join("include")).arg(source).arg("-o").arg(&program);
    let done = cc.arg("-L").arg(world.dist.loader()).arg("-lur_loader").output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for folder in [Some(world.dist.loader()), shipped()].into_iter().flatten() {
        let ran = on(&folder, &program, &[], &[world.force(&["native_cpu"])]);
        assert!(ran.well && ran.said == "loader: fine\n", "{}{}", ran.said, ran.complained);
    }
}
