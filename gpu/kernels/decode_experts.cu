// The kernels of decode's experts: decode_experts.h as launches of their own.
#include "decode_experts.h"

// t[row] = RMSNorm(x[row]) by norm, router[row] = t · w + bias, then the choice. t f32 [rows, k],
// router f32 [rows, count], w bf16 [count, k]; arrived i32 [rows], 0 before and after.
// Then, if order is not null, order and groups as by route_group, with which shared memory must do.
// grid (bucket rows, ceil(count / (256 / WARP))), shared 4 * k
KERNEL(256, 2)
decode_route(const int* rows, int* experts, float* weights, int* order, int* groups, float* t,
             float* router, int* arrived, const float* x, const bf16* norm, const bf16* w,
             const bf16* bias, int k, int count, int top, float eps) {
  route_row(own_place(), rows, experts, weights, order, groups, t, router, arrived, x, norm, w,
            bias, k, count, top, eps);
}
EMULATE(decode_route, 256)

// h[slot] = clamped SwiGLU of gate and up of t[slot / top]: as gate_up, by experts i32 [rows, top].
// grid (bucket slots, any), shared 4 * k
KERNEL(256, 2)
decode_gate_up(const int* rows, float* h, const int* experts, const float* t, const uint8_t* blocks,
               const uint8_t* scales, const bf16* bias, int n, int k, int top, float limit) {
  gate_up_slot<kInFlightMx>(own_place(), rows, h, experts, t, blocks, scales, bias, n, k, top,
                            limit);
}
EMULATE(decode_gate_up, 256)

// x[row] += the sum over the row's slots of weight * (down of h[slot] + bias): as down and combine.
// h f32 [slots, k], x f32 [rows, n]; top <= 16.
// grid (bucket rows, any), shared 4 * k * top
KERNEL(256, 2)
decode_down(const int* rows, float* x, const int* experts, const float* weights, const float* h,
            const uint8_t* blocks, const uint8_t* scales, const bf16* bias, int n, int k, int top) {
  down_row(own_place(), rows, x, experts, weights, h, blocks, scales, bias, n, k, top);
}
EMULATE(decode_down, 256)
