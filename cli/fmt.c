// fmt.c - `schedc fmt`: files in canonical form, to standard output, back in place, or only
// compared.
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The new text goes to a file beside the old one and takes its place whole.
static int replace(const Args *args, const char *path, const Buffer *text) {
  Buffer temporary = {0};
  struct stat old;
  buffer_printf(&temporary, "%s.schedc-%ld", path, (long)getpid());
  bool good = file_write(temporary.at, text->at, text->n);
  if (good && stat(path, &old) == 0) good = chmod(temporary.at, old.st_mode & 07777) == 0;
  good = good && rename(temporary.at, path) == 0;
  int code = good ? EXIT_GOOD : cli_fail(args, "cannot write '%s': %s", path, strerror(errno));
  if (!good) unlink(temporary.at);
  free(temporary.at);
  return code;
}

static int put(const Args *args, const char *path, const Session *s, const Buffer *text) {
  bool same = text->n == s->text.n && memcmp(text->at, s->text.at, text->n) == 0;
  if (args->check) {
    if (!same) printf("%s\n", path);
    return same ? EXIT_GOOD : EXIT_BAD;
  }
  if (args->in_place) return same ? EXIT_GOOD : replace(args, path, text);
  const char *to = args->output ? args->output : "-";
  return file_write(to, text->at, text->n)
             ? EXIT_GOOD
             : cli_fail(args, "cannot write '%s': %s", to, strerror(errno));
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
  if (args->in_place && args->output) return cli_usage(args, "-i and -o exclude each other");
  for (int i = 0; i < args->operands; i++) {
    int code = format_one(args, i);
    if (code > worst) worst = code;
  }
  return worst;
}
