//! Derives the names in C and Rust from those of the specification.

/// `EventStatus` → `event_status`, `Device2dBlock` → `device2d_block`.
pub fn snake(camel: &str) -> String {
    let mut out = String::new();
    let mut before = '_';
    for c in camel.chars() {
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        before = c;
    }
    out
}
/// `urEnqueueUSMFill2D` → `enqueue_usm_fill_2d`; also for slots: `USMFill2D` → `usm_fill_2d`.
pub fn function(name: &str) -> String {
    let name = name.strip_prefix("ur").unwrap_or(name);
    let plain = name
        .replace("USM", "Usm")
        .replace("IPC", "Ipc")
        .replace("P2P", "P2p")
        .replace("WithIL", "WithIl")
        .replace("2D", "_2d");
    snake(&plain).trim_start_matches('_').to_string()
}
/// Returns the slot of an entry in its table, in C's spelling without `pfn`: the entry's name without the
/// table's subject (`urEventWait` in `Event` is `Wait`; experimental tables keep `Exp`).
pub fn slot<'a>(entry: &'a str, member: &str) -> &'a str {
    let name = entry.strip_prefix("ur").unwrap_or(entry);
    let subject = member.strip_suffix("Exp").unwrap_or(member);
    let subject = if subject == "UsmP2P" { "UsmP2P" } else { subject };
    name.strip_prefix(subject).unwrap_or(name)
}
/// The name of the function that fills a table: `urGetUSMExpProcAddrTable`.
pub fn getter(member: &str) -> String {
    format!("urGet{member}ProcAddrTable")
}
/// The member of `ur_dditable_t` in Rust: `USMExp` → `usm_exp`.
pub fn member(table: &str) -> String {
    snake(table)
}
/// `UR_RESULT_ERROR_INVALID_VALUE` in `ur_result_t` → `ERROR_INVALID_VALUE`.
pub fn constant(c: &str, enum_c: &str) -> String {
    let prefix = enum_c.trim_end_matches("_t").to_ascii_uppercase();
    let short = c.strip_prefix(&format!("{prefix}_")).or(c.strip_prefix("UR_")).unwrap_or(c);
    match short.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{short}"),
        false => short.to_string(),
    }
}
/// Escapes keywords of Rust.
pub fn escape(name: &str) -> String {
    match name {
        "type" | "match" | "ref" | "in" | "use" | "move" | "loop" | "fn" => format!("r#{name}"),
        _ => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_out_as_the_field_writes_them() {
        assert_eq!(snake("ExpCommandBuffer"), "exp_command_buffer");
        assert_eq!(function("urEnqueueUSMFill2D"), "enqueue_usm_fill_2d");
        assert_eq!(function("urIPCGetMemHandleExp"), "ipc_get_mem_handle_exp");
        assert_eq!(function("urProgramCreateWithIL"), "program_create_with_il");
        assert_eq!(function("urUsmP2PEnablePeerAccessExp"), "usm_p2p_enable_peer_access_exp");
        assert_eq!(slot("urIPCGetMemHandleExp", "IPCExp"), "GetMemHandleExp");
        assert_eq!(constant("UR_QUEUE_FLAG_ON_DEVICE", "ur_queue_flag_t"), "ON_DEVICE");
        assert_eq!(constant("UR_API_VERSION_0_12", "ur_api_version_t"), "_0_12");
    }
}
