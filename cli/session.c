// session.c - one schedule file, open, and what has been reported about it. In text form reports go
// to stderr as they come; JSON and SARIF elements are collected, because they are parts of one
// document.
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Kernels of a sequence are checked alone and in it, and some with many params: the same report
// twice helps nobody, with other dimensions neither.
static bool seen_before(Session *s, const schedc_diagnostic *d) {
  char place[64];
  snprintf(place, sizeof place, "\n%.32s %u %u\n", d->code, d->where.offset, d->where.length);
  const char *found = s->places.n ? strstr(s->places.at, place) : NULL;
  if (found && (size_t)(found - s->places.at) < s->earlier) return true;
  if (!found) buffer_puts(&s->places, place);
  if (s->seen.n && strstr(s->seen.at, d->rendered)) return true;
  buffer_puts(&s->seen, d->rendered);
  return false;
}

void session_next(Session *s) { s->earlier = s->places.n; }

static void begin_report(Session *s) {
  s->start = need(realloc(s->start, (s->count + 1) * sizeof *s->start));
  s->start[s->count++] = s->reports.n;
}

char *session_report(const Session *s, size_t index) {
  bool last = index + 1 == s->count, comma = s->args->format == FORMAT_JSON;
  size_t from = s->start[index], to = last ? s->reports.n : s->start[index + 1] - comma;
  return need(strndup(s->reports.at + from, to - from));
}

static void on_report(void *user, const schedc_diagnostic *d) {
  Session *s = user;
  const char *kind = strchr(d->code, '.');
  if (d->severity == SCHEDC_ERROR && !s->errors++) {
    buffer_puts(&s->first_code, d->code);
    buffer_puts(&s->first_text, d->text);
  }
  s->unmet += kind && strcmp(kind, ".require") == 0;
  s->misaligned += strcmp(d->code, "T.align") == 0;
  s->unlike += strcmp(d->code, "T.element") == 0;
  if (seen_before(s, d)) return;
  if (s->args->format == FORMAT_SARIF) {
    schedc_sarif_result(d, s->reports.n == 0, buffer_write, &s->reports);
  } else if (s->args->format == FORMAT_JSON) {
    if (s->reports.n) buffer_puts(&s->reports, ",");
    begin_report(s);
    schedc_write_json(d, buffer_write, &s->reports);
  } else if (s->quiet) {
    begin_report(s);
    buffer_puts(&s->reports, d->rendered);
  } else {
    fflush(stdout);
    fputs(d->rendered, stderr);
  }
}

static int read_standard_input(Session *s) {
  Buffer text = {0};
  int code = EXIT_GOOD;
  if (!stdin_read(&text))
    code = cli_fail(s->args, "cannot read standard input: %s", strerror(errno));
  else code = session_status(s, schedc_parse(&s->source, s->context, "<stdin>", text.at, text.n));
  free(text.at);
  return code;
}

int session_open(Session *s, const Args *args, int index) {
  *s = (Session){.args = args};
  const char *path = args->operand[index];
  schedc_options options = SCHEDC_OPTIONS_INIT;
  options.sink = on_report;
  options.sink_user = s;
  options.unverified = args->unverified;
  schedc_status status = schedc_open(&s->context, &options);
  if (status) return session_status(s, status);
  if (strcmp(path, "-") != 0)
    return session_status(s, schedc_parse_file(&s->source, s->context, path));
  return read_standard_input(s);
}

void session_close(Session *s) {
  schedc_source_free(s->source);
  schedc_close(s->context);
  if (s->bytes) fclose(s->bytes);
  free(s->reports.at);
  free(s->seen.at);
  free(s->places.at);
  free(s->first_code.at);
  free(s->first_text.at);
  free(s->start);
}

void session_forget(Session *s) {
  s->reports.n = s->seen.n = s->places.n = s->earlier = s->count = s->first_code.n =
      s->first_text.n = 0;
  s->errors = s->unmet = s->misaligned = s->unlike = 0;
}

void session_print_reports(const Session *s) {
  const char *elements = s->reports.n ? s->reports.at : "";
  if (s->args->format == FORMAT_JSON) {
    printf("[%s]\n", elements);
  } else if (s->args->format == FORMAT_SARIF) {
    schedc_sarif_begin(stdout_write, NULL);
    fputs(elements, stdout);
    schedc_sarif_end(stdout_write, NULL);
  }
}

int session_status(const Session *s, schedc_status status) {
  if (status == SCHEDC_OK) return EXIT_GOOD;
  if ((status == SCHEDC_EINPUT || status == SCHEDC_EFAULT) && s->errors) return EXIT_BAD;
  if (status == SCHEDC_EIO && s->errors) return EXIT_ENVIRONMENT;
  const char *file = s->args->operand[0];
  cli_fail(s->args, "%s: %s (%s)", file, schedc_status_text(status), schedc_status_name(status));
  bool machine = status == SCHEDC_ENOMEM || status == SCHEDC_EIO || status == SCHEDC_EUNAVAIL;
  return machine ? EXIT_ENVIRONMENT : EXIT_BAD;
}

// ---- the kernel that the command line means

size_t session_case_number(const schedc_kernel *k, const char *name) {
  for (size_t i = 0; name && i < schedc_kernel_case_count(k); i++) {
    if (strcmp(schedc_kernel_case_name(k, i), name) == 0) return i;
  }
  return SIZE_MAX;
}

// The name of the first case of the unit that schedc_instantiate would choose, or NULL.
static const char *first_case(const Session *s) {
  const char *wanted = s->args->operands > 1 ? s->args->operand[1] : NULL, *name = NULL;
  size_t n = schedc_unit_count(s->source), chosen = SIZE_MAX;
  schedc_unit_info info = SCHEDC_UNIT_INFO_INIT;
  bool sequence = false;
  for (size_t i = 0; i < n; i++) {
    schedc_unit(s->source, i, &info);
    bool matches = wanted ? strcmp(info.name, wanted) == 0 : info.is_sequence >= sequence;
    if (!matches) continue;
    chosen = i;
    sequence = info.is_sequence;
  }
  if (chosen != SIZE_MAX) schedc_case_name(s->source, chosen, 0, &name);
  return name;
}

// … by a tensor from a file.
static bool is_shown(const Args *args, const schedc_kernel *k, const char *dim) {
  schedc_tensor_info t = SCHEDC_TENSOR_INFO_INIT;
  for (size_t i = 0; schedc_tensor_at(k, i, &t) == SCHEDC_OK; i++) {
    for (size_t d = 0; pairs_have(&args->in, t.name) && d < t.rank; d++)
      if (strcmp(t.dims[d], dim) == 0) return true;
  }
  return false;
}

// Does the command line say all dimensions, scalars without a default, and tensors that the case
// lists?
static bool says_all(const Args *args, const schedc_kernel *k, size_t kase) {
  schedc_scalar_info scalar = SCHEDC_SCALAR_INFO_INIT;
  schedc_bind_info b = SCHEDC_BIND_INFO_INIT;
  bool all = true;
  for (size_t i = 0; i < schedc_dim_count(k); i++) {
    const char *dim = schedc_dim_at(k, i);
    all = all && (pairs_have(&args->set, dim) || is_shown(args, k, dim));
  }
  for (size_t i = 0; schedc_scalar_at(k, i, &scalar) == SCHEDC_OK; i++)
    all = all && (scalar.has_default || pairs_have(&args->set, scalar.name));
  for (size_t i = 0; schedc_bind_at(k, kase, i, &b) == SCHEDC_OK; i++)
    all = all && (b.kind != SCHEDC_BIND_TENSOR || pairs_have(&args->set, b.name) ||
                  pairs_have(&args->in, b.name));
  return all && (args->set.n || args->in.n);
}

// Is a case not needed? Then its params are not wanted, either.
static bool needs_no_case(const Session *s, const char *name) {
  const Args *args = s->args;
  const char *unit = args->operands > 1 ? args->operand[1] : NULL;
  schedc_context *quiet;
  schedc_kernel *k = NULL;
  if (schedc_open(&quiet, NULL)) return false;
  bool all = !schedc_instantiate(&k, quiet, s->source, unit, NULL, args->param.at, args->param.n) &&
             says_all(args, k, session_case_number(k, name));
  schedc_kernel_free(k);
  schedc_close(quiet);
  return all;
}

const char *session_case(Session *s) {
  if (s->args->case_name) return s->args->case_name;
  if (!s->knows_case) {
    s->usual_case = first_case(s);
    if (needs_no_case(s, s->usual_case)) s->usual_case = NULL;
    s->knows_case = true;
  }
  return s->usual_case;
}

int session_kernel(Session *s, schedc_kernel **kernel, size_t *kase) {
  const Args *args = s->args;
  const char *name = session_case(s);
  const char *unit = args->operands > 1 ? args->operand[1] : NULL;
  schedc_status status =
      schedc_instantiate(kernel, s->context, s->source, unit, name, args->param.at, args->param.n);
  *kase = *kernel ? session_case_number(*kernel, name) : SIZE_MAX;
  return session_status(s, status);
}
