// driver.c - a CUDA driver that prints what a launch asks of it. FUNCTIONS are the functions of the
// module, each with the size of its argument block and the number of its tensor maps: {"f", 72, 3},
// ….
#include "asked.h"
#include "cuda.h"

#include <stdio.h>
#include <string.h>

static const struct CUfunc_st {
  const char *name;
  unsigned block, maps;
} known[] = {FUNCTIONS};

enum { SMS = 132, MEMORY = 0x7000000 };
// asked for, and not waited for yet: what is launched on another stream may overtake it
static int zeroing;
int capturing;

CUresult cuCtxGetDevice(CUdevice *device) { return *device = 0, CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  (void)attribute;
  (void)device;
  return *value = SMS, CUDA_SUCCESS;
}
CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  const unsigned char *elf = image;
  *module = (CUmodule)image;
  return elf[0] == 0x7f && elf[1] == 'E' ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuModuleUnload(CUmodule module) {
  return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  printf("function %s\n", name);
  for (size_t i = 0; module && i < sizeof known / sizeof *known; i++) {
    if (!strcmp(known[i].name, name)) return *function = (CUfunction)&known[i], CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  printf("attribute %s %d %d\n", function->name, attribute, value);
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveClusters(int *n, CUfunction function, const CUlaunchConfig *launch) {
  const unsigned grid[] = {launch->gridDimX, launch->gridDimY, launch->gridDimZ};
  const unsigned block[] = {launch->blockDimX, launch->blockDimY, launch->blockDimZ};
  say_clusters(function->name, grid, block, launch->sharedMemBytes);
  return *n = 5, launch->numAttrs ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr *at, size_t n) { return *at = n ? MEMORY : 0, CUDA_SUCCESS; }
CUresult cuMemFree(CUdeviceptr at) {
  return at == MEMORY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemsetD8(CUdeviceptr at, unsigned char value, size_t n) {
  zeroing = 1;
  return at == MEMORY && !value && n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuStreamSynchronize(CUstream stream) {
  if (!stream) zeroing = 0;
  return CUDA_SUCCESS;
}
CUresult cuStreamGetId(CUstream stream, unsigned long long *id) {
  return *id = (uintptr_t)stream, CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t n, CUstream stream) {
  (void)stream;
  printf("zero %llx %d %zu\n", at, value, n);
  return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  (void)stream;
  *status = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                void *at, const cuuint64_t *extent, const cuuint64_t *stride,
                                const cuuint32_t *box, const cuuint32_t *step,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  memcpy(map, &at, sizeof at);
  say_map(map, type, rank, extent, stride, box, step, interleave, swizzle, promotion, fill);
  return CUDA_SUCCESS;
}
CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *at) {
  return memcpy(map, &at, sizeof at), CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *l, CUfunction function, void **param,
                          void **extra) {
  const unsigned size[] = {l->gridDimX,  l->gridDimY,  l->gridDimZ,      l->blockDimX,
                           l->blockDimY, l->blockDimZ, l->sharedMemBytes};
  const CUlaunchAttribute *a = l->attrs;
  const int overlaps = l->numAttrs && a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
                           ? a->value.programmaticStreamSerializationAllowed
                           : 0;
  say_launch(function->name, zeroing, overlaps, size, param, function->maps, function->block,
             extra);
  return CUDA_SUCCESS;
}
