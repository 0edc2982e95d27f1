use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> Selector {
    Selector::parse(text).unwrap().unwrap()
}
/// A platform with three devices; the first has two sub-devices, of which the first has two sub-devices
/// again.
fn places(kind: Kind) -> Vec<Place> {
    let numbers: [&[u32]; 7] = [&[0], &[1], &[2], &[0, 0], &[0, 1], &[0, 0, 0], &[0, 0, 1]];
    numbers.map(|numbers| Place { kind, numbers: numbers.to_vec() }).into()
}
/// Returns the selected devices of a CUDA platform, written as in the selector.
fn chosen(text: &str) -> String {
    let all = places(Kind::GPU);
    let chosen = parse(text).choose(Backend::CUDA, &all);
    let written = chosen.iter().map(|at| {
        let numbers: Vec<_> = all[*at].numbers.iter().map(u32::to_string).collect();
        numbers.join(".")
    });
    written.collect::<Vec<_>>().join(" ")
}

#[test]
fn devices_are_chosen_in_the_order_in_which_they_are_named_and_once() {
    for (text, expected) in [
        ("*:*", "0 1 2"),
        ("cuda:*", "0 1 2"),
        ("CUDA:GPU", "0 1 2"),
        ("cuda:2,0", "2 0"),
        ("cuda:0,*", "0 1 2"),
        ("cuda:1;cuda:0", "1 0"),
        ("hip:*;*:1", "1"),
        ("cuda:01", "1"),
        ("cuda:7", ""),
        ("cuda:cpu", ""),
        ("hip:*", ""),
    ] {
        assert_eq!(chosen(text), expected, "{text}");
    }
}
#[test]
fn parts_are_chosen_only_where_they_are_named() {
    for (text, expected) in [
        ("cuda:*.*", "0.0 0.1"),
        ("cuda:0.1,0", "0.1 0"),
        ("cuda:*.*.*", "0.0.0 0.0.1"),
        ("cuda:0.0.1", "0.0.1"),
        ("cuda:1.*", ""),
        ("*:*,*.*;!cuda:0.0", "0 1 2 0.1"),
    ] {
        assert_eq!(chosen(text), expected, "{text}");
    }
}
#[test]
fn what_is_discarded_is_taken_from_what_is_accepted_which_is_everything_if_nothing_is_said() {
    for (text, expected) in [
        ("!cuda:1", "0 2"),
        ("!hip:*", "0 1 2"),
        ("!*:gpu", ""),
        ("!cuda:cpu", "0 1 2"),
        ("cuda:*;!cuda:1", "0 2"),
        ("!cuda:1;cuda:*", "0 2"),
        ("hip:*;!cuda:1", ""),
        ("cuda:*.*;!cuda:0", "0.0 0.1"),
    ] {
        assert_eq!(chosen(text), expected, "{text}");
    }
}
#[test]
fn what_is_no_selector_is_said_to_be_none_with_what_to_write() {
    assert_eq!(Selector::parse(""), Ok(None));
    for (text, said) in [
        ("cuda", "no colon"),
        (";", "no colon"),
        ("cuda:*;;hip:*", "no colon"),
        ("!", "no colon"),
        ("cuda:*:*", "no device"),
        ("foo:*", "no backend"),
        (" cuda:0", "no backend"),
        (":gpu", "no backend"),
        ("!!cuda:*", "no backend"),
        ("cuda:", "no device"),
        ("cuda:foo", "no device"),
        ("cuda: 0", "no device"),
        ("cuda:0,,1", "no device"),
        ("cuda:-1", "no device"),
        ("cuda:99999999999", "no device"),
        ("cuda:0.", "no device"),
        ("cuda:0.0.0.0", "too deep"),
        ("cuda:*.0", "after *"),
        ("cuda:*.0.*", "after *"),
    ] {
        let wrong = Selector::parse(text).unwrap_err();
        assert!(wrong.contains(said), "{text}: {wrong}");
    }
}
#[test]
fn one_separator_may_follow_the_last_item() {
    assert_eq!(parse("cuda:0,;"), parse("cuda:0"));
}
#[test]
fn an_adapter_is_ruled_out_only_if_no_device_of_it_can_be_chosen() {
    let may = |text: &str, kinds: &[Kind]| parse(text).may_use(Backend::CUDA, kinds);
    for text in ["*:*", "cuda:0.0", "*:gpu", "!hip:*", "!cuda:0", "!cuda:cpu", "hip:*;cuda:1"] {
        assert!(may(text, &[Kind::GPU]), "{text}");
    }
    for text in ["hip:*", "*:cpu", "!cuda:*", "!*:gpu", "cuda:*;!*:*", "cuda:cpu"] {
        assert!(!may(text, &[Kind::GPU]), "{text}");
    }
    assert!(may("!*:gpu", &[Kind::GPU, Kind::CPU]));
}

/// Generates a device term.
fn device() -> impl Strategy<Value = String> {
    let step = prop_oneof![Just("*".to_string()), (0_u32..4).prop_map(|n| n.to_string())];
    let steps = proptest::collection::vec(step, 1..=3).prop_map(|mut steps| {
        if let Some(any) = steps.iter().position(|step| step == "*") {
            steps[any..].fill("*".to_string());
        }
        steps.join(".")
    });
    prop_oneof![steps, proptest::sample::select(vec!["cpu", "Gpu", "fpga"]).prop_map(String::from)]
}
/// Generates a selector.
fn selector() -> impl Strategy<Value = String> {
    let backend = proptest::sample::select(vec!["*", "cuda", "HIP", "level_zero", "native_cpu"]);
    let devices = proptest::collection::vec(device(), 1..4).prop_map(|all| all.join(","));
    let term = (any::<bool>(), backend, devices).prop_map(|(not, backend, devices)| {
        format!("{}{backend}:{devices}", if not { "!" } else { "" })
    });
    proptest::collection::vec(term, 1..4).prop_map(|all| all.join(";"))
}

proptest! {
    #[test]
    fn any_text_at_all_is_read_or_refused(text in ".{0,40}") {
        let _ = Selector::parse(&text);
    }
    #[test]
    fn text_that_is_nearly_a_selector_is_read_or_refused(text in "[!*:;,.0-9a-z ]{0,24}") {
        let _ = Selector::parse(&text);
    }
    #[test]
    fn the_grammar_is_read_whole(text in selector()) {
        prop_assert!(Selector::parse(&text).is_ok(), "{}", text);
    }
    #[test]
    fn an_adapter_whose_device_is_chosen_was_not_ruled_out(text in selector()) {
        let selector = parse(&text);
        for kind in [Kind::GPU, Kind::CPU] {
            let chosen = selector.choose(Backend::CUDA, &places(kind));
            prop_assert!(chosen.is_empty() || selector.may_use(Backend::CUDA, &[kind]), "{}", text);
        }
    }
    #[test]
    fn a_part_that_is_chosen_was_looked_for(text in selector()) {
        let (selector, all) = (parse(&text), places(Kind::GPU));
        for at in selector.choose(Backend::CUDA, &all) {
            for depth in 1..all[at].numbers.len() {
                prop_assert!(selector.looks_into(Backend::CUDA, &all[at].numbers[..depth]));
            }
        }
    }
    #[test]
    fn discarding_everything_leaves_nothing_of_the_devices(text in selector()) {
        let all = &places(Kind::GPU)[..3];
        let chosen = parse(&format!("{text};!*:*")).choose(Backend::CUDA, all);
        prop_assert_eq!(chosen, Vec::<usize>::new());
    }
}
