// machine.c - the interpreter: a kernel bound to tensors, run with real concurrency between its
// roles. In: a kernel with its plans (derive). Out: the tensors written, or a fault as a
// diagnostic. CTAs that do not communicate are shared among host threads; those that do run
// interleaved on one. Every choice is drawn from the seed and the job's number, never from the
// threads' timing: a run can be repeated.
#include "runtime/cpu/machine.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { QUANTUM = 4096, RANDOM_QUANTUM = 8, REPORT_EVERY = 1 << 14, BUDGET_EVERY = 64 };

// ---- one thread's scheduler

static void shuffle(Machine *m) {
  for (u32 i = m->insts; i > 1; i--) {
    u32 j = (u32)(sc_random(&m->rng) % i), was = m->order[i - 1];
    m->order[i - 1] = m->order[j];
    m->order[j] = was;
  }
}

static Inst *inst_at(const Machine *m, u32 i) {
  u32 each = m->slot[0].insts;
  return &m->slot[m->order[i] / each].inst[m->order[i] % each];
}

static void tell_progress(Program *p) {
  double done = (double)atomic_load(&p->tiles_done) / (double)p->grid.total;
  if (p->opt->progress && p->opt->progress(p->opt->progress_user, done))
    sc_give_up(p, SCHEDC_ECANCEL);
}

static void count_steps(Machine *m, u32 ran) {
  Program *p = m->p;
  m->steps += ran;
  if (m->steps < (p->opt->step_budget ? BUDGET_EVERY : REPORT_EVERY)) return;
  u64 steps = atomic_fetch_add(&p->steps, m->steps) + m->steps;
  m->steps = 0;
  if (p->opt->step_budget && steps > p->opt->step_budget) sc_give_up(p, SCHEDC_ELIMIT);
  if (m->caller) tell_progress(p);
}

// Lets each instance run until it blocks; did any get on?
static bool sweep(Machine *m) {
  bool moved = false, random = m->p->opt->policy == SCHEDC_RANDOM;
  for (u32 i = 0; i < m->insts && !m->fault.set; i++) {
    u32 at = random ? (u32)(sc_random(&m->rng) % m->insts) : i;
    Inst *in = inst_at(m, at);
    if (!in->slot->busy || in->done) continue;
    u32 ran = sc_role_run(in, random ? 1 + (u32)(sc_random(&m->rng) % RANDOM_QUANTUM) : QUANTUM);
    moved |= ran > 0;
    count_steps(m, ran);
    if (random && !(sc_random(&m->rng) & 3)) sc_fire_random(m, in->slot);
  }
  return moved;
}

static bool take_job(Machine *m, Slot *s) {
  u64 job = atomic_fetch_add(&m->p->next, 1);
  if (job >= m->p->jobs || sc_abandoned(m, job)) return false;
  if (m->slots == 1) m->rng = m->p->opt->seed ^ job * 0xd1342543de82ef95u;
  sc_slot_start(m, s, job);
  shuffle(m);
  return true;
}

// Slots whose instances have all ended take the next job; is any busy?
static bool refill(Machine *m) {
  bool busy = false;
  for (u32 i = 0; i < m->slots; i++) {
    Slot *s = &m->slot[i];
    if (s->busy && !s->live) {
      sc_fire_all(s);
      sc_tally_up(s);
      if (!m->fault.set) sc_log_end(s);
      s->busy = false;
    }
    if (!s->busy && !m->fault.set) take_job(m, s);
    busy |= s->busy;
  }
  return busy;
}

static bool fire(Machine *m) {
  bool fired = false;
  for (u32 i = 0; i < m->slots; i++) {
    if (m->slot[i].busy) fired |= sc_fire_needed(&m->slot[i]);
  }
  return fired;
}

// All instances blocked in one sweep (random order may miss some) and nothing in flight: a
// deadlock.
static bool stuck(Machine *m) {
  if (m->p->opt->policy != SCHEDC_RANDOM) return true;
  for (u32 i = 0; i < m->insts; i++) {
    Inst *in = inst_at(m, i);
    if (in->slot->busy && !in->done && sc_role_run(in, 1)) return false;
  }
  return true;
}

static void run_machine(Machine *m) {
  m->rng = m->p->opt->seed;
  for (u32 i = 0; i < m->slots; i++) m->slot[i].busy = false;
  while (!m->fault.set && refill(m)) {
    bool moved = sweep(m);
    if (m->caller) sc_enter_logs(m->p);
    if (atomic_load(&m->p->stop) || (m->slots == 1 && sc_abandoned(m, m->slot[0].job))) break;
    if (moved || m->fault.set || fire(m)) continue;
    bool live = false;
    for (u32 i = 0; i < m->slots; i++) live |= m->slot[i].busy && m->slot[i].live;
    if (live && stuck(m) && !m->fault.set) sc_deadlock(m);
  }
  if (!m->fault.set) return;
  unsigned long long worst = atomic_load(&m->p->worst);
  while (m->fault.job < worst &&
         !atomic_compare_exchange_weak(&m->p->worst, &worst, m->fault.job)) {
  }
}

// ---- threads

typedef struct Worker {
  Machine *m;
  pthread_t thread;
  bool started;
  atomic_bool done;
} Worker;

static void *work(void *arg) {
  Worker *w = arg;
  run_machine(w->m);
  atomic_store(&w->done, true);
  sc_tell(w->m->p);
  return NULL;
}

// Waits for news, but not for long.
static void listen(Program *p, const atomic_bool *done) {
  enum { LONG = 20000000, SECOND = 1000000000 };  // ns
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += LONG;
  until.tv_sec += until.tv_nsec / SECOND;
  until.tv_nsec %= SECOND;
  pthread_mutex_lock(&p->lock);
  if (!atomic_load(done) && !atomic_load(&p->crowded))
    pthread_cond_timedwait(&p->news, &p->lock, &until);
  pthread_mutex_unlock(&p->lock);
}

static u32 worker_count(const Program *p) {
  const u32 n = sc_threads(p->opt->threads, 256);
  if (p->talks) return 1;
  return n < p->jobs ? n : p->jobs ? (u32)p->jobs : 1;
}

// The caller's thread works too; then it waits, enters what the others log, and goes on telling how
// far they are.
static void lead(Program *p, Worker *w, u32 n) {
  work(&w[0]);
  for (u32 i = 1; i < n; i++) {
    while (w[i].started && !atomic_load(&w[i].done)) {
      listen(p, &w[i].done);
      sc_enter_logs(p);
      tell_progress(p);
    }
  }
}

static void join(Worker *w, u32 n) {
  for (u32 i = 1; i < n; i++) {
    if (w[i].started) pthread_join(w[i].thread, NULL);
    w[i].started = false;
  }
}

static void part(Sc *sc, Program *p, jmp_buf *outside) {
  pthread_cond_destroy(&p->news);
  pthread_mutex_destroy(&p->lock);
  sc->unwind = outside;
}

// Nothing may unwind while others run: they would go on.
static void run_all(Sc *sc, Program *p, Worker *w, u32 n) {
  jmp_buf *outside = sc->unwind, here;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->news, NULL);
  for (u32 i = 1; i < n; i++) w[i].started = pthread_create(&w[i].thread, NULL, work, &w[i]) == 0;
  sc->unwind = &here;
  if (setjmp(here)) {
    sc_give_up(p, sc->why);
    join(w, n);
    part(sc, p, outside);
    sc_unwind(sc, sc->why);
  }
  lead(p, w, n);
  join(w, n);
  sc_enter_logs(p);
  part(sc, p, outside);
}

static schedc_status outcome(Sc *sc, const Program *p, const Worker *w, u32 n) {
  const Fault *first = NULL;
  for (u32 i = 0; i < n; i++) {
    const Fault *f = &w[i].m->fault;
    if (f->set && (!first || f->job < first->job)) first = f;
  }
  schedc_status why = (schedc_status)atomic_load(&p->stop);
  if (why == SCHEDC_ECANCEL) return why;
  if (first) {
    sc_fault_report(sc, p, first);
    return first->id == D_X_LIMIT ? SCHEDC_ELIMIT : SCHEDC_EFAULT;
  }
  if (why == SCHEDC_ELIMIT) {
    Diag *d = sc_report(sc, D_X_STEPS, p->k->span, "given up after %llu operations",
                        (unsigned long long)p->opt->step_budget);
    sc_help(sc, d, "run it on smaller tensors, or with a larger step_budget");
  }
  return why;
}

// ---- tensors

// Fills what the kernel only writes with poison: a caller's padding stays as it is.
// False: progress asked to stop.
static bool poison_outputs(const Binding *b, const schedc_run_options *opt) {
  for (u32 i = 0; i < b->k->buf.n; i++) {
    const Buf *buf = &b->k->buf.at[i];
    if (sc_is_output(buf) && !(buf->dir & SCHEDC_IN) && b->buf[i].at) {
      const Extent extent = {b->buf[i].shape, b->buf[i].stride, buf->rank};
      if (!sc_fill_all_nan((Elem)buf->elem, b->buf[i].at, &extent, opt->progress,
                           opt->progress_user))
        return false;
    }
  }
  return true;
}

// ---- entry

schedc_status sc_interpret(Sc *sc, const Kernel *k, const Binding *b,
                           const schedc_run_options *opt) {
  if (!poison_outputs(b, opt)) return SCHEDC_ECANCEL;
  Program *p = sc_program(sc, k, b, opt);
  if (!p->grid.total || !p->insts) return SCHEDC_OK;
  u32 n = worker_count(p);
  Worker *w = NEWS(sc, Worker, n);
  p->machine = NEWS(sc, Machine *, n);
  p->machines = n;
  p->logs = n > 1;
  for (u32 i = 0; i < n; i++) {
    p->machine[i] = w[i].m = sc_machine(sc, p);
    if (p->logs) sc_log(sc, w[i].m);
  }
  w[0].m->caller = true;
  run_all(sc, p, w, n);
  return outcome(sc, p, w, n);
}
