// fmt.c - `schedc fmt`: files in canonical form, to standard output, back in place, or only
// compared.
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

static int put(const Args *args, const char *path, const Session *s, const Buffer *text) {
  size_t n;
  const char *was = schedc_source_text(s->source, &n);
  bool same = text->n == n && memcmp(text->at, was, n) == 0;
  if (args->check) {
    if (!same) printf("%s\n", path);
    return same ? EXIT_GOOD : EXIT_BAD;
  }
  if (args->in_place && same) return EXIT_GOOD;
  // In place a link stays, and what it names is formatted.
  char *behind = args->in_place ? realpath(path, NULL) : NULL;
  const char *to = args->in_place ? (behind ? behind : path) : args->output ? args->output : "-";
  bool good = file_replace(to, text->at, text->n);
  int code = good ? EXIT_GOOD : cli_unwritten(args, to);
  free(behind);
  return code;
}

static int format_one(const Args *args, int index) {
  Session s;
  Buffer text = {0};
  buffer_puts(&text, "");
  int code = session_open(&s, args, index);
  if (code == EXIT_GOOD)
    code = session_status(&s, schedc_format(s.context, s.source, buffer_write, &text));
  if (code == EXIT_GOOD) code = put(args, args->operand[index], &s, &text);
  free(text.at);
  session_close(&s);
  return code;
}

int command_fmt(const Args *args) {
  int worst = EXIT_GOOD;
  if (args->check + args->in_place + (args->output != NULL) > 1)
    return cli_usage(args, "--check, -i and -o exclude each other");
  if (args->output && args->operands > 1)
    return cli_usage(args, "-o takes the form of one file: use -i for several");
  for (int i = 0; i < args->operands; i++) {
    int code = format_one(args, i);
    if (code > worst) worst = code;
  }
  return worst;
}
