// stream.c - streams, events and graphs. What is enqueued is run when somebody waits for it, as
// late as the driver may: on one stream in order; what is on the default stream after all that came
// before it on streams that are not made to be independent of it, and those after it. Under policy
// random the seed picks among the streams that can go on.
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum WorkKind { WORK_LAUNCH, WORK_SET, WORK_RECORD } WorkKind;
typedef struct Work {
  WorkKind kind;
  Stream *stream;
  LaunchArgs launch;  // its parameters are behind it, in `block`
  void *block;
  u64 at;  // WORK_SET
  size_t bytes;
  unsigned char value;
  struct EventMark *mark;
} Work;

typedef LIST(Work) Works;

typedef struct EventMark {
  bool recorded, pending;
  double when;
} EventMark;

typedef struct Graph {
  Works work;
  u32 refs;  // the graph, and what was made of it to be launched
} Graph;

struct Stream {
  u64 id;
  bool independent;  // of the default stream
  Graph *capture;
  bool forbids;  // … in the mode that forbids other calls
};

enum { CAPTURE_GLOBAL = 0 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Works queue;
static Stream legacy = {.id = 1};
static u64 next_id = 2;
static u32 capturing;     // streams, in the mode that forbids other calls
static double worked_ms;  // what events tell: the processor time that all work took

bool dr_capturing(void) { return capturing; }

void dr_enter(void) { pthread_mutex_lock(&lock); }

int dr_leave(int error) {
  pthread_mutex_unlock(&lock);
  return error;
}

static Stream *stream_of(Stream *s) { return s && s != (Stream *)1 ? s : &legacy; }

// ---- running

// The processor time of this thread. What else runs on the machine does not count.
static double thread_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int run_work(Work *w) {
  double start = thread_ms();
  int e = 0;
  if (w->kind == WORK_LAUNCH) e = md_launch(&w->launch);
  if (w->kind == WORK_SET) memset((void *)(uintptr_t)w->at, w->value, w->bytes);
  worked_ms += thread_ms() - start;
  if (w->kind == WORK_RECORD) {
    w->mark->when = worked_ms;
    w->mark->pending = false;
  }
  free(w->block);
  return e;
}

// Does `later` wait for `earlier`, which was enqueued before it?
static bool ordered(const Stream *earlier, const Stream *later) {
  if (earlier == later) return true;
  return (later == &legacy && !earlier->independent) || (earlier == &legacy && !later->independent);
}

static bool may_run(u32 i) {
  for (u32 j = 0; j < i; j++) {
    if (ordered(queue.at[j].stream, queue.at[i].stream)) return false;
  }
  return true;
}

static int run_one(u32 i) {
  Work w = queue.at[i];
  memmove(&queue.at[i], &queue.at[i + 1], (queue.n - i - 1) * sizeof w);
  queue.n--;
  int e = run_work(&w);
  if (e) {
    dr_fail();
    dr_forget_work();
  }
  return e;
}

// Of what can go on, the oldest, or under policy random any.
static u32 next_work(void) {
  Options o;
  u32 n = 0, pick = 0;
  md_options(&o);
  if (o.policy != POLICY_RANDOM) return 0;
  for (u32 i = 0; i < queue.n; i++) n += may_run(i);
  for (pick = (u32)(md_random() % (n ? n : 1)), n = 0; n < queue.n; n++) {
    if (may_run(n) && !pick--) return n;
  }
  return 0;
}

void dr_forget_work(void) {
  while (queue.n) free(queue.at[--queue.n].block);
}

static bool awaited(const Stream *s) {
  for (u32 i = 0; i < queue.n; i++) {
    if (!s || ordered(queue.at[i].stream, s)) return true;
  }
  return false;
}

static int drain(const Stream *s) {
  int e = dr_failed() ? LAUNCH_FAILED : 0;
  while (!e && awaited(s)) e = run_one(next_work());
  return e;
}

int dr_drain(Stream *s) { return drain(stream_of(s)); }
int dr_drain_all(void) { return drain(NULL); }

// No launch runs here that could end where there is no memory.
static int add_work(Works *to, const Work *w) {
  if (to->n == to->cap) {
    u32 cap = to->cap ? 2 * to->cap : 8;
    Work *more = realloc(to->at, cap * sizeof *more);
    if (!more) return OUT_OF_MEMORY;
    to->at = more;
    to->cap = cap;
  }
  to->at[to->n++] = *w;
  return 0;
}

static int enqueue(Work w) {
  int e = add_work(w.stream->capture ? &w.stream->capture->work : &queue, &w);
  if (e) free(w.block);
  return e;
}

// ---- launches, memory

static size_t aligned(size_t n) { return (n + 63) / 64 * 64; }

// Parameters are copied, each at a multiple of 64, as tensor maps want it.
static void *copy_params(const MdKernel *k, void *const *from, void ***param) {
  size_t n = 0, room = k->params * sizeof(void *);
  for (u32 i = 0; i < k->params; i++) n += aligned(k->bytes[i]);
  char *block = malloc(n + 64 + room), *at = block;
  if (!block) return NULL;
  *param = (void **)(void *)block;
  at = (char *)aligned((uintptr_t)block + room);
  for (u32 i = 0; i < k->params; at += aligned(k->bytes[i++])) {
    memcpy(at, from[i], k->bytes[i]);
    (*param)[i] = at;
  }
  return block;
}

static int check_params(const Function *f, void **params, void **extra) {
  if (extra)
    return dr_refuse("'%s' is given its parameters in `extra`: the model takes kernelParams",
                     f->name);
  if (!params)
    return dr_refuse("'%s' has %u parameters, and is given none", f->name, f->kernel->params);
  for (u32 i = 0; i < f->kernel->params; i++) {
    if (!params[i])
      return dr_refuse("parameter %u of the %u of '%s' is NULL", i, f->kernel->params, f->name);
  }
  return 0;
}

static int launch(LaunchArgs l, Stream *stream, void **params, void **extra) {
  DR_ENTER;
  Work w = {.kind = WORK_LAUNCH, .stream = stream_of(stream), .launch = l};
  if (!l.f) return dr_leave(dr_refuse("a launch of no function"));
  int e = md_check_launch(&w.launch);
  if (!e) e = check_params(l.f, params, extra);
  if (e) return dr_leave(e);
  w.block = copy_params(l.f->kernel, params, &w.launch.param);
  return dr_leave(w.block ? enqueue(w) : OUT_OF_MEMORY);
}

int cuLaunchKernel(const Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned shared, Stream *stream, void **params,
                   void **extra) {
  return launch((LaunchArgs){.f = f, .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared = shared},
                stream, params, extra);
}

// CUlaunchConfig and CUlaunchAttribute, of cuda.h.
typedef struct LaunchAttribute {
  int id, pad, value[16];
} LaunchAttribute;
typedef struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  Stream *stream;
  const LaunchAttribute *attribute;
  unsigned attributes;
} LaunchConfig;
enum { PROGRAMMATIC_STREAM_SERIALIZATION = 6 };

int cuLaunchKernelEx(const LaunchConfig *c, const Function *f, void **params, void **extra) {
  LaunchArgs l = {.f = f, .shared = c->shared};
  memcpy(l.grid, c->grid, sizeof l.grid);
  memcpy(l.block, c->block, sizeof l.block);
  for (u32 i = 0; i < c->attributes; i++) {
    if (c->attribute[i].id != PROGRAMMATIC_STREAM_SERIALIZATION)
      return dr_refuse("the model knows no attribute %d of a launch, only %d", c->attribute[i].id,
                       PROGRAMMATIC_STREAM_SERIALIZATION);
    l.overlaps = c->attribute[i].value[0] != 0;
  }
  return launch(l, c->stream, params, extra);
}

static int set(u64 to, unsigned char value, size_t n, Stream *stream) {
  if (n && !md_in_memory(to, n))
    return dr_refuse("cuMemsetD8 of %zu bytes at 0x%llx, which are not all allocated", n,
                     (unsigned long long)to);
  return enqueue((Work){.kind = WORK_SET, .stream = stream, .at = to, .bytes = n, .value = value});
}

int cuMemsetD8_v2(u64 to, unsigned char value, size_t n) {
  DR_ENTER_UNCAPTURED;
  return dr_leave(set(to, value, n, &legacy));
}

int cuMemsetD8Async(u64 to, unsigned char value, size_t n, Stream *stream) {
  DR_ENTER;
  return dr_leave(set(to, value, n, stream_of(stream)));
}

// ---- streams

int cuStreamCreate(Stream **stream, unsigned flags) {
  DR_ENTER;
  Stream *s = calloc(1, sizeof *s);
  if (!s) return dr_leave(OUT_OF_MEMORY);
  *s = (Stream){.id = next_id++, .independent = flags & 1};
  *stream = s;
  return dr_leave(0);
}

int cuStreamDestroy_v2(Stream *s) {
  DR_ENTER;
  int e = dr_drain(s);
  free(s);
  return dr_leave(e);
}

int cuStreamSynchronize(Stream *s) {
  DR_ENTER_UNCAPTURED;
  return dr_leave(dr_drain(s));
}

int cuCtxSynchronize(void) {
  DR_ENTER_UNCAPTURED;
  return dr_leave(dr_drain_all());
}

int cuStreamGetId(Stream *s, u64 *id) { return *id = stream_of(s)->id, 0; }
int cuStreamIsCapturing(Stream *s, int *status) {
  return *status = stream_of(s)->capture != NULL, 0;
}

// ---- events

int cuEventCreate(EventMark **event, unsigned flags) {
  (void)flags;
  return (*event = calloc(1, sizeof **event)) ? 0 : OUT_OF_MEMORY;
}

int cuEventDestroy_v2(EventMark *event) {
  DR_ENTER;
  int e = event->pending ? dr_drain_all() : 0;
  free(event);
  return dr_leave(e);
}

int cuEventRecord(EventMark *event, Stream *s) {
  DR_ENTER;
  event->recorded = event->pending = true;
  return dr_leave(enqueue((Work){.kind = WORK_RECORD, .stream = stream_of(s), .mark = event}));
}

int cuEventSynchronize(EventMark *event) {
  DR_ENTER_UNCAPTURED;
  int e = 0;
  while (!e && event->pending && queue.n) e = run_one(next_work());
  return dr_leave(e);
}

// Whoever asks again and again sees the work get on.
int cuEventQuery(EventMark *event) {
  DR_ENTER_UNCAPTURED;
  int e = event->pending && queue.n ? run_one(next_work()) : 0;
  return dr_leave(e ? e : event->pending ? NOT_READY : 0);
}

int cuEventElapsedTime(float *ms, EventMark *from, EventMark *to) {
  if (!from->recorded || !to->recorded)
    return dr_refuse("an event that was never recorded has no time");
  if (from->pending || to->pending) return NOT_READY;
  return *ms = (float)(to->when - from->when), 0;
}

// ---- graphs: what was captured, in its order

int cuStreamBeginCapture_v2(Stream *s, int mode) {
  DR_ENTER;
  if (stream_of(s) == &legacy)
    return dr_leave(
        dr_refuse("the default stream cannot be captured: make one with cuStreamCreate"));
  if (s->capture)
    return dr_leave(
        dr_refuse("the stream is being captured already: cuStreamEndCapture comes first"));
  if (!(s->capture = calloc(1, sizeof(Graph)))) return dr_leave(OUT_OF_MEMORY);
  s->capture->refs = 1;
  s->forbids = mode == CAPTURE_GLOBAL;
  capturing += s->forbids;
  return dr_leave(0);
}

int cuStreamEndCapture(Stream *s, Graph **graph) {
  DR_ENTER;
  s = stream_of(s);
  if (!s->capture)
    return dr_leave(
        dr_refuse("the stream is not being captured: cuStreamBeginCapture comes first"));
  *graph = s->capture;
  s->capture = NULL;
  capturing -= s->forbids;
  return dr_leave(0);
}

int cuGraphInstantiateWithFlags(Graph **exec, Graph *graph, u64 flags) {
  DR_ENTER;
  if (flags) return dr_leave(dr_refuse("the model instantiates graphs without flags"));
  graph->refs++;
  *exec = graph;
  return dr_leave(0);
}

int cuGraphLaunch(Graph *exec, Stream *stream) {
  DR_ENTER;
  for (u32 i = 0; i < exec->work.n; i++) {
    Work w = exec->work.at[i];
    w.stream = stream_of(stream);
    if (w.block && !(w.block = copy_params(w.launch.f->kernel, exec->work.at[i].launch.param,
                                           &w.launch.param)))
      return dr_leave(OUT_OF_MEMORY);
    int e = enqueue(w);
    if (e) return dr_leave(e);
  }
  return dr_leave(0);
}

int cuGraphDestroy(Graph *graph) {
  dr_enter();
  if (!--graph->refs) {
    for (u32 i = 0; i < graph->work.n; i++) free(graph->work.at[i].block);
    free(graph->work.at);
    free(graph);
  }
  return dr_leave(0);
}

int cuGraphExecDestroy(Graph *exec) { return cuGraphDestroy(exec); }
