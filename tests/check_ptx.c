// check_ptx.c - the checker of PTX on texts from files, for tests/ptx.py.
//
//   check_ptx FILE.sched [-p NAME=VALUE]... [-k KERNEL] < LIST
//
// In: a schedule, and on standard input names of files with PTX of it, one a line. Out: for each a
// line, its name and "ok" or the first report.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ptx/ptx.h"

static char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  char *at = malloc(1 << 24);
  if (!f || !at) exit(2);
  *n = fread(at, 1, (1 << 24) - 1, f);
  at[*n] = 0;
  fclose(f);
  return at;
}

static const Diag *first_error(const Sc *sc) {
  const Diag *d = sc->diags;
  while (d && d->severity != SCHEDC_ERROR) d = d->next;
  return d;
}

// The kernel, as it is built by default. Its memory stays to the end.
static Compilation compile(Sc *sc, const char *path, const Choice *choice) {
  size_t n;
  char *schedule = read_file(path, &n);
  sc_init(sc, NULL);
  Compilation c = {.text = sc_text(sc, path, schedule, n), .choice = *choice};
  free(schedule);
  sc->text = c.text;
  if (sc_compile(sc, &c, NULL, "cuda")) return c;
  fprintf(stderr, "%s: %s\n", path, first_error(sc) ? first_error(sc)->text : "no kernel");
  exit(2);
}

static void check(const Compilation *c, const char *ptx) {
  Sc sc;
  sc_init(&sc, NULL);
  bool ok = sc_ptx_check(&sc, c->k, c->cuda, ptx);
  const Diag *d = first_error(&sc);
  printf("%s\n", ok ? "ok" : d ? d->text : "not ok, without a report");
  sc_free(&sc);
}

int main(int argc, char **argv) {
  enum { PARAMS = 32 };
  schedc_param param[PARAMS];
  Choice choice = {.param = param};
  char line[4096];
  size_t n;
  if (argc < 2) return 2;
  for (int i = 2; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "-k")) {
      choice.unit = argv[i + 1];
      continue;
    }
    char *equals = strchr(argv[i + 1], '=');
    if (!equals || choice.params == PARAMS) return 2;
    *equals = 0;
    param[choice.params++] = (schedc_param){argv[i + 1], equals + 1};
  }
  Sc sc;
  jmp_buf unwind;
  if (setjmp(unwind)) return 2;
  Compilation c = compile(&sc, argv[1], &choice);
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    char *ptx = read_file(line, &n);
    printf("%s\t", line);
    check(&c, ptx);
    free(ptx);
  }
  sc_free(&sc);
  return 0;
}
