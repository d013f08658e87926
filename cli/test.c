// test.c - `schedc test`: every case of a file's kernels, with the combinations of its choices,
// under all policies, on several inputs; and the first such combination with each parameters at
// other lengths (sweep.c). A test is one run. The first policy's outputs are compared with the
// specification; those of the others must be the same bits (within tolerance, if sums in no fixed
// order are in them). On a GPU there are no policies: a test is a combination on one input, run
// several times, with the same bits each time. On the model of a GPU policy, multiprocessors and
// bounded waits are further choices of a combination, and it is run once. What is not run is
// counted and named.
#include "cli/test.h"

#include <stdlib.h>
#include <string.h>

// Instantiates under the combination's parameters and tests it. `like` is the case's first
// instance.
static int test_combination(Tester *t, const schedc_kernel *like, const size_t *choice) {
  const Args *args = t->s->args;
  size_t lines = schedc_bind_count(like, t->kase), n = args->param.n;
  schedc_param *params = need(calloc(n + lines + 1, sizeof *params));
  if (n) memcpy(params, args->param.at, n * sizeof *params);
  schedc_bind_info line = SCHEDC_BIND_INFO_INIT;
  for (size_t i = 0; i < lines; i++) {
    schedc_bind_at(like, t->kase, i, &line);
    if (line.kind != SCHEDC_BIND_PARAM || !line.is_choice || pairs_have(&args->param, line.name))
      continue;
    params[n++] = (schedc_param){line.name, line.texts[choice[i]]};
  }
  t->choice = choice;
  t->tally.combinations++;
  schedc_status status =
      schedc_instantiate(&t->kernel, t->s->context, t->s->source, t->unit, t->case_name, params, n);
  int code = 0;
  if (status == SCHEDC_OK) {
    session_forget(t->s);
    code = test_run(t);
    data_close(&t->data);
    t->data = (Data){0};
  } else if (t->s->unmet && t->s->unmet == t->s->errors) {
    t->tally.unmet++;
    session_forget(t->s);
  } else {
    code = session_status(t->s, status);
    test_refuse(t, like);
    if (code == EXIT_BAD) code = 0;  // counted; others may be instantiated
  }
  schedc_kernel_free(t->kernel);
  t->kernel = NULL;
  free(params);
  return code;
}

// ---- other lengths

// Have these parameters, of this unit, been swept? From now on they have.
static bool swept_before(Tester *t, const schedc_kernel *kernel) {
  Buffer line = {0};
  schedc_param_info p = SCHEDC_PARAM_INFO_INIT;
  buffer_printf(&line, "\n%s", t->unit);
  for (size_t i = 0; schedc_param_at(kernel, i, &p) == SCHEDC_OK; i++)
    buffer_printf(&line, " %s=%s", p.name, p.value);
  buffer_puts(&line, "\n");
  bool before = t->parameters.n && strstr(t->parameters.at, line.at);
  if (!before) buffer_puts(&t->parameters, line.at);
  free(line.at);
  return before;
}

static void note_left(Tester *t, const Sweep *w) {
  Buffer line = {0};
  if (!w->left.n) return;
  buffer_printf(&line, "  not swept: %s of %s, whose cases give the elements of %s\n", w->left.at,
                t->unit, w->why.at);
  if (!t->left.n || !strstr(t->left.at, line.at)) buffer_puts(&t->left, line.at);
  free(line.at);
}

static int run_at(Tester *t, schedc_param point) {
  t->set = (Pairs){&point, 1};
  int code = test_run(t);
  data_close(&t->data);
  t->data = (Data){0};
  t->set = (Pairs){0};
  return code;
}

// … and if the copy engine cannot address rows of that length, at the next length that it can.
static int sweep_point(Tester *t, const schedc_param *point) {
  enum { GRAIN = 16 };
  char value[32];
  size_t misaligned = t->tally.misaligned;
  long long length = strtoll(point->value, NULL, 10);
  t->tally.swept++;
  int code = run_at(t, *point);
  if (code || t->tally.misaligned == misaligned || length % GRAIN == 0) return code;
  t->tally.misaligned = misaligned;
  snprintf(value, sizeof value, "%lld", length + GRAIN - length % GRAIN);
  return run_at(t, (schedc_param){point->name, value});
}

// `like`: an instance of the case, with the first of its choices.
static int sweep_case(Tester *t, schedc_kernel *like, const size_t *first) {
  Sweep w;
  int code = 0;
  if ((t->s->args->cuda && !t->s->args->model) || swept_before(t, like)) return 0;
  sweep_open(&w, t->s, like, t->kase, t->level.elements);
  note_left(t, &w);
  t->kernel = like;
  t->choice = first;
  for (size_t i = 0; i < w.point.n && !code; i++) code = sweep_point(t, &w.point.at[i]);
  t->kernel = NULL;
  sweep_close(&w);
  return code;
}

static int test_case(Tester *t) {
  const Args *args = t->s->args;
  schedc_kernel *like;
  schedc_status status = schedc_instantiate(&like, t->s->context, t->s->source, t->unit,
                                            t->case_name, args->param.at, args->param.n);
  if (status) {
    int code = session_status(t->s, status);
    t->tally.combinations++;
    test_refuse(t, NULL);
    return code;
  }
  session_forget(t->s);  // warnings are for `check`
  for (t->kase = 0; strcmp(schedc_kernel_case_name(like, t->kase), t->case_name) != 0;) t->kase++;
  size_t lines = schedc_bind_count(like, t->kase), all = lines + (args->model ? WAYS : 0);
  size_t *counts = need(calloc(all + 1, sizeof *counts)),
         *choice = need(calloc(all + 1, sizeof *choice));
  schedc_bind_info line = SCHEDC_BIND_INFO_INIT;
  for (size_t i = 0; i < lines; i++) {
    schedc_bind_at(like, t->kase, i, &line);
    bool chosen = line.is_choice && line.count && line.kind != SCHEDC_BIND_ABSENT;
    counts[i] = chosen && !pairs_have(&args->param, line.name) ? line.count : 1;
  }
  if (args->model) test_ways(args, counts + lines);
  t->lines = lines;
  Cover cover;
  cover_start(&cover, counts, all, t->level.all);
  int code = 0;
  while (!code && cover_next(&cover, choice)) {
    code = test_combination(t, like, choice);
    progress_report(
        &t->progress,
        (double)cover.given / (double)(cover.pairwise ? cover.given + cover.left : cover.total));
  }
  cover_end(&cover);
  memset(choice, 0, all * sizeof *choice);
  if (!code) code = sweep_case(t, like, choice);
  free(counts);
  free(choice);
  schedc_kernel_free(like);
  return code;
}

// All cases of a unit.
static int test_unit(Tester *t, size_t unit) {
  schedc_unit_info info = SCHEDC_UNIT_INFO_INIT;
  schedc_unit(t->s->source, unit, &info);
  t->unit = info.name;
  int worst = 0;
  for (size_t c = 0; c < info.case_count && !t->no_gpu; c++) {
    schedc_case_name(t->s->source, unit, c, &t->case_name);
    if (t->s->args->case_name && strcmp(t->s->args->case_name, t->case_name) != 0) continue;
    int code = test_case(t);
    test_end_case(t);
    if (code > worst) worst = code;
  }
  return worst;
}

static int test_source(Tester *t) {
  const Args *args = t->s->args;
  int worst = 0;
  for (size_t i = 0; i < schedc_unit_count(t->s->source) && !t->no_gpu; i++) {
    schedc_unit_info info = SCHEDC_UNIT_INFO_INIT;
    schedc_unit(t->s->source, i, &info);
    if (args->operands > 1 && strcmp(info.name, args->operand[1]) != 0) continue;
    int code = test_unit(t, i);
    if (code > worst) worst = code;
  }
  return worst;
}

// Nothing was tested: there is no such kernel, or no such case, which are reported as by `check`;
// or no case at all.
static int why_nothing(Session *s) {
  const Args *args = s->args;
  const char *unit = args->operands > 1 ? args->operand[1] : NULL;
  schedc_unit_info info = SCHEDC_UNIT_INFO_INIT;
  schedc_kernel *kernel = NULL;
  schedc_status status = SCHEDC_OK;
  size_t n = schedc_unit_count(s->source), at = 0;
  s->quiet = false;
  while (at < n && !schedc_unit(s->source, at, &info) && unit && strcmp(info.name, unit) != 0) at++;
  if (args->case_name || at == n)
    status = schedc_instantiate(&kernel, s->context, s->source, unit, args->case_name, NULL, 0);
  schedc_kernel_free(kernel);
  if (status) return session_status(s, status);
  if (unit || n == 1)
    cli_fail(args, "'%s' has no case to test: give it one, such as 'case small { M = 100 }'",
             info.name);
  else
    cli_fail(args, "no kernel of %s has a case to test: give one a 'case small { M = 100 }'",
             args->operand[0]);
  return EXIT_BAD;
}

static void summary(const Tester *t, double took) {
  const Tally *n = &t->tally;
  size_t skipped = n->too_large + n->unmet + n->misaligned;
  if (t->s->args->format == FORMAT_JSON) {
    Json j = {.write = stdout_write};
    json_open(&j, '{');
    json_key(&j, "file"), json_text(&j, t->s->args->operand[0]);
    json_key(&j, "combinations"), json_uint(&j, n->combinations);
    json_key(&j, "other_lengths"), json_uint(&j, n->swept);
    json_key(&j, "passed"), json_uint(&j, n->passed);
    json_key(&j, "failed"), json_uint(&j, n->failed);
    json_key(&j, "unproven"), json_uint(&j, n->unproven);
    json_key(&j, "skipped_too_large"), json_uint(&j, n->too_large);
    json_key(&j, "skipped_requirement"), json_uint(&j, n->unmet);
    json_key(&j, "skipped_alignment"), json_uint(&j, n->misaligned);
    json_key(&j, "not_swept"), json_open(&j, '[');
    for (const char *at = t->left.n ? t->left.at : ""; *at; at = strchr(at, '\n') + 1) {
      char line[512];
      snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
      json_text(&j, line + strlen("  not swept: "));
    }
    json_close(&j, ']');
    json_key(&j, "seconds"), json_real(&j, took);
    json_key(&j, "failures");
    json_raw(&j, "[");
    json_raw(&j, t->failures.n ? t->failures.at : "");
    json_raw(&j, "]}\n");
    return;
  }
  printf("%s: %zu passed, %zu failed, %zu skipped", t->s->args->operand[0], n->passed, n->failed,
         skipped);
  printf(" (%zu combination%s", n->combinations, n->combinations == 1 ? "" : "s");
  if (n->swept) printf(" and %zu other length%s", n->swept, n->swept == 1 ? "" : "s");
  printf(", %.1f s)\n%s", took, t->left.n ? t->left.at : "");
  if (n->unproven)
    printf("  unproven: %zu, on inputs that leave less of an output than rounding may take away\n",
           n->unproven);
  if (n->unmet)
    printf("  skipped: %zu whose `require`, or range of a list, does not hold\n", n->unmet);
  if (n->misaligned)
    printf("  skipped: %zu whose rows are not a multiple of 16 bytes\n", n->misaligned);
  if (n->too_large)
    printf("  skipped: %zu with more than %llu elements\n", n->too_large,
           (unsigned long long)t->level.elements);
}

int command_test(const Args *args) {
  static const Level quick = {1 << 21, 2, false}, normal = {1 << 22, 2, true},
                     full = {1 << 24, 4, true}, gpu = {1 << 30, 0, true};
  Session s;
  Tester t = {.s = &s,
              .level = args->quick                  ? quick
                       : args->full                 ? full
                       : args->cuda && !args->model ? gpu
                                                    : normal};
  double start = seconds();
  int code = model_open(args);
  if (code) return code;
  code = session_open(&s, args, 0);
  s.quiet = true;
  if (!code) {
    progress_start(&t.progress, args->operand[0]);
    code = test_source(&t);
    progress_end(&t.progress);
  }
  if (!code && !t.tally.combinations) code = why_nothing(&s);
  if (t.tally.combinations) {
    test_print_refusals(&t);
    summary(&t, seconds() - start);
    if (!code && (t.tally.failed || !t.tally.passed)) code = EXIT_BAD;
  } else if (args->format == FORMAT_JSON) {
    session_print_reports(&s);
  }
  free(t.failures.at);
  free(t.left.at);
  free(t.parameters.at);
  schedc_gpu_free(t.gpu);
  session_close(&s);
  return code;
}
