//! What entries do, family by family: that things work, last and end as the specification says.
mod adapter;
mod command_buffer;
mod context;
mod device;
mod enqueue;
mod event;
pub mod kernel;
pub mod memory;
pub mod program;
mod queue;
pub mod recorded_kernels;
mod reusable_events;
mod sampler;
mod usm;
mod usm_pool;
pub mod virtual_mem;

use crate::case::Case;

pub fn cases() -> Vec<Case> {
    let families = [
        adapter::cases(),
        device::cases(),
        context::cases(),
        queue::cases(),
        event::cases(),
        usm::cases(),
        usm_pool::cases(),
        memory::cases(),
        sampler::cases(),
        enqueue::cases(),
        virtual_mem::cases(),
        reusable_events::cases(),
        program::cases(),
        kernel::cases(),
        command_buffer::cases(),
        recorded_kernels::cases(),
    ];
    families.into_iter().flatten().collect()
}
