//! Kernel launches: appends them to the command lists of queues and command buffers.
use super::{
    LevelZero,
    driver::is_unsupported,
    native::{arguments, list::List},
};
use ur_hal::{Launch, Result};

/// Appends a launch. Uses the driver's single-call launch if the kernel was launched with arguments of these
/// sizes before.
///
/// # Errors
/// `INVALID_VALUE` for an offset of more than 32 bits; else the driver's error.
pub(super) fn append(list: &List<'_>, launch: &Launch<'_, LevelZero>) -> Result<()> {
    let (groups, local) = (launch.geometry.group_words(), launch.geometry.local);
    let offset = launch.geometry.offset_words()?.unwrap_or_default();
    let given = launch.arguments;
    let mut turn = launch.function.turn();
    let events = list.ends().events();
    let mut words = arguments::Words::default();
    if !launch.is_cooperative
        && let Some(mut places) = arguments::places(given, turn.accepted(offset), &mut words)
    {
        let at_once = turn.append_with(list.raw(), groups, local, &mut places, events);
        if !is_unsupported(at_once) {
            return at_once.ok();
        }
        turn.refuse();
    }
    turn.group(local)?;
    turn.offset(offset)?;
    arguments::set(given, &mut turn)?;
    turn.accept(|| arguments::sizes(given));
    turn.append(list.raw(), groups, launch.is_cooperative, events).ok()
}
