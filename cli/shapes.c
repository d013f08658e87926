// shapes.c - the file of --shapes: a shape on each line. In: lines of a case's name, or settings
// NAME=VALUE, or both; '#' begins a comment. Out: for each the command line's arguments with these
// over them. Whether a name is a param's, the schedule says.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tune.h"

enum { MOST_SHAPES = 1024, MOST_BYTES = 1 << 20 };

static bool read_all(const char *path, Buffer *out) {
  FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
  char part[4096];
  if (!f) return false;
  for (size_t n; out->n < MOST_BYTES && (n = fread(part, 1, sizeof part, f)) > 0;)
    buffer_write(out, part, n);
  bool good = !ferror(f) && out->n < MOST_BYTES;
  if (f != stdin) fclose(f);
  return good;
}

static void add(Pairs *p, const char *name, const char *value) {
  p->at = need(realloc(p->at, sizeof *p->at * (p->n + 1)));
  p->at[p->n++] = (schedc_param){name, value};
}

static Pairs copy(const Pairs *p) {
  Pairs c = {0};
  for (size_t i = 0; i < p->n; i++) add(&c, p->at[i].name, p->at[i].value);
  return c;
}

static bool is_param(const schedc_space *space, const char *name) {
  schedc_space_param_info info = SCHEDC_SPACE_PARAM_INFO_INIT;
  for (size_t i = 0; schedc_space_param_at(space, i, &info) == SCHEDC_OK; i++)
    if (strcmp(info.name, name) == 0) return true;
  return false;
}

static Args *new_shape(Shapes *shapes, const Args *args) {
  shapes->at = need(realloc(shapes->at, (shapes->n + 1) * sizeof *shapes->at));
  Args *a = &shapes->at[shapes->n++];
  *a = *args;
  a->param = copy(&args->param);
  a->set = copy(&args->set);
  return a;
}

static int take_line(Shapes *shapes, const Args *args, const schedc_space *space, char *line) {
  char *rest;
  line[strcspn(line, "#\r")] = 0;
  char *word = strtok_r(line, " \t", &rest);
  if (!word) return EXIT_GOOD;
  if (shapes->n == MOST_SHAPES) return cli_usage(args, "more than %d shapes", MOST_SHAPES);
  Args *a = new_shape(shapes, args);
  for (bool first = true; word; word = strtok_r(NULL, " \t", &rest), first = false) {
    char *eq = strchr(word, '=');
    if (!eq && !first)
      return cli_usage(args, "'%s' in '%s' is no setting NAME=VALUE", word, args->shapes);
    if (!eq) {
      a->case_name = word;
      continue;
    }
    *eq = 0;
    add(is_param(space, word) ? &a->param : &a->set, word, eq + 1);
  }
  return EXIT_GOOD;
}

static int take_lines(Shapes *shapes, const Args *args, const schedc_space *space) {
  char *rest;
  int code = EXIT_GOOD;
  for (char *line = strtok_r(shapes->text.at, "\n", &rest); line && !code;
       line = strtok_r(NULL, "\n", &rest))
    code = take_line(shapes, args, space, line);
  if (!code && !shapes->n) return cli_usage(args, "'%s' has no shapes", args->shapes);
  return code;
}

int shapes_read(Shapes *shapes, const Args *args) {
  Session s;
  schedc_space *space = NULL;
  if (!args->shapes) return new_shape(shapes, args), EXIT_GOOD;
  buffer_puts(&shapes->text, "");
  if (!read_all(args->shapes, &shapes->text))
    return cli_fail(args, "cannot read '%s': %s", args->shapes,
                    errno ? strerror(errno) : "it is too large");
  const char *unit = args->operands > 1 ? args->operand[1] : NULL;
  int code = session_open(&s, args, 0);
  if (!code)
    code = session_status(&s, schedc_space_new(&space, s.context, s.source, unit, NULL, NULL, 0));
  if (!code) code = take_lines(shapes, args, space);
  schedc_space_free(space);
  session_close(&s);
  return code;
}

void shapes_free(Shapes *shapes) {
  for (size_t i = 0; i < shapes->n; i++) {
    free(shapes->at[i].param.at);
    free(shapes->at[i].set.at);
  }
  free(shapes->at);
  free(shapes->text.at);
}
