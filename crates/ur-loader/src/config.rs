//! Configuration objects: options that a program sets before it starts the loader. Their handles are numbers
//! that are never reused, not addresses, so a wrong handle is an error and never a crash.
#![expect(unsafe_code, reason = "the C ABI")]
use crate::{
    failure::{Failure, Result, enter},
    held::Held,
    layers,
};
use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char, c_void},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use ur_adapter::{error::ErrorCode, memory::UserData};
use ur_sys::*;

/// The program's function that reports the source location of a call.
#[derive(Clone, Copy, Debug)]
pub struct CodeLocation {
    /// The function; present.
    pub callback: ur_code_location_callback_t,
    /// The argument that it is called with.
    pub user_data: UserData,
}

/// The options of one configuration object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    references: u32,
    /// Layers, each by a name that is known.
    pub(crate) layers: Vec<String>,
    /// The function that reports source locations of calls.
    pub(crate) code_location: Option<CodeLocation>,
    /// Whether the mock adapter is used instead of all others.
    pub(crate) mock: bool,
}

/// All configuration objects, by their numbers.
static CONFIGS: Held<BTreeMap<usize, Config>> = Held::new(BTreeMap::new());

/// Returns the options of the object, or the defaults if the handle is null.
pub(crate) fn asked(config: ur_loader_config_handle_t) -> Result<Config> {
    match config.is_null() {
        true => Ok(Config::default()),
        false => with(config, |config| Ok(config.clone())),
    }
}
/// Runs `what` on an object while the lock is held.
fn with<T>(
    config: ur_loader_config_handle_t,
    what: impl FnOnce(&mut Config) -> Result<T>,
) -> Result<T> {
    what(find(&mut CONFIGS.lock(), config)?)
}
fn find(
    all: &mut BTreeMap<usize, Config>,
    config: ur_loader_config_handle_t,
) -> Result<&mut Config> {
    if config.is_null() {
        return Err(ErrorCode::InvalidNullHandle.into());
    }
    all.get_mut(&config.0.addr()).ok_or_else(|| {
        let sentence = "this is no loader configuration, or one that was released";
        Failure::new(ErrorCode::InvalidArgument, sentence)
    })
}

/// Makes a configuration object with one reference.
///
/// # Safety
/// `loader_config` is null or writable.
pub unsafe extern "C" fn loader_config_create(
    loader_config: *mut ur_loader_config_handle_t,
) -> ur_result_t {
    enter("urLoaderConfigCreate", || {
        if loader_config.is_null() {
            return Err(ErrorCode::InvalidNullPointer.into());
        }
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let number = NEXT.fetch_add(1, Relaxed);
        CONFIGS.lock().insert(number, Config { references: 1, ..Config::default() });
        let handle = ur_loader_config_handle_t(std::ptr::without_provenance_mut(number));
        // SAFETY: not null, hence writable.
        unsafe { loader_config.write(handle) };
        Ok(())
    })
}
/// Adds a reference.
pub extern "C" fn loader_config_retain(loader_config: ur_loader_config_handle_t) -> ur_result_t {
    enter("urLoaderConfigRetain", || {
        with(loader_config, |config| {
            let more = config.references.checked_add(1);
            config.references = more.ok_or(ErrorCode::OutOfResources)?;
            Ok(())
        })
    })
}
/// Removes a reference; the last one destroys the object.
pub extern "C" fn loader_config_release(loader_config: ur_loader_config_handle_t) -> ur_result_t {
    enter("urLoaderConfigRelease", || {
        let mut configs = CONFIGS.lock();
        let config = find(&mut configs, loader_config)?;
        config.references -= 1;
        if config.references == 0 {
            configs.remove(&loader_config.0.addr());
        }
        Ok(())
    })
}

/// Returns a property of the object: the names of the available layers, separated by `;`, or its reference
/// count.
///
/// # Safety
/// `prop_value` is null or has `prop_size` writable bytes; `prop_size_ret` is null or writable.
pub unsafe extern "C" fn loader_config_get_info(
    loader_config: ur_loader_config_handle_t,
    prop_name: ur_loader_config_info_t,
    prop_size: usize,
    prop_value: *mut c_void,
    prop_size_ret: *mut usize,
) -> ur_result_t {
    enter("urLoaderConfigGetInfo", || {
        let references = with(loader_config, |config| Ok(config.references))?;
        if prop_value.is_null() && (prop_size != 0 || prop_size_ret.is_null()) {
            return Err(ErrorCode::InvalidNullPointer.into());
        }
        if !prop_value.is_null() && prop_size == 0 {
            return Err(ErrorCode::InvalidSize.into());
        }
        let answer = match prop_name {
            ur_loader_config_info_t::AVAILABLE_LAYERS => {
                let mut text = layers::available().into_bytes();
                text.push(0);
                text
            }
            ur_loader_config_info_t::REFERENCE_COUNT => references.to_ne_bytes().to_vec(),
            _ => return Err(ErrorCode::InvalidEnumeration.into()),
        };
        if !prop_size_ret.is_null() {
            // SAFETY: not null, hence writable.
            unsafe { prop_size_ret.write(answer.len()) };
        }
        if prop_value.is_null() {
            return Ok(());
        }
        if prop_size < answer.len() {
            let sentence = format!("the answer has {} bytes, there is room for less", answer.len());
            return Err(Failure::new(ErrorCode::InvalidSize, sentence));
        }
        let to = prop_value.cast::<u8>();
        // SAFETY: the caller promises `prop_size` writable bytes, and the answer is not longer than that.
        unsafe { to.copy_from_nonoverlapping(answer.as_ptr(), answer.len()) };
        Ok(())
    })
}

/// Enables a layer for when the loader starts.
///
/// # Safety
/// `layer_name` is null or a C string.
pub unsafe extern "C" fn loader_config_enable_layer(
    loader_config: ur_loader_config_handle_t,
    layer_name: *const c_char,
) -> ur_result_t {
    enter("urLoaderConfigEnableLayer", || {
        with(loader_config, |_| Ok(()))?;
        if layer_name.is_null() {
            return Err(ErrorCode::InvalidNullPointer.into());
        }
        // SAFETY: not null, hence a C string, as the caller promises.
        let name = unsafe { CStr::from_ptr(layer_name) }.to_string_lossy();
        if !layers::known(&name) {
            let sentence = format!("there is no layer {name:?}; there are {}", layers::available());
            return Err(Failure::new(ErrorCode::LayerNotPresent, sentence));
        }
        with(loader_config, |config| {
            if !config.layers.iter().any(|layer| *layer == *name) {
                config.layers.push(name.into_owned());
            }
            Ok(())
        })
    })
}
/// Sets the function that tells the layers from which source location calls are made.
///
/// # Safety
/// Any thread may call `codeloc` with `user_data` while the loader is up.
pub unsafe extern "C" fn loader_config_set_code_location_callback(
    loader_config: ur_loader_config_handle_t,
    codeloc: ur_code_location_callback_t,
    user_data: *mut c_void,
) -> ur_result_t {
    enter("urLoaderConfigSetCodeLocationCallback", || {
        with(loader_config, |config| {
            if codeloc.is_none() {
                return Err(ErrorCode::InvalidNullPointer.into());
            }
            let user_data = UserData::new(user_data);
            config.code_location = Some(CodeLocation { callback: codeloc, user_data });
            Ok(())
        })
    })
}
/// Selects whether the mock adapter is used instead of all others.
pub extern "C" fn loader_config_set_mocking_enabled(
    loader_config: ur_loader_config_handle_t,
    enable: ur_bool_t,
) -> ur_result_t {
    enter("urLoaderConfigSetMockingEnabled", || {
        with(loader_config, |config| {
            config.mock = enable != 0;
            Ok(())
        })
    })
}
