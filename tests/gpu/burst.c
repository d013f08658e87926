// burst.c - launches back to back, timed on the host: through schedc_launch, and through the
// driver. For cost.py, which opens it with ctypes and knows the addresses of both functions.
#include <stddef.h>
#include <time.h>

typedef int Launch(void *context, void *loaded, void *stream, const void *tensors,
                   size_t tensor_count, const void *scalars, size_t scalar_count, void *workspace,
                   size_t workspace_bytes);
typedef int Driver(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **params, void **extra);

typedef struct Node {  // CUDA_KERNEL_NODE_PARAMS
  void *function;
  unsigned grid[3], block[3], shared;
  void **params, **extra;
  void *kernel, *context;
} Node;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Seconds that n launches take, of these sets of tensors in turn; -1: one is refused.
double through_schedc(Launch *launch, void *context, void *loaded, void *stream,
                      const void *const *sets, int count, size_t tensors, int n) {
  double begun = now();
  for (int i = 0; i < n; i++)
    if (launch(context, loaded, stream, sets[i % count], tensors, NULL, 0, NULL, 0)) return -1;
  return now() - begun;
}

double through_driver(Driver *launch, const Node *node, void *stream, int n) {
  void *function = node->function ? node->function : node->kernel;
  double begun = now();
  for (int i = 0; i < n; i++)
    if (launch(function, node->grid[0], node->grid[1], node->grid[2], node->block[0],
               node->block[1], node->block[2], node->shared, stream, node->params, node->extra))
      return -1;
  return now() - begun;
}
