use super::*;

/// A folder of one test, which is removed on drop.
struct Folder(PathBuf);
impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("abi-diff-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("include/unified-runtime")).unwrap();
        Self(path)
    }
}
impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Compares a copy of our headers, changed by `change`, with our headers.
fn against_itself(name: &str, header: &str, change: impl Fn(&str) -> String) -> Vec<String> {
    let folder = Folder::new(name);
    let include = folder.0.join("include");
    for h in HEADERS {
        let text = fs::read_to_string(root().join("include/unified-runtime").join(h)).unwrap();
        let changed = if h == header { change(&text) } else { text.clone() };
        assert!(h != header || header.is_empty() || changed != text, "the change changes nothing");
        fs::write(include.join("unified-runtime").join(h), changed).unwrap();
    }
    compare(&include, &root().join("include"), &folder.0.join("work")).unwrap().differences
}
#[track_caller]
fn names(differences: &[String], what: &str) {
    assert!(differences.iter().any(|d| d.contains(what)), "{what}: {differences:?}");
}

#[test]
fn the_same_headers_do_not_differ() {
    assert_eq!(against_itself("same", "", str::to_string), Vec::<String>::new());
}
#[test]
fn a_wrong_value_is_named_with_both_values() {
    let changed = against_itself("value", "ur_api.h", |t| {
        t.replace("UR_RESULT_ERROR_INVALID_VALUE = 4", "UR_RESULT_ERROR_INVALID_VALUE = 5")
    });
    assert_eq!(changed, ["value of UR_RESULT_ERROR_INVALID_VALUE: ours 5, reference 4"]);
}
#[test]
fn a_wrong_mask_is_named() {
    let changed = against_itself("mask", "ur_api.h", |t| {
        t.replace("UR_CONTEXT_FLAGS_MASK 0xfffffffe", "UR_CONTEXT_FLAGS_MASK 0xfffffffc")
    });
    names(&changed, "value of UR_CONTEXT_FLAGS_MASK");
}
#[test]
fn a_wrong_string_is_named() {
    let changed = against_itself("string", "ur_api.h", |t| t.replace("\"spir64\"", "\"spir46\""));
    assert_eq!(
        changed,
        ["value of UR_DEVICE_BINARY_TARGET_SPIRV64: ours spir46, reference spir64"]
    );
}
#[test]
fn a_wrong_offset_is_named() {
    let changed = against_itself("offset", "ur_api.h", |t| {
        t.replace("struct ur_usm_desc_t {\n", "struct ur_usm_desc_t {\n    uint64_t before;\n")
    });
    names(&changed, "offset of ur_usm_desc_t.align");
    names(&changed, "extra: offset of ur_usm_desc_t.before");
    names(&changed, "size of ur_usm_desc_t:");
}
#[test]
fn a_wrong_member_type_of_the_same_size_is_named() {
    let changed = against_itself("member", "ur_api.h", |t| {
        let (before, after) = t.split_once("\nstruct ur_usm_desc_t {").unwrap();
        format!(
            "{before}\nstruct ur_usm_desc_t {{{}",
            after.replacen("uint32_t align", "int32_t align", 1)
        )
    });
    assert_eq!(changed, ["type of ur_usm_desc_t.align: ours int32_t, reference uint32_t"]);
}
#[test]
fn a_wrong_order_of_slots_is_named() {
    let (get, wait) =
        ("    ur_pfnEventGetInfo_t pfnGetInfo;\n", "    ur_pfnEventWait_t pfnWait;\n");
    let changed = against_itself("slots", "ur_ddi.h", |t| {
        t.replace(get, "@").replace(wait, get).replace('@', wait)
    });
    names(&changed, "offset of ur_event_dditable_t.pfnGetInfo");
    names(&changed, "offset of ur_event_dditable_t.pfnWait");
}
#[test]
fn a_wrong_parameter_and_a_missing_function_are_named() {
    let changed = against_itself("signature", "ur_api.h", |t| {
        let (head, tail) = t.split_once("urEventWait(\n    uint32_t").unwrap();
        format!("{head}urEventWait(\n    uint64_t{tail}")
            .replace("urContextRetain(", "urContextRetained(")
    });
    names(&changed, "function urEventWait: ours (uint64_t");
    names(&changed, "missing: function urContextRetain ");
    names(&changed, "extra: function urContextRetained ");
}
#[test]
fn a_wrong_callback_is_named() {
    let changed = against_itself("callback", "ur_api.h", |t| {
        t.replace(
            "(*ur_context_extended_deleter_t)(void *",
            "(*ur_context_extended_deleter_t)(char *",
        )
    });
    names(&changed, "function type ur_context_extended_deleter_t");
}
#[test]
fn rust_types_that_differ_from_c_are_named() {
    let folder = Folder::new("rust");
    let headers = Headers::read(&root().join("include"), &folder.0.join("ours")).unwrap();
    let mut facts = headers.facts().unwrap();
    let spec = parse::spec(&root().join("spec")).unwrap();
    assert_eq!(rust_differences(&spec, &facts, &folder.0).unwrap(), Vec::<String>::new());
    for (name, value) in [
        ("value of UR_FUNCTION_EVENT_WAIT", "7"),
        ("offset of ur_usm_desc_t.hints", "7"),
        ("offset of ur_dditable_t.IPCExp", "7"),
    ] {
        facts.insert(name.into(), value.into()).unwrap();
    }
    let found = rust_differences(&spec, &facts, &folder.0).unwrap();
    assert_eq!(found.len(), 3, "{found:?}");
}
