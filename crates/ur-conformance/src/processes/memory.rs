//! Shared memory: pointers into allocations, neighbouring allocations, and memory that cannot be shared.
use super::peer::Place;
use crate::{
    bench::{Bench, Usm, share::Kind},
    case::{Case, Verdict},
    cases, ensure, must, same,
};
use std::ptr::{null, null_mut};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    let mut all = cases! { "ipc_memory";
        "urIPCOpenMemHandleExp", "any pointer inside an allocation can be shared", "a pointer inside an allocation opens as that very place", interior;
        "urIPCOpenMemHandleExp", "an importer never reads a neighbour by mistake", "small neighbours are opened as what they are", neighbours;
        "urIPCOpenMemHandleExp", "opening in the exporting process gives the exporter's own address", "the exporting process gets its own address, counted", own_address;
        "urIPCGetMemHandleExp", "UR_RESULT_ERROR_INVALID_VALUE for host and shared USM", "host and shared USM are not shared between processes", other_kinds;
        "urIPCGetMemHandleExp", "UR_RESULT_ERROR_INVALID_VALUE for nobody's pointer", "memory that is no USM is INVALID_VALUE", nobodys;
        "urIPCGetMemHandleExp", "UR_RESULT_ERROR_INVALID_VALUE for an opened pointer", "what was opened is not shared on", no_re_export;
        "urUSMFree", "UR_RESULT_ERROR_INVALID_MEM_OBJECT for an opened pointer", "what was opened is closed and not freed", not_freed;
        "urIPCGetMemHandleExp", "pooled or not", "memory of a pool is shared like any other", pooled;
        "urIPCOpenMemHandleExp", "freed memory that is open elsewhere is nobody else's", "freed memory that is open elsewhere is not given to anybody", not_reused;
    };
    all.extend(cases! { "ipc_physical";
        "urIPCGetPhysMemHandleExp", "UR_RESULT_ERROR_INVALID_ARGUMENT: the physical memory was not created as shareable between processes", "an object made without the flag is INVALID_ARGUMENT", not_shareable;
        "urIPCOpenPhysMemHandleExp", "each open gives a new handle, also in the exporting process", "opens are handles of their own, that say they can be shared", new_handles;
        "urIPCGetPhysMemHandleExp", "an opened object may be shared again", "a third process sees the bytes of what was shared on", shared_on;
    });
    for (kind, family, entry) in [
        (Kind::Memory, "ipc_memory", "urIPCOpenMemHandleExp"),
        (Kind::Physical, "ipc_physical", "urIPCOpenPhysMemHandleExp"),
        (Kind::Event, "ipc_event", "urIPCOpenEventHandleExp"),
    ] {
        let rule = "the device's query answers truly";
        let name =
            "the entries work where the device says so, and are UNSUPPORTED_FEATURE elsewhere";
        all.push(Case::new(family, entry, rule, name, move |b| honest(b, kind)));
    }
    all
}
fn interior(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer, _) = Place::shared(b, "memory")?;
    exporter.must("set it 0")?;
    for offset in [1, 64, 4095, 4999] {
        exporter.must(&format!("byte it {offset} 77"))?;
        exporter.must(&format!("alias inside it {offset}"))?;
        let ticket = exporter.must("get memory inside")?;
        importer.must(&format!("open memory there {ticket}"))?;
        importer.says("at there 0", "77")?;
        let facts = importer.must("usm there")?;
        same!(facts.split_once(' ').map(|f| f.0), Some(&*offset.to_string()), "the offset");
        importer.must("close memory there")?;
    }
    Ok(())
}
fn neighbours(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::IPC_MEMORY_SUPPORT_EXP)?;
    let place = Place::new(b)?;
    let (mut exporter, mut importer) = (place.peer()?, place.peer()?);
    for bytes in [8, 64, 1000, 5000] {
        let tickets = exporter.must(&format!("many-get 50 {bytes}"))?;
        importer.must(&format!("many-open {tickets}"))?;
        importer.must("many-close")?;
    }
    Ok(())
}
fn own_address(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::IPC_MEMORY_SUPPORT_EXP)?;
    let at = b.alloc(Usm::Device, 5000)?;
    for offset in [0, 100] {
        let inside = at.wrapping_byte_add(offset);
        let given = b.get(Kind::Memory, inside)?;
        same!(b.open(Kind::Memory, &given.bytes)?, inside, "the first open");
        same!(b.open(Kind::Memory, &given.bytes)?, inside, "the second open");
        for _ in 0..2 {
            same!(b.close_code(Kind::Memory, inside)?, ur_result_t::SUCCESS, "a close");
        }
        let expected = ur_result_t::ERROR_INVALID_VALUE;
        same!(b.close_code(Kind::Memory, inside)?, expected, "a close too many");
        same!(b.put_code(Kind::Memory, given.data)?, ur_result_t::SUCCESS, "the put");
    }
    b.free(at)
}
fn refused(b: &Bench, at: *mut std::ffi::c_void) -> Verdict {
    let (code, given) = b.get_code(Kind::Memory, at)?;
    b.was_refused("urIPCGetMemHandleExp", code, ur_result_t::ERROR_INVALID_VALUE)?;
    ensure!(given.data.is_null(), "the result is written to");
    ensure!(!b.sentence().is_empty(), "no reason is given");
    Ok(())
}
fn other_kinds(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::IPC_MEMORY_SUPPORT_EXP)?;
    for kind in [Usm::Host, Usm::Shared] {
        let at = b.alloc(kind, 4096)?;
        refused(b, at)?;
        b.free(at)?;
    }
    Ok(())
}
fn nobodys(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::IPC_MEMORY_SUPPORT_EXP)?;
    let mut mine = [0_u8; 4096];
    refused(b, mine.as_mut_ptr().cast())?;
    let at = b.alloc(Usm::Device, 4096)?;
    b.free(at)?;
    refused(b, at)
}
fn no_re_export(b: &Bench) -> Verdict {
    let (_place, _exporter, mut importer, ticket) = Place::shared(b, "memory")?;
    importer.must(&format!("open memory there {ticket}"))?;
    importer.refused("get memory there", "INVALID_VALUE")?;
    Ok(())
}
fn not_freed(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, "memory")?;
    exporter.must("set it 3")?;
    importer.must(&format!("open memory there {ticket}"))?;
    importer.refused("drop there", "INVALID_MEM_OBJECT")?;
    importer.must("is there 3")?;
    importer.must("close memory there")?;
    Ok(())
}
fn pooled(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::IPC_MEMORY_SUPPORT_EXP)?;
    let (pool, mut at) = (b.new_pool()?, null_mut());
    let (context, device) = (b.context()?, b.device()?);
    must!(b, usm.device_alloc(context, device, std::ptr::null(), pool, 5000, &mut at));
    b.write(at, &[12; 5000])?;
    let given = b.get(Kind::Memory, at)?;
    let (place, ticket) = (Place::new(b)?, hex::encode(&given.bytes));
    // The exporter is this process, whose sockets are in the default directory.
    let mut importer = place.neighbour()?;
    importer.must(&format!("open memory there {ticket}"))?;
    importer.must("is there 12")?;
    importer.must("set there 13")?;
    same!(b.read(at, 5000)?, vec![13; 5000], "what the importer wrote");
    same!(b.put_code(Kind::Memory, given.data)?, ur_result_t::SUCCESS, "the put");
    b.free(at)?;
    must!(b, usm.pool_release(pool));
    Ok(())
}
fn not_reused(b: &Bench) -> Verdict {
    let (_place, mut exporter, mut importer, ticket) = Place::shared(b, "memory")?;
    exporter.must("set it 4")?;
    importer.must(&format!("open memory there {ticket}"))?;
    exporter.must(&format!("put memory {ticket}"))?;
    exporter.must("drop it")?;
    for n in 0..200 {
        exporter.must(&format!("make memory new{n}"))?;
        exporter.must(&format!("set new{n} 5"))?;
    }
    importer.must("is there 4")?;
    importer.must("set there 6")?;
    for n in 0..200 {
        exporter.must(&format!("is new{n} 5"))?;
    }
    Ok(())
}
fn not_shareable(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::IPC_PHYSICAL_MEMORY_SUPPORT_EXP)?;
    let object = b.new_physical(b.granularity()?, ur_physical_mem_flags_t::default())?;
    let (code, given) = b.get_code(Kind::Physical, object.0)?;
    let expected = ur_result_t::ERROR_INVALID_ARGUMENT;
    b.was_refused("urIPCGetPhysMemHandleExp", code, expected)?;
    ensure!(given.data.is_null(), "the result is written to");
    must!(b, physical_mem.release(object));
    Ok(())
}
fn new_handles(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::IPC_PHYSICAL_MEMORY_SUPPORT_EXP)?;
    let object = b.shareable(Kind::Physical)?;
    let given = b.get(Kind::Physical, object)?;
    let (one, two) = (b.open(Kind::Physical, &given.bytes)?, b.open(Kind::Physical, &given.bytes)?);
    ensure!(one != two && one != object && two != object, "two of three are one handle");
    for opened in [one, two] {
        let name = ur_physical_mem_info_t::PROPERTIES;
        let handle = ur_physical_mem_handle_t(opened);
        let words = crate::info!(b, physical_mem.get_info(handle, name), [u32; 6]);
        same!(words[4], ur_physical_mem_flags_t::ENABLE_IPC.0, "the flags of what was opened");
        let size =
            crate::info!(b, physical_mem.get_info(handle, ur_physical_mem_info_t::SIZE), usize);
        same!(size, b.granularity()?, "the size of what was opened");
        same!(b.close_code(Kind::Physical, opened)?, ur_result_t::SUCCESS, "a close");
    }
    same!(b.put_code(Kind::Physical, given.data)?, ur_result_t::SUCCESS, "the put");
    must!(b, physical_mem.release(ur_physical_mem_handle_t(object)));
    Ok(())
}
fn shared_on(b: &Bench) -> Verdict {
    let (place, mut exporter, mut importer, ticket) = Place::shared(b, "physical")?;
    let mut third = place.peer()?;
    exporter.must("set it 21")?;
    importer.must(&format!("open physical there {ticket}"))?;
    let onward = importer.must("get physical there")?;
    third.must(&format!("open physical far {onward}"))?;
    third.must("is far 21")?;
    third.must("set far 22")?;
    exporter.must("is it 22")?;
    exporter.ends()?;
    importer.must("is there 22")?;
    third.must("is far 22")?;
    Ok(())
}
/// Compares the device's support query for a kind with the behaviour of its entries.
fn honest(b: &Bench, kind: Kind) -> Verdict {
    let (device, mut has, mut size) = (b.device()?, 0_u8, 0_usize);
    let to = (&raw mut has).cast();
    let code = crate::ask!(b, device.get_info(device, kind.query(), 1, to, &mut size));
    let says_yes = code == ur_result_t::SUCCESS && has != 0;
    if says_yes {
        b.promise();
        let object = b.shareable(kind)?;
        let given = b.get(kind, object)?;
        let opened = b.open(kind, &given.bytes)?;
        same!(b.close_code(kind, opened)?, ur_result_t::SUCCESS, "the close");
        same!(b.put_code(kind, given.data)?, ur_result_t::SUCCESS, "the put");
        return Ok(());
    }
    let (code, _) = b.open_code(kind, &[0; 64])?;
    same!(code, ur_result_t::ERROR_UNSUPPORTED_FEATURE, "an open where the device says no");
    let code = shared_code(b, kind)?;
    same!(code, ur_result_t::ERROR_UNSUPPORTED_FEATURE, "making it to be shared, or the get");
    Ok(())
}
/// The result of creating an object of the kind for sharing; for memory, which needs no flag at creation, the
/// result of the get.
fn shared_code(b: &Bench, kind: Kind) -> Verdict<ur_result_t> {
    let (context, device) = (b.context()?, b.device()?);
    Ok(match kind {
        Kind::Memory => {
            let at = b.alloc(Usm::Device, 5000)?;
            let (code, _) = b.get_code(kind, at)?;
            b.free(at)?;
            code
        }
        Kind::Physical => {
            let (stype, flags) =
                (ur_structure_type_t::PHYSICAL_MEM_PROPERTIES, ur_physical_mem_flags_t::ENABLE_IPC);
            let properties = ur_physical_mem_properties_t { stype, pNext: null_mut(), flags };
            let (bytes, mut made) = (2 << 20, ur_physical_mem_handle_t::NULL);
            let code =
                crate::ask!(b, physical_mem.create(context, device, bytes, &properties, &mut made));
            ensure!(made.is_null(), "{code:?}, and the result is {made:?}");
            code
        }
        Kind::Event => {
            let (stype, flags) =
                (ur_structure_type_t::EXP_EVENT_DESC, ur_exp_event_flags_t::IPC_EXP);
            let desc = ur_exp_event_desc_t { stype, pNext: null(), flags };
            let mut made = ur_event_handle_t::NULL;
            let code = crate::ask!(b, event_exp.create_exp(context, device, &desc, &mut made));
            ensure!(made.is_null(), "{code:?}, and the result is {made:?}");
            code
        }
    })
}
