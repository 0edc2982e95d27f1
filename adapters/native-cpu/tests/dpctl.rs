//! Python's dpctl, from PyPI, on the adapter that presents itself as OpenCL: it lists the device,
//! copies memory, submits barriers, and survives that its kernel images are refused.
mod common;
use common::{
    Dist,
    client::{Runtime, client, run, skipped},
    root,
};

/// With hashes for CPython 3.10 to 3.13 on x86-64. They ask for any SYCL runtime of 2026: the one
/// that is there will do, so nothing else is installed with them.
const PACKAGES: &[&str] = &[
    "dpctl==0.22.1 --hash=sha256:06306e5af597f76584399486fd931fec8fea24e91149ecd2df92aeb367e8bd02 \
     --hash=sha256:19b90062f02ca9a8e8c534169e607b251c05d0da51a4c21d3c3e7c96d9e70bb7 \
     --hash=sha256:4917c17a295169d2bb72c4a670501b47f15d2da0351e55d596445095137e7cef \
     --hash=sha256:17812ccfe78034ef32d632f7c83f3b383c3edff9eb70868a244606151067294c",
    "numpy==2.2.6 --hash=sha256:fc7b73d02efb0e18c000e9ad8b83480dfcd5dfd11065997ed4c6747470ae8915 \
     --hash=sha256:ba10f8411898fc418a521833e014a77d3ca01c15b0c6cdcce6a0d2897e6dbbdf \
     --hash=sha256:fd83c01228a688733f1ded5201c678f0c53ecc1006ffbc404db9f7a899ac6249 \
     --hash=sha256:1bc23a79bfabc5d056d106f9befb8d50c31ced2fbc70eedb8155aec74a45798f",
];

fn runtime() -> Option<Runtime> {
    match Runtime::installed()?.with("dpctl", PACKAGES) {
        Ok(runtime) => Some(runtime),
        Err(why) => {
            skipped(&why);
            None
        }
    }
}

#[test]
fn dpctl_lists_the_device_copies_memory_and_submits_barriers() {
    let Some(runtime) = runtime() else { return };
    let dist = Dist::build("dpctl");
    for intercept in ["0", "1"] {
        let mut python = client(&runtime.python());
        python.arg(root().join("adapters/native-cpu/tests/clients/dpctl_client.py"));
        python.env("UR_ADAPTERS_FORCE_LOAD", dist.object());
        python.env("CAUSEWAY_NATIVE_CPU_BACKEND", "opencl");
        python.env("UR_ENABLE_LOADER_INTERCEPT", intercept).env("SYCL_UR_TRACE", "2");
        let ran = run(&mut python);
        let fine = ran.well && ran.said.contains("dpctl: fine\n");
        assert!(fine, "{}\n{}", ran.said, ran.complained);
        // The images that dpctl brings along were offered, and refused in the way that it survives.
        let offered = format!("{}{}", ran.said, ran.complained);
        let answers: Vec<_> = offered
            .lines()
            .filter(|l| l.contains("<--- urDeviceSelectBinary("))
            .filter_map(|l| l.rsplit("-> ").next())
            .collect();
        assert!(!answers.is_empty(), "no image was offered");
        assert!(
            answers.iter().all(|a| a.starts_with("UR_RESULT_ERROR_INVALID_BINARY")),
            "{answers:?}"
        );
    }
}

#[test]
fn without_the_switch_the_device_is_native_cpu_and_dpctl_hides_it() {
    let Some(runtime) = runtime() else { return };
    let dist = Dist::build("dpctl-hidden");
    let mut python = client(&runtime.python());
    python.args(["-c", "import dpctl; print(dpctl.get_devices())"]);
    let ran = run(python.env("UR_ADAPTERS_FORCE_LOAD", dist.object()));
    assert!(ran.well && ran.said == "[]\n", "{}\n{}", ran.said, ran.complained);
}
