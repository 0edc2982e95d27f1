//! Turns a request of an entry into a command. Ranges, rows and patterns are checked here, once for queues and command
//! buffers of all backends.
use super::{
    buffers::place,
    ready::{Place, Ready, Room, TakesCommands, Used},
};
use crate::memory::{
    allocations::Allocated,
    ranges::{check_range, check_rows, pattern_of},
};
use crate::{over_driver::OverDriver, program::launch::variable};
use ur_adapter::{api::Request, error::Result, log};
use ur_hal::{Access, Address, Advice, Command, Hint, Location, Order, Rows};
use ur_sys::{
    ur_command_t as Name, ur_logger_level_t, ur_usm_advice_flags_t, ur_usm_migration_flags_t,
};

impl<'a, D: TakesCommands> Ready<'a, D> {
    /// Sets this command to what the request describes. It is written in place, because moving a `Ready` takes longer
    /// than some commands do. `waits`: whether the caller passes a wait list.
    #[inline(always)] // for the same reason as `enqueue` in `entries.rs`
    pub(super) fn resolve(
        &mut self,
        request: Request<'a, OverDriver<D>>,
        (context, device): Place<'_, D>,
        waits: bool,
        room: &'a Room<'a, D>,
    ) -> Result<()> {
        (self.name, self.command) = match request {
            Request::Wait => {
                self.order = Order::of_wait(waits);
                (Name::EVENTS_WAIT, Command::Barrier)
            }
            Request::Barrier => {
                self.order = Order::Both;
                (Name::EVENTS_WAIT_WITH_BARRIER, Command::Barrier)
            }
            Request::Timestamp => {
                self.order = Order::of_wait(waits);
                (Name::TIMESTAMP_RECORDING_EXP, Command::Timestamp)
            }
            Request::BufferRead { buffer, offset, size, dst } => {
                let host = (dst, Name::MEM_BUFFER_READ, false);
                *self = Self::transfer(device, buffer, (offset, size), host)?;
                return Ok(());
            }
            Request::BufferWrite { buffer, offset, size, src } => {
                let host = (src, Name::MEM_BUFFER_WRITE, true);
                *self = Self::transfer(device, buffer, (offset, size), host)?;
                return Ok(());
            }
            Request::BufferReadRect {
                buffer,
                buffer_origin,
                host_origin,
                region,
                buffer_row_pitch,
                buffer_slice_pitch,
                host_row_pitch,
                host_slice_pitch,
                dst: host,
            }
            | Request::BufferWriteRect {
                buffer,
                buffer_origin,
                host_origin,
                region,
                buffer_row_pitch,
                buffer_slice_pitch,
                host_row_pitch,
                host_slice_pitch,
                src: host,
            } => {
                let inside = place(buffer_origin, buffer_row_pitch, buffer_slice_pitch);
                let outside = place(host_origin, host_row_pitch, host_slice_pitch);
                let host = (host, outside, matches!(request, Request::BufferWriteRect { .. }));
                *self = Self::transfer_box(device, (buffer, inside), region, host, room)?;
                return Ok(());
            }
            Request::BufferCopy { buffer_src, buffer_dst, src_offset, dst_offset, size } => {
                let ends = ((buffer_src, src_offset), (buffer_dst, dst_offset));
                *self = Self::copy(device, ends.0, ends.1, size)?;
                return Ok(());
            }
            Request::BufferCopyRect {
                buffer_src,
                buffer_dst,
                src_origin,
                dst_origin,
                region,
                src_row_pitch,
                src_slice_pitch,
                dst_row_pitch,
                dst_slice_pitch,
            } => {
                let from = (buffer_src, place(src_origin, src_row_pitch, src_slice_pitch));
                let to = (buffer_dst, place(dst_origin, dst_row_pitch, dst_slice_pitch));
                *self = Self::copy_box(device, from, to, region, room)?;
                return Ok(());
            }
            Request::BufferFill { buffer, pattern, offset, size } => {
                *self = Self::fill(device, buffer, pattern, (offset, size))?;
                return Ok(());
            }
            Request::VariableWrite { program, name, count, offset, src: host }
            | Request::VariableRead { program, name, count, offset, dst: host } => {
                let inside = variable((context, device), &program, name, (offset, count))?;
                let (to, from, name, needs) = match request {
                    Request::VariableWrite { .. } => {
                        (inside, host, Name::DEVICE_GLOBAL_VARIABLE_WRITE, Access::Read)
                    }
                    _ => (host, inside, Name::DEVICE_GLOBAL_VARIABLE_READ, Access::ReadWrite),
                };
                check_range::<D::Known>(host, count, needs)?;
                let copy = Command::Copy { to, from, bytes: count };
                self.uses[0] = Some(Used::Program(program));
                (name, copy)
            }
            Request::HostTask { host_task, .. } => {
                (Name::HOST_TASK_EXP, Command::HostCall(room.call.get_or_init(|| host_task.into())))
            }
            Request::UsmCopy { dst, src, size } => {
                check_range::<D::Known>(dst, size, Access::ReadWrite)?;
                check_range::<D::Known>(src, size, Access::Read)?;
                (Name::USM_MEMCPY, Command::Copy { to: dst, from: src, bytes: size })
            }
            Request::UsmFill { mem, pattern, size } => {
                let to = check_range::<D::Known>(mem, size, Access::ReadWrite)?;
                (Name::USM_FILL, Command::Fill { to, pattern: pattern_of(pattern, size)? })
            }
            Request::UsmCopy2d { dst, dst_pitch, src, src_pitch, width, height } => {
                let to = Rows { start: dst, pitch: dst_pitch };
                let from = Rows { start: src, pitch: src_pitch };
                check_rows::<D::Known>(to, (width, height), Access::ReadWrite)?;
                check_rows::<D::Known>(from, (width, height), Access::Read)?;
                (Name::USM_MEMCPY_2D, Command::Copy2d { to, from, width, height })
            }
            Request::UsmFill2d { mem, pitch, pattern, width, height } => {
                let to = Rows { start: mem, pitch };
                check_rows::<D::Known>(to, (width, height), Access::ReadWrite)?;
                let pattern = pattern_of(pattern, width * height)?; // no overflow: check_rows checked pitch * height
                (Name::USM_FILL_2D, Command::Fill2d { to, width, height, pattern })
            }
            Request::UsmPrefetch { mem, size, flags } => {
                let range = check_range::<D::Known>(mem, size, Access::Read)?;
                let to = match flags.contains(ur_usm_migration_flags_t::DEVICE_TO_HOST) {
                    true => Location::Host,
                    false => Location::Device,
                };
                (Name::USM_PREFETCH, hint::<D>(Command::Prefetch { range, to }, mem, "a prefetch"))
            }
            Request::ImageRead { image, origin, region, row_pitch, slice_pitch, dst } => {
                let host = (dst, [row_pitch, slice_pitch], false);
                *self = Self::transfer_pixels(device, image, (origin, region), host, room)?;
                return Ok(());
            }
            Request::ImageWrite { image, origin, region, row_pitch, slice_pitch, src } => {
                let host = (src, [row_pitch, slice_pitch], true);
                *self = Self::transfer_pixels(device, image, (origin, region), host, room)?;
                return Ok(());
            }
            Request::ImageCopy { image_src, image_dst, src_origin, dst_origin, region } => {
                let ends = ((image_src, src_origin), (image_dst, dst_origin));
                *self = Self::copy_pixels(device, ends.0, ends.1, region, room)?;
                return Ok(());
            }
            Request::UsmAdvise { mem, size, advice } => {
                let range = check_range::<D::Known>(mem, size, Access::Read)?;
                let advice = advice_of(advice);
                (Name::USM_ADVISE, hint::<D>(Command::Advise { range, advice }, mem, "advice"))
            }
        };
        Ok(())
    }
}
/// Memory that is never migrated makes a hint useless: it becomes a barrier, which keeps the command's place in the
/// order, and a warning is logged.
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
