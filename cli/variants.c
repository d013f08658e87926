// variants.c - the variants of `schedc bench`: a file, with the settings that follow it, one choice
// of what --vary names and one of the --inputs; with --tuned, or without --vary, each twice: once
// with the params of a store. Where --vary names something, a variant that the schedule refuses is
// left out, with the code of the report and what it says.
#include "cli/bench.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_VARIANTS = 256, SMALL = 1 << 22 };

static size_t count_values(const char *list) {
  size_t n = 1;
  for (; *list; list++) n += *list == ',';
  return n;
}

static size_t input_kinds(const Args *args) { return args->input_count ? args->input_count : 1; }

// Value number `which` of a comma-separated list; the caller frees it.
static char *value_at(const char *list, size_t which) {
  while (which--) list = strchr(list, ',') + 1;
  size_t n = strcspn(list, ",");
  char *text = need(malloc(n + 1));
  memcpy(text, list, n);
  text[n] = 0;
  return text;
}

static bool is_file(const char *operand) {
  const char *dot = strrchr(operand, '.');
  return dot && strcmp(dot, ".sched") == 0;
}

static void add_pair(Pairs *p, const char *name, const char *value) {
  p->at = need(realloc(p->at, sizeof *p->at * (p->n + 1)));
  p->at[p->n++] = (schedc_param){name, value};
}

static Pairs copy_pairs(const Pairs *p) {
  Pairs copy = {0};
  for (size_t i = 0; i < p->n; i++) add_pair(&copy, p->at[i].name, p->at[i].value);
  return copy;
}

static bool is_param(const schedc_space *space, const char *name) {
  schedc_space_param_info info = SCHEDC_SPACE_PARAM_INFO_INIT;
  for (size_t i = 0; schedc_space_param_at(space, i, &info) == SCHEDC_OK; i++) {
    if (strcmp(info.name, name) == 0) return true;
  }
  return false;
}

// `name` of the unit, which may be a param, a dimension or a scalar. Takes the value.
static void set_value(Variant *v, const schedc_space *k, const char *name, char *value) {
  char *own = strdup(name);
  add_pair(is_param(k, name) ? &v->args.param : &v->args.set, need(own), value);
  buffer_printf(&v->name, "%s%s=%s", v->name.n ? " " : "", name, value);
}

// The settings behind the file's name, and choice `which` of `all` that --vary asks for.
static void settle(Variant *v, const schedc_space *k, char **word, int words, size_t which,
                   size_t all) {
  const Pairs *vary = &v->args.vary;
  for (int i = 0; i < words; i++) {
    const char *eq = strchr(word[i], '=');
    if (!eq) continue;
    char *name = need(strndup(word[i], (size_t)(eq - word[i])));
    set_value(v, k, name, need(strdup(eq + 1)));
    free(name);
  }
  for (size_t i = 0; i < vary->n; i++) {
    size_t n = count_values(vary->at[i].value);
    all /= n;
    set_value(v, k, vary->at[i].name, value_at(vary->at[i].value, which / all % n));
  }
}

// In a sweep what is refused is a row among others, not the end.
static bool is_sweep(const Variant *v) { return v->args.vary.n > 0; }

int variant_leave(Variant *v, Session *said, int code) {
  if (code != EXIT_BAD || !is_sweep(v) || !said->first_code.n) {
    if (code && said->quiet && said->reports.n) fputs(said->reports.at, stderr);
    return code;
  }
  v->out = true;
  buffer_puts(&v->code, said->first_code.at);
  buffer_puts(&v->why, said->first_text.at);
  session_forget(said);
  return EXIT_GOOD;
}

// The params of the store, over those of the variant before this one, which is the same but for
// them. Without others it is left out; if nobody named a store, without a word.
static int tune_variant(Variant *v) {
  const Variant *usual = v - 1;
  int code = tuned_open(&v->session, &v->tuned, !v->args.dry_run);
  if (!code) code = tuned_kernel(&v->session, &v->tuned, &v->kernel, &v->kase);
  if (code) return code;
  bool same = v->tuned.record.schedule && usual->kernel && tuned_same(usual->kernel, v->kernel);
  v->gone = !v->tuned.store || (same && !v->args.tuned);
  v->out = same || !v->tuned.record.schedule;
  if (!v->out) return EXIT_GOOD;
  buffer_puts(&v->why, same ? "the params are the usual ones: " : "");
  tuned_text(&v->tuned, &v->tuned.record, &v->why);
  return EXIT_GOOD;
}

static int open_variant(Variant *v) {
  v->opened = true;
  int code = session_open(&v->session, &v->args, 0);
  if (code) return code;
  v->session.quiet = is_sweep(v) && v->args.format == FORMAT_TEXT;
  code = session_kernel(&v->session, &v->kernel, &v->kase);
  if (!code && v->is_tuned) code = tune_variant(v);
  return variant_leave(v, &v->session, code);
}

// Settings of the variant: which of them are params does not depend on their values.
static int settle_variant(Variant *v, char **word, int words, size_t which, size_t all) {
  Session s;
  schedc_space *space = NULL;
  const char *unit = v->args.operands > 1 ? v->args.operand[1] : NULL;
  int code = session_open(&s, &v->args, 0);
  if (!code)
    code = session_status(&s, schedc_space_new(&space, s.context, s.source, unit, NULL, NULL, 0));
  if (!code) settle(v, space, word, words, which, all);
  schedc_space_free(space);
  session_close(&s);
  return code;
}

// The kind of input, which tells variants apart where several are asked for.
static void choose_inputs(Variant *v, InputKind kind) {
  if (v->args.input_count > 1)
    buffer_printf(&v->name, "%sinputs=%s", v->name.n ? " " : "", schedc_input_at(kind));
  v->args.inputs[0] = kind;
  v->args.input_count = 1;
}

// A file, what follows it (a kernel's name, settings), and choice number `which`.
static int make_variant(const Variants *b, Variant *v, char **word, int words, size_t which,
                        size_t all) {
  size_t kinds = input_kinds(b->args);
  v->args = *b->args;
  v->args.param = copy_pairs(&b->args->param);
  v->args.set = copy_pairs(&b->args->set);
  v->args.operand = v->operand;
  v->args.operands = 1;
  v->operand[0] = word[0];
  for (int i = 1; i < words; i++) {
    if (strchr(word[i], '=')) continue;
    if (v->args.operands == 2)
      return cli_usage(b->args, "'%s' is neither a file nor a setting", word[i]);
    v->operand[v->args.operands++] = word[i];
  }
  if (words > v->args.operands || v->args.vary.n) {
    int code = settle_variant(v, word + 1, words - 1, which / kinds, all / kinds);
    if (code) return code;
  }
  choose_inputs(v, b->args->inputs[which % kinds]);
  if (v->is_tuned) buffer_puts(&v->name, v->name.n ? " tuned" : "tuned");
  return open_variant(v);
}

static void close_variant(Variant *v) {
  if (!v->opened) return;
  data_close(&v->data);
  tuned_close(&v->tuned);
  schedc_kernel_free(v->kernel);
  session_close(&v->session);
  free(v->errors);
}

static void free_pairs(Pairs *of, size_t shared) {
  for (size_t i = shared; i < of->n; i++) {
    free((char *)of->at[i].name);
    free((char *)of->at[i].value);
  }
  free(of->at);
}

// What set_value() made are the last of a variant's settings.
static void free_settings(const Variants *b, Variant *v) {
  free_pairs(&v->args.param, b->args->param.n);
  free_pairs(&v->args.set, b->args->set.n);
  free(v->name.at);
  free(v->code.at);
  free(v->why.at);
}

static void free_last(Variants *b) {
  Variant *v = &b->at[--b->n];
  close_variant(v);
  free_settings(b, v);
  *v = (Variant){0};
}

int variants_make(Variants *b) {
  const Args *args = b->args;
  size_t each = input_kinds(args);
  for (size_t i = 0; i < args->vary.n; i++) {
    each *= count_values(args->vary.at[i].value);
    if (each > MAX_VARIANTS) return cli_usage(args, "more than %d variants", MAX_VARIANTS);
  }
  bool beside = args->tuned || (!args->vary.n && tuned_wanted(args, !args->dry_run));
  size_t twice = beside ? 2 : 1;
  b->at = need(calloc(twice * each * (size_t)args->operands, sizeof *b->at));
  for (int i = 0, words; i < args->operands; i += words) {
    for (words = 1; i + words < args->operands && !is_file(args->operand[i + words]);) words++;
    if (b->n + twice * each > MAX_VARIANTS)
      return cli_usage(args, "more than %d variants", MAX_VARIANTS);
    for (size_t w = 0; w < twice * each; w++) {
      b->at[b->n].is_tuned = w % twice;
      int code = make_variant(b, &b->at[b->n++], args->operand + i, words, w / twice, each);
      if (code) return code;
      if (b->at[b->n - 1].gone) free_last(b);
    }
  }
  return EXIT_GOOD;
}

static schedc_status give(Variant *v) {
  schedc_gpu *gpu = NULL;
  schedc_status status = schedc_gpu_new(&gpu, v->session.context, v->args.device);
  if (!status) status = data_give(&v->data, &v->session, v->kase, gpu);
  schedc_gpu_free(gpu);
  return status;
}

static int fill(Variant *v) {
  Session *s = &v->session;
  int code = data_open(&v->data, s, v->kernel, v->kase, NULL, &s->args->set);
  if (!code) code = data_allocate(&v->data, s);
  if (!code) code = data_load(&v->data, s);
  if (code) return code;
  // What is counted may depend on lengths in small tensors, or in lists.
  if (!v->args.dry_run || data_elements(&v->data) < SMALL)
    data_fill(&v->data, s, v->kase, v->args.inputs[0], v->args.seed);
  else data_list(&v->data, v->kase);
  if (!v->args.dry_run) code = session_status(s, give(v));
  if (code) return code;
  v->outputs = schedc_output_count(v->kernel);
  v->errors = need(calloc(v->outputs + 1, sizeof *v->errors));
  for (size_t i = 0; i <= v->outputs; i++) v->errors[i].size = sizeof *v->errors;
  v->work = (schedc_work)SCHEDC_WORK_INIT;
  const Data *d = &v->data;
  return session_status(s, schedc_count_work(s->context, v->kernel, d->tensors, d->tensor_count,
                                             d->scalars, d->scalar_count, &v->work));
}

int variant_fill(Variant *v) { return v->out ? EXIT_GOOD : variant_leave(v, &v->session, fill(v)); }

void variants_free(Variants *b) {
  while (b->n) free_last(b);
  free(b->at);
}
