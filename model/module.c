// module.c - modules: shared objects that nvrtc.c made, loaded from memory; and the line of the
// schedule at an address of their code, which addr2line finds: the outermost of the functions that
// are inlined there.
#define _GNU_SOURCE  // memfd_create
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

struct Module {
  void *object;
  int fd;
  LIST(Function *) function;
};

enum { MAX_DYNAMIC_SHARED = 8 };

// Bytes of an image, which ends with its table of sections; 0: it is none of ours.
static size_t size_of(const void *image) {
  Elf64_Ehdr h;
  memcpy(&h, image, sizeof h);
  if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_type != ET_DYN) return 0;
  return h.e_shoff + (size_t)h.e_shnum * h.e_shentsize;
}

int cuModuleLoadData(Module **module, const void *image) {
  size_t n = size_of(image);
  char path[64];
  if (!n) return INVALID_IMAGE;
  Module *m = calloc(1, sizeof *m);
  if (!m) return OUT_OF_MEMORY;
  m->fd = memfd_create("kernel", MFD_CLOEXEC);
  snprintf(path, sizeof path, "/proc/self/fd/%d", m->fd);
  if (m->fd >= 0 && write(m->fd, image, n) == (ssize_t)n)
    m->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (m->object) return *module = m, 0;
  if (m->fd >= 0) close(m->fd);
  free(m);
  return NO_BINARY;
}

// What is still to be launched of it is launched.
int cuModuleUnload(Module *m) {
  if (!m) return dr_refuse("cuModuleUnload of no module");
  dr_enter();
  dr_leave(dr_failed() ? 0 : dr_drain_all());
  for (u32 i = 0; i < m->function.n; i++) {
    free((char *)m->function.at[i]->name);
    free(m->function.at[i]);
  }
  free(m->function.at);
  dlclose(m->object);
  close(m->fd);
  free(m);
  return 0;
}

int cuModuleGetFunction(Function **function, Module *m, const char *name) {
  char symbol[300];
  snprintf(symbol, sizeof symbol, "md_kernel_%s", name);
  const MdKernel *k = dlsym(m->object, symbol);
  if (!k) return NOT_FOUND;
  Function *f = calloc(1, sizeof *f),
           **more = realloc(m->function.at, (m->function.n + 1) * sizeof *more);
  if (more) m->function.at = more;
  if (!f || !more || !(f->name = strdup(name))) {
    free(f);
    return OUT_OF_MEMORY;
  }
  f->kernel = k;
  f->module = m;
  m->function.at[m->function.n++] = f;
  return *function = f, 0;
}

int cuFuncSetAttribute(Function *f, int attribute, int value) {
  if (attribute != MAX_DYNAMIC_SHARED)
    return dr_refuse("the model knows no attribute %d of a function, only %d", attribute,
                     MAX_DYNAMIC_SHARED);
  if (value < 0 || value > MOST_SHARED)
    return dr_refuse("%d bytes of shared memory for '%s': a CTA can have %d at most", value,
                     f->name, MOST_SHARED);
  f->shared = (u32)value;
  return 0;
}

// ---- lines

static void read_frame(const char *line, ModelRemark *r) {
  const char *colon = strrchr(line, ':');
  if (!colon || colon[1] < '1' || colon[1] > '9') return;
  const char *name = line;
  snprintf(r->file, sizeof r->file, "%.*s", (int)(colon - name), name);
  r->line = (unsigned)strtoul(colon + 1, NULL, 10);
}

// addr2line prints the address, then its frames from the innermost out.
static void read_lines(FILE *from, ModelRemark *const *remark, u32 n) {
  char line[1024];
  u32 at = 0;
  ModelRemark *now = NULL;
  while (fgets(line, sizeof line, from)) {
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "0x", 2)) now = at < n ? remark[at++] : NULL;
    else if (now) read_frame(line, now);
  }
}

void md_lines(const Module *m, const void *const *where, u32 n, ModelRemark **remark) {
  char command[128 + (MODEL_NOTES + 1) * 24];
  ModelRemark *asked[MODEL_NOTES + 1];
  u32 count = 0;
  int at =
      snprintf(command, sizeof command, "addr2line -a -i -e /proc/%d/fd/%d", (int)getpid(), m->fd);
  for (u32 i = 0; i < n; i++) {
    Dl_info info;
    if (!where[i] || !dladdr(where[i], &info)) continue;
    at += snprintf(command + at, sizeof command - (size_t)at, " 0x%zx",
                   (size_t)((const char *)where[i] - (const char *)info.dli_fbase) - 1);
    asked[count++] = remark[i];
  }
  strcat(command, " 2>/dev/null");
  FILE *from = count ? popen(command, "r") : NULL;
  if (!from) return;
  read_lines(from, asked, count);
  pclose(from);
}
