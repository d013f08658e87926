// kernel.c - what is known of a kernel, as tuples: its tensors, scalars, params, dimensions, cases;
// what the compiler worked out about it; what is proved.
#include "core.h"

// Appends a new reference; 0 if the list is to be given up.
static int append(PyObject **list, PyObject *item) {
  if (!item || PyList_Append(*list, item)) Py_CLEAR(*list);
  Py_XDECREF(item);
  return *list != NULL;
}

static PyObject *texts(const char *const *text, size_t count) {
  PyObject *tuple = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; tuple && i < count; i++)
    PyTuple_SetItem(tuple, (Py_ssize_t)i, PyUnicode_FromString(text[i]));
  return tuple;
}

// name(kernel) -> text
static PyObject *name(PyObject *module, PyObject *handle) {
  (void)module;
  const schedc_kernel *kernel = kernel_of(handle);
  return kernel ? PyUnicode_FromString(schedc_kernel_name(kernel)) : NULL;
}

// why_absent(kernel, name) -> text, or None: no guard leaves it out
static PyObject *why_absent(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *handle;
  const char *text;
  if (!PyArg_ParseTuple(args, "Os", &handle, &text)) return NULL;
  const schedc_kernel *kernel = kernel_of(handle);
  return kernel ? Py_BuildValue("z", schedc_why_absent(kernel, text)) : NULL;
}

// tensors(kernel) -> [(name, type, direction, dims, is_deterministic)]
static PyObject *tensors(PyObject *module, PyObject *handle) {
  (void)module;
  const schedc_kernel *kernel = kernel_of(handle);
  PyObject *list = kernel ? PyList_New(0) : NULL;
  for (size_t i = 0; list && i < schedc_tensor_count(kernel); i++) {
    schedc_tensor_info info = SCHEDC_TENSOR_INFO_INIT;
    schedc_tensor_at(kernel, i, &info);
    append(&list,
           Py_BuildValue("(ssiNN)", info.name, schedc_type_name(info.type), info.direction,
                         texts(info.dims, info.rank), PyBool_FromLong(info.is_deterministic)));
  }
  return list;
}

// scalars(kernel) -> [(name, type, has_default)]
static PyObject *scalars(PyObject *module, PyObject *handle) {
  (void)module;
  const schedc_kernel *kernel = kernel_of(handle);
  PyObject *list = kernel ? PyList_New(0) : NULL;
  for (size_t i = 0; list && i < schedc_scalar_count(kernel); i++) {
    schedc_scalar_info info = SCHEDC_SCALAR_INFO_INIT;
    schedc_scalar_at(kernel, i, &info);
    append(&list, Py_BuildValue("(ssN)", info.name, schedc_type_name(info.type),
                                PyBool_FromLong(info.has_default)));
  }
  return list;
}

// params(kernel) -> [(name, kind of value, value, domain, least, most)]
static PyObject *params(PyObject *module, PyObject *handle) {
  (void)module;
  const schedc_kernel *kernel = kernel_of(handle);
  PyObject *list = kernel ? PyList_New(0) : NULL;
  for (size_t i = 0; list && i < schedc_param_count(kernel); i++) {
    schedc_param_info info = SCHEDC_PARAM_INFO_INIT;
    schedc_param_at(kernel, i, &info);
    append(&list, Py_BuildValue("(sisNdd)", info.name, (int)info.type, info.value,
                                texts(info.domain, info.domain_count), info.least, info.most));
  }
  return list;
}

// dims(kernel) -> [name]
static PyObject *dims(PyObject *module, PyObject *handle) {
  (void)module;
  const schedc_kernel *kernel = kernel_of(handle);
  PyObject *list = kernel ? PyList_New(0) : NULL;
  for (size_t i = 0; list && i < schedc_dim_count(kernel); i++)
    append(&list, PyUnicode_FromString(schedc_dim_at(kernel, i)));
  return list;
}

static PyObject *bindings(const schedc_kernel *kernel, size_t kase) {
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list && i < schedc_bind_count(kernel, kase); i++) {
    schedc_bind_info info = SCHEDC_BIND_INFO_INIT;
    schedc_bind_at(kernel, kase, i, &info);
    append(&list, Py_BuildValue("(siNN)", info.name, (int)info.kind,
                                PyBool_FromLong(info.is_choice), texts(info.texts, info.count)));
  }
  return list;
}

// cases(kernel) -> [(name, [(name, kind, is_choice, values as texts)])]
static PyObject *cases(PyObject *module, PyObject *handle) {
  (void)module;
  const schedc_kernel *kernel = kernel_of(handle);
  PyObject *list = kernel ? PyList_New(0) : NULL;
  for (size_t i = 0; list && i < schedc_kernel_case_count(kernel); i++)
    append(&list, Py_BuildValue("(sN)", schedc_kernel_case_name(kernel, i), bindings(kernel, i)));
  return list;
}

int dims_of(PyObject *tuple, schedc_dim **out, size_t *count) {
  const Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
  if (n < 0) {
    PyErr_SetString(PyExc_TypeError, "dimensions are a tuple of pairs");
    return -1;
  }
  *count = (size_t)n;
  *out = PyMem_Calloc(*count + 1, sizeof **out);
  if (!*out) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    long long value;
    if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "sL", &(*out)[i].name, &value)) {
      PyMem_Free(*out);
      *out = NULL;
      return -1;
    }
    (*out)[i].value = value;
  }
  return 0;
}

// shape(kernel, index, dims) -> tuple; None: it depends on other dimensions
static PyObject *shape(PyObject *module, PyObject *args) {
  PyObject *handle, *given;
  unsigned long index;
  schedc_dim *dim;
  size_t count;
  int64_t extent[SCHEDC_MAX_RANK];
  schedc_tensor_info info = SCHEDC_TENSOR_INFO_INIT;
  Call call;
  if (!PyArg_ParseTuple(args, "OkO", &handle, &index, &given)) return NULL;
  const schedc_kernel *kernel = kernel_of(handle);
  if (!kernel || dims_of(given, &dim, &count)) return NULL;
  if (call_open(&call, core_of(module), 0)) {
    PyMem_Free(dim);
    return NULL;
  }
  schedc_status status = schedc_tensor_shape(call.context, kernel, index, dim, count, extent);
  const int unknown = status == SCHEDC_EARG || schedc_tensor_at(kernel, index, &info);
  PyMem_Free(dim);
  if (call_close(&call, core_of(module), unknown ? SCHEDC_OK : status)) return NULL;
  if (unknown) Py_RETURN_NONE;
  PyObject *tuple = PyTuple_New((Py_ssize_t)info.rank);
  for (size_t i = 0; tuple && i < info.rank; i++)
    PyTuple_SetItem(tuple, (Py_ssize_t)i, PyLong_FromLongLong(extent[i]));
  return tuple;
}

// given(sequence) -> kernel, or None
static PyObject *given(PyObject *module, PyObject *handle) {
  const schedc_kernel *sequence = kernel_of(handle);
  schedc_kernel *kernel = NULL;
  Call call;
  if (!sequence || call_open(&call, core_of(module), 0)) return NULL;
  const schedc_status status = schedc_given(&kernel, call.context, sequence);
  const int none = status == SCHEDC_EARG;
  if (call_close(&call, core_of(module), none ? SCHEDC_OK : status)) return NULL;
  if (none) Py_RETURN_NONE;
  return kernel_handle(kernel);
}

// describe(kernel, dims, as JSON?) -> text
static PyObject *describe(PyObject *module, PyObject *args) {
  PyObject *handle, *bound;
  int json;
  schedc_dim *dim;
  size_t count;
  schedc_status status;
  Written text = {0};
  Call call;
  if (!PyArg_ParseTuple(args, "OOp", &handle, &bound, &json)) return NULL;
  const schedc_kernel *kernel = kernel_of(handle);
  if (!kernel || dims_of(bound, &dim, &count)) return NULL;
  if (call_open(&call, core_of(module), 0)) {
    PyMem_Free(dim);
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS status = schedc_describe(
      call.context, kernel, dim, count, json ? SCHEDC_JSON : SCHEDC_TEXT, write_piece, &text);
  Py_END_ALLOW_THREADS PyMem_Free(dim);
  return written_str(&text, call_close(&call, core_of(module), status));
}

// verify(kernel, unverified) -> the verdict as a sentence
static PyObject *verify(PyObject *module, PyObject *args) {
  PyObject *handle;
  int unverified;
  schedc_verdict verdict = SCHEDC_REJECTED;
  schedc_status status;
  Call call;
  if (!PyArg_ParseTuple(args, "Op", &handle, &unverified)) return NULL;
  const schedc_kernel *kernel = kernel_of(handle);
  if (!kernel || call_open(&call, core_of(module), unverified)) return NULL;
  Py_BEGIN_ALLOW_THREADS status = schedc_verify(call.context, kernel, &verdict);
  Py_END_ALLOW_THREADS if (call_close(&call, core_of(module), status)) return NULL;
  return PyUnicode_FromString(schedc_verdict_text(verdict));
}

// is_deterministic(kernel) -> truth
static PyObject *is_deterministic(PyObject *module, PyObject *handle) {
  (void)module;
  const schedc_kernel *kernel = kernel_of(handle);
  return kernel ? PyBool_FromLong(schedc_is_deterministic(kernel)) : NULL;
}

PyMethodDef KERNEL_FUNCTIONS[] = {{"name", name, METH_O, NULL},
                                  {"why_absent", why_absent, METH_VARARGS, NULL},
                                  {"tensors", tensors, METH_O, NULL},
                                  {"scalars", scalars, METH_O, NULL},
                                  {"params", params, METH_O, NULL},
                                  {"dims", dims, METH_O, NULL},
                                  {"cases", cases, METH_O, NULL},
                                  {"shape", shape, METH_VARARGS, NULL},
                                  {"given", given, METH_O, NULL},
                                  {"describe", describe, METH_VARARGS, NULL},
                                  {"verify", verify, METH_VARARGS, NULL},
                                  {"is_deterministic", is_deterministic, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};
