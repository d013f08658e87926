// calls.h - what an emitted kernel asks of the model, in C and in C++: kernel.hpp gives each
// MACHINE function of compiler/emit/prims.def a body that calls these. Nothing is included here,
// because the host's compiler reads this file together with the kernel's text.
#ifndef MD_CALLS_H
#define MD_CALLS_H

#ifdef __cplusplus
extern "C" {
#endif

// A kernel, for the driver: `md_kernel_NAME` of its shared object.
typedef struct MdKernel {
  unsigned threads, cluster;  // of a CTA; CTAs of a cluster (__launch_bounds__, __cluster_dims__)
  unsigned params;
  const unsigned *bytes;  // of each parameter
  void (*call)(void **params);
} MdKernel;

// Built-in variables of the thread that runs.
typedef struct MdIndex {
  unsigned x, y, z;
} MdIndex;
extern MdIndex md_thread_index, md_cta_index, md_grid_size;

// elements (cvt)
unsigned short md_to_f16(float x);
float md_of_f16(unsigned short bits);
unsigned short md_to_bf16(float x);
unsigned short md_to_e4m3(float x);
float md_of_e4m3(unsigned short bits);
unsigned short md_to_e5m2(float x);
float md_of_e5m2(unsigned short bits);

// warps: values of all lanes, by number; lane `from` of each lane is what it gets
unsigned md_lane_value(unsigned x, unsigned from);
int md_any(int x);
void md_warp_sync(void);

// the launch before this one has ended; the one behind it may begin
void md_grid_wait(void);
void md_grid_go(void);

// an element of a list is not in its range, or less than the one before it
void md_not_promised(const int *at, long long least, long long end);

// CTAs and clusters
unsigned md_shared(void);
void md_cta_sync(void);
void md_setmaxnreg(int registers, int increase);
int md_cta_rank(void);
void md_cluster_sync(void);

// mbarriers; cta: its number in the cluster, -1: this one
void md_mbar_init(unsigned bar, unsigned count);
void md_mbar_init_fence(void);
void md_mbar_arrive(unsigned bar, int cta);
void md_mbar_expect(unsigned bar, unsigned bytes, int arrives);
void md_mbar_wait(unsigned bar, unsigned parity);
void md_mbar_wait_for(unsigned bar, unsigned generation, unsigned *waits, unsigned entry);
void md_send(unsigned to, unsigned bar, const int *x, unsigned cta);
int md_gave_up(const unsigned *waits);
int md_any_gave_up(const unsigned *waits, unsigned barrier);

// named barriers
void md_bar_sync(unsigned id, unsigned threads);
int md_any_together(int x, unsigned id, unsigned threads);
void md_bar_arrive(unsigned id, unsigned threads);

// turns over CTAs, draws, additions
int md_turn_now(const int *turn);
void md_turn_take(const int *turn, int mine);
void md_turn_take_for(const int *turn, int mine, unsigned *waits, unsigned entry);
void md_turn_pass(int *turn);
int md_draw(int *counter);
void md_draw_none(int *counter);
void md_add_float(float *to, const float *x, unsigned n);
void md_add_int(int *to, int x);

// proxy fences
void md_fence_async(int global);

// the copy engine
struct TensorMap;
void md_tma_prefetch(const struct TensorMap *map);
void md_tma_load(unsigned to, const struct TensorMap *map, unsigned bar, unsigned ctas,
                 const int *at);
void md_tma_store(const struct TensorMap *map, unsigned from, const int *at, int add);
void md_tma_commit(void);
void md_tma_wait(unsigned keep, int read);

// tensor cores
enum MdElem { MD_F16, MD_BF16, MD_E4M3, MD_E5M2 };
typedef struct MdProduct {
  unsigned n;  // columns; 64 rows
  int a_elem, b_elem;
  int a_mn, b_mn;  // operand stored MN-major
} MdProduct;
void md_wgmma_fence(void);
void md_wgmma(const MdProduct *p, float *d, const unsigned *a, unsigned long long a_desc,
              unsigned long long b_desc,
              int scale_d);  // a: registers, NULL: by a_desc
void md_wgmma_commit(void);
void md_wgmma_wait(unsigned keep);

// shared memory, by threads and by warps
void md_load(unsigned at, void *to, unsigned bytes);
void md_store(unsigned at, const void *from, unsigned bytes);
void md_ldmatrix(unsigned at, unsigned *x, int turned);  // turned: .trans
void md_stmatrix(unsigned at, const unsigned *x);
void md_mma(float *d, const unsigned *a, unsigned b0, unsigned b1, int elem);

#ifdef __cplusplus
}
#endif
#endif
