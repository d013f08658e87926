// ptxas.c - reads what NVRTC and ptxas say about a build, and reports it in the schedule's terms.
// In: the log. Out: a BuildLog, and diagnostics. NVRTC's messages have the form `FILE(LINE): error:
// TEXT`, and #line made FILE and LINE the schedule's. ptxas names the function alone: `ptxas info
// : (C7512) Potential Performance Loss`. So its remarks are reported at the role that they most
// likely concern: the one with the largest products, or with the largest need of registers.
#include "runtime/cuda/build.h"

#include <stdlib.h>
#include <string.h>

// ---- reading

static bool starts(const char *text, const char *with) {
  return !strncmp(text, with, strlen(with));
}

// The number that ends where `at` begins, as in "8 bytes stack frame".
static u32 number_before(const char *line, const char *at) {
  const char *p = at;
  while (p > line && p[-1] >= '0' && p[-1] <= '9') p--;
  return (u32)strtoul(p, NULL, 10);
}

// The number before `unit` in the line; 0: there is none. Raises `worst` to it.
static u32 read_figure(const char *line, const char *unit, u32 *worst) {
  const char *at = strstr(line, unit);
  u32 n = at ? number_before(line, at) : 0;
  if (n > *worst) *worst = n;
  return n;
}

// The name after `word`, in quotes or not, as in "for the function 'fa3_fwd'". NULL: there is none.
static const char *name_after(Sc *sc, const char *line, const char *word) {
  const char *at = strstr(line, word);
  if (!at) return NULL;
  at += strlen(word);
  at += *at == '\'';
  size_t n = 0;
  while ((at[n] >= '0' && at[n] <= '9') || (at[n] >= 'A' && at[n] <= 'Z') ||
         (at[n] >= 'a' && at[n] <= 'z') || at[n] == '_')
    n++;
  return n ? sc_printf(sc, "%.*s", (int)n, at) : NULL;
}

static const char *after_colon(const char *line) {
  const char *at = strstr(line, ": ");
  return at ? at + 2 : line;
}

// ptxas's own lines: "ptxas info    : …", and so with warning, error and fatal.
// `function`: the one whose properties are being told.
static void read_ptxas(Sc *sc, const char *line, BuildLog *out, const char **function) {
  const char *name = name_after(sc, line, "Function properties for ");
  if (name) *function = name;
  Spill s = {*function, read_figure(line, " bytes stack frame", &out->stack),
             read_figure(line, " bytes spill stores", &out->spill_stores),
             read_figure(line, " bytes spill loads", &out->spill_loads)};
  if (s.stack || s.stores || s.loads) PUSH(sc, &out->spill, s);
  if (strstr(line, ": Used ")) {
    read_figure(line, " registers", &out->registers);
    read_figure(line, " barriers", &out->barriers);
    read_figure(line, " bytes smem", &out->shared);
  }
  const char *text = after_colon(line);
  Remark r = {.kind = REMARK_WARNING, .text = text, .function = name_after(sc, text, " function ")};
  if (starts(text, "(C")) {
    r.code = (u32)strtoul(text + 2, NULL, 10);
    const char *end = strstr(text, ") ");
    if (end) r.text = text = end + 2;
  }
  if (starts(text, "Potential Performance Loss: ")) r.text = after_colon(text);
  // By number, and by their words, since numbers may change.
  if (strstr(text, "instructions are serialized") || (r.code >= 7510 && r.code <= 7519))
    r.kind = REMARK_SERIAL;
  else if (strstr(text, "'setmaxnreg' ignored") || r.code == 7508) r.kind = REMARK_SETMAXNREG;
  else if (starts(line, "ptxas error") || starts(line, "ptxas fatal")) r.kind = REMARK_ERROR;
  else if (!starts(line, "ptxas warning") && r.text == text && !r.code) return;
  PUSH(sc, &out->remark, r);
}

// "FILE(LINE): error: TEXT", "FILE(LINE): warning #177-D: TEXT", or without a place "nvrtc: error:
// …".
static void read_nvrtc(Sc *sc, const char *line, BuildLog *out) {
  const char *error = strstr(line, "error: "), *warning = strstr(line, "warning ");
  bool is_error = error && (!warning || error < warning);
  const char *at = is_error ? error : warning;
  if (!at || (at > line && at[-1] != ' ')) return;
  Remark r = {.kind = is_error ? REMARK_ERROR : REMARK_WARNING, .text = after_colon(at)};
  const char *close = at - 3;  // "): "
  if (at - line >= 3 && starts(close, "): ")) {
    const char *open = close;
    while (open > line && *open != '(') open--;
    r.line = (u32)strtoul(open + 1, NULL, 10);
    r.file = sc_printf(sc, "%.*s", (int)(open - line), line);
  }
  PUSH(sc, &out->remark, r);
}

void sc_read_log(Sc *sc, const char *log, BuildLog *out) {
  *out = (BuildLog){0};
  const char *function = NULL;
  for (const char *p = log; *p;) {
    size_t n = strcspn(p, "\n");
    const char *line = sc_printf(sc, "%.*s", (int)(n < 4096 ? n : 4096), p);
    if (starts(line, "ptxas")) read_ptxas(sc, line, out, &function);
    else if (*line != ' ') read_nvrtc(sc, line, out);
    p += n + (p[n] == '\n');
  }
}

// ---- reporting

// The role whose tiles leave the fewest of its registers free. NULL: no role holds tiles.
static const Role *tightest(const Kernel *k) {
  const Role *found = NULL;
  i64 most = 0;  // tiles' registers, less those that there are
  for (u32 r = 0; r < k->role.n; r++) {
    const Role *role = &k->role.at[r];
    i64 lack = (i64)role->live - sc_thread_registers(k, role);
    if (!role->live || (found && lack <= most)) continue;
    found = role;
    most = lack;
  }
  return found;
}

// The role that needs most registers.
static const Role *heaviest(const Kernel *k) {
  const Role *most = NULL;
  for (u32 r = 0; r < k->role.n; r++) {
    if (!most || k->role.at[r].live > most->live) most = &k->role.at[r];
  }
  return most;
}

// The role whose products need most registers.
static const Role *multiplier(const Kernel *k) {
  const Role *most = NULL;
  for (u32 r = 0; r < k->role.n; r++) {
    const Role *role = &k->role.at[r];
    bool multiplies = false;
    for (u32 i = 0; i < role->code.n; i++) multiplies |= role->code.at[i].op == OP_MMA;
    if (multiplies && (!most || role->live > most->live)) most = role;
  }
  return most;
}

static Span at_role(const Kernel *k, const Role *role) { return role ? role->span : k->span; }

Span sc_at_line(const Kernel *k, u32 line) {
  const Text *t = k->text;
  if (!t || !line || line > t->lines) return k->span;
  u32 lo = t->line[line - 1], hi = lo;
  while (hi < t->len && t->at[hi] != '\n' && t->at[hi] != '\r') hi++;
  while (lo < hi && (t->at[lo] == ' ' || t->at[lo] == '\t')) lo++;
  return hi > lo ? (Span){lo, hi} : k->span;
}

static Span at_line(const Kernel *k, const Remark *r) {
  bool here = r->file && !strcmp(r->file, k->text->name);
  return here ? sc_at_line(k, r->line) : k->span;
}

// The kernel of a sequence whose function the log names; the sequence, if it names none.
static const Kernel *kernel_of(Sc *sc, const Kernel *k, const char *function) {
  for (u32 i = 0; i < k->launch.n && function; i++) {
    const Kernel *step = k->launch.at[i].kernel;
    if (!strcmp(sc_cuda_name(sc, step->name), function)) return step;
  }
  return k;
}

static void report_spill(Sc *sc, const Kernel *k, const Spill *s, bool lenient) {
  const Role *role = tightest(k);
  Diag *d = sc_report(sc, D_G_SPILL, at_role(k, role),
                      "registers of '%s' are kept in memory: stack frame %u bytes a thread, spills "
                      "stored %u, loaded %u",
                      k->name, s->stack, s->stores, s->loads);
  if (role)
    sc_note(
        sc, d, role->span,
        "ptxas does not say where, but this role has the least room: its tiles take about %u of "
        "its %u registers a thread, and addresses and values of its statements need others",
        role->live, sc_thread_registers(k, role));
  sc_help(sc, d,
          "make its tiles smaller or give it more registers; --lenient makes this a warning, and "
          "then --report sass shows the loops that spill");
  if (lenient) sc_demote(sc, d);
}

static void report_serial(Sc *sc, const Kernel *k, const Remark *r, bool lenient) {
  enum { SHOWN = 4 };
  const Role *role = multiplier(k);
  Diag *d = sc_report(sc, D_G_SERIAL, at_role(k, role), "%s (ptxas C%u)", r->text, r->code);
  u32 shown = 0;
  for (u32 i = 0; role && i < role->code.n && shown < SHOWN; i++) {
    const Ins *ins = &role->code.at[i];
    if (ins->op != OP_MMA) continue;
    bool again = false;
    for (const Note *n = d->notes; n; n = n->next) again |= n->at.lo == ins->span.lo;
    if (again) continue;
    sc_note(sc, d, ins->span, "its products: ptxas does not say which");
  }
  sc_help(sc, d, "`schedc explain G.serial` lists what does that; --lenient makes this a warning");
  if (lenient) sc_demote(sc, d);
}

static void report_setmaxnreg(Sc *sc, const Kernel *k, const Remark *r, bool lenient) {
  const Role *role = heaviest(k);
  Diag *d = sc_report(sc, D_G_SETMAXNREG, at_role(k, role), "%s (ptxas C%u)", r->text, r->code);
  sc_help(sc, d, "--lenient makes this a warning");
  if (lenient) sc_demote(sc, d);
}

void sc_report_log(Sc *sc, const Kernel *k, const BuildLog *log, bool lenient) {
  for (u32 i = 0; i < log->remark.n; i++) {
    const Remark *r = &log->remark.at[i];
    const Kernel *step = kernel_of(sc, k, r->function);
    switch ((RemarkKind)r->kind) {
      case REMARK_SERIAL: report_serial(sc, step, r, lenient); break;
      case REMARK_SETMAXNREG: report_setmaxnreg(sc, step, r, lenient); break;
      case REMARK_ERROR:
        sc_report(sc, D_G_NVRTC, at_line(step, r), "the emitted code is refused: %s", r->text);
        break;
      case REMARK_WARNING:
        sc_demote(sc, sc_report(sc, D_G_NVRTC, at_line(step, r), "%s", r->text));
        break;
    }
  }
  for (u32 i = 0; i < log->spill.n; i++)
    report_spill(sc, kernel_of(sc, k, log->spill.at[i].function), &log->spill.at[i], lenient);
}
