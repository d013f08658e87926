// prims.c - finds which functions of prims.def a kernel's text needs: those that it calls, and
// those that these call. In: the text of kernels, which is searched for their names. Out: the head
// of the text and the functions, to stand before it. Called by frame.c; calls name.c.
#include "compiler/emit/emit.h"

#include <string.h>

typedef struct Prim {
  const char *name;  // without its sc_; NULL: a section's comment
  const char *text;
} Prim;

static const Prim prims[] = {
#define HEAD(text)
#define SECTION(text) {NULL, text},
#define PRIM(name, text) {#name, text},
#define MACHINE PRIM
#include "compiler/emit/prims.def"
#undef HEAD
#undef SECTION
#undef PRIM
#undef MACHINE
};

static const char head[] =
#define HEAD(text) text
#define SECTION(text)
#define PRIM(name, text)
#define MACHINE(name, text)
#include "compiler/emit/prims.def"
    ;

static u32 find(const char *name, size_t n) {
  for (u32 i = 0; i < COUNT(prims); i++) {
    if (prims[i].name && strlen(prims[i].name) == n && !memcmp(prims[i].name, name, n)) return i;
  }
  return SC_NONE;
}

static void call(bool *called, const char *text) {
  size_t n;
  for (const char *p = text; (p = cu_next_name(p, &n)); p += n) {
    u32 i = n > 3 && !memcmp(p, "sc_", 3) ? find(p + 3, n - 3) : SC_NONE;
    if (i == SC_NONE || called[i]) continue;
    called[i] = true;
    call(called, prims[i].text);
  }
}

void cu_put_prims(Str *out, const char *text) {
  bool called[COUNT(prims)] = {false};
  const char *section = NULL;
  call(called, text);
  str_puts(out, head);
  for (u32 i = 0; i < COUNT(prims); i++) {
    if (!prims[i].name) section = prims[i].text;
    if (!called[i]) continue;
    if (section) str_printf(out, "\n%s", section);
    section = NULL;
    str_puts(out, prims[i].text);
  }
}
