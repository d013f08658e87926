// driver.c - the entry points of the CUDA driver that concern the device, contexts and memory.
// There is one device, or as many as SCHEDC_MODEL says, all alike: a Hopper with so many
// multiprocessors as that says, too. They share one memory, and a launch that fails is the end of
// all their contexts. Calls of any thread that enqueue, wait, allocate or free are let in one at a
// time (stream.c runs what is enqueued).
#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CLOCK_KHZ = 13, MULTIPROCESSORS = 16, L2_BYTES = 38, MAJOR = 75, MINOR = 76 };
enum { VERSION = 13000, ITS_CLOCK = 1000000, ITS_L2 = 50 << 20 };
enum { GUARD = 64 << 10, ALIGN = 512, PAGE = 4096 };

static struct {
  int retained[MOST_DEVICES], all;  // the devices' primary contexts: &retained[device]
  bool failed;                      // a launch did: nothing works until the contexts are made anew
} primary;
static _Thread_local void *stack[16];
static _Thread_local u32 depth;

bool dr_failed(void) { return primary.failed; }
void dr_fail(void) { primary.failed = true; }

// ---- errors, devices

static _Thread_local char refusal[400];

int dr_refuse(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(refusal, sizeof refusal, fmt, ap);
  va_end(ap);
  return INVALID_VALUE;
}

int cuInit(unsigned flags) {
  Options o;
  const char *wrong = md_options(&o);
  if (wrong) return dr_refuse("%s", wrong);
  return flags ? dr_refuse("cuInit takes 0, not %u", flags) : 0;
}

int cuDriverGetVersion(int *version) { return *version = VERSION, 0; }

int cuGetErrorString(int error, const char **text) {
  static const struct {
    int error;
    const char *text;
  } known[] = {{0, "no error"},
               {INVALID_VALUE, "invalid argument"},
               {OUT_OF_MEMORY, "out of memory"},
               {INVALID_IMAGE, "device kernel image is invalid: the model loads what it has built"},
               {INVALID_CONTEXT, "invalid device context"},
               {NO_BINARY, "no kernel image is available for execution on the device"},
               {NOT_FOUND, "named symbol not found"},
               {NOT_READY, "device not ready"},
               {LAUNCH_FAILED, "unspecified launch failure"},
               {CAPTURE_UNSUPPORTED, "operation not permitted while a stream is captured"}};
  *text = error == LAUNCH_FAILED               ? md_fault_text()
          : error == INVALID_VALUE && *refusal ? refusal
                                               : NULL;
  for (u32 i = 0; i < COUNT(known) && !*text; i++) {
    if (known[i].error == error) *text = known[i].text;
  }
  return *text ? 0 : INVALID_VALUE;
}

int cuDeviceGetCount(int *n) {
  Options o;
  md_options(&o);
  return *n = (int)o.devices, 0;
}

int cuDeviceGet(int *device, int ordinal) {
  int n;
  cuDeviceGetCount(&n);
  return *device = ordinal, ordinal < 0 || ordinal >= n ? INVALID_DEVICE : 0;
}

int cuDeviceGetName(char *name, int room, int device) {
  (void)device;
  snprintf(name, (size_t)room, "schedc's model of a Hopper GPU");
  return 0;
}

int cuDeviceGetPCIBusId(char *id, int room, int device) {
  snprintf(id, (size_t)room, "0000:%02x:00.0", (unsigned)device);
  return 0;
}

int cuDeviceGetUuid_v2(unsigned char *bytes, int device) {
  memset(bytes, 0, 16);
  bytes[15] = (unsigned char)device;
  return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  Options o;
  (void)device;
  md_options(&o);
  if (attribute == MULTIPROCESSORS) return *value = (int)o.sms, 0;
  if (attribute == CLOCK_KHZ) return *value = ITS_CLOCK, 0;
  if (attribute == L2_BYTES) return *value = ITS_L2, 0;
  if (attribute == MAJOR) return *value = 9, 0;
  if (attribute == MINOR) return *value = 0, 0;
  return dr_refuse("the model knows no attribute %d of a device, only %d, %d, %d, %d and %d",
                   attribute, CLOCK_KHZ, MULTIPROCESSORS, L2_BYTES, MAJOR, MINOR);
}

// ---- contexts: each device's primary one

// The device whose context this is; -1: it is none that is retained.
static int device_of(const void *context) {
  for (int i = 0; i < MOST_DEVICES; i++)
    if (context == &primary.retained[i] && primary.retained[i]) return i;
  return -1;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  int wrong = cuDeviceGet(&device, device);
  if (wrong) return wrong;
  dr_enter();
  primary.retained[device]++;
  primary.all++;
  *context = &primary.retained[device];
  return dr_leave(0);
}

static void free_all(void);

// The last one takes all with it that is in the context.
int cuDevicePrimaryCtxRelease_v2(int device) {
  int wrong = cuDeviceGet(&device, device);
  if (wrong) return wrong;
  dr_enter();
  if (!primary.retained[device]) return dr_leave(INVALID_CONTEXT);
  primary.retained[device]--;
  if (!--primary.all) {
    if (!primary.failed) dr_drain_all();
    dr_forget_work();
    free_all();
    primary.failed = false;
  }
  return dr_leave(0);
}

int cuCtxPushCurrent_v2(void *context) {
  if (depth == COUNT(stack) || (context && device_of(context) < 0)) return INVALID_CONTEXT;
  return stack[depth++] = context, 0;
}

int cuCtxPopCurrent_v2(void **context) {
  if (!depth) return INVALID_CONTEXT;
  return *context = stack[--depth], 0;
}

int cuCtxSetCurrent(void *context) {
  if (depth) depth--;
  return cuCtxPushCurrent_v2(context);
}

int cuCtxGetCurrent(void **context) { return *context = depth ? stack[depth - 1] : NULL, 0; }
int cuCtxGetDevice(int *device) {
  *device = depth && stack[depth - 1] ? device_of(stack[depth - 1]) : -1;
  return *device < 0 ? INVALID_CONTEXT : 0;
}

// ---- memory: pieces of one region, with room between them that nobody may touch

typedef struct Piece {
  u64 at, bytes;
} Piece;
static LIST(Piece) pieces;  // by address
static char *region, *shadow;
static u64 region_bytes;

static bool reserve(void) {
  static const u64 sizes[] = {(u64)64 << 30, (u64)4 << 30};
  for (u32 i = 0; i < COUNT(sizes) && !region; i++) {
    char *at = mmap(NULL, sizes[i], PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *cells = mmap(NULL, sizes[i] / 4 * sizeof(Cell), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED && cells != MAP_FAILED) {
      region = at;
      shadow = cells;
      region_bytes = sizes[i];
    } else {
      if (at != MAP_FAILED) munmap(at, sizes[i]);
      if (cells != MAP_FAILED) munmap(cells, sizes[i] / 4 * sizeof(Cell));
    }
  }
  return region != NULL;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  dr_enter();
  bool there = region || reserve();
  *bytes = there ? region_bytes : 0;
  return dr_leave(there ? 0 : OUT_OF_MEMORY);
}

bool md_is_global(u64 at) { return at - (uintptr_t)region < region_bytes; }

bool md_in_memory(u64 at, u64 bytes) {
  static u32 last;
  if (last >= pieces.n) last = 0;
  for (u32 n = 0; n < pieces.n; n++) {
    const Piece *p = &pieces.at[last];
    if (at >= p->at && at - p->at < p->bytes && bytes <= p->bytes - (at - p->at)) return true;
    last = last + 1 < pieces.n ? last + 1 : 0;
  }
  return false;
}

Cell *md_global_cell(u64 at) { return (Cell *)(void *)shadow + (at - (uintptr_t)region) / 4; }

static u64 pages(u64 n) { return (n + PAGE - 1) / PAGE * PAGE; }

void md_forget_global(void) {
  for (u32 i = 0; i < pieces.n; i++) {
    char *first = (char *)md_global_cell(pieces.at[i].at);
    char *from = first - (uintptr_t)first % PAGE;
    madvise(from, pages(pieces.at[i].bytes / 4 * sizeof(Cell) + 2 * PAGE), MADV_DONTNEED);
  }
}

static u64 place(u64 bytes, u32 *before) {
  u64 at = (uintptr_t)region + GUARD;
  for (*before = 0; *before < pieces.n; ++*before) {
    const Piece *p = &pieces.at[*before];
    if (p->at - at >= pages(bytes) + GUARD) break;
    at = p->at + pages(p->bytes) + GUARD;
  }
  return at + pages(bytes) + GUARD <= (uintptr_t)region + region_bytes ? at : 0;
}

// The end of a piece is the end of what may be touched; its beginning is aligned as the driver's
// are.
int cuMemAlloc_v2(u64 *device, size_t bytes) {
  u32 before;
  DR_ENTER_UNCAPTURED;
  if (!bytes) return dr_leave(dr_refuse("an allocation of 0 bytes"));
  if (!region && !reserve()) return dr_leave(OUT_OF_MEMORY);
  u64 at = place(bytes, &before);
  Piece *more = at ? realloc(pieces.at, (pieces.n + 1) * sizeof *more) : NULL;
  if (more) pieces.at = more;
  if (!more || mprotect((void *)(uintptr_t)at, pages(bytes), PROT_READ | PROT_WRITE))
    return dr_leave(OUT_OF_MEMORY);
  memmove(more + before + 1, more + before, (pieces.n - before) * sizeof *more);
  more[before] = (Piece){at, bytes};
  pieces.n++;
  memset((void *)(uintptr_t)at, 0xff, bytes);  // nobody has written it
  *device = at;
  return dr_leave(0);
}

static void free_piece(u32 i) {
  void *at = (void *)(uintptr_t)pieces.at[i].at;
  u64 n = pages(pieces.at[i].bytes);
  madvise(at, n, MADV_DONTNEED);
  mprotect(at, n, PROT_NONE);
  memmove(&pieces.at[i], &pieces.at[i + 1], (pieces.n - i - 1) * sizeof *pieces.at);
  pieces.n--;
}

static void free_all(void) {
  md_forget_global();
  while (pieces.n) free_piece(pieces.n - 1);
}

int cuMemFree_v2(u64 device) {
  DR_ENTER_UNCAPTURED;
  int e = dr_drain_all();
  for (u32 i = 0; i < pieces.n; i++) {
    if (pieces.at[i].at != device) continue;
    free_piece(i);
    return dr_leave(e);
  }
  return dr_leave(device ? dr_refuse("cuMemFree of 0x%llx, where nothing allocated begins",
                                     (unsigned long long)device)
                         : e);
}

static int copied(const char *name, u64 device, size_t bytes) {
  if (!bytes || md_in_memory(device, bytes)) return 0;
  return dr_refuse("%s of %zu bytes at 0x%llx, which are not all allocated", name, bytes,
                   (unsigned long long)device);
}

int cuMemcpyHtoD_v2(u64 to, const void *from, size_t bytes) {
  DR_ENTER_UNCAPTURED;
  int e = dr_drain(NULL);
  if (!e) e = copied("cuMemcpyHtoD", to, bytes);
  if (!e && bytes) memcpy((void *)(uintptr_t)to, from, bytes);
  return dr_leave(e);
}

int cuMemcpyDtoH_v2(void *to, u64 from, size_t bytes) {
  DR_ENTER_UNCAPTURED;
  int e = dr_drain(NULL);
  if (!e) e = copied("cuMemcpyDtoH", from, bytes);
  if (!e && bytes) memcpy(to, (const void *)(uintptr_t)from, bytes);
  return dr_leave(e);
}

int cuMemHostAlloc(void **at, size_t bytes, unsigned flags) {
  (void)flags;
  DR_ENTER_UNCAPTURED;
  return dr_leave((*at = calloc(1, bytes ? bytes : 1)) ? 0 : OUT_OF_MEMORY);
}

int cuMemFreeHost(void *at) { return free(at), 0; }

int cuMemHostGetDevicePointer_v2(u64 *device, void *at, unsigned flags) {
  return *device = (uintptr_t)at,
         flags ? dr_refuse("cuMemHostGetDevicePointer takes 0, not %u", flags) : 0;
}

// ---- what fits at once

int cuOccupancyMaxActiveClusters(int *n, const Function *f, const void *launch) {
  Options o;
  (void)launch;
  md_options(&o);
  u32 room = o.sms / f->kernel->cluster;
  return *n = (int)(room ? room : 1), 0;
}
