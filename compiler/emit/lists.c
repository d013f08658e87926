// lists.c - the function that holds lists of integers against what the schedule says of their
// elements, `in 0 .. n` and `rising`. In: a kernel or a sequence. Out: CUDA C, the same for all
// that have such a list. A launch (runtime/cuda/launcher.c) runs this function before a kernel that
// relies on lists, and says which (SclLists). An element that is not as promised traps: then
// nothing runs that is behind it on the stream. Called by frame.c; calls name.c.
#include "compiler/emit/emit.h"

static const char before[] =
    "\n"
    "// What is promised of lists (`in 0 .. n`, `rising`) holds, or no kernel behind this one "
    "runs.\n"
    "struct List {\n"
    "  const int *at;\n"
    "  long long elements, extent[6], stride[6], least, end;\n"
    "  int rank, rising;\n"
    "};\n"
    "struct Lists {\n"
    "  List list[4];\n"
    "  int lists;\n"
    "};\n\n"
    "DEV const int *sc_element(const List &list, long long n) {\n"
    "  long long offset = 0;\n"
    "  #pragma unroll 1\n"
    "  for (int d = list.rank - 1; d > 0; d--) {\n"
    "    offset += n % list.extent[d] * list.stride[d];\n"
    "    n /= list.extent[d];\n"
    "  }\n"
    "  return list.at + offset + n * list.stride[0];\n"
    "}\n\n";

static const char body[] =
    "  for (int i = 0; i < lists.lists; i++) {\n"
    "    const List &list = lists.list[i];\n"
    "    const long long step = gridDim.x * %dll;\n"
    "    for (long long n = blockIdx.x * %dll + threadIdx.x; n < list.elements; n += step) {\n"
    "      const int *at = sc_element(list, n);\n"
    "      const bool falls = list.rising && n > 0 && *at < at[-list.stride[0]];\n"
    "      if (*at < list.least || *at >= list.end || falls)\n"
    "        sc_not_promised(at, list.least, list.end);\n"
    "    }\n"
    "  }\n"
    "}\n";

static bool any_promised(const Kernel *k) {
  bool any = false;
  for (u32 i = 0; i < k->buf.n; i++) any |= sc_is_promised(&k->buf.at[i]);
  for (u32 i = 0; i < k->launch.n; i++) any |= any_promised(k->launch.at[i].kernel);
  return any;
}

void cu_put_lists(Str *out, const Kernel *k) {
  if (!any_promised(k)) return;
  str_puts(out, before);
  cu_put_line(out, k);
  str_printf(out, "extern \"C\" __global__ void __launch_bounds__(%d, 1)\n", CUDA_LIST_THREADS);
  str_puts(out, CUDA_LISTS "(const __grid_constant__ Lists lists) {\n");
  str_printf(out, body, CUDA_LIST_THREADS, CUDA_LIST_THREADS);
}
