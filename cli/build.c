// build.c - `schedc build`: a kernel or sequence as CUDA C, PTX, machine code or a C header, in a
// file of its own; and the report on what stands in the machine code.
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

// What is built.
typedef struct Made {
  const schedc_kernel *kernel;
  schedc_variants *variants;  // NULL: the kernel alone; else it is the first of them …
  Tuned tuned;                // … and this is whose they are
} Made;

static const char *const ending[] = {[SCHEDC_CUDA_C] = "cu",
                                     [SCHEDC_PTX] = "ptx",
                                     [SCHEDC_CUBIN] = "cubin",
                                     [SCHEDC_C_HEADER] = "h"};

schedc_build_options build_options(const Args *args) {
  schedc_build_options options = SCHEDC_BUILD_OPTIONS_INIT;
  options.lenient = args->lenient;
  options.no_cache = args->no_cache;
  options.debug_waits = args->debug_waits;
  options.trust_elements = args->trust_elements;
  options.name = args->name;
  return options;
}

// A C identifier?
static bool good_name(const char *name) {
  static const char used[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
  return *name && !name[strspn(name, used)] && !strspn(name, "0123456789");
}

static bool is_ending(const char *word) {
  bool known = false;
  for (size_t i = 0; i < COUNT(ending); i++) known |= strcmp(ending[i], word) == 0;
  return known;
}

// What --to says, else the ending of the output's name; for a report alone, machine code.
static int find_artifact(const Args *args, schedc_artifact *out) {
  const char *dot = args->output ? strrchr(args->output, '.') : NULL;
  const char *own = dot && !strchr(dot, '/') ? dot + 1 : "", *word = args->to ? args->to : own;
  if (is_ending(word) && is_ending(own) && strcmp(word, own) != 0)
    return cli_usage(args, "'-o %s' asks for %s, and '--to %s' for %s: leave one out", args->output,
                     own, word, word);
  for (size_t i = 0; i < COUNT(ending); i++) {
    if (strcmp(ending[i], word) != 0) continue;
    *out = (schedc_artifact)i;
    return EXIT_GOOD;
  }
  *out = SCHEDC_CUBIN;
  if (!*word && !args->output && args->report) return EXIT_GOOD;
  if (*word) return cli_usage(args, "'%s' is not something to build: cu, ptx, cubin or h is", word);
  return cli_usage(args, "say what to build: -o FILE.cubin, or --to cubin");
}

static void show_text(const char *name, const char *path, schedc_artifact artifact,
                      const schedc_build_info *b) {
  printf("%s -> %s: %u threads, %u bytes of shared memory", name, path, b->threads,
         b->shared_bytes);
  if (artifact == SCHEDC_CUBIN || artifact == SCHEDC_C_HEADER) {
    printf(", %u registers at entry, %zu bytes of code", b->registers, b->code_bytes);
    if (b->stack_bytes) printf(", SPILLS (%u bytes a thread)", b->stack_bytes);
  }
  if (artifact != SCHEDC_CUDA_C)
    printf("; %s %.3f s", b->cached ? "from the cache in" : "built in", b->seconds);
  if (b->cached == 2) printf(" (no NVRTC is here: %s made it)", b->nvrtc);
  printf("\n");
}

// The line of each variant but the first, which is the default.
static void show_variants(const Tuned *t, const schedc_variants *v) {
  schedc_variant_info info = SCHEDC_VARIANT_INFO_INIT;
  if (v && schedc_variant_count(v) < 2)
    printf("  no line of %s fits: it has the defaults alone\n", t->path.at);
  for (size_t i = 1; !schedc_variant_at(v, i, &info); i++) {
    Buffer said = {0};
    tuned_text(t, info.record, &said);
    printf("  %s\n", said.at);
    free(said.at);
  }
}

static void json_variants(Json *j, const Tuned *t, const schedc_variants *v) {
  schedc_variant_info info = SCHEDC_VARIANT_INFO_INIT;
  json_open(j, '[');
  for (size_t i = 1; !schedc_variant_at(v, i, &info); i++) tuned_json(t, info.record, j);
  json_close(j, ']');
}

// path: NULL, if only a report is wanted. sass: what it says, or empty.
static void show_json(const Session *s, const char *name, const char *path,
                      const schedc_build_info *b, const Made *made, const Buffer *sass) {
  Json j = {.write = stdout_write};
  json_open(&j, '{');
  json_key(&j, "kernel"), json_text(&j, name);
  json_key(&j, "output"), json_text(&j, path);
  json_key(&j, "threads"), json_uint(&j, b->threads);
  json_key(&j, "cluster"), json_uint(&j, b->cluster);
  json_key(&j, "shared_bytes"), json_uint(&j, b->shared_bytes);
  json_key(&j, "static_shared_bytes"), json_uint(&j, b->static_shared_bytes);
  json_key(&j, "entry_registers"), json_uint(&j, b->entry_registers);
  json_key(&j, "registers"), json_uint(&j, b->registers);
  json_key(&j, "barriers"), json_uint(&j, b->barriers);
  json_key(&j, "stack_bytes"), json_uint(&j, b->stack_bytes);
  json_key(&j, "spill_store_bytes"), json_uint(&j, b->spill_store_bytes);
  json_key(&j, "spill_load_bytes"), json_uint(&j, b->spill_load_bytes);
  json_key(&j, "code_bytes"), json_uint(&j, b->code_bytes);
  json_key(&j, "cached"), json_bool(&j, b->cached);
  json_key(&j, "nvrtc"), json_text(&j, b->nvrtc);
  json_key(&j, "seconds"), json_real(&j, b->seconds);
  if (made->variants) json_key(&j, "variants"), json_variants(&j, &made->tuned, made->variants);
  if (sass->n) json_key(&j, "sass"), json_raw(&j, sass->at), json_raw(&j, ",\"diagnostics\":");
  else json_key(&j, "diagnostics");
  json_raw(&j, "[");
  json_raw(&j, s->reports.n ? s->reports.at : "");
  json_raw(&j, "]}\n");
}

// The artifact, to its file if it is wanted.
static int make(Session *s, const Made *made, schedc_artifact artifact, const char *path,
                schedc_build_info *info) {
  schedc_build_options options = build_options(s->args);
  options.variants = made->variants;
  Buffer out = {0};
  int code = session_status(
      s, schedc_build(s->context, made->kernel, artifact, &options, buffer_write, &out, info));
  if (!code && path && !file_replace(path, out.at, out.n)) code = cli_unwritten(s->args, path);
  free(out.at);
  return code;
}

static int build(Session *s, const Made *made, schedc_artifact artifact) {
  const schedc_kernel *kernel = made->kernel;
  const Args *args = s->args;
  const char *name = schedc_kernel_name(kernel);
  bool json = args->format == FORMAT_JSON, written = args->output || args->to || !args->report;
  Buffer path = {0}, sass = {0};
  schedc_build_options options = build_options(args);
  schedc_build_info info = SCHEDC_BUILD_INFO_INIT;
  buffer_puts(&path, args->output ? args->output : args->name ? args->name : name);
  if (!args->output) buffer_printf(&path, ".%s", ending[artifact]);
  int code = make(s, made, artifact, written ? path.at : NULL, &info);
  if (!json && !code && written && strcmp(path.at, "-") != 0)
    show_text(name, path.at, artifact, &info), show_variants(&made->tuned, made->variants);
  if (!code && args->report)
    code = session_status(
        s, schedc_report_sass(s->context, kernel, &options, json ? SCHEDC_JSON : SCHEDC_TEXT,
                              buffer_write, &sass));
  if (json) show_json(s, name, written ? path.at : NULL, &info, made, &sass);
  else if (sass.n) fputs(sass.at, stdout);
  free(sass.at);
  free(path.at);
  return code;
}

// The kernel, or all that a store has for it.
static int instantiate(Session *s, schedc_kernel **kernel, Made *made) {
  const Args *args = s->args;
  const char *unit = args->operands > 1 ? args->operand[1] : NULL;
  schedc_variant_info info = SCHEDC_VARIANT_INFO_INIT;
  if (args->tuned || args->gpu) {
    int code = tuned_variants(s, &made->tuned, &made->variants);
    if (!code) schedc_variant_at(made->variants, 0, &info);
    made->kernel = info.kernel;
    return code;
  }
  int code = session_status(s, schedc_instantiate(kernel, s->context, s->source, unit,
                                                  args->case_name, args->param.at, args->param.n));
  made->kernel = *kernel;
  return code;
}

static int build_file(const Args *args, schedc_artifact artifact) {
  Session s;
  Made made = {0};
  schedc_kernel *kernel = NULL;
  int code = session_open(&s, args, 0);
  if (!code) code = instantiate(&s, &kernel, &made);
  if (!code) code = build(&s, &made, artifact);
  else if (args->format == FORMAT_JSON) session_print_reports(&s);
  schedc_variants_free(made.variants);
  schedc_kernel_free(kernel);
  tuned_close(&made.tuned);
  session_close(&s);
  return code;
}

int command_build(const Args *args) {
  schedc_artifact artifact = SCHEDC_CUDA_C;
  int code = find_artifact(args, &artifact);
  if (code) return code;
  if (artifact == SCHEDC_C_HEADER && args->debug_waits)
    return cli_usage(args,
                     "a header cannot tell of a wait that was given up: use --debug-waits with "
                     "'schedc run' or 'schedc test'");
  if (args->name && artifact != SCHEDC_C_HEADER)
    return cli_usage(args, "--name is for the names in a C header");
  if (args->name && !good_name(args->name))
    return cli_usage(args, "'%s' is not a name in C: a header cannot define it", args->name);
  bool standard = args->output && strcmp(args->output, "-") == 0;
  if (standard && args->format == FORMAT_JSON)
    return cli_usage(args, "--format json and -o - both want the standard output");
  if (standard && args->report)
    return cli_usage(args, "--report and -o - both want the standard output");
  if (args->report && strcmp(args->report, "sass") != 0)
    return cli_usage(args, "there is no report '%s': sass is one", args->report);
  if ((args->tuned || args->gpu) && artifact != SCHEDC_C_HEADER)
    return cli_usage(args, "--tuned and --gpu are for a C header, which has params for each shape");
  return build_file(args, artifact);
}
