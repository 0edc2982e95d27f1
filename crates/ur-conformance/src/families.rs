//! The behaviour of entries, family by family: that commands work and objects live and end as specified.
mod adapter;
mod build;
pub mod command_buffer;
mod command_updates;
mod context;
mod crossing;
pub mod device;
mod enqueue;
mod event;
mod fills;
mod images;
pub mod kernel;
pub mod memory;
mod profiling;
pub mod program;
mod queue;
pub mod recorded_kernels;
mod reusable_events;
mod sampler;
mod spirv;
mod threads;
mod threads_queue;
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
        profiling::cases(),
        usm::cases(),
        usm_pool::cases(),
        memory::cases(),
        images::cases(),
        sampler::cases(),
        enqueue::cases(),
        fills::cases(),
        crossing::cases(),
        virtual_mem::cases(),
        reusable_events::cases(),
        program::cases(),
        build::cases(),
        kernel::cases(),
        command_buffer::cases(),
        recorded_kernels::cases(),
        threads::cases(),
        command_updates::cases(),
    ];
    families.into_iter().flatten().collect()
}
