// store.c - stores of measured points, and kernels with the params that one recommends.
#include "core.h"

static void free_store(PyObject *handle) {
  schedc_store_close(PyCapsule_GetPointer(handle, STORE));
}

// store_open(path) -> store
static PyObject *store_open(PyObject *module, PyObject *args) {
  const char *path;
  schedc_store *store = NULL;
  schedc_status status;
  Call call;
  if (!PyArg_ParseTuple(args, "s", &path) || call_open(&call, core_of(module), 0)) return NULL;
  Py_BEGIN_ALLOW_THREADS status = schedc_store_open(&store, call.context, path);
  Py_END_ALLOW_THREADS if (call_close(&call, core_of(module), status)) {
    schedc_store_close(store);
    return NULL;
  }
  PyObject *handle = PyCapsule_New(store, STORE, free_store);
  if (!handle) schedc_store_close(store);
  return handle;
}

static PyObject *params_dict(const schedc_param *params, size_t count) {
  PyObject *dict = PyDict_New();
  for (size_t i = 0; dict && i < count; i++) {
    PyObject *value = PyUnicode_FromString(params[i].value);
    if (!value || PyDict_SetItemString(dict, params[i].name, value)) Py_CLEAR(dict);
    Py_XDECREF(value);
  }
  return dict;
}

static PyObject *dims_dict(const schedc_dim *dims, size_t count) {
  PyObject *dict = PyDict_New();
  for (size_t i = 0; dict && i < count; i++) {
    PyObject *value = PyLong_FromLongLong(dims[i].value);
    if (!value || PyDict_SetItemString(dict, dims[i].name, value)) Py_CLEAR(dict);
    Py_XDECREF(value);
  }
  return dict;
}

// A record in the order of schedc_store_record; None: its schedule is NULL.
static PyObject *record_tuple(const schedc_store_record *r) {
  if (!r->schedule) Py_RETURN_NONE;
  return Py_BuildValue("(ssNNsIIsNssddddKIsIs)", r->schedule, r->unit,
                       params_dict(r->problem, r->problem_count), dims_dict(r->dims, r->dim_count),
                       r->gpu, r->driver, r->nvrtc, r->schedc,
                       params_dict(r->tuning, r->tuning_count), r->status, r->inputs, r->cold_ms,
                       r->sustained_ms, r->noise, r->reference_ms, (unsigned long long)r->launches,
                       r->rank, r->date, r->line, r->measured);
}

// store_records(store) -> [record, …]
static PyObject *store_records(PyObject *module, PyObject *handle) {
  (void)module;
  const schedc_store *store = PyCapsule_GetPointer(handle, STORE);
  PyObject *list = store ? PyList_New(0) : NULL;
  for (size_t i = 0; list && i < schedc_store_count(store); i++) {
    schedc_store_record r = SCHEDC_STORE_RECORD_INIT;
    schedc_store_at(store, i, &r);
    PyObject *record = record_tuple(&r);
    if (!record || PyList_Append(list, record)) Py_CLEAR(list);
    Py_XDECREF(record);
  }
  return list;
}

// store_count(store) -> number
static PyObject *store_count(PyObject *module, PyObject *handle) {
  (void)module;
  const schedc_store *store = PyCapsule_GetPointer(handle, STORE);
  return store ? PyLong_FromSize_t(schedc_store_count(store)) : NULL;
}

// store_find(store, schedule, unit, problem, dims, GPU or None, tuning) -> record or None
static PyObject *store_find(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *handle, *problem, *dims, *tuning, *found = NULL;
  schedc_store_record key = SCHEDC_STORE_RECORD_INIT, r = SCHEDC_STORE_RECORD_INIT;
  schedc_param *params = NULL, *tuned = NULL;
  schedc_dim *shape = NULL;
  if (!PyArg_ParseTuple(args, "OssOOzO", &handle, &key.schedule, &key.unit, &problem, &dims,
                        &key.gpu, &tuning))
    return NULL;
  const schedc_store *store = PyCapsule_GetPointer(handle, STORE);
  if (store && !params_of(problem, &params, &key.problem_count) &&
      !dims_of(dims, &shape, &key.dim_count) && !params_of(tuning, &tuned, &key.tuning_count)) {
    key.problem = params, key.dims = shape, key.tuning = tuned;
    if (schedc_store_find(store, &key, &r)) r.schedule = NULL;
    found = record_tuple(&r);
  }
  PyMem_Free(params);
  PyMem_Free(shape);
  PyMem_Free(tuned);
  return found;
}

// What a record takes of a mapping's texts and numbers, all at once; the texts stay the tuple's.
static int record_of(PyObject *tuple, schedc_store_record *r, schedc_param **problem,
                     schedc_dim **dims, schedc_param **tuning) {
  PyObject *texts, *numbers, *chosen;
  unsigned long long launches;
  if (!PyArg_ParseTuple(tuple, "ssOOsIIsOssddddKIss", &r->schedule, &r->unit, &texts, &numbers,
                        &r->gpu, &r->driver, &r->nvrtc, &r->schedc, &chosen, &r->status, &r->inputs,
                        &r->cold_ms, &r->sustained_ms, &r->noise, &r->reference_ms, &launches,
                        &r->rank, &r->date, &r->measured))
    return -1;
  if (params_of(texts, problem, &r->problem_count) || dims_of(numbers, dims, &r->dim_count) ||
      params_of(chosen, tuning, &r->tuning_count))
    return -1;
  r->problem = *problem, r->dims = *dims, r->tuning = *tuning;
  r->launches = launches;
  return 0;
}

static int append(Core *core, schedc_store *store, const schedc_store_record *r) {
  Call call;
  if (call_open(&call, core, 0)) return -1;
  return call_close(&call, core, schedc_store_append(call.context, store, r));
}

// store_append(store, record without its line)
static PyObject *store_append(PyObject *module, PyObject *args) {
  PyObject *handle, *record;
  schedc_param *problem = NULL, *tuning = NULL;
  schedc_dim *dims = NULL;
  schedc_store_record r = SCHEDC_STORE_RECORD_INIT;
  if (!PyArg_ParseTuple(args, "OO!", &handle, &PyTuple_Type, &record)) return NULL;
  schedc_store *store = PyCapsule_GetPointer(handle, STORE);
  const int failed = !store || record_of(record, &r, &problem, &dims, &tuning) ||
                     append(core_of(module), store, &r);
  PyMem_Free(problem);
  PyMem_Free(dims);
  PyMem_Free(tuning);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

// table_name(GPU) -> name of a file
static PyObject *table_name(PyObject *module, PyObject *gpu) {
  (void)module;
  char name[256];
  const char *text = PyUnicode_AsUTF8AndSize(gpu, NULL);
  if (!text) return NULL;
  schedc_table_name(text, name, sizeof name);
  return PyUnicode_FromString(name);
}

typedef struct Tuned {
  const schedc_source *source;
  const schedc_store *store;
  const char *unit, *kase, *gpu;
  schedc_param *params;
  size_t param_count;
  schedc_dim *dims;
  size_t dim_count;
} Tuned;

static PyObject *make_tuned(Core *core, const Tuned *t, int unverified) {
  schedc_kernel *kernel = NULL;
  schedc_store_record used = SCHEDC_STORE_RECORD_INIT;
  schedc_status status;
  Call call;
  if (call_open(&call, core, unverified)) return NULL;
  Py_BEGIN_ALLOW_THREADS status =
      schedc_instantiate_tuned(&kernel, call.context, t->source, t->unit, t->kase, t->params,
                               t->param_count, t->dims, t->dim_count, t->store, t->gpu, &used);
  Py_END_ALLOW_THREADS if (call_close(&call, core, status)) {
    schedc_kernel_free(kernel);
    return NULL;
  }
  PyObject *handle = kernel_handle(kernel);
  return handle ? Py_BuildValue("(NN)", handle, record_tuple(&used)) : NULL;
}

// instantiate_tuned(source, unit or None, case or None, params, dims, store, GPU or None,
// unverified) -> (kernel, record or None)
static PyObject *instantiate_tuned(PyObject *module, PyObject *args) {
  PyObject *handle, *given, *dims, *store;
  PyObject *result = NULL;
  Tuned t = {0};
  int unverified;
  if (!PyArg_ParseTuple(args, "OzzOOOzp", &handle, &t.unit, &t.kase, &given, &dims, &store, &t.gpu,
                        &unverified))
    return NULL;
  t.source = source_of(handle);
  t.store = t.source ? PyCapsule_GetPointer(store, STORE) : NULL;
  if (!t.store || params_of(given, &t.params, &t.param_count)) return NULL;
  if (!dims_of(dims, &t.dims, &t.dim_count)) result = make_tuned(core_of(module), &t, unverified);
  PyMem_Free(t.params);
  PyMem_Free(t.dims);
  return result;
}

// gpu_name(device) -> text
static PyObject *gpu_name(PyObject *module, PyObject *args) {
  int device;
  schedc_gpu *gpu = NULL;
  schedc_gpu_info info = SCHEDC_GPU_INFO_INIT;
  PyObject *name = NULL;
  Call call;
  if (!PyArg_ParseTuple(args, "i", &device) || call_open(&call, core_of(module), 0)) return NULL;
  schedc_status status = schedc_gpu_new(&gpu, call.context, device);
  if (!status) status = schedc_gpu_get_info(gpu, &info);
  if (!status) name = PyUnicode_FromString(info.name);
  schedc_gpu_free(gpu);
  if (call_close(&call, core_of(module), status)) Py_CLEAR(name);
  return name;
}

PyMethodDef STORE_FUNCTIONS[] = {{"store_open", store_open, METH_VARARGS, NULL},
                                 {"store_records", store_records, METH_O, NULL},
                                 {"store_count", store_count, METH_O, NULL},
                                 {"store_find", store_find, METH_VARARGS, NULL},
                                 {"store_append", store_append, METH_VARARGS, NULL},
                                 {"table_name", table_name, METH_O, NULL},
                                 {"instantiate_tuned", instantiate_tuned, METH_VARARGS, NULL},
                                 {"gpu_name", gpu_name, METH_VARARGS, NULL},
                                 {NULL, NULL, 0, NULL}};
