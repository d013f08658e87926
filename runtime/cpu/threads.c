// threads.c - what the threads of a run tell each other: touches of tensors, in a log for each;
// that a job, or all of it, is given up; that there is something to do. Calls nothing of the
// interpreter.
#include "runtime/cpu/machine.h"

#include <string.h>

// ---- the log

enum { ENTRIES = 512 };

void sc_log(Sc *sc, Machine *m) {
  m->log.each = (sizeof(Touch) + m->p->words * sizeof(u32) + 15) & ~(size_t)15;
  m->log.at = sc_new(sc, ENTRIES * m->log.each);
}

static char *entry(const Log *l, u32 n) { return l->at + n % ENTRIES * l->each; }

const Touch *sc_log_head(Machine *m) {
  u32 taken = atomic_load_explicit(&m->log.taken, memory_order_relaxed);
  if (atomic_load_explicit(&m->log.put, memory_order_acquire) == taken) return NULL;
  return (const Touch *)(const void *)entry(&m->log, taken);
}

void sc_log_next(Machine *m) { atomic_fetch_add_explicit(&m->log.taken, 1, memory_order_release); }

const u32 *sc_log_clock(const Touch *head) { return (const u32 *)(const void *)(head + 1); }

bool sc_log_full(Machine *m) {
  u32 taken = atomic_load_explicit(&m->log.taken, memory_order_acquire);
  return atomic_load_explicit(&m->log.put, memory_order_relaxed) - taken == ENTRIES;
}

void sc_log_add(Machine *m, const Touch *t, const u32 *clock) {
  char *to = entry(&m->log, atomic_load_explicit(&m->log.put, memory_order_relaxed));
  memcpy(to, t, sizeof *t);
  if (clock) memcpy(to + sizeof *t, clock, m->p->words * sizeof *clock);
  atomic_fetch_add_explicit(&m->log.put, 1, memory_order_release);
}

// ---- the end, and news

void sc_give_up(Program *p, schedc_status why) {
  int none = SCHEDC_OK;
  atomic_compare_exchange_strong(&p->stop, &none, (int)why);
}

bool sc_abandoned(const Machine *m, u64 job) {
  return atomic_load(&m->p->worst) < job || atomic_load(&m->p->stop);
}

void sc_tell(Program *p) {
  pthread_mutex_lock(&p->lock);
  pthread_cond_signal(&p->news);
  pthread_mutex_unlock(&p->lock);
}
