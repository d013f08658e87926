// tune.c - searches: the space of a unit's params, a tuner of its programs, and the driver that has
// them measured on a GPU, or by a function of the package. Functions that are called back hold the
// GIL; an exception of theirs ends the search, and is what its caller gets. Ctrl-C ends it as well,
// but what was found stays.
#include <string.h>

#include "core.h"

static void free_space(PyObject *handle) { schedc_space_free(PyCapsule_GetPointer(handle, SPACE)); }

// A tuner keeps the handle of its space.
static void free_tuner(PyObject *handle) {
  PyObject *space = PyCapsule_GetContext(handle);
  schedc_tuner_free(PyCapsule_GetPointer(handle, TUNER));
  Py_XDECREF(space);
}

static schedc_tuner *tuner_of(PyObject *handle) { return PyCapsule_GetPointer(handle, TUNER); }

// space(source, unit or None, case or None, params) -> space
static PyObject *space(PyObject *module, PyObject *args) {
  PyObject *source, *given;
  const char *unit, *kase;
  schedc_space *made = NULL;
  schedc_param *params = NULL;
  size_t count;
  Call call;
  if (!PyArg_ParseTuple(args, "OzzO", &source, &unit, &kase, &given)) return NULL;
  const schedc_source *from = source_of(source);
  if (!from || params_of(given, &params, &count)) return NULL;
  if (call_open(&call, core_of(module), 0)) {
    PyMem_Free(params);
    return NULL;
  }
  schedc_status status = schedc_space_new(&made, call.context, from, unit, kase, params, count);
  PyMem_Free(params);
  if (call_close(&call, core_of(module), status)) return NULL;
  return PyCapsule_New(made, SPACE, free_space);
}

// ---- points

static PyObject *point_tuple(const schedc_point *point) {
  PyObject *tuple = PyTuple_New((Py_ssize_t)point->param_count);
  for (size_t i = 0; tuple && i < point->param_count; i++)
    PyTuple_SetItem(tuple, (Py_ssize_t)i,
                    Py_BuildValue("(ss)", point->params[i].name, point->params[i].value));
  return tuple;
}

static schedc_status first_legal(const schedc_space *from, schedc_context *context,
                                 schedc_point *point) {
  schedc_cursor cursor = SCHEDC_CURSOR_INIT;
  schedc_probe probe = SCHEDC_PROBE_INIT;
  schedc_status status = schedc_space_probe(from, context, point, &probe);
  while (!status && !probe.legal) {
    status = schedc_space_next(from, context, &cursor, point);
    if (!status) status = schedc_space_probe(from, context, point, &probe);
  }
  return status;
}

// some_kernel(space) -> kernel: the default if it is legal, else the first that is. Where none is,
// it says why the default is not.
static PyObject *some_kernel(PyObject *module, PyObject *handle) {
  const schedc_space *from = PyCapsule_GetPointer(handle, SPACE);
  schedc_point point = SCHEDC_POINT_INIT;
  schedc_kernel *kernel = NULL;
  Call call;
  if (!from || call_open(&call, core_of(module), 0)) return NULL;
  schedc_status status = first_legal(from, call.context, &point);
  if (status == SCHEDC_EARG) point = (schedc_point)SCHEDC_POINT_INIT, status = SCHEDC_OK;
  if (!status) status = schedc_space_instantiate(&kernel, call.context, from, &point);
  if (call_close(&call, core_of(module), status)) {
    schedc_kernel_free(kernel);
    return NULL;
  }
  return kernel_handle(kernel);
}

// ---- the tuner

// tuner(space, kernel, tensors, scalars or None, strategy, top, turns, brief ms, final ms, store or
// None) -> tuner: tensors for the cost model, of which only the shapes are looked at; the store has
// winners
static PyObject *tuner(PyObject *module, PyObject *args) {
  PyObject *from, *kernel, *tensors, *scalars, *winners, *handle;
  int strategy;
  schedc_tuner_options o = SCHEDC_TUNER_OPTIONS_INIT;
  schedc_tuner *made = NULL;
  schedc_status status;
  Given given;
  Call call;
  if (!PyArg_ParseTuple(args, "OOOOiIIddO", &from, &kernel, &tensors, &scalars, &strategy, &o.top,
                        &o.turns, &o.brief_ms, &o.final_ms, &winners))
    return NULL;
  if (winners != Py_None && !(o.winners = PyCapsule_GetPointer(winners, STORE))) return NULL;
  const schedc_space *of = PyCapsule_GetPointer(from, SPACE);
  if (!of || given_open(&given, core_of(module), kernel, tensors, scalars, WRITES_NOTHING))
    return NULL;
  const int failed = call_open(&call, core_of(module), 0);
  o.strategy = (schedc_strategy)strategy;
  o.tensors = given.views.tensor;
  o.tensor_count = given.views.count;
  o.scalars = given.scalar;
  o.scalar_count = given.scalars;
  o.progress = core_interrupted;
  if (!failed) {
    Py_BEGIN_ALLOW_THREADS status = schedc_tuner_new(&made, call.context, of, &o);
    Py_END_ALLOW_THREADS if (call_close(&call, core_of(module), status)) {
      schedc_tuner_free(made);
      made = NULL;
    }
  }
  given_close(&given);
  if (!made) return NULL;
  handle = PyCapsule_New(made, TUNER, free_tuner);
  if (!handle) schedc_tuner_free(made);
  else if (!PyCapsule_SetContext(handle, from)) Py_INCREF(from);
  return handle;
}

static PyObject *candidate_tuple(const schedc_candidate *c) {
  return Py_BuildValue("(NNNzNIIdddd)", point_tuple(&c->point), PyBool_FromLong(c->is_default),
                       PyBool_FromLong(c->failed), c->code, PyBool_FromLong(c->verified), c->rungs,
                       c->turns, c->predicted_ms, c->ms, c->ratio, c->spread);
}

// candidates(tuner) -> [candidate], best first
static PyObject *candidates(PyObject *module, PyObject *handle) {
  (void)module;
  schedc_tuner *t = tuner_of(handle);
  schedc_candidate c = SCHEDC_CANDIDATE_INIT;
  PyObject *list = t ? PyList_New(0) : NULL;
  for (size_t i = 0; list && !schedc_tuner_at(t, i, &c); i++) {
    PyObject *one = candidate_tuple(&c);
    if (!one || PyList_Append(list, one)) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  return list;
}

// best(tuner) -> candidate, or None
static PyObject *best(PyObject *module, PyObject *handle) {
  (void)module;
  schedc_tuner *t = tuner_of(handle);
  schedc_candidate c = SCHEDC_CANDIDATE_INIT;
  if (!t) return NULL;
  if (schedc_tuner_best(t, &c)) Py_RETURN_NONE;
  return candidate_tuple(&c);
}

// searched(tuner) -> (points, legal, programs, noise, [(code, points refused)])
static PyObject *searched(PyObject *module, PyObject *handle) {
  (void)module;
  schedc_tuner *t = tuner_of(handle);
  schedc_tuner_info info = SCHEDC_TUNER_INFO_INIT;
  const char *code;
  uint64_t points;
  PyObject *refused = t ? PyList_New(0) : NULL;
  for (size_t i = 0; refused && !schedc_tuner_refusal(t, i, &code, &points); i++) {
    PyObject *one = Py_BuildValue("(sK)", code, (unsigned long long)points);
    if (!one || PyList_Append(refused, one)) Py_CLEAR(refused);
    Py_XDECREF(one);
  }
  if (!refused || schedc_tuner_get_info(t, &info)) return NULL;
  return Py_BuildValue("(KKIdN)", (unsigned long long)info.points, (unsigned long long)info.legal,
                       info.programs, info.noise, refused);
}

// ---- the search

typedef struct Search {
  PyObject *progress, *measure;  // the package's, or None
  int interrupted;
  char code[64];  // of the last outcome
} Search;

// An exception stays set, and the search's caller gets it; but Ctrl-C is kept from it.
static int stopped(Search *s) {
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
    PyErr_Clear();
    s->interrupted = 1;
  }
  return 1;
}

static int tell(Search *s, const schedc_tune_state *at) {
  if (s->progress == Py_None) return 0;
  PyObject *point = at->point ? point_tuple(at->point) : NULL;
  PyObject *said = PyObject_CallFunction(
      s->progress, "dKKKKdddiiOi", at->seconds, (unsigned long long)at->done,
      (unsigned long long)at->left, (unsigned long long)at->failed, (unsigned long long)at->known,
      at->best_ms, at->best_ratio, at->default_ms, at->is_final, at->is_verifying,
      point ? point : Py_None, at->hurried);
  const int stop = said ? PyObject_IsTrue(said) : -1;
  Py_XDECREF(point);
  Py_XDECREF(said);
  s->interrupted |= stop > 0;
  return stop < 0 ? stopped(s) : stop;
}

static int on_progress(void *user, const schedc_tune_state *at) {
  Search *s = user;
  const PyGILState_STATE held = PyGILState_Ensure();
  const int stop = PyErr_CheckSignals() ? stopped(s) : tell(s, at);
  PyGILState_Release(held);
  return stop;
}

// measure(params, verify, ms, rung, is_final, is_reference) -> (does it work, ms, code or None)
static int ask(Search *s, const schedc_trial *t, schedc_outcome *out) {
  int works;
  const char *code;
  PyObject *said = PyObject_CallFunction(s->measure, "Nidiii", point_tuple(&t->point),
                                         t->kind == SCHEDC_TRIAL_VERIFY, t->ms, (int)t->rung,
                                         t->is_final, t->is_reference);
  if (!said || !PyArg_ParseTuple(said, "pdz", &works, &out->ms, &code)) {
    Py_XDECREF(said);
    return stopped(s);
  }
  PyOS_snprintf(s->code, sizeof s->code, "%s", code ? code : "");
  out->status = works ? SCHEDC_OK : SCHEDC_EFAULT;
  out->code = code ? s->code : NULL;
  Py_DECREF(said);
  return 0;
}

static schedc_status on_trial(void *user, const schedc_trial *trial, schedc_outcome *out) {
  const PyGILState_STATE held = PyGILState_Ensure();
  const int failed = ask(user, trial, out);
  PyGILState_Release(held);
  return failed ? SCHEDC_ECANCEL : SCHEDC_OK;
}

// Leaves the GIL to others while it searches.
static int run(Search *s, Core *core, schedc_context *context, schedc_tuner *t, schedc_meter *m,
               schedc_tune_options *o, Call *call) {
  schedc_status status;
  o->progress = on_progress;
  o->progress_user = s;
  o->measure = m ? NULL : on_trial;
  o->measure_user = s;
  Py_BEGIN_ALLOW_THREADS status = schedc_tune(context, t, m, o);
  schedc_meter_free(m);
  Py_END_ALLOW_THREADS return call_report(
      call, core, s->interrupted && status == SCHEDC_ECANCEL ? SCHEDC_OK : status);
}

// search_by(tuner, measure, progress or None, seconds) -> was it interrupted?
static PyObject *search_by(PyObject *module, PyObject *args) {
  PyObject *handle;
  Search s = {0};
  schedc_tune_options o = SCHEDC_TUNE_OPTIONS_INIT;
  Call call;
  if (!PyArg_ParseTuple(args, "OOOd", &handle, &s.measure, &s.progress, &o.seconds)) return NULL;
  schedc_tuner *t = tuner_of(handle);
  if (!t || call_open(&call, core_of(module), 0)) return NULL;
  const int failed = run(&s, core_of(module), call.context, t, NULL, &o, &call);
  call_drop(&call);
  return failed ? NULL : PyBool_FromLong(s.interrupted);
}

// A search on the GPU that has `tensors`, or to which they are copied.
static int search_there(Search *s, Core *core, PyObject *handle, const Given *given, int device,
                        schedc_meter_options *m, schedc_tune_options *o) {
  schedc_gpu *gpu = NULL;
  schedc_meter *meter = NULL;
  Call call;
  schedc_tuner *t = tuner_of(handle);
  const schedc_space *from = t ? PyCapsule_GetPointer(PyCapsule_GetContext(handle), SPACE) : NULL;
  if (!from || call_open(&call, core, 0)) return -1;
  m->tensors = given->views.tensor;
  m->tensor_count = given->views.count;
  m->scalars = given->scalar;
  m->scalar_count = given->scalars;
  m->on_gpu = given->views.device_type == DL_CUDA;
  schedc_status status = schedc_gpu_new(&gpu, call.context, device);
  if (!status) status = schedc_meter_new(&meter, call.context, from, gpu, m);
  int failed = call_report(&call, core, status);
  if (!failed) failed = run(s, core, call.context, t, meter, o, &call);
  else schedc_meter_free(meter);
  schedc_gpu_free(gpu);
  call_drop(&call);
  return failed;
}

static int search_inside(Search *s, Core *core, PyObject *handle, const Given *given, int device,
                         schedc_meter_options *m, schedc_tune_options *o) {
  Device at;
  if (given->views.device_type != DL_CUDA)
    return search_there(s, core, handle, given, device, m, o);
  const int entered = device_open(&at, given->views.device) ? -1 : device_enter(&at);
  if (entered < 0) return -1;
  if (given->views.stream_is_known) m->stream = given->views.stream;
  const int failed = search_there(s, core, handle, given, given->views.device, m, o);
  device_leave(&at, entered);
  return failed;
}

// search(tuner, kernel, tensors, scalars or None, device, stream, jobs, inputs or None, inputs for
// verifying, how many are measured, seed, store or None, resume, progress or None, seconds) -> was
// it interrupted?
static PyObject *search(PyObject *module, PyObject *args) {
  PyObject *handle, *kernel, *tensors, *scalars, *store;
  unsigned long long stream, seed;
  int device;
  Search s = {0};
  Given given;
  schedc_meter_options m = SCHEDC_METER_OPTIONS_INIT;
  schedc_tune_options o = SCHEDC_TUNE_OPTIONS_INIT;
  if (!PyArg_ParseTuple(args, "OOOOiKIzsIKOpOd", &handle, &kernel, &tensors, &scalars, &device,
                        &stream, &m.jobs, &m.inputs, &m.verify, &m.measured, &seed, &store,
                        &o.resume, &s.progress, &o.seconds))
    return NULL;
  m.stream = (void *)(uintptr_t)stream;
  m.seed = seed;
  o.store = store == Py_None ? NULL : PyCapsule_GetPointer(store, STORE);
  if (PyErr_Occurred() ||
      given_open(&given, core_of(module), kernel, tensors, scalars, WRITES_OUTPUTS))
    return NULL;
  const int failed = search_inside(&s, core_of(module), handle, &given, device, &m, &o);
  given_close(&given);
  return failed ? NULL : PyBool_FromLong(s.interrupted);
}

PyMethodDef TUNE_FUNCTIONS[] = {{"space", space, METH_VARARGS, NULL},
                                {"some_kernel", some_kernel, METH_O, NULL},
                                {"tuner", tuner, METH_VARARGS, NULL},
                                {"candidates", candidates, METH_O, NULL},
                                {"best", best, METH_O, NULL},
                                {"searched", searched, METH_O, NULL},
                                {"search_by", search_by, METH_VARARGS, NULL},
                                {"search", search, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};
