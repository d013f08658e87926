// fault.c - what is wrong with a launch, in words, and the end of it. The first fault is the only
// one.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

static ModelFault fault;
static bool is_set, is_new;
static const void *note_where[MODEL_NOTES], *what_where;
static char text[4 * MODEL_TEXT];

const ModelFault *schedc_model_fault(void);
const ModelFault *schedc_model_fault(void) {
  if (!is_new) return NULL;
  is_new = false;
  return &fault;
}

void md_fault_clear(void) {
  is_set = false;
  fault.notes = 0;
}

// ---- names

static char *room(void) {
  static char names[8][96];
  static u32 next;
  return names[next++ % COUNT(names)];
}

const char *md_thread_name(const Thread *t) {
  char *at = room();
  snprintf(at, sizeof(char[96]), "{t:%u:%u}", t->cta->index[0], t->number);
  return at;
}

const char *md_shared_name(const Cta *c, u32 offset) {
  char *at = room();
  snprintf(at, sizeof(char[96]), "{s:%u:%u}", c->index[0], offset);
  return at;
}

const char *md_mbar_name(const Cta *c, u32 offset, u32 generation) {
  char *at = room();
  snprintf(at, sizeof(char[96]), "{b:%u:%u:%d}", c->index[0], offset, (int)generation);
  return at;
}

const char *md_global_name(u64 address) {
  char *at = room();
  snprintf(at, sizeof(char[96]), "{g:%llx}", (unsigned long long)address);
  return at;
}

static int put_name(char *to, size_t n, const char *name) {
  unsigned cta, at;
  int generation;
  unsigned long long address;
  if (sscanf(name, "{t:%u:%u}", &cta, &at) == 2)
    return snprintf(to, n, "thread %u of CTA %u", at, cta);
  if (sscanf(name, "{s:%u:%u}", &cta, &at) == 2)
    return snprintf(to, n, "byte %u of CTA %u's shared memory", at, cta);
  if (sscanf(name, "{b:%u:%u:%d}", &cta, &at, &generation) == 3)
    return snprintf(to, n, "generation %d of the mbarrier at byte %u of CTA %u's shared memory",
                    generation, at, cta);
  if (sscanf(name, "{g:%llx}", &address) == 1) return snprintf(to, n, "0x%llx", address);
  return snprintf(to, n, "?");
}

// Names as the machine has them.
static size_t plain(char *to, size_t n, const char *from) {
  size_t at = 0;
  while (*from && at + 1 < n) {
    const char *end = *from == '{' ? strchr(from, '}') : NULL;
    if (!end) {
      to[at++] = *from++;
      continue;
    }
    int more = put_name(to + at, n - at, from);
    at += more > 0 && (size_t)more < n - at ? (size_t)more : n - at - 1;
    from = end + 1;
  }
  to[at] = 0;
  return at;
}

const char *md_fault_text(void) {
  if (!is_set) return NULL;
  size_t at = 0;
  const ModelRemark *r = &fault.what;
  at += (size_t)snprintf(text, sizeof text, "[%s] ", fault.rule);
  for (u32 i = 0; i <= fault.notes && at + 2 < sizeof text; r = &fault.note[i++]) {
    if (i) at += (size_t)snprintf(text + at, sizeof text - at, "; ");
    if (*r->file && at < sizeof text)
      at += (size_t)snprintf(text + at, sizeof text - at, "%s:%u: ", r->file, r->line);
    if (at < sizeof text) at += plain(text + at, sizeof text - at, r->text);
  }
  return text;
}

// ---- telling

void md_note(const void *where, const char *fmt, ...) {
  if (fault.notes == MODEL_NOTES) return;
  ModelRemark *r = &fault.note[fault.notes];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(r->text, sizeof r->text, fmt, ap);
  va_end(ap);
  r->file[0] = 0;
  note_where[fault.notes++] = where;
}

static void find_lines(void) {
  const void *where[MODEL_NOTES + 1];
  ModelRemark *remark[MODEL_NOTES + 1];
  u32 n = 0;
  where[n] = what_where;
  remark[n++] = &fault.what;
  for (u32 i = 0; i < fault.notes; i++) {
    where[n] = note_where[i];
    remark[n++] = &fault.note[i];
  }
  if (md.launch) md_lines(md.launch->f->module, where, n, remark);
}

void md_fault(const char *rule, const void *where, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(fault.what.text, sizeof fault.what.text, fmt, ap);
  va_end(ap);
  snprintf(fault.rule, sizeof fault.rule, "%s", rule);
  snprintf(fault.function, sizeof fault.function, "%s", md.launch ? md.launch->f->name : "");
  fault.what.file[0] = 0;
  what_where = where;
  find_lines();
  is_set = is_new = true;
  _longjmp(md.home, 1);
}

// ---- deadlock

static void put_wait(char *to, size_t n, const Thread *t) {
  const Waiting *w = &t->waits;
  const Cta *c = t->cta;
  const Named *named = &c->named[w->a % NAMED_BARRIERS];
  switch ((WaitFor)w->what) {
    case WAITS_MBAR: {
      const Mbar *b = c->mbar[w->a / 8];
      int at = snprintf(to, n, "for %s, which has %u of %u arrivals",
                        md_mbar_name(c, w->a, b->phase), b->count - b->pending, b->count);
      if (b->tx && at < (int)n)
        snprintf(to + at, n - (size_t)at, " and lacks %lld bytes", (long long)b->tx);
      return;
    }
    case WAITS_NAMED:
      snprintf(to, n, "at named barrier %u, where %u of %u threads have come", w->a, named->arrived,
               named->threads);
      return;
    case WAITS_LANES:
      snprintf(to, n, "at %s for other lanes of its warp", md_meet_name(w->a));
      return;
    case WAITS_CLUSTER: snprintf(to, n, "for all threads of its cluster"); return;
    case WAITS_REGISTERS:
      snprintf(to, n, "for %u registers a thread; its CTA has %u left", w->a, c->registers);
      return;
    case WAITS_PRODUCTS: snprintf(to, n, "for its products"); return;
    case WAITS_BULK: snprintf(to, n, "for its copies out"); return;
    case WAITS_TURN:
      snprintf(to, n, "for turn %u of the counter at %s, which is at %d", w->a,
               md_global_name((uintptr_t)w->turn), *(const int *)w->turn);
      return;
    case WAITS_NOT: snprintf(to, n, "for its turn"); return;
  }
}

static bool same_wait(const Thread *a, const Thread *b) {
  const Waiting *v = &a->waits, *w = &b->waits;
  return a->live && b->live && v->what == w->what && v->a == w->a && v->where == w->where &&
         v->turn == w->turn;
}

// Threads that wait in a row for the same are told of once. `leaving`: of those that have come to
// their end, and wait there for the others of their cluster; else of the others.
static void note_waits(const Cta *c, bool leaving) {
  for (u32 i = 0, n; i < c->threads; i += n) {
    const Thread *t = &c->thread[i];
    char what[200], others[48] = "";
    for (n = 1; i + n < c->threads && same_wait(t, t + n);) n++;
    if (!t->live || (t->waits.what == WAITS_CLUSTER) != leaving) continue;
    put_wait(what, sizeof what, t);
    if (n > 1) snprintf(others, sizeof others, " and the %u after it wait", n - 1);
    md_note(t->waits.where, "%s%s %s", md_thread_name(t), n > 1 ? others : " waits", what);
    if (!what_where) what_where = t->waits.where;
  }
}

static const Gang *gang_of(u32 id) {
  for (u32 i = 0; i < md.gangs; i++) {
    if (md.gang[i].busy && md.gang[i].id == id) return &md.gang[i];
  }
  return NULL;
}

// Clusters in the order in which they began: the first of them is held up by none that began later.
void md_deadlock(void) {
  what_where = NULL;
  for (u32 pass = 0; pass < 2; pass++) {
    for (u32 id = md.first_gang; id < md.next_gang; id++) {
      const Gang *g = gang_of(id);
      for (u32 i = 0; g && i < g->ctas; i++) note_waits(&g->cta[i], pass == 1);
    }
  }
  md_fault("deadlock", what_where, "no thread can go on");
}
