// kernel.hpp - stands before the text of an emitted kernel when the host's C++ compiler builds it
// for the model (nvrtc.c puts it there): the words of CUDA that the text uses, and a second body
// for each MACHINE function of compiler/emit/prims.def. calls.h comes before it.

// ---- words of CUDA C
#define __device__
#define __global__
#define __shared__
#define __grid_constant__
#define __forceinline__ inline
// GCC reads 16 bytes at once then, as a GPU does; as words they would want a word's alignment only.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-sra")
#endif
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(threads, ctas)
#define __cluster_dims__(x, y, z)
#define threadIdx md_thread_index
#define blockIdx md_cta_index
#define gridDim md_grid_size
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
#define DEV static inline
#define SC_INF __builtin_inff()
struct __align__(64) TensorMap { u64 x[16]; };
struct __align__(8) float2 { float x, y; };
struct __align__(16) float4 { float x, y, z, w; };
struct __align__(8) int2 { int x, y; };
struct __align__(16) int4 { int x, y, z, w; };
struct __align__(16) uint4 { u32 x, y, z, w; };
DEV float2 make_float2(float x, float y) { return {x, y}; }
DEV float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
DEV int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
DEV uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }
DEV int min(int a, int b) { return a < b ? a : b; }
DEV int max(int a, int b) { return a > b ? a : b; }
DEV int abs(int a) { return a < 0 ? -a : a; }
DEV float fabsf(float x) { return __builtin_fabsf(x); }
DEV float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
DEV float fminf(float a, float b) { return __builtin_fminf(a, b); }
DEV float sqrtf(float x) { return __builtin_sqrtf(x); }
DEV float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
DEV float tanhf(float x) { return __builtin_tanhf(x); }
extern "C" {
unsigned char memory[1024];  // stands for dynamic shared memory, of which only the address is used
}

// ---- the functions of the table

DEV float sc_flushed(float x) {
  return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.f, x) : x;
}
DEV float sc_plus(float a, float b) { return a + b; }
DEV float sc_exp2(float x) { return sc_flushed(__builtin_exp2f(sc_flushed(x))); }
DEV float sc_exp(float x) { return sc_exp2(x * 1.44269504f); }
DEV float sc_log2(float x) { return __builtin_log2f(x); }
DEV float sc_log(float x) { return __builtin_log2f(x) * 0.693147182f; }

template <typename T> DEV T sc_lane_value(T x, u32 lane) {
  static_assert(sizeof x == 4, "lanes exchange words");
  u32 bits;
  __builtin_memcpy(&bits, &x, 4);
  bits = md_lane_value(bits, lane);
  __builtin_memcpy(&x, &bits, 4);
  return x;
}
template <typename T> DEV T sc_of_lane0(T x) { return sc_lane_value(x, 0); }
template <typename T> DEV T sc_lane_xor(T x, int mask) {
  return sc_lane_value(x, (threadIdx.x & 31) ^ mask);
}
DEV bool sc_any(bool x) { return md_any(x); }
DEV void sc_warp_sync() { md_warp_sync(); }
DEV u32 sc_shared(const void *) { return md_shared(); }
DEV void sc_cta_sync() { md_cta_sync(); }
DEV void sc_grid_wait() { md_grid_wait(); }
DEV void sc_grid_go() { md_grid_go(); }
DEV void sc_not_promised(const int *at, long long least, long long end) {
  md_not_promised(at, least, end);
}

DEV u16 sc_to_f16(float x) { return md_to_f16(x); }
DEV float sc_of_f16(u16 bits) { return md_of_f16(bits); }
DEV u32 sc_pack_f16(float lo, float hi) { return md_to_f16(lo) | (u32)md_to_f16(hi) << 16; }
DEV u16 sc_to_bf16(float x) { return md_to_bf16(x); }
DEV float sc_of_bf16(u16 bits) {
  const u32 word = (u32)bits << 16;
  float x;
  __builtin_memcpy(&x, &word, 4);
  return x;
}
DEV u32 sc_pack_bf16(float lo, float hi) { return md_to_bf16(lo) | (u32)md_to_bf16(hi) << 16; }
DEV u16 sc_pair_e4m3(float lo, float hi) { return md_to_e4m3(lo) | md_to_e4m3(hi) << 8; }
DEV float sc_of_e4m3(u16 bits) { return md_of_e4m3(bits & 0xff); }
DEV u16 sc_pair_e5m2(float lo, float hi) { return md_to_e5m2(lo) | md_to_e5m2(hi) << 8; }
DEV float sc_of_e5m2(u16 bits) { return md_of_e5m2(bits & 0xff); }

template <int n> DEV void sc_setmaxnreg_inc() { md_setmaxnreg(n, 1); }
template <int n> DEV void sc_setmaxnreg_dec() { md_setmaxnreg(n, 0); }

DEV void sc_mbar_init(u32 bar, u32 count) { md_mbar_init(bar, count); }
DEV void sc_mbar_init_fence() { md_mbar_init_fence(); }
DEV void sc_mbar_arrive(u32 bar) { md_mbar_arrive(bar, -1); }
DEV void sc_mbar_expect(u32 bar, u32 bytes) { md_mbar_expect(bar, bytes, 1); }
DEV void sc_mbar_expect_only(u32 bar, u32 bytes) { md_mbar_expect(bar, bytes, 0); }
DEV void sc_mbar_wait(u32 bar, u32 parity) { md_mbar_wait(bar, parity); }
DEV void sc_mbar_wait_for(u32 bar, u32 generation, u32 *waits, u32 entry) {
  md_mbar_wait_for(bar, generation, waits, entry);
}
DEV bool sc_gave_up(const u32 *waits) { return md_gave_up(waits); }
DEV bool sc_any_gave_up(const u32 *waits, u32 barrier) { return md_any_gave_up(waits, barrier); }
DEV int sc_turn_now(const int *turn) { return md_turn_now(turn); }
DEV void sc_turn_take(const int *turn, int mine) { md_turn_take(turn, mine); }
DEV void sc_turn_take_for(const int *turn, int mine, u32 *waits, u32 entry) {
  md_turn_take_for(turn, mine, waits, entry);
}
DEV void sc_turn_pass(int *turn) { md_turn_pass(turn); }
DEV int sc_draw(int *counter) { return md_draw(counter); }
DEV void sc_draw_none(int *counter) { md_draw_none(counter); }

DEV int sc_cta_rank() { return md_cta_rank(); }
DEV void sc_cluster_sync() { md_cluster_sync(); }
DEV void sc_mbar_arrive_cta(u32 bar, u32 cta) { md_mbar_arrive(bar, (int)cta); }
DEV void sc_send_int4(u32 to, u32 bar, int4 x, u32 cta) {
  const int words[4] = {x.x, x.y, x.z, x.w};
  md_send(to, bar, words, cta);
}

DEV void sc_fence_async() { md_fence_async(0); }
DEV void sc_fence_async_all() { md_fence_async(1); }
DEV bool sc_any_together(bool x, u32 id, u32 threads) { return md_any_together(x, id, threads); }
DEV void sc_bar_sync(u32 id, u32 threads) { md_bar_sync(id, threads); }
DEV void sc_bar_arrive(u32 id, u32 threads) { md_bar_arrive(id, threads); }

DEV void sc_tma_prefetch(const TensorMap *map) { md_tma_prefetch(map); }
DEV void sc_tma_multicast(u32 to, const TensorMap *map, u32 bar, u16 ctas, int c0, int c1, int c2,
                          int c3, int c4) {
  const int at[5] = {c0, c1, c2, c3, c4};
  md_tma_load(to, map, bar, ctas, at);
}
DEV void sc_tma_load(u32 to, const TensorMap *map, u32 bar, int c0, int c1, int c2, int c3,
                     int c4) {
  const int at[5] = {c0, c1, c2, c3, c4};
  md_tma_load(to, map, bar, 0, at);
}
DEV void sc_tma_store(const TensorMap *map, u32 from, int c0, int c1, int c2, int c3, int c4) {
  const int at[5] = {c0, c1, c2, c3, c4};
  md_tma_store(map, from, at, 0);
}
DEV void sc_tma_add(const TensorMap *map, u32 from, int c0, int c1, int c2, int c3, int c4) {
  const int at[5] = {c0, c1, c2, c3, c4};
  md_tma_store(map, from, at, 1);
}
DEV void sc_tma_commit() { md_tma_commit(); }
template <int n> DEV void sc_tma_wait() { md_tma_wait(n, 0); }
template <int n> DEV void sc_tma_wait_read() { md_tma_wait(n, 1); }

DEV void sc_wgmma_fence() { md_wgmma_fence(); }
DEV void sc_wgmma_commit() { md_wgmma_commit(); }
template <int n> DEV void sc_wgmma_wait() { md_wgmma_wait(n); }
template <int n> DEV void sc_tie(float (&)[n]) {}
template <int n> DEV void sc_tie(u32 (&)[n]) {}
template <int n> DEV void sc_keep(u32 (&x)[n]) {
  for (int e = 0; e < n; e++) (void)*(volatile u32 *)&x[e];
}
DEV void sc_hold(int) {}
DEV u32 sc_opaque(u32 x) { return x; }

template <typename T> DEV T sc_loaded(u32 at) {
  T x;
  md_load(at, &x, sizeof x);
  return x;
}
DEV float sc_lds32(u32 at) { return sc_loaded<float>(at); }
DEV float2 sc_lds64(u32 at) { return sc_loaded<float2>(at); }
DEV int sc_lds_i32(u32 at) { return sc_loaded<int>(at); }
DEV int4 sc_lds_int4(u32 at) { return sc_loaded<int4>(at); }
DEV int2 sc_lds_int2(u32 at) { return sc_loaded<int2>(at); }
DEV u32 sc_lds_word(u32 at) { return sc_loaded<u32>(at); }
DEV u16 sc_lds16(u32 at) { return sc_loaded<u16>(at); }
DEV u16 sc_lds8(u32 at) { return sc_loaded<unsigned char>(at); }
DEV void sc_sts32(u32 at, float x) { md_store(at, &x, 4); }
DEV void sc_sts_i32(u32 at, int x) { md_store(at, &x, 4); }
DEV void sc_sts_int4(u32 at, int4 x) { md_store(at, &x, 16); }
DEV void sc_sts16(u32 at, u16 x) { md_store(at, &x, 2); }
DEV void sc_sts8(u32 at, u16 x) { md_store(at, &x, 1); }

DEV void sc_stmatrix(u32 at, const u32 *x) { md_stmatrix(at, x); }
DEV int sc_here(int x) { return x; }
DEV void sc_ldmatrix(u32 at, u32 *x) { md_ldmatrix(at, x, 0); }
DEV void sc_ldmatrix_turned(u32 at, u32 *x) { md_ldmatrix(at, x, 1); }
DEV u32 sc_bytes_of(u32 x, u32 y, u32 which) {
  const u64 both = (u64)y << 32 | x;
  u32 bytes = 0;
  for (int i = 0; i < 4; i++) bytes |= (u32)(both >> 8 * (which >> 4 * i & 7) & 0xff) << 8 * i;
  return bytes;
}
DEV void sc_mma_f16(float *d, const u32 (&a)[4], u32 b0, u32 b1) { md_mma(d, a, b0, b1, MD_F16); }
DEV void sc_mma_bf16(float *d, const u32 (&a)[4], u32 b0, u32 b1) { md_mma(d, a, b0, b1, MD_BF16); }
DEV void sc_mma_e4m3(float *d, const u32 (&a)[4], u32 b0, u32 b1) { md_mma(d, a, b0, b1, MD_E4M3); }
DEV void sc_mma_e5m2(float *d, const u32 (&a)[4], u32 b0, u32 b1) { md_mma(d, a, b0, b1, MD_E5M2); }
DEV void sc_add(float *to, float x) { md_add_float(to, &x, 1); }
DEV void sc_add_int(int *to, int x) { md_add_int(to, x); }
DEV void sc_add4(float *to, const float *x) { md_add_float(to, x, 4); }

// What the functions of wgmma call: nvrtc.c writes their bodies, from what their names say. The
// descriptors are those of the whole operand, advanced to this instruction's part of it, in units
// of 16 bytes.
template <MdElem a_elem, MdElem b_elem, int n, bool a_mn, bool b_mn>
DEV void sc_issue(float *d, const u32 *a, u64 a_desc, u64 b_desc, int scale_d) {
  static const MdProduct p = {n, a_elem, b_elem, a_mn, b_mn};
  md_wgmma(&p, d, a, a_desc, b_desc, scale_d);
}
