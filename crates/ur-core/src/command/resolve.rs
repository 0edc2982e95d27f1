//! From what C asks for to a command: ranges, rows and patterns are judged here, once for queues and command buffers of
//! all backends.
use super::{Ready, TakesCommands};
use crate::memory::{
    allocations::Allocated,
    ranges::{check_range, check_rows, pattern_of},
};
use ur_adapter::{api::Request, error::Result, log};
use ur_hal::{Address, Advice, Command, Hint, Location, Order, Rows};
use ur_sys::{
    ur_command_t as Name, ur_logger_level_t, ur_usm_advice_flags_t, ur_usm_migration_flags_t,
};

impl<'a, D: TakesCommands> Ready<'a, D> {
    /// `waits`: whether it names what it waits for.
    #[inline(always)] // as `enqueue`
    pub(super) fn resolve(request: Request<'a>, waits: bool) -> Result<Self> {
        let (name, command) = match request {
            Request::Wait => {
                let order = Order::of_wait(waits);
                return Ok(Self { name: Name::EVENTS_WAIT, command: Command::Barrier, order });
            }
            Request::Barrier => {
                let name = Name::EVENTS_WAIT_WITH_BARRIER;
                return Ok(Self { name, command: Command::Barrier, order: Order::Both });
            }
            Request::Timestamp => {
                let (name, order) = (Name::TIMESTAMP_RECORDING_EXP, Order::of_wait(waits));
                return Ok(Self { name, command: Command::Timestamp, order });
            }
            Request::HostTask { host_task, .. } => {
                (Name::HOST_TASK_EXP, Command::HostCall(host_task.into()))
            }
            Request::UsmCopy { dst, src, size } => {
                check_range::<D::Known>(dst, size)?;
                check_range::<D::Known>(src, size)?;
                (Name::USM_MEMCPY, Command::Copy { to: dst, from: src, bytes: size })
            }
            Request::UsmFill { mem, pattern, size } => {
                let to = check_range::<D::Known>(mem, size)?;
                (Name::USM_FILL, Command::Fill { to, pattern: pattern_of(pattern, size)? })
            }
            Request::UsmCopy2d { dst, dst_pitch, src, src_pitch, width, height } => {
                let to = Rows { start: dst, pitch: dst_pitch };
                let from = Rows { start: src, pitch: src_pitch };
                check_rows::<D::Known>(to, (width, height))?;
                check_rows::<D::Known>(from, (width, height))?;
                (Name::USM_MEMCPY_2D, Command::Copy2d { to, from, width, height })
            }
            Request::UsmFill2d { mem, pitch, pattern, width, height } => {
                let to = Rows { start: mem, pitch };
                check_rows::<D::Known>(to, (width, height))?;
                let pattern = pattern_of(pattern, width * height)?; // no more than pitch * height
                (Name::USM_FILL_2D, Command::Fill2d { to, width, height, pattern })
            }
            Request::UsmPrefetch { mem, size, flags } => {
                let range = check_range::<D::Known>(mem, size)?;
                let to = match flags.contains(ur_usm_migration_flags_t::DEVICE_TO_HOST) {
                    true => Location::Host,
                    false => Location::Device,
                };
                (Name::USM_PREFETCH, hint::<D>(Command::Prefetch { range, to }, mem, "a prefetch"))
            }
            Request::UsmAdvise { mem, size, advice } => {
                let range = check_range::<D::Known>(mem, size)?;
                let advice = advice_of(advice);
                (Name::USM_ADVISE, hint::<D>(Command::Advise { range, advice }, mem, "advice"))
            }
        };
        Ok(Self { name, command, order: Order::Free })
    }
}
/// A hint about memory that is not moved is of no use: nothing is left of it but its place in the order.
fn hint<'a, D: TakesCommands>(
    command: Command<'a, D>,
    at: Address,
    what: &'static str,
) -> Command<'a, D> {
    if D::is_managed(at) {
        return command;
    }
    let why = format!("{what} is without effect: {at:?} is not shared USM of this adapter");
    log::say(D::Known::BACKEND, ur_logger_level_t::WARN, &why);
    Command::Barrier
}
fn advice_of(flags: ur_usm_advice_flags_t) -> Advice {
    use ur_usm_advice_flags_t as F;
    const WORDS: &[(F, Hint, bool)] = &[
        (F::SET_READ_MOSTLY, Hint::ReadMostly, true),
        (F::CLEAR_READ_MOSTLY, Hint::ReadMostly, false),
        (F::SET_PREFERRED_LOCATION, Hint::PreferDevice, true),
        (F::CLEAR_PREFERRED_LOCATION, Hint::PreferDevice, false),
        (F::SET_NON_ATOMIC_MOSTLY, Hint::NonAtomicMostly, true),
        (F::CLEAR_NON_ATOMIC_MOSTLY, Hint::NonAtomicMostly, false),
        (F::BIAS_CACHED, Hint::Cached, true),
        (F::BIAS_UNCACHED, Hint::Cached, false),
        (F::SET_ACCESSED_BY_DEVICE, Hint::AccessedByDevice, true),
        (F::CLEAR_ACCESSED_BY_DEVICE, Hint::AccessedByDevice, false),
        (F::SET_ACCESSED_BY_HOST, Hint::AccessedByHost, true),
        (F::CLEAR_ACCESSED_BY_HOST, Hint::AccessedByHost, false),
        (F::SET_PREFERRED_LOCATION_HOST, Hint::PreferHost, true),
        (F::CLEAR_PREFERRED_LOCATION_HOST, Hint::PreferHost, false),
        (F::SET_NON_COHERENT_MEMORY, Hint::NonCoherent, true),
        (F::CLEAR_NON_COHERENT_MEMORY, Hint::NonCoherent, false),
    ];
    let given = WORDS.iter().filter(|(flag, ..)| flags.contains(*flag));
    given.fold(Advice::default(), |advice, (_, hint, on)| advice.with(*hint, *on))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_of_advice_is_one_hint_and_no_two_are_the_same() {
        use ur_usm_advice_flags_t as F;
        assert_eq!(advice_of(F::DEFAULT).hints().count(), 0);
        let flags = (0..u32::BITS).map(|bit| F(1 << bit)).filter(|flag| F::VALID.contains(*flag));
        let flags: Vec<_> = flags.filter(|flag| *flag != F::DEFAULT).collect();
        for flag in &flags {
            assert_eq!(advice_of(*flag).hints().count(), 1, "{flag:?}");
        }
        assert_eq!(advice_of(F::VALID).hints().count(), flags.len(), "{flags:?}");
    }
}
