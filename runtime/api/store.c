// store.c - stores of measured points as callers have them, and kernels with the params that one
// recommends. In: a path; records. Out: records that live as long as the store. The file is opened
// for each line that is appended, so that a store holds nothing but memory.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/lower/lower.h"
#include "runtime/api/api.h"
#include "runtime/data/file.h"
#include "runtime/tune/store.h"

enum { STORE_LIMIT = 64 << 20 };

struct schedc_store {
  Sc sc;
  const char *path;
  const Text *text;  // of the file as it was opened
  Records all;
};

// ---- opening

typedef struct StoreJob {
  schedc_store *store;
  const char *path;
  File file;
  const schedc_store_record *record;
} StoreJob;

static schedc_status read_file(Sc *sc, void *arg) {
  StoreJob *j = arg;
  Image image = {"", 0};
  j->store->path = sc_printf(sc, "%s", j->path);
  bool there = access(j->path, F_OK) == 0 || errno != ENOENT;
  if (there &&
      (!sc_file_open(sc, j->path, &j->file) || !sc_file_all(sc, &j->file, STORE_LIMIT, &image)))
    return SCHEDC_EIO;
  j->store->text = sc_text(sc, j->path, image.at, image.n);
  return SCHEDC_OK;
}

static schedc_status read_records(Sc *sc, void *arg) {
  StoreJob *j = arg;
  return sc_store_read(sc, j->store->text, &j->store->all) ? SCHEDC_OK : SCHEDC_EINPUT;
}

schedc_status schedc_store_open(schedc_store **out, schedc_context *context, const char *path) {
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  if (!context || !path) return SCHEDC_EARG;
  schedc_store *store = NEW_HANDLE(context, schedc_store);
  if (!store) return SCHEDC_ENOMEM;
  StoreJob job = {store, path, sc_no_file(), NULL};
  Text unread = sc_unread(path);
  schedc_status status = sc_enter(context, &store->sc, &unread, read_file, &job);
  sc_file_close(&job.file);
  if (!status) status = sc_enter(context, &store->sc, store->text, read_records, &job);
  if (status) schedc_store_close(store);
  else *out = store;
  return status;
}

void schedc_store_close(schedc_store *store) {
  if (!store) return;
  sc_free_handle(&store->sc, store);
}

// ---- records

size_t schedc_store_count(const schedc_store *store) { return store ? store->all.record.n : 0; }

schedc_status schedc_store_at(const schedc_store *store, size_t index,
                              schedc_store_record *record) {
  if (!SAYS_SIZE(record) || index >= schedc_store_count(store)) return SCHEDC_EARG;
  schedc_store_record out = store->all.record.at[index];
  COPY_OUT(record, &out);
  return SCHEDC_OK;
}

static bool ends_in_a_line(int fd) {
  struct stat about;
  char last = '\n';
  if (!fstat(fd, &about) && about.st_size > 0 && pread(fd, &last, 1, about.st_size - 1) != 1)
    return false;
  return last == '\n';
}

// One write, so that lines of several processes do not mix; behind a torn line it begins a new one.
static const char *write_line(const char *path, const Str *line, size_t head) {
  int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return strerror(errno);
  size_t from = ends_in_a_line(fd) ? head : 0;
  ssize_t wrote = write(fd, line->at + from, line->n - from);
  const char *why = wrote < 0 ? strerror(errno) : NULL;
  if (wrote >= 0 && (size_t)wrote < line->n - from) why = "only a part of the line was written";
  if (close(fd) && !why) why = strerror(errno);
  return why;
}

static schedc_status append(Sc *sc, void *arg) {
  StoreJob *j = arg;
  schedc_store *store = j->store;
  Str line = {.sc = sc};
  str_puts(&line, "\n");
  sc_store_print(&line, j->record);
  schedc_store_record copy = sc_store_copy(sc, j->record);
  PUSH(sc, &store->all.record, copy);
  const char *why = write_line(store->path, &line, 1);
  if (!why) return SCHEDC_OK;
  store->all.record.n--;
  sc_report(sc, D_F_STORE, (Span){0, 0}, "cannot append to the store: %s", why);
  return SCHEDC_EIO;
}

schedc_status schedc_store_append(schedc_context *context, schedc_store *store,
                                  const schedc_store_record *record) {
  schedc_store_record known = SCHEDC_STORE_RECORD_INIT;
  if (!context || !store || !record || !TAKE_OPTIONS(&known, record)) return SCHEDC_EARG;
  known.size = sizeof known;
  if (!sc_store_whole(&known)) return SCHEDC_EARG;
  Text unread = sc_unread(store->path);
  StoreJob job = {.store = store, .record = &known};
  sc_forget_diags(&store->sc);
  return sc_enter(context, &store->sc, &unread, append, &job);
}

static bool good_key(const schedc_store_record *key) {
  return key->schedule && key->unit && sc_good_params(key->problem, key->problem_count) &&
         sc_good_params(key->tuning, key->tuning_count) && sc_good_dims(key->dims, key->dim_count);
}

schedc_status schedc_store_find(const schedc_store *store, const schedc_store_record *key,
                                schedc_store_record *record) {
  schedc_store_record known = SCHEDC_STORE_RECORD_INIT;
  if (!store || !key || !TAKE_OPTIONS(&known, key) || !good_key(&known)) return SCHEDC_EARG;
  if (!SAYS_SIZE(record)) return SCHEDC_EARG;
  const schedc_store_record *found = sc_store_find(&store->all, &known);
  if (!found) return SCHEDC_EARG;
  schedc_store_record out = *found;
  COPY_OUT(record, &out);
  return SCHEDC_OK;
}

// ---- tables

static bool in_names(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

typedef struct TableName {
  char *at;
  size_t n, room;
} TableName;

static void put(TableName *name, char c) {
  if (name->n + 1 < name->room) name->at[name->n] = c;
  name->n++;
}

size_t schedc_table_name(const char *gpu, char *name, size_t room) {
  TableName to = {name, 0, room};
  bool apart = false;
  for (; gpu && *gpu; gpu++) {
    char c = *gpu >= 'A' && *gpu <= 'Z' ? (char)(*gpu - 'A' + 'a') : *gpu;
    if (in_names(c)) {
      if (apart && to.n) put(&to, '-');
      put(&to, c);
    }
    apart = !in_names(c);
  }
  for (const char *ending = ".jsonl"; *ending; ending++) put(&to, *ending);
  if (room) name[to.n < room ? to.n : room - 1] = 0;
  return to.n;
}

// ---- the schedule, and kernels

typedef struct HashJob {
  const schedc_source *source;
  Choice choice;
  char *hash;
  const char *name;
} HashJob;

static schedc_status hash_unit(Sc *sc, void *arg) {
  HashJob *j = arg;
  Given given = {.choice = &j->choice};
  const Node *unit = low_unit(sc, j->source->ast, &given);
  if (!unit) return SCHEDC_EINPUT;
  j->name = unit->name;
  sc_schedule_hash(sc, j->source->ast, unit, j->hash);
  return SCHEDC_OK;
}

schedc_status schedc_store_schedule(schedc_context *context, const schedc_source *source,
                                    const char *unit, char hash[33], const char **name) {
  if (!context || !source || !hash) return SCHEDC_EARG;
  HashJob job = {source, {.unit = unit}, hash, NULL};
  schedc_status status = sc_enter_once(context, source->text, hash_unit, &job);
  if (!status && name) *name = job.name;
  return status;
}

typedef struct TunedJob {
  schedc_context *context;
  const schedc_source *source;
  const schedc_space *space;
  Choice choice;
  schedc_store_record key;
  const schedc_store *store;
  schedc_store_record found;  // schedule NULL: none was
  schedc_kernel **out;
} TunedJob;

// The params of the problem, and those for tuning that the caller gives, as the space has them.
static void fill_key(Sc *sc, TunedJob *j) {
  schedc_space_param_info p = SCHEDC_SPACE_PARAM_INFO_INIT;
  size_t n = schedc_space_param_count(j->space);
  schedc_param *problem = NEWS(sc, schedc_param, n + 1), *tuning = NEWS(sc, schedc_param, n + 1);
  for (size_t i = 0; !schedc_space_param_at(j->space, i, &p); i++) {
    const schedc_param value = {p.name, p.value ? p.value : ""};
    if (p.kind == SCHEDC_PROBLEM) problem[j->key.problem_count++] = value;
    else if (low_caller_text(&j->choice, p.name)) tuning[j->key.tuning_count++] = value;
  }
  j->key.problem = problem;
  j->key.tuning = tuning;
}

static schedc_status instantiate_best(Sc *sc, void *arg) {
  TunedJob *j = arg;
  Choice c = j->choice;
  fill_key(sc, j);
  if (schedc_store_find(j->store, &j->key, &j->found)) j->found.schedule = NULL;
  if (j->found.schedule) {
    schedc_param *all = NEWS(sc, schedc_param, c.params + j->found.tuning_count + 1);
    if (c.params) memcpy(all, c.param, c.params * sizeof *all);
    c.param = all;
    for (size_t i = 0; i < j->found.tuning_count; i++)
      if (!low_caller_text(&j->choice, j->found.tuning[i].name))
        all[c.params++] = j->found.tuning[i];
  }
  return schedc_instantiate(j->out, j->context, j->source, c.unit, c.case_name, c.param, c.params);
}

static schedc_status instantiate_tuned(TunedJob *j) {
  char hash[33];
  schedc_space *space;
  const Choice *c = &j->choice;
  schedc_status status = schedc_store_schedule(j->context, j->source, c->unit, hash, &j->key.unit);
  if (status) return status;
  j->key.schedule = hash;
  status =
      schedc_space_new(&space, j->context, j->source, c->unit, c->case_name, c->param, c->params);
  if (status) return status;
  j->space = space;
  status = sc_guard_once(&j->context->alloc, instantiate_best, j);
  schedc_space_free(space);
  return status;
}

schedc_status schedc_instantiate_tuned(schedc_kernel **out, schedc_context *context,
                                       const schedc_source *source, const char *unit,
                                       const char *case_name, const schedc_param *params,
                                       size_t param_count, const schedc_dim *dims, size_t dim_count,
                                       const schedc_store *store, const char *gpu,
                                       schedc_store_record *used) {
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  bool good = context && source && sc_good_params(params, param_count) &&
              sc_good_dims(dims, dim_count) && (!used || SAYS_SIZE(used));
  if (!good) return SCHEDC_EARG;
  TunedJob job = {.context = context,
                  .source = source,
                  .choice = {unit, case_name, params, (u32)param_count},
                  .key = SCHEDC_STORE_RECORD_INIT,
                  .store = store,
                  .found = SCHEDC_STORE_RECORD_INIT,
                  .out = out};
  job.key.dims = dims;
  job.key.dim_count = dim_count;
  job.key.gpu = gpu;
  schedc_status status = instantiate_tuned(&job);
  if (!status && used) COPY_OUT(used, &job.found);
  return status;
}
