// experiment.c - the differential experiment: random programs, what the compiler's prover says of
// deadlock, counts and races, and what an exhaustive search says (tests/experiment.md).
//
//   experiment [FIRST [COUNT [-v | -f]]]
//   experiment -w SEED
//
// Exit code 1: there was a disagreement, or too much is left open. Each disagreement is printed,
// made small; -v: so is what is left open; -f: the first disagreement is the end. -w: the program
// of a seed as a schedule, and nothing else.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compiler/passes.h"
#include "compiler/verify/verify.h"
#include "program.h"

enum { MOST = 10, MOST_OF_THREE = 6, MOST_OPEN = 8 };  // MOST_OPEN: per cent of what is right

typedef enum Said { SAID_REFUSED, SAID_PROVED, SAID_REJECTED, SAID_OPEN, SAID_CRASH } Said;

// What the compiler said of one program.
typedef struct Opinion {
  Said said;
  char code[24];    // REFUSED: the first error
  char why[160];    // INCOMPLETE
  char text[2000];  // REJECTED: the report's notes, or why it was refused
  Said races;
  char race[2000];  // … REJECTED: the report's notes
  u32 upto;         // OPEN: all dimensions up to it have been tried; 0: not all
  u32 states;
} Opinion;

typedef enum Class {  // of a program
  REFUSED,
  PROVED_RIGHT,
  REJECTED_WRONG,
  WRONG_ELSEWHERE,  // rejected with a witness that is too long to be run
  OPEN_RIGHT,       // imprecise
  OPEN_WRONG,       // missed
  UNSOUND,
  FALSE_ALARM,
  ORDER_MATTERS,
  UNKNOWN_TRUTH,  // too long to be searched
  FREE_PROVED,    // of races, where no role waits for ever
  RACE_REJECTED,
  FREE_OPEN,
  RACE_OPEN,
  RACE_PROVED_FREE,
  FREE_REJECTED,
  ORDER_CHANGES_RACES,
  CLASSES
} Class;

static const char *const class_name[] = {
    "refused by another rule",       "proved, and right",       "rejected, and wrong",
    "rejected, and wrong elsewhere", "left open, though right", "left open, and wrong",
    "PROVED, THOUGH WRONG",          "REJECTED, THOUGH RIGHT",  "ORDER MATTERS",
    "too long to be searched",       "free of races, proved",   "races, and rejected",
    "free of races, left open",      "races, left open",        "RACES, AND PROVED FREE",
    "FREE OF RACES, AND REJECTED",   "ORDER CHANGES RACES",
};

typedef struct Tally {
  u32 n[CLASSES];
  struct {
    char text[160];
    u32 n;
    u64 seed;
  } reason[200];
  u32 reasons;
  u32 most_states;
} Tally;

typedef enum Telling { TELL_BAD, TELL_OPEN, TELL_FIRST } Telling;

typedef struct Bench {
  Truth *truth;
  Opinion opinion;
  Setting failing;  // REJECTED: the witness's; else the first that was found
  Outcome found;
  Class wanted;  // while reducing
} Bench;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- the compiler's opinion

static void put(char *to, size_t room, const char *text) { snprintf(to, room, "%s", text); }

// (R6.dealt is about phases, and has a witness of its own.)
static void read_report(const Diag *d, char *to, size_t room) {
  size_t n = strlen(to);
  if (n < room) n += (size_t)snprintf(to + n, room - n, "%s\n", d->text);
  for (const Note *note = d->notes; note && n < room; note = note->next)
    n += (size_t)snprintf(to + n, room - n, "%s\n", note->text);
}

static void read_reports(Sc *sc, Opinion *o) {
  for (const Diag *d = sc->diags; d; d = d->next) {
    if (d->severity != SCHEDC_ERROR || d->id == D_R6_DEALT) continue;
    if (!o->code[0]) put(o->code, sizeof o->code, sc_diag_code(d->id));
    if (d->id == D_R10_RACE) read_report(d, o->race, sizeof o->race);
    else read_report(d, o->text, sizeof o->text);
  }
}

static void read_certificate(const Certificate *c, Opinion *o) {
  static const ProofId ids[] = {PROOF_ORDER, PROOF_COUNTS};
  o->said = SAID_PROVED;
  o->upto = UINT32_MAX;
  o->states = c->states;
  for (u32 i = 0; i < COUNT(ids); i++) {
    const Proof *p = &c->proof[ids[i]];
    if (p->verdict == VERDICT_REJECTED) o->said = SAID_REJECTED;
    else if (p->verdict != VERDICT_PROVED && o->said != SAID_REJECTED) o->said = SAID_OPEN;
    if (p->verdict != VERDICT_PROVED && p->upto < o->upto) o->upto = p->upto;
    if (p->why && !o->why[0]) put(o->why, sizeof o->why, p->why);
  }
  o->races = c->verdict == VERDICT_PROVED ? SAID_PROVED : SAID_OPEN;
  bool races = c->proof[PROOF_GLOBAL].verdict == VERDICT_REJECTED;
  races |= c->proof[PROOF_SHARED].verdict == VERDICT_REJECTED;
  if (races) o->races = SAID_REJECTED;
  for (u32 i = 0; i < PROOF_COUNT && !o->why[0]; i++)
    if (c->proof[i].why) put(o->why, sizeof o->why, c->proof[i].why);
}

static void ask_compiler(const Program *p, Opinion *o) {
  Sc sc;
  jmp_buf unwind;
  memset(o, 0, sizeof *o);
  sc_init(&sc, NULL);
  sc.unwind = &unwind;
  if (setjmp(unwind)) {
    o->said = SAID_CRASH;
  } else {
    Str text = {.sc = &sc};
    write_program(p, &text, "k");
    sc.text = sc_text(&sc, "k.sched", text.at, text.n);
    Compilation c = {.text = sc.text};
    sc_compile(&sc, &c, NULL, "verify");
    read_reports(&sc, o);
    if (c.certificate.n) read_certificate(c.certificate.at[0], o);
  }
  sc_free(&sc);
}

// ---- compared

// The dimensions, scalars and elements of a witness, from the command in its report.
static const char *set_to(const char *text, const char *name) {
  char form[24];
  snprintf(form, sizeof form, "--set %s=", name);
  const char *at = strstr(text, form);
  if (at) return at + strlen(form);
  snprintf(form, sizeof form, "--set '%s=[", name);
  at = strstr(text, form);
  return at ? at + strlen(form) : NULL;
}

static bool read_number(const char *text, const char *name, int *out) {
  const char *at = set_to(text, name);
  if (at) *out = atoi(at);
  return at != NULL;
}

// A list goes on with its last element. Tensors that no condition reads are not listed.
static bool read_list(const char *text, const char *name, int *out, int n) {
  const char *at = set_to(text, name);
  if (!at) return true;
  int listed = 0;
  for (; listed < n; listed++) {
    char *end;
    out[listed] = (int)strtol(at, &end, 10);
    if (end == at || (*end != ',' && *end != ']')) return false;
    at = end + 1;
    if (*end == ']') break;
  }
  for (int i = listed + 1; i < n; i++) out[i] = out[listed];
  return listed < n;
}

static bool read_witness(const char *text, const Program *p, Setting *s) {
  char name[16];
  bool all = true;
  *s = (Setting){.listed = true};
  for (int i = 0; i < p->dims + p->elements; i++) {
    bool dim = i < p->dims;
    int *to = dim ? &s->dim[i] : &s->element[i - p->dims];
    snprintf(name, sizeof name, dim ? "n%d" : "s%d", dim ? i : i - p->dims);
    all &= (!dim && !p->scalars) || read_number(text, name, to);
  }
  if (p->elements && !p->scalars) all &= read_list(text, "A", s->element, MAX_ELEMENTS);
  for (int i = 0; i < TABLES && p->table; i++)
    all &= read_list(text, i ? "C" : "B", s->list[i], TABLE);
  if (p->square) all &= read_list(text, "M", s->square, SIDE * SIDE);
  return all;
}

static Class of_search(Bench *b, const Program *p, Class right, Class wrong) {
  int most = p->dims + p->elements + p->table > 2 ? MOST_OF_THREE : MOST;
  b->found = truth_search(b->truth, p, most, &b->failing);
  if (b->found.fate == FATE_LONG) return UNKNOWN_TRUTH;
  return b->found.fate == FATE_FINE ? right : wrong;
}

// By the witness; where that is too long, by any other setting.
static Class of_rejected(Bench *b, const Program *p) {
  if (!read_witness(b->opinion.text, p, &b->failing)) return FALSE_ALARM;
  b->found = truth_run(b->truth, p, &b->failing);
  if (b->found.fate == FATE_LONG) b->found.fate = truth_fate(b->truth, p, &b->failing);
  if (b->found.fate == FATE_STUCK || b->found.fate == FATE_UNEVEN) return REJECTED_WRONG;
  if (b->found.fate != FATE_LONG) return FALSE_ALARM;
  Class class = of_search(b, p, FALSE_ALARM, WRONG_ELSEWHERE);
  return class == WRONG_ELSEWHERE ? class : FALSE_ALARM;
}

// What is left open may be wrong, but not where it was said to have been tried.
static bool was_tried(const Bench *b, const Program *p) {
  for (int i = 0; i < p->dims; i++)
    if (b->failing.dim[i] > (int)b->opinion.upto) return false;
  return b->opinion.upto && !p->elements && !p->table;
}

static Class of_open(Bench *b, const Program *p) {
  Class class = of_search(b, p, OPEN_RIGHT, OPEN_WRONG);
  return class == OPEN_WRONG && was_tried(b, p) ? UNSOUND : class;
}

// Some small settings in all orders: does the order matter?
static bool order_matters(Bench *b, const Program *p) {
  for (int n = 0; n < 4; n++) {
    Setting s = {.dim = {n, 3 - n, 1}, .element = {n, 2}};
    Fate all = truth_all_orders(b->truth, p, &s);
    if (all != FATE_FINE && all != FATE_STUCK && all != FATE_UNEVEN) continue;
    if (all != truth_run(b->truth, p, &s).fate) return true;
  }
  return false;
}

static bool order_changes_races(Bench *b, const Program *p) {
  for (int n = 0; n < 4 && (p->tensors || p->cells); n++) {
    Setting s = {.dim = {n, 3 - n, 1}, .element = {n, 2}, .table = (u32)n};
    Outcome one = truth_run(b->truth, p, &s), other = truth_run_back(b->truth, p, &s);
    if (one.fate != other.fate || (one.fate == FATE_FINE && one.races != other.races)) return true;
  }
  return false;
}

// Of a program whose waits end, or are not said not to. CLASSES: there is nothing to race for. A
// witness that is too long to be run says nothing.
static Class compare_races(Bench *b, const Program *p) {
  bool races = b->found.races, unknown = b->found.fate != FATE_FINE;
  Setting s;
  if ((!p->tensors && !p->cells) || b->opinion.said == SAID_REJECTED) return CLASSES;
  if (b->opinion.races == SAID_REJECTED) {
    if (!read_witness(b->opinion.race, p, &s)) return FREE_REJECTED;
    Outcome o = truth_run(b->truth, p, &s);
    if (o.fate == FATE_FINE && !o.races) b->failing = s;
    return o.fate == FATE_FINE && !o.races ? FREE_REJECTED : RACE_REJECTED;
  }
  if (unknown && !races) return CLASSES;
  if (b->opinion.races == SAID_PROVED) return races ? RACE_PROVED_FREE : FREE_PROVED;
  return races ? RACE_OPEN : FREE_OPEN;
}

static Class compare(Bench *b, const Program *p) {
  ask_compiler(p, &b->opinion);
  switch (b->opinion.said) {
    case SAID_PROVED: return of_search(b, p, PROVED_RIGHT, UNSOUND);
    case SAID_REJECTED: return of_rejected(b, p);
    case SAID_OPEN: return of_open(b, p);
    default: return REFUSED;
  }
}

// ---- told

static bool is_bad(Class class) {
  return class == UNSOUND || class == FALSE_ALARM || class == ORDER_MATTERS ||
         class == RACE_PROVED_FREE || class == FREE_REJECTED || class == ORDER_CHANGES_RACES;
}

static bool is_alike(void *user, const Program *p) {
  Bench *b = user;
  Opinion was = b->opinion;
  bool alike = compare(b, p) == b->wanted;
  if (b->wanted >= FREE_PROVED) alike = !is_bad(compare(b, p)) && compare_races(b, p) == b->wanted;
  alike &= !strncmp(was.why, b->opinion.why, strcspn(was.why, ";"));
  b->opinion = was;
  return alike;
}

static const char *const fate_name[] = {"fine", "stuck", "uneven", "excluded", "long"};

static void tell(Bench *b, Program *p, u64 seed, Class class, Telling how) {
  Str text = {.sc = p->sc};
  b->wanted = class;
  if (class != ORDER_MATTERS && class != ORDER_CHANGES_RACES && how != TELL_FIRST)
    reduce(p, is_alike, b);
  compare(b, p);
  compare_races(b, p);
  write_program(p, &text, "k");
  printf("seed %llu: %s: %s\n", (unsigned long long)seed, class_name[class], b->opinion.why);
  if (b->found.fate == FATE_STUCK || b->found.fate == FATE_UNEVEN || class >= FREE_PROVED)
    printf("%s with n0 = %d, n1 = %d, n2 = %d, s0 = %d, s1 = %d\n", fate_name[b->found.fate],
           b->failing.dim[0], b->failing.dim[1], b->failing.dim[2], b->failing.element[0],
           b->failing.element[1]);
  printf("%s%s%s\n", b->opinion.text, b->opinion.race, text.at);
  fflush(stdout);
}

static void note_reason(Tally *t, const char *text, u64 seed) {
  u32 i = 0;
  while (i < t->reasons && strcmp(t->reason[i].text, text) != 0) i++;
  if (i == COUNT(t->reason)) return;
  if (i == t->reasons) {
    put(t->reason[i].text, sizeof t->reason[i].text, text);
    t->reason[i].seed = seed;
    t->reasons++;
  }
  t->reason[i].n++;
}

static void one(Tally *t, Truth *truth, u64 seed, Telling how) {
  Sc sc;
  Bench b = {.truth = truth};
  char reason[160];
  sc_init(&sc, NULL);
  Program *p = sc_draw(&sc, seed);
  Class class = compare(&b, p);
  Class races = class == REFUSED ? CLASSES : compare_races(&b, p);
  if (class != REFUSED && order_matters(&b, p)) class = ORDER_MATTERS;
  if (races != CLASSES && order_changes_races(&b, p)) races = ORDER_CHANGES_RACES;
  t->n[class]++;
  if (races != CLASSES) t->n[races]++;
  if (b.opinion.states > t->most_states) t->most_states = b.opinion.states;
  if (!is_bad(class) && class != OPEN_RIGHT && class != OPEN_WRONG && races != CLASSES)
    class = races;
  bool why = class == OPEN_RIGHT || class == OPEN_WRONG || class == FREE_OPEN || class == RACE_OPEN;
  b.opinion.why[strcspn(b.opinion.why, ";")] = 0;  // (numbers of runs and lines are left out)
  for (char *at = b.opinion.why; class >= FREE_PROVED && *at; at++)
    if (*at >= '0' && *at <= '9') *at = '.';
  snprintf(reason, sizeof reason, "%s: %.120s", class_name[class],
           why                ? b.opinion.why
           : class == REFUSED ? b.opinion.code
                              : "");
  if (why || class == REFUSED) note_reason(t, reason, seed);
  if (is_bad(class) || (how == TELL_OPEN && why)) tell(&b, p, seed, class, how);
  sc_free(&sc);
}

static void write_one(u64 seed) {
  Sc sc;
  sc_init(&sc, NULL);
  Str text = {.sc = &sc};
  write_program(sc_draw(&sc, seed), &text, "k");
  fputs(text.at, stdout);
  sc_free(&sc);
}

static u32 disagreements(const Tally *t) {
  u32 n = 0;
  for (u32 i = 0; i < CLASSES; i++) n += is_bad((Class)i) ? t->n[i] : 0;
  return n;
}

// Is too much of what is right left open? (Of a few programs that may be by chance.)
static bool is_weak(const Tally *t) {
  u32 right = t->n[PROVED_RIGHT] + t->n[OPEN_RIGHT], most = MOST_OPEN * (right < 1000 ? 2 : 1);
  return right >= 150 && t->n[OPEN_RIGHT] * 100 > most * right;
}

int main(int argc, char **argv) {
  static Tally t;
  u64 first = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
  u64 n = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
  if (argc > 2 && !strcmp(argv[1], "-w")) return write_one(n), 0;
  Telling how = argc < 4 ? TELL_BAD : !strcmp(argv[3], "-v") ? TELL_OPEN : TELL_FIRST;
  bool hasty = how == TELL_FIRST;
  double begin = now();
  Sc sc;
  sc_init(&sc, NULL);
  Truth *truth = truth_open(&sc);
  for (u64 i = first; i < first + n && !(hasty && (disagreements(&t) || is_weak(&t))); i++)
    one(&t, truth, i, how);
  for (u32 i = 0; i < CLASSES; i++) printf("%8u %s\n", t.n[i], class_name[i]);
  for (u32 i = 0; i < t.reasons; i++)
    printf("%8u   %s (seed %llu)\n", t.reason[i].n, t.reason[i].text,
           (unsigned long long)t.reason[i].seed);
  u32 failed = disagreements(&t);
  bool weak = is_weak(&t);
  if (weak) printf("FAIL more than %d %% of what is right is not proved\n", MOST_OPEN);
  failed += weak;
  printf("%.1f s, at most %u states\n", now() - begin, t.most_states);
  printf("%llu passed, %u failed, 0 skipped\n", (unsigned long long)n - failed, failed);
  sc_free(&sc);
  return failed != 0;
}
