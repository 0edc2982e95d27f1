//! Kernels compiled from OpenCL C.
use super::{at, built, launch, number, sources};
use crate::spirv::{Argument, Program};
use std::sync::Arc;

/// The module of a source; `None` if no compiler is installed.
fn compiled(source: &str) -> Option<Arc<Program>> {
    sources::compiled(source).map(|bytes| built(&bytes))
}
#[test]
fn every_item_adds_at_its_own_place() {
    let Some(program) = compiled(
        "kernel void k(global uint *a, uint v) {
            a[get_global_id(0) + 4 * get_global_id(1)] += v + get_local_id(0) * 100;
        }",
    ) else {
        return;
    };
    let mut numbers: Vec<u32> = (0..8).collect();
    let k = launch(&program, "k", [2, 1, 1], vec![at(&mut numbers), number(10)]);
    k.run([2, 2, 1]).unwrap();
    assert_eq!(numbers, [10, 111, 12, 113, 14, 115, 16, 117]);
}
#[test]
fn a_group_adds_in_its_own_memory_with_barriers() {
    let Some(program) = compiled(
        "kernel void k(global uint *out, local uint *t) {
            uint n = get_local_id(0);
            t[n] = n + 1;
            for (uint d = get_local_size(0) / 2; d; d /= 2) {
                barrier(CLK_LOCAL_MEM_FENCE);
                if (n < d) t[n] += t[n + d];
            }
            if (!n) out[get_group_id(0)] = t[0];
        }",
    ) else {
        return;
    };
    let mut sums = [0_u32; 3];
    let k = launch(&program, "k", [64, 1, 1], vec![at(&mut sums), Argument::Local(256)]);
    k.run([3, 1, 1]).unwrap();
    assert_eq!(sums, [2080; 3]);
}
#[test]
fn calls_loops_switches_and_vectors_do_what_they_say() {
    let Some(program) = compiled(
        "__attribute__((noinline)) uint f(uint n) { return n < 2 ? n : n * 2 + 1; }
         typedef struct { char c; int4 v; float f[3]; } S;
         constant uint table[4] = { 7, 8, 9, 10 };
         kernel void k(global uint *a, global float4 *b, S s) {
            uint n = get_global_id(0), x = 0;
            switch (n) { case 0: x = 5; break; case 3: x = 6; break; default: x = f(n); }
            uint own[8];
            for (uint i = 0; i < 8; i++) own[(i + n) % 8] = i;
            a[n] = x * 1000 + own[2] * 100 + table[n];
            b[n] = (float4)(s.f[2], convert_float(s.v.z), sqrt((float)n), fmax(1.5f, s.f[0])).wzyx;
         }",
    ) else {
        return;
    };
    let mut s = [0_u8; 48];
    s[24..28].copy_from_slice(&(-3_i32).to_le_bytes());
    s[32..36].copy_from_slice(&9.25_f32.to_le_bytes());
    s[40..44].copy_from_slice(&0.5_f32.to_le_bytes());
    let (mut a, mut b) = ([0_u32; 4], [[0.0_f32; 4]; 4]);
    let arguments = vec![at(&mut a), at(&mut b), Argument::Bytes(s.into())];
    launch(&program, "k", [1; 3], arguments).run([4, 1, 1]).unwrap();
    assert_eq!(a, [5207, 1108, 5009, 6710]);
    assert_eq!(b[0], [9.25, 0.0, -3.0, 0.5]);
    assert_eq!(b[1], [9.25, 1.0, -3.0, 0.5]);
}
#[test]
fn atomics_count_all_items_of_all_groups() {
    let Some(program) = compiled(
        "kernel void k(global uint *a, global ulong *most) {
            atomic_inc(a);
            atomic_max(a + 1, (uint)get_global_id(0));
            uint old, next;
            do { old = a[2]; next = old + 2; } while (atomic_cmpxchg(a + 2, old, next) != old);
            most[0] = mul_hi((ulong)-1, (ulong)-1);
        }",
    ) else {
        return;
    };
    let (mut a, mut most) = ([0_u32; 3], [0_u64]);
    let k = launch(&program, "k", [8, 1, 1], vec![at(&mut a), at(&mut most)]);
    k.run([5, 1, 1]).unwrap();
    assert_eq!((a, most), ([40, 39, 80], [u64::MAX - 1]));
}
#[test]
fn groups_that_wait_for_each_other_come_to_their_end() {
    let Some(program) = compiled(
        "kernel void k(volatile global uint *a) {
            atomic_inc((volatile global uint *)a);
            while (atomic_add((volatile global uint *)a, 0) < get_global_size(0)) ;
            if (!get_global_id(0)) a[1] = a[0];
        }",
    ) else {
        return;
    };
    let mut a = [0_u32; 2];
    launch(&program, "k", [4, 1, 1], vec![at(&mut a)]).run([8, 1, 1]).unwrap();
    assert_eq!(a, [32, 32]);
}
#[test]
fn numbers_are_rounded_saturated_and_mixed_as_the_language_says() {
    let Some(program) = compiled(
        "kernel void k(global int *a, global float *b, uint4 s, float x, int n) {
            a[0] = convert_short_sat(n);
            a[1] = convert_uchar_sat(-n);
            a[2] = convert_int_sat_rte(x * 0.25f);
            a[3] = convert_int(x + 0.5f);
            uint4 t = shuffle(s, s + 4);
            a[4] = t.x * 1000 + t.y * 100 + t.z * 10 + t.w;
            a[5] = mad_hi(n, n, 3);
            a[6] = rotate(n, 8) & 0xff;
            int q;
            b[0] = remquo(x, 4.0f, &q);
            a[7] = q;
            b[1] = lgamma(x);
            b[2] = remainder(x, 4.0f);
            b[3] = powr(-x, 2.0f);
            float whole;
            b[4] = modf(x, &whole) + whole;
        }",
    ) else {
        return;
    };
    let (mut a, mut b) = ([0_i32; 8], [0.0_f32; 5]);
    let s: Vec<u8> = [3_u32, 2, 1, 0].into_iter().flat_map(u32::to_le_bytes).collect();
    let x = Argument::Bytes(10.0_f32.to_le_bytes().into());
    let arguments = vec![at(&mut a), at(&mut b), Argument::Bytes(s.into()), x, number(0x1234_5678)];
    launch(&program, "k", [1; 3], arguments).run([1; 3]).unwrap();
    assert_eq!(a, [32767, 0, 2, 10, 123, 0x014b_66dc + 3, 0x12, 2]);
    assert_eq!(b[0], 2.0);
    assert!((b[1] - 12.801_827).abs() < 1e-4, "{}", b[1]);
    assert_eq!(b[2], 2.0);
    assert!(b[3].is_nan());
    assert_eq!(b[4], 10.0);
}
