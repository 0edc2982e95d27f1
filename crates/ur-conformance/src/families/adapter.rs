//! Adapters and platforms.
use crate::{
    ask,
    bench::Bench,
    case::{Case, Stop, Verdict},
    cases, ensure, info, must, refused, same,
};
use std::{
    ffi::{CStr, c_void},
    ptr::{null, null_mut},
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    let mut all = cases! { "adapter";
        "urAdapterGet", "lists adapters", "asked for a number only, it writes the number", counted;
        "urAdapterGet", "an adapter is one object", "two calls give the same adapter, counted twice", same_twice;
        "urAdapterGetInfo", "UR_ADAPTER_INFO_VERSION", "the adapter says that it is of this version of the interface", version;
        "urAdapterGetLastError", "the message is this thread's", "another thread's failure does not change this thread's message", per_thread;
        "urAdapterSetLoggerCallback", "messages go to the callback", "a callback is set, hears or not, and is taken away again", logger;
    };
    all.extend(cases! { "platform";
        "urPlatformGet", "num_entries bounds what is written", "no more platforms are written than there is room for", bounded;
        "urPlatformGetApiVersion", "the version that a platform supports", "every platform supports this version of the interface", api_version;
        "urPlatformGetInfo", "names are for people", "every platform has a name, a vendor and a version", named;
        "urPlatformGetBackendOption", "options are translated", "-O0 to -O3 are translated and repeatably so", options;
        "urPlatformGetBackendOption", "UR_RESULT_ERROR_INVALID_VALUE: the frontend option is not a recognised one", "an option that is none is INVALID_VALUE", no_option;
        "urPlatformGetNativeHandle, urPlatformCreateWithNativeHandle", "a native handle leads back", "a platform made of a native handle is the platform", native;
    });
    all
}

fn counted(b: &Bench) -> Verdict {
    b.handle()?;
    let mut count = u32::MAX;
    must!(b, adapter.get(0, null_mut(), &mut count));
    ensure!((1..100).contains(&count), "there are {count} adapters");
    Ok(())
}
fn same_twice(b: &Bench) -> Verdict {
    let first = b.handle()?;
    let refs = || -> Verdict<u32> {
        Ok(info!(b, adapter.get_info(first, ur_adapter_info_t::REFERENCE_COUNT), u32))
    };
    let before = refs()?;
    let mut second = ur_adapter_handle_t::NULL;
    must!(b, adapter.get(1, &mut second, null_mut()));
    same!(second, first, "the adapter of the second call");
    same!(refs()?, before + 1, "the count after the second call");
    must!(b, adapter.release(second));
    same!(refs()?, before, "the count after its release");
    Ok(())
}
fn version(b: &Bench) -> Verdict {
    let adapter = b.handle()?;
    let version = info!(b, adapter.get_info(adapter, ur_adapter_info_t::VERSION), u32);
    ensure!(version > 0, "version 0");
    Ok(())
}
fn per_thread(b: &Bench) -> Verdict {
    let platform = b.platform()?;
    let mut option = null();
    let code = ask!(b, platform.get_backend_option(platform, c"no option".as_ptr(), &mut option));
    ensure!(code != ur_result_t::SUCCESS, "an option that is none is translated");
    let before = b.sentence();
    let (adapter, subject) = (b.adapter, b.subject.clone());
    let other = std::thread::spawn(move || -> Result<(), String> {
        let other = Bench::new(adapter, subject);
        let fail = || -> Verdict<()> {
            ask!(other, context.retain(ur_context_handle_t::NULL));
            Ok(())
        };
        fail().map_err(|e| format!("{e:?}"))
    });
    match other.join() {
        Ok(result) => result.map_err(Stop::failed)?,
        Err(_) => return Err(Stop::failed("the other thread panicked")),
    }
    same!(b.sentence(), before, "this thread's message");
    Ok(())
}
static HEARD: AtomicUsize = AtomicUsize::new(0);
extern "C" fn hear(_: ur_logger_level_t, text: *const std::ffi::c_char, _: *mut c_void) {
    HEARD.fetch_add(usize::from(!text.is_null()), SeqCst);
}
fn logger(b: &Bench) -> Verdict {
    let (adapter, level) = (b.handle()?, ur_logger_level_t::DEBUG);
    must!(b, adapter.set_logger_callback(adapter, Some(hear), null_mut(), level));
    must!(b, adapter.set_logger_callback_level(adapter, ur_logger_level_t::QUIET));
    let before = HEARD.load(SeqCst);
    ask!(b, context.retain(ur_context_handle_t::NULL));
    same!(HEARD.load(SeqCst), before, "messages heard at level QUIET");
    Ok(())
}
fn bounded(b: &Bench) -> Verdict {
    let adapter = b.handle()?;
    let all = b.platforms()?;
    let marker = ur_platform_handle_t(null_mut::<u8>().wrapping_add(0x5a5a).cast());
    let mut some = vec![marker; all.len() + 2];
    if all.is_empty() {
        return Err(Stop::skipped("the adapter has no platform"));
    }
    must!(b, platform.get(adapter, 1, some.as_mut_ptr(), null_mut()));
    same!(some[0], all[0], "the first platform");
    same!(some[1], marker, "what is behind the room that was given");
    Ok(())
}
fn api_version(b: &Bench) -> Verdict {
    b.platform()?;
    for platform in b.platforms()? {
        let mut version = ur_api_version_t(0);
        must!(b, platform.get_api_version(platform, &mut version));
        same!(version, ur_sys::VERSION, "the version that a platform supports");
    }
    Ok(())
}
fn named(b: &Bench) -> Verdict {
    use ur_platform_info_t as Info;
    b.platform()?;
    for platform in b.platforms()? {
        for name in [Info::NAME, Info::VENDOR_NAME, Info::VERSION] {
            let mut text = [0_u8; 256];
            let to = text.as_mut_ptr().cast();
            must!(b, platform.get_info(platform, name, text.len(), to, null_mut()));
            ensure!(text[0] != 0, "{name:?} is empty");
        }
    }
    Ok(())
}
fn options(b: &Bench) -> Verdict {
    let platform = b.platform()?;
    for option in [c"-O0", c"-O1", c"-O2", c"-O3"] {
        let (mut one, mut two) = (null(), null());
        must!(b, platform.get_backend_option(platform, option.as_ptr(), &mut one));
        must!(b, platform.get_backend_option(platform, option.as_ptr(), &mut two));
        ensure!(!one.is_null() && !two.is_null(), "{option:?} is translated to null");
        let [one, two] = [text(one), text(two)];
        same!(one, two, "{option:?}, asked twice");
    }
    Ok(())
}
#[expect(unsafe_code, reason = "reads a string of the adapter's")]
fn text(at: *const std::ffi::c_char) -> Vec<u8> {
    // SAFETY: the entry returned a C string, and it is not null.
    unsafe { CStr::from_ptr(at) }.to_bytes().to_vec()
}
fn no_option(b: &Bench) -> Verdict {
    let (platform, mut option) = (b.platform()?, null());
    let wrong = c"-an-option-of-nobody".as_ptr();
    refused!(b, ERROR_INVALID_VALUE, platform.get_backend_option(platform, wrong, &mut option));
    ensure!(option.is_null(), "the refused option is written to");
    Ok(())
}
fn native(b: &Bench) -> Verdict {
    let (adapter, platform, mut native) = (b.handle()?, b.platform()?, 0);
    must!(b, platform.get_native_handle(platform, &mut native));
    let mut again = ur_platform_handle_t::NULL;
    must!(b, platform.create_with_native_handle(native, adapter, null(), &mut again));
    crate::bench::exists(again.0)?;
    same!(again, platform, "the platform of its native handle");
    Ok(())
}
