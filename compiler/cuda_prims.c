// cuda_prims.c - the functions of cuda_prims.def that a kernel's text calls, and those that they call. Nobody says
// which: a text names what it needs. In: the text of kernels. Out: the functions' texts, to stand before it.
#include "cuda.h"

#include <string.h>

typedef struct Prim {
  const char *name;  // without its sc_; NULL: a section's comment
  const char *text;
} Prim;

static const Prim prims[] = {
#define SECTION(text) {NULL, text},
#define PRIM(name, text) {#name, text},
#include "cuda_prims.def"
#undef SECTION
#undef PRIM
};

static bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static u32 find(const char *name, size_t n) {
  for (u32 i = 0; i < COUNT(prims); i++) {
    if (prims[i].name && strlen(prims[i].name) == n && !memcmp(prims[i].name, name, n)) return i;
  }
  return SC_NONE;
}

// Comments hold the schedule's own words, which call nothing.
static void call(bool *called, const char *text) {
  for (const char *p = text; *p;) {
    if (p[0] == '/' && p[1] == '/') p += strcspn(p, "\n");
    const char *name = p;
    while (is_of_name(*p)) p++;
    if (p == name) {
      p += *p != 0;
    } else if (!strncmp(name, "sc_", 3)) {
      u32 i = find(name + 3, (size_t)(p - name) - 3);
      if (i == SC_NONE || called[i]) continue;
      called[i] = true;
      call(called, prims[i].text);
    }
  }
}

void cu_put_prims(Str *out, const char *text) {
  bool called[COUNT(prims)] = {false};
  const char *section = NULL;
  call(called, text);
  for (u32 i = 0; i < COUNT(prims); i++) {
    if (!prims[i].name) section = prims[i].text;
    if (!called[i]) continue;
    if (section) str_printf(out, "\n%s", section);
    section = NULL;
    str_puts(out, prims[i].text);
  }
}
