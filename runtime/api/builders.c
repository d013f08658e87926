// builders.c - threads that build programs of a space ahead of the thread that measures them. In:
// points. Out: kernels and machine code, not yet on a device. Each thread has a context of its own.
// As many programs are kept as there is room for; one that was given up is built again when it is
// asked for, from the cache of machine code.
#include "runtime/api/meter.h"

#include <stdio.h>
#include <time.h>

void sc_hear(void *heard, const schedc_diagnostic *d) {
  Heard *h = heard;
  if (d->severity != SCHEDC_ERROR || *h->code) return;
  snprintf(h->code, sizeof h->code, "%s", d->code);
  snprintf(h->text, sizeof h->text, "%s", d->text);
}

// ---- a thread

static Made *next_wanted(Builders *b) {
  Made *first = NULL;
  for (u32 i = 0; i < MOST_MADE; i++) {
    Made *c = &b->made[i];
    if (c->state == MADE_WANTED && (!first || c->used < first->used)) first = c;
  }
  return first;
}

// While a program is being built nobody else looks at it.
static void build(const Builders *b, Made *c) {
  schedc_context *context;
  schedc_options options = SCHEDC_OPTIONS_INIT;
  options.sink = sc_hear;
  options.sink_user = &c->heard;
  options.unverified = b->unverified;
  c->status = schedc_open(&context, &options);
  if (!c->status) c->status = schedc_space_instantiate(&c->kernel, context, b->space, &c->point);
  if (!c->status) c->status = sc_loaded_build(&c->loaded, context, c->kernel, &b->building);
  schedc_close(context);
}

static void *work(void *arg) {
  Builders *b = arg;
  pthread_mutex_lock(&b->lock);
  while (!b->stop) {
    Made *c = next_wanted(b);
    if (!c) {
      pthread_cond_wait(&b->wanted, &b->lock);
      continue;
    }
    c->state = MADE_BUILDING;
    pthread_mutex_unlock(&b->lock);
    build(b, c);
    pthread_mutex_lock(&b->lock);
    c->state = MADE_BUILT;
    pthread_cond_broadcast(&b->built);
  }
  pthread_mutex_unlock(&b->lock);
  return NULL;
}

bool sc_builders_open(Builders *b, u32 threads) {
  pthread_mutex_init(&b->lock, NULL);
  pthread_cond_init(&b->wanted, NULL);
  pthread_cond_init(&b->built, NULL);
  while (b->threads < threads && !pthread_create(&b->thread[b->threads], NULL, work, b))
    b->threads++;
  return b->threads > 0;
}

static void discard(Made *c) {
  schedc_unload(c->loaded);
  schedc_kernel_free(c->kernel);
  *c = (Made){0};
}

void sc_builders_close(Builders *b) {
  pthread_mutex_lock(&b->lock);
  b->stop = true;
  pthread_cond_broadcast(&b->wanted);
  pthread_mutex_unlock(&b->lock);
  while (b->threads) pthread_join(b->thread[--b->threads], NULL);
  for (u32 i = 0; i < MOST_MADE; i++) discard(&b->made[i]);
  pthread_cond_destroy(&b->built);
  pthread_cond_destroy(&b->wanted);
  pthread_mutex_destroy(&b->lock);
}

// ---- what is asked of them

static Made *find(Builders *b, u32 program) {
  for (u32 i = 0; i < MOST_MADE; i++)
    if (b->made[i].state && b->made[i].program == program) return &b->made[i];
  return NULL;
}

// A place that is free, or was used longest ago; NULL: all are being built.
static Made *make_room(Builders *b) {
  Made *oldest = NULL;
  for (u32 i = 0; i < MOST_MADE; i++) {
    Made *c = &b->made[i];
    if (!c->state) return c;
    if (c->state == MADE_BUILT && (!oldest || c->used < oldest->used)) oldest = c;
  }
  if (oldest) discard(oldest);
  return oldest;
}

static Made *want(Builders *b, const schedc_trial *trial) {
  Made *c = find(b, trial->program);
  if (!c && (c = make_room(b))) {
    c->state = MADE_WANTED;
    c->program = trial->program;
    c->point = trial->point;
    pthread_cond_signal(&b->wanted);
  }
  if (c) c->used = ++b->clock;
  return c;
}

void sc_builders_want(Builders *b, const schedc_trial *trial) {
  pthread_mutex_lock(&b->lock);
  want(b, trial);
  pthread_mutex_unlock(&b->lock);
}

bool sc_builders_have(Builders *b, u32 program) {
  pthread_mutex_lock(&b->lock);
  const Made *c = find(b, program);
  bool built = c && c->state == MADE_BUILT;
  pthread_mutex_unlock(&b->lock);
  return built;
}

void sc_builders_pause(Builders *b) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 100000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_mutex_lock(&b->lock);
  pthread_cond_timedwait(&b->built, &b->lock, &until);
  pthread_mutex_unlock(&b->lock);
}

Made *sc_builders_take(Builders *b, const schedc_trial *trial) {
  pthread_mutex_lock(&b->lock);
  Made *c = want(b, trial);
  while (!c || c->state != MADE_BUILT) {
    pthread_cond_wait(&b->built, &b->lock);
    c = want(b, trial);
  }
  pthread_mutex_unlock(&b->lock);
  return c;
}

void sc_builders_forget(Builders *b, bool started) {
  pthread_mutex_lock(&b->lock);
  for (u32 i = 0; i < MOST_MADE; i++) {
    Made *c = &b->made[i];
    if (c->state == MADE_WANTED || (started && c->started)) discard(c);
  }
  pthread_mutex_unlock(&b->lock);
}
