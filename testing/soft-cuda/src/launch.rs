//! Kernel launches, and occupancy.
#![expect(unsafe_code, reason = "exports symbols of the driver; the caller's function for sizes")]
use crate::{
    attributes::{
        BLOCKS, CLUSTER, CLUSTER_NON_PORTABLE, PROCESSORS, REGISTERS, RESIDENT, SHARED_RESIDENT,
        THREADS,
    },
    code::{
        Answer, COOPERATIVE_TOO_LARGE, INVALID_CLUSTER, INVALID_HANDLE, INVALID_VALUE,
        OUT_OF_RESOURCES,
    },
    layout::{LaunchAttribute, LaunchConfig},
    module::{self, Function},
    ptx::{Block, run_block},
    raw::{get, list, put, put_maybe},
    stream,
};
use std::{
    ffi::c_void,
    ptr::null,
    sync::{Arc, atomic::Ordering},
};

/// Returns how many blocks of `items` threads a multiprocessor holds.
fn resident(function: &Function, items: i32, shared: u64) -> i32 {
    if items <= 0 || items > function.most_items() {
        return 0;
    }
    let warps = (items + 31) / 32;
    let registers = REGISTERS / (warps * 32 * function.registers()).max(1);
    let used = shared + function.static_shared() + 1024;
    let memory = (SHARED_RESIDENT as u64 / used) as i32;
    BLOCKS.min(RESIDENT / (warps * 32)).min(registers).min(memory)
}
fn product(sizes: [u32; 3]) -> u64 {
    sizes.iter().map(|s| u64::from(*s)).product()
}
/// Checks the configuration of a launch.
fn check(function: &Function, c: &LaunchConfig) -> Answer {
    let most = [THREADS as u32, THREADS as u32, 64];
    let sizes = c.grid.contains(&0) || c.block.contains(&0);
    let high = c.grid[0] > i32::MAX as u32 || c.grid[1] > 65535 || c.grid[2] > 65535;
    let wide = c.block.iter().zip(most).any(|(size, most)| *size > most);
    if sizes || high || wide || product(c.block) > THREADS as u64 {
        return Err(INVALID_VALUE);
    }
    if function.entry().required.is_some_and(|required| required != c.block) {
        return Err(INVALID_VALUE);
    }
    if product(c.block) > function.most_items() as u64 {
        return Err(OUT_OF_RESOURCES);
    }
    if c.shared > function.dynamic.load(Ordering::Acquire) as u32 {
        return Err(INVALID_VALUE);
    }
    for attribute in list(c.attributes, c.count as usize)? {
        let [x, y, z, ..] = attribute.value;
        match attribute.id {
            2 if x != 0 => {
                let fit =
                    resident(function, product(c.block) as i32, u64::from(c.shared)) * PROCESSORS;
                if product(c.grid) > fit as u64 {
                    return Err(COOPERATIVE_TOO_LARGE);
                }
            }
            4 => cluster(function, c.grid, [x, y, z])?,
            0..=12 => {}
            _ => return Err(INVALID_VALUE),
        }
    }
    Ok(())
}
fn cluster(function: &Function, grid: [u32; 3], size: [u32; 3]) -> Answer {
    let big = function.big_clusters.load(Ordering::Acquire) != 0;
    let most = if big { CLUSTER_NON_PORTABLE } else { CLUSTER };
    let divides = grid.iter().zip(size).all(|(g, s)| s != 0 && g % s == 0);
    if divides && product(size) <= u64::from(most) { Ok(()) } else { Err(INVALID_CLUSTER) }
}
fn launch(
    c: LaunchConfig,
    id: u64,
    arguments: *const *const u8,
    extra: *const *const c_void,
) -> Answer {
    let (function, stream) = (module::function(id)?, stream::of(c.stream)?);
    if function.module.context != stream.context {
        return Err(INVALID_HANDLE);
    }
    check(&function, &c)?;
    let entry = function.entry();
    let needs = !entry.parameters.is_empty();
    if (needs && arguments.is_null()) || !extra.is_null() {
        return Err(INVALID_VALUE);
    }
    let mut parameters = vec![0; entry.parameter_bytes()];
    for (i, p) in entry.parameters.iter().enumerate() {
        let value = list(get(arguments.wrapping_add(i))?, p.bytes)?;
        parameters[p.offset..p.offset + p.bytes].copy_from_slice(&value);
    }
    let (grid, block, shared, device) = (c.grid, c.block, c.shared as usize, stream.device);
    stream.submit(move || run(&function, grid, block, shared, device, &parameters))?;
    Ok(())
}
fn run(
    function: &Arc<Function>,
    groups: [u32; 3],
    items: [u32; 3],
    shared: usize,
    device: i32,
    parameters: &[u8],
) -> Answer {
    let (text, entry) = (&function.module.text, function.entry());
    let statics = (function.static_shared() as usize).next_multiple_of(16);
    for z in 0..groups[2] {
        for (y, x) in (0..groups[1]).flat_map(|y| (0..groups[0]).map(move |x| (y, x))) {
            let (variables, shared) = (&function.module.variables, vec![0xa5; statics + shared]);
            let group = [x, y, z];
            run_block(&mut Block {
                text,
                entry,
                variables,
                parameters,
                device,
                group,
                groups,
                items,
                shared,
            })
            .inspect_err(|code| eprintln!("soft-cuda: {} in {group:?}: {code:?}", entry.name))?;
        }
    }
    Ok(())
}

entries! {
    fn cuLaunchKernel(
        function: u64, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: u64,
        arguments: *const *const u8, extra: *const *const c_void,
    ) {
        let (grid, block, attributes) = ([gx, gy, gz], [bx, by, bz], null::<LaunchAttribute>());
        launch(LaunchConfig { grid, block, shared, stream, attributes, count: 0 }, function, arguments, extra)
    }
    fn cuLaunchKernelEx(
        config: *const LaunchConfig, function: u64, arguments: *const *const u8, extra: *const *const c_void,
    ) {
        launch(get(config)?, function, arguments, extra)
    }
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(to: *mut i32, function: u64, items: i32, shared: usize) {
        let function = module::function(function)?;
        if items <= 0 {
            return Err(INVALID_VALUE);
        }
        put(to, resident(&function, items, shared as u64))
    }
    fn cuOccupancyMaxPotentialBlockSize(
        groups: *mut i32, items: *mut i32, function: u64, shared_of: Option<extern "C" fn(i32) -> usize>,
        shared: usize, most: i32,
    ) {
        let function = module::function(function)?;
        let limit = if most <= 0 { function.most_items() } else { most.min(function.most_items()) };
        let needs = |size: i32| shared_of.map_or(shared, |f| f(size)) as u64;
        let sizes = (1..=limit / 32).map(|warps| warps * 32).chain([limit]);
        let best = sizes.max_by_key(|size| (size * resident(&function, *size, needs(*size)), *size)).unwrap_or(limit);
        put_maybe(items, best);
        put_maybe(groups, resident(&function, best, needs(best)).max(1) * PROCESSORS);
        Ok(())
    }
    fn cuOccupancyMaxActiveClusters(to: *mut i32, function: u64, config: *const LaunchConfig) {
        let (function, config) = (module::function(function)?, get(config)?);
        check(&function, &config)?;
        let attributes = list(config.attributes, config.count as usize)?;
        let size = attributes.iter().find(|a| a.id == 4).map_or(1, |a| product([a.value[0], a.value[1], a.value[2]]));
        let fit = resident(&function, product(config.block) as i32, u64::from(config.shared)) * PROCESSORS;
        put(to, fit / size as i32)
    }
}
