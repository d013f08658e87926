// tune.c - `schedc tune`: for each shape a search of the library's, with a line of progress. What
// was found is shown also when it is interrupted: the first Ctrl-C ends the search, and the command
// ends as if that signal had ended it.
#include "cli/ranks.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The one thing that a signal can reach.
static volatile sig_atomic_t interrupts;

static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupts = 1;
}

static void catch_interrupts(void) {
  struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
  struct sigaction now;
  if (!sigaction(SIGINT, NULL, &now) && now.sa_handler != SIG_IGN) sigaction(SIGINT, &action, NULL);
}

bool tune_interrupted(void) { return interrupts; }

static int end_by_interrupt(void) {
  fflush(stdout);
  signal(SIGINT, SIG_DFL);
  raise(SIGINT);
  return EXIT_BAD;
}

// ---- what is searched

// A kernel of the space, which says what the tensors are: the default if it is legal, else the
// first that is. Where there is none, why the default is not.
static int find_kernel(Tune *t) {
  Session *s = &t->session;
  schedc_cursor cursor = SCHEDC_CURSOR_INIT;
  schedc_point point = SCHEDC_POINT_INIT;
  schedc_probe probe = SCHEDC_PROBE_INIT;
  schedc_status status = schedc_space_probe(t->space, s->context, &point, &probe);
  while (!status && !probe.legal) {
    status = schedc_space_next(t->space, s->context, &cursor, &point);
    if (!status) status = schedc_space_probe(t->space, s->context, &point, &probe);
  }
  if (status || !probe.legal) return session_kernel(s, &t->kernel, &t->kase);
  status = schedc_space_instantiate(&t->kernel, s->context, t->space, &point);
  t->kase = t->kernel ? session_case_number(t->kernel, session_case(s)) : SIZE_MAX;
  return session_status(s, status);
}

static int open_space(Tune *t) {
  Session *s = &t->session;
  const Args *a = t->args;
  const char *unit = a->operands > 1 ? a->operand[1] : NULL;
  int code = session_open(s, a, 0);
  if (code) return code;
  schedc_status status = schedc_space_new(&t->space, s->context, s->source, unit, session_case(s),
                                          a->param.at, a->param.n);
  code = session_status(s, status);
  return code ? code : find_kernel(t);
}

// Of the ranks on a machine each has the device of its number there; or device 0, where it is the
// only one that it sees.
static int device_of(const Tune *t) {
  const Args *a = t->args;
  bool has_own = !a->device_given && !a->model && t->who->local > 0 &&
                 !schedc_gpu_available(t->session.context, t->who->local, NULL, 0);
  return has_own ? t->who->local : a->device;
}

static int open_gpu(Tune *t) {
  char why[512];
  Session *s = &t->session;
  int device = device_of(t);
  if (schedc_gpu_available(s->context, device, why, sizeof why) != SCHEDC_OK)
    return cli_fail(t->args, "%s", why);
  t->about = (schedc_gpu_info)SCHEDC_GPU_INFO_INIT;
  schedc_status status = schedc_gpu_new(&t->gpu, s->context, device);
  if (!status) status = schedc_gpu_get_info(t->gpu, &t->about);
  return session_status(s, status);
}

static int make_data(Tune *t) {
  Session *s = &t->session;
  const Args *a = t->args;
  int code = data_open(&t->data, s, t->kernel, t->kase, NULL, &a->set);
  if (!code) code = data_allocate(&t->data, s);
  if (code) return code;
  data_fill(&t->data, s, t->kase, a->inputs[0], a->seed);
  return session_status(s, data_give(&t->data, s, t->kase, t->gpu));
}

// ---- the search

typedef struct Looking {
  Progress progress;
} Looking;

static int while_looking(void *looking, double done) {
  progress_report(&((Looking *)looking)->progress, done);
  return interrupts;
}

static int make_tuner(Tune *t) {
  Looking looking;
  const Data *d = &t->data;
  schedc_tuner_options o = SCHEDC_TUNER_OPTIONS_INIT;
  o.strategy = t->args->strategy;
  if (t->args->top) o.top = t->args->top;
  o.tensors = d->tensors;
  o.tensor_count = d->tensor_count;
  o.scalars = d->scalars;
  o.scalar_count = d->scalar_count;
  o.progress = while_looking;
  o.progress_user = &looking;
  if (t->args->model) o.brief_ms = o.final_ms = 1, o.turns = 3;  // times there mean nothing
  o.winners = t->winners;
  progress_start(&looking.progress, "looking at points");
  schedc_status status = schedc_tuner_new(&t->tuner, t->session.context, t->space, &o);
  progress_end(&looking.progress);
  t->interrupted = status == SCHEDC_ECANCEL;
  return t->interrupted ? EXIT_BAD : session_status(&t->session, status);
}

static const char *const usual_kinds[] = {"normal", "outliers", "ramp"};

size_t tune_kinds(const Args *a) {
  return a->input_count ? a->input_count : sizeof usual_kinds / sizeof *usual_kinds;
}

const char *tune_kind(const Args *a, size_t i) {
  return a->input_count ? schedc_input_at(a->inputs[i]) : usual_kinds[i];
}

// Those behind the first, as schedc_meter_options wants them.
static void kinds(const Args *a, Buffer *to) {
  buffer_puts(to, "");
  for (size_t i = 1; i < tune_kinds(a); i++)
    buffer_printf(to, "%s%s", i > 1 ? "," : "", tune_kind(a, i));
}

int tune_meter(Tune *t) {
  Buffer verify = {0};
  const Data *d = &t->data;
  schedc_build_options building = build_options(t->args);
  schedc_meter_options o = SCHEDC_METER_OPTIONS_INIT;
  kinds(t->args, &verify);
  o.tensors = d->tensors;
  o.tensor_count = d->tensor_count;
  o.scalars = d->scalars;
  o.scalar_count = d->scalar_count;
  o.inputs = tune_kind(t->args, 0);
  o.verify = verify.at;
  o.measured = t->args->measured;
  o.seed = t->args->seed;
  o.jobs = launcher_jobs(t->who, t->args);
  o.build = &building;
  Session *s = &t->session;
  int code = session_status(s, schedc_meter_new(&t->meter, s->context, t->space, t->gpu, &o));
  free(verify.at);
  return code;
}

static int on_progress(void *user, const schedc_tune_state *state) {
  Tune *t = user;
  t->state = *state;
  tune_progress(t);
  return interrupts;
}

static int search(Tune *t, Lead *lead, size_t shape) {
  schedc_tune_options o = SCHEDC_TUNE_OPTIONS_INIT;
  schedc_elsewhere others;
  o.seconds = t->args->budget;
  o.store = t->store;
  o.resume = t->args->resume;
  o.progress = on_progress;
  o.progress_user = t;
  t->terminal = isatty(STDERR_FILENO);
  if (lead) lead_begin(lead, shape, t, &others), o.elsewhere = &others;
  schedc_status status = schedc_tune(t->session.context, t->tuner, t->meter, &o);
  if (lead) lead_end(lead);
  if (t->terminal && t->shown > 0) fputs("\r\033[K", stderr);
  t->interrupted = status == SCHEDC_ECANCEL || interrupts;
  return t->interrupted ? EXIT_GOOD : session_status(&t->session, status);
}

int tune_open(Tune *t) {
  int code = open_space(t);
  if (!code) code = open_gpu(t);
  return code ? code : make_data(t);
}

static int open_winners(Tune *t) {
  const char *path = t->args->winners;
  if (access(path, R_OK) != 0)
    return cli_fail(t->args, "%s cannot be read: '--winners' wants a store that is there", path);
  return session_status(&t->session, schedc_store_open(&t->winners, t->session.context, path));
}

static int tune_shape(Tune *t, Lead *lead, size_t shape) {
  Session *s = &t->session;
  int code = tune_open(t);
  if (!code && t->args->store)
    code = session_status(s, schedc_store_open(&t->store, s->context, t->args->store));
  if (!code && t->args->winners) code = open_winners(t);
  if (!code) code = make_tuner(t);
  if (!code) code = tune_meter(t);
  return code ? code : search(t, lead, shape);
}

void tune_close(Tune *t) {
  schedc_meter_free(t->meter);
  schedc_tuner_free(t->tuner);
  schedc_store_close(t->winners);
  schedc_store_close(t->store);
  schedc_gpu_free(t->gpu);
  data_close(&t->data);
  schedc_kernel_free(t->kernel);
  schedc_space_free(t->space);
  session_close(&t->session);
}

// All shapes that are tuned, and by whom.
typedef struct All {
  Launcher who;
  Lead *lead;  // NULL: there are no other ranks
  Shapes shapes;
  Json json;
  bool interrupted;
} All;

// One shape, and what is said of it. It may be found that nothing works.
static int one(All *all, size_t shape) {
  const Args *args = &all->shapes.at[shape];
  Tune t = {.args = args, .who = &all->who, .state = SCHEDC_TUNE_STATE_INIT};
  schedc_candidate best = SCHEDC_CANDIDATE_INIT;
  int code = tune_shape(&t, all->lead, shape);
  all->interrupted = t.interrupted;
  if (args->format == FORMAT_JSON) tune_json(&t, !code, &all->json);
  else if (!code) tune_text(&t);
  if (!code && schedc_tuner_best(t.tuner, &best)) code = EXIT_BAD;
  tune_close(&t);
  return code;
}

static int lead_all(All *all, const Args *args) {
  bool text = args->format == FORMAT_TEXT;
  int worst = EXIT_GOOD;
  if (all->who.size > 1 && !(all->lead = lead_open(args, &all->who))) return EXIT_ENVIRONMENT;
  if (!text) json_open(&all->json, '[');
  for (size_t i = 0; i < all->shapes.n && worst <= EXIT_BAD && !all->interrupted; i++) {
    if (text && i) putchar('\n');
    int code = one(all, i);
    if (code > worst) worst = code;
  }
  lead_close(all->lead);
  if (!text) json_close(&all->json, ']'), json_raw(&all->json, "\n");
  return worst;
}

int command_tune(const Args *args) {
  All all = {.who = launcher_find(), .json = {.write = stdout_write}};
  if (all.who.size > 1 && !args->store)
    return cli_usage(args, "%d ranks find each other by a file beside the store: give --out",
                     all.who.size);
  if (!args->measured || args->measured > tune_kinds(args))
    return cli_usage(args, "--measured wants a number from 1 to %zu, of kinds in --inputs, not %u",
                     tune_kinds(args), args->measured);
  int code = model_open(args);
  if (!code) code = shapes_read(&all.shapes, args);
  if (!code) catch_interrupts();
  if (!code) code = all.who.rank ? follow(args, &all.who, &all.shapes) : lead_all(&all, args);
  shapes_free(&all.shapes);
  return all.interrupted || (all.who.rank && interrupts) ? end_by_interrupt() : code;
}
