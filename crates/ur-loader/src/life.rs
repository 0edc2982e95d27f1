//! The loader's start and end. Starts are counted: the first one finds the adapters, the last end
//! lets go of them, and after it every call answers that there is no loader.
use crate::{
    adapters, config, discover,
    failure::{Failure, enter},
    layers, log,
    state::{self, State},
};
use std::sync::{Mutex, PoisonError};
use ur_adapter::error::ErrorCode;
use ur_sys::*;

/// How often the loader was started and not ended. Held while adapters are found, so that a second
/// start does not come back before there are any.
static STARTS: Mutex<u32> = Mutex::new(0);

/// Starts the loader. The flags rule out nothing: which devices a program sees is the selector's.
pub extern "C" fn loader_init(
    device_flags: ur_device_init_flags_t,
    loader_config: ur_loader_config_handle_t,
) -> ur_result_t {
    enter("urLoaderInit", || {
        if device_flags.unknown_bits() != 0 {
            let sentence = format!("{device_flags:?} has bits that are no flags");
            return Err(Failure::new(ErrorCode::InvalidEnumeration, sentence));
        }
        let asked = config::asked(loader_config)?;
        let mut starts = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
        if *starts == 0 {
            adapters::start(&discover::candidates(asked.mock));
            let layered = layers::start(&asked.layers, asked.code_location);
            state::set(if layered { State::Layered } else { State::Plain });
            log::debug("the loader is up");
        }
        *starts = starts.checked_add(1).ok_or(ErrorCode::OutOfResources)?;
        Ok(())
    })
}

/// Ends the loader, if it was started once more than ended.
pub extern "C" fn loader_tear_down() -> ur_result_t {
    enter("urLoaderTearDown", || {
        let mut starts = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
        *starts = starts.checked_sub(1).ok_or(ErrorCode::Uninitialized)?;
        if *starts == 0 {
            layers::stop();
            state::set(State::Down);
            adapters::stop();
            log::debug("the loader is down");
        }
        Ok(())
    })
}
