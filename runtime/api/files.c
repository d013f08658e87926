// files.c - files of the caller: schedules, and tensors in NumPy's format. What is wrong with a
// file is reported as of a text that has no lines to show.
#include "runtime/api/api.h"
#include "runtime/data/file.h"

enum { SOURCE_LIMIT = 64 << 20, HEAD = 1 << 16 };

// ---- schedules

typedef struct ReadJob {
  const char *path;
  File file;
  Image image;
} ReadJob;

static schedc_status read_source(Sc *sc, void *arg) {
  ReadJob *j = arg;
  bool good =
      sc_file_open(sc, j->path, &j->file) && sc_file_all(sc, &j->file, SOURCE_LIMIT, &j->image);
  return good ? SCHEDC_OK : SCHEDC_EIO;
}

schedc_status schedc_parse_file(schedc_source **out, schedc_context *context, const char *path) {
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  if (!context || !path) return SCHEDC_EARG;
  Sc sc;
  ReadJob job = {path, sc_no_file(), {0}};
  Text text = sc_unread(path);
  sc_init(&sc, &context->alloc);
  schedc_status status = sc_enter(context, &sc, &text, read_source, &job);
  sc_file_close(&job.file);
  if (!status) status = schedc_parse(out, context, path, job.image.at, job.image.n);
  sc_free(&sc);
  return status;
}

// ---- NumPy's files

struct schedc_npy {
  Sc sc;
  const char *path;
  Npy npy;
};

typedef struct OpenJob {
  schedc_npy *npy;
  const char *path;
  File file;
} OpenJob;

static schedc_status unfit(Sc *sc, const char *wrong) {
  sc_report(sc, D_F_NPY, (Span){0, 0}, "%s", wrong);
  return SCHEDC_EIO;
}

// The header, then as many bytes as it says.
static schedc_status open_npy(Sc *sc, void *arg) {
  OpenJob *j = arg;
  Npy *npy = &j->npy->npy;
  size_t had, more = 0;
  j->npy->path = sc_printf(sc, "%s", j->path);
  char *head = sc_new(sc, HEAD);
  if (!sc_file_open(sc, j->path, &j->file) || !sc_file_read(sc, &j->file, head, HEAD, &had))
    return SCHEDC_EIO;
  const char *wrong = sc_npy_head(npy, head, had);
  if (wrong) return unfit(sc, wrong);
  size_t at = (size_t)((const char *)npy->data - head), first = had - at;
  if (j->file.size >= 0 && (u64)j->file.size - at < npy->size) return unfit(sc, sc_npy_short);
  if (first > npy->size) first = npy->size;
  char *data = sc_new(sc, npy->size + 1);
  memcpy(data, head + at, first);
  if (!sc_file_read(sc, &j->file, data + first, npy->size - first, &more)) return SCHEDC_EIO;
  npy->data = data;
  return first + more == npy->size ? SCHEDC_OK : unfit(sc, sc_npy_short);
}

schedc_status schedc_npy_open(schedc_npy **out, schedc_context *context, const char *path) {
  if (!out) return SCHEDC_EARG;
  *out = NULL;
  if (!context || !path) return SCHEDC_EARG;
  schedc_npy *npy = NEW_HANDLE(context, schedc_npy);
  if (!npy) return SCHEDC_ENOMEM;
  npy->path = path;
  OpenJob job = {npy, path, sc_no_file()};
  Text text = sc_unread(path);
  schedc_status status = sc_enter(context, &npy->sc, &text, open_npy, &job);
  sc_file_close(&job.file);
  if (status) schedc_npy_close(npy);
  else *out = npy;
  return status;
}

void schedc_npy_close(schedc_npy *npy) {
  if (!npy) return;
  sc_free_handle(&npy->sc, npy);
}

schedc_status schedc_npy_get_info(const schedc_npy *npy, schedc_npy_info *info) {
  if (!npy || !SAYS_SIZE(info)) return SCHEDC_EARG;
  schedc_npy_info out = {0, npy->npy.descr, npy->npy.bytes, npy->npy.rank, {0}};
  memcpy(out.shape, npy->npy.shape, sizeof out.shape);
  COPY_OUT(info, &out);
  return SCHEDC_OK;
}

// How an element type is stored: the kind of NumPy's type of its size.
static char npy_kind(schedc_type type) {
  return type == SCHEDC_F32 || type == SCHEDC_F16 ? 'f' : type == SCHEDC_I32 ? 'i' : 'u';
}

typedef struct TakeJob {
  const Npy *npy;
  const schedc_tensor *tensor;
} TakeJob;

static const char *name_of(Sc *sc, const schedc_tensor *t) {
  return t->name ? sc_printf(sc, "'%s'", t->name) : "the tensor";
}

static schedc_status other_shape(Sc *sc, const TakeJob *j) {
  Str has = {.sc = sc}, wants = {.sc = sc};
  for (u32 d = 0; d < j->npy->rank; d++)
    str_printf(&has, "%s%lld", d ? ", " : "", (long long)j->npy->shape[d]);
  for (size_t d = 0; d < j->tensor->rank; d++)
    str_printf(&wants, "%s%lld", d ? ", " : "", (long long)j->tensor->shape[d]);
  Diag *d = sc_report(sc, D_F_NPY, (Span){0, 0}, "it holds a tensor of shape (%s), but %s is (%s)",
                      has.n ? has.at : "", name_of(sc, j->tensor), wants.n ? wants.at : "");
  if (j->npy->rank != j->tensor->rank)
    sc_help(sc, d, "save an array of %u dimension%s: reshape it, or add dimensions of length 1",
            (u32)j->tensor->rank, j->tensor->rank == 1 ? "" : "s");
  return SCHEDC_EIO;
}

static schedc_status take(Sc *sc, void *arg) {
  TakeJob *j = arg;
  const Npy *n = j->npy;
  const schedc_tensor *t = j->tensor;
  bool plain = n->descr == npy_kind(t->type) && n->bytes == schedc_type_size(t->type);
  bool wide = n->bytes == 8 && ((n->descr == 'f' && t->type == SCHEDC_F32) ||
                                (n->descr == 'i' && t->type == SCHEDC_I32));
  if (!plain && !wide)
    return unfit(sc, sc_printf(sc, "it holds %c%d, but %s is %s", n->descr, n->bytes,
                               name_of(sc, t), schedc_type_name(t->type)));
  bool same = n->rank == t->rank;
  for (size_t d = 0; same && d < t->rank; d++) same = n->shape[d] == t->shape[d];
  if (!same) return other_shape(sc, j);
  if (wide && t->type == SCHEDC_I32 && !sc_npy_fits_i32(n))
    return unfit(sc, sc_printf(sc, "it holds an integer beyond the range of i32, which %s is",
                               name_of(sc, t)));
  sc_npy_copy(n, (Elem)t->type, t->data, &(Extent){t->shape, t->strides, t->rank});
  return SCHEDC_OK;
}

schedc_status schedc_npy_read(schedc_context *context, const schedc_npy *npy,
                              const schedc_tensor *tensor) {
  if (!context || !npy || !sc_good_tensor(tensor)) return SCHEDC_EARG;
  Text text = sc_unread(npy->path);
  return sc_enter_once(context, &text, take, &(TakeJob){&npy->npy, tensor});
}

schedc_status schedc_npy_write(const schedc_tensor *tensor, schedc_writer writer, void *user) {
  char header[512];
  if (!sc_good_tensor(tensor) || !writer) return SCHEDC_EARG;
  const schedc_tensor *t = tensor;
  size_t bytes = schedc_type_size(t->type);
  size_t n = sc_npy_header(header, sizeof header, npy_kind(t->type), (u8)bytes, t->shape, t->rank);
  if (writer(user, header, n)) return SCHEDC_EIO;
  const Extent extent = {t->shape, t->strides, t->rank};
  size_t all = sc_elements(&extent), run = sc_run_length(&extent);
  for (size_t i = 0; i < all; i += run) {
    const char *from = (const char *)t->data + (size_t)sc_where(&extent, i) * bytes;
    if (writer(user, from, run * bytes)) return SCHEDC_EIO;
  }
  return SCHEDC_OK;
}
