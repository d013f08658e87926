// sass.c - the report on a kernel's machine code: built, disassembled, held beside the schedule.
#include "runtime/api/api.h"

#include "runtime/sass/sass.h"

typedef struct SassJob {
  const schedc_kernel *kernel;
  schedc_build_options options;
  schedc_format_kind kind;
  schedc_writer writer;
  void *user;
} SassJob;

typedef struct Reporting {
  Sc *sc;
  const Built *built;
  const SassText *text;
  const char *disassembler;
  Str *out;    // text
  Json *json;  // JSON
} Reporting;

static schedc_status cannot(Sc *sc, const Kernel *k, const char *wrong) {
  sc_report(sc, D_G_NVDISASM, k->span, "%s", wrong);
  return SCHEDC_EUNAVAIL;
}

static SassFigures figures_of(const Reporting *r, const Kernel *k, const char *function) {
  const BuildLog *log = &r->built->log;
  SassFigures f = {r->disassembler, k->threads, log->registers, 0, 0};
  for (u32 i = 0; i < log->spill.n; i++) {
    const Spill *s = &log->spill.at[i];
    if (!s->function || strcmp(s->function, function) != 0) continue;
    f.spill_stores = s->stores;
    f.spill_loads = s->loads;
  }
  return f;
}

static schedc_status report_kernel(const Reporting *r, const Kernel *k) {
  const char *name = sc_cuda_name(r->sc, k->name);
  for (u32 i = 0; i < r->text->function.n; i++) {
    const SassFunction *f = &r->text->function.at[i];
    if (strcmp(f->name, name) != 0) continue;
    SassReport report;
    SassFigures figures = figures_of(r, k, name);
    sc_follow_sass(r->sc, k, f, &report);
    if (r->json) sc_json_sass(r->json, r->sc, &report, &figures);
    else sc_print_sass(r->out, &report, &figures);
    return SCHEDC_OK;
  }
  return cannot(r->sc, k,
                sc_printf(r->sc, "%s shows no function '%s': is it older than NVRTC?",
                          r->disassembler, name));
}

// Of a sequence, each of its kernels once.
static schedc_status report_all(const Reporting *r, const Kernel *k) {
  schedc_status status = SCHEDC_OK;
  if (!k->launch.n) return report_kernel(r, k);
  for (u32 i = 0; i < k->launch.n && !status; i++) {
    bool again = false;
    for (u32 j = 0; j < i; j++) again |= k->launch.at[j].kernel == k->launch.at[i].kernel;
    if (!again && i && r->out) str_puts(r->out, "\n");
    if (!again) status = report_kernel(r, k->launch.at[i].kernel);
  }
  return status;
}

static schedc_status write_report(Sc *sc, const SassJob *j, const Kernel *k, Reporting *r) {
  Str out = {.sc = sc};
  Json json = {.write = str_write, .user = &out};
  if (j->kind == SCHEDC_JSON) {
    r->json = &json;
    json_open(&json, '[');
  } else {
    r->out = &out;
  }
  schedc_status status = report_all(r, k);
  if (r->json) json_close(&json, ']');
  return status ? status : sc_write(j->writer, j->user, &out);
}

static schedc_status report(Sc *sc, void *job) {
  SassJob *j = job;
  Assembly a = {.options = sc_building(&j->options), .target = TARGET_CUBIN};
  Compilation c = {
      .k = j->kernel->k, .emission = a.options.emission, .assemble = sc_assemble, .assembler = &a};
  SassText text;
  const char *path = NULL, *words = NULL, *wrong = sc_disassembler(sc, &path);
  if (wrong) return cannot(sc, c.k, wrong);
  if (!sc_compile(sc, &c, "place", "cubin")) return a.status ? a.status : SCHEDC_EINPUT;
  wrong = sc_disassemble(sc, path, c.code, c.code_bytes, &words);
  if (wrong) return cannot(sc, c.k, wrong);
  sc_read_sass(sc, words, c.k->text->name, &text);
  return write_report(
      sc, j, c.k, &(Reporting){.sc = sc, .built = &a.built, .text = &text, .disassembler = path});
}

schedc_status schedc_report_sass(schedc_context *context, const schedc_kernel *kernel,
                                 const schedc_build_options *options, schedc_format_kind kind,
                                 schedc_writer writer, void *user) {
  if (!context || !kernel || !writer || (u32)kind > SCHEDC_JSON) return SCHEDC_EARG;
  SassJob job = {.kernel = kernel,
                 .options = SCHEDC_BUILD_OPTIONS_INIT,
                 .kind = kind,
                 .writer = writer,
                 .user = user};
  if (!TAKE_OPTIONS(&job.options, options)) return SCHEDC_EARG;
  return sc_enter_once(context, kernel->k->text, report, &job);
}
