// source.c - sources: text in, units and canonical text out; and kernels made of them.
#include "core.h"

static void free_source(PyObject *handle) {
  schedc_source_free(PyCapsule_GetPointer(handle, SOURCE));
}

static void free_kernel(PyObject *handle) {
  schedc_kernel_free(PyCapsule_GetPointer(handle, KERNEL));
}

const schedc_source *source_of(PyObject *handle) { return PyCapsule_GetPointer(handle, SOURCE); }

schedc_kernel *kernel_of(PyObject *handle) { return PyCapsule_GetPointer(handle, KERNEL); }

PyObject *kernel_handle(schedc_kernel *kernel) {
  PyObject *handle = PyCapsule_New(kernel, KERNEL, free_kernel);
  if (!handle) schedc_kernel_free(kernel);
  return handle;
}

PyObject *text_or_none(const char *text) {
  if (!text) Py_RETURN_NONE;
  return PyUnicode_FromString(text);
}

// parse(name, text as bytes) -> source
static PyObject *parse(PyObject *module, PyObject *args) {
  const char *name, *text;
  Py_ssize_t length;
  schedc_source *source = NULL;
  schedc_status status;
  Call call;
  if (!PyArg_ParseTuple(args, "sy#", &name, &text, &length) || call_open(&call, core_of(module), 0))
    return NULL;
  Py_BEGIN_ALLOW_THREADS status = schedc_parse(&source, call.context, name, text, (size_t)length);
  Py_END_ALLOW_THREADS if (call_close(&call, core_of(module), status)) {
    schedc_source_free(source);
    return NULL;
  }
  PyObject *handle = PyCapsule_New(source, SOURCE, free_source);
  if (!handle) schedc_source_free(source);
  return handle;
}

static PyObject *case_names(const schedc_source *source, size_t unit, size_t count) {
  PyObject *names = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; names && i < count; i++) {
    const char *name = "";
    schedc_case_name(source, unit, i, &name);
    PyTuple_SetItem(names, (Py_ssize_t)i, PyUnicode_FromString(name));
  }
  return names;
}

// units(source) -> [(name, is_sequence, names of cases)]
static PyObject *units(PyObject *module, PyObject *handle) {
  (void)module;
  const schedc_source *source = source_of(handle);
  PyObject *list = source ? PyList_New(0) : NULL;
  for (size_t i = 0; list && i < schedc_unit_count(source); i++) {
    schedc_unit_info info = SCHEDC_UNIT_INFO_INIT;
    schedc_unit(source, i, &info);
    PyObject *unit = Py_BuildValue("(sNN)", info.name, PyBool_FromLong(info.is_sequence),
                                   case_names(source, i, info.case_count));
    if (!unit || PyList_Append(list, unit)) Py_CLEAR(list);
    Py_XDECREF(unit);
  }
  return list;
}

// format(source) -> text
static PyObject *format(PyObject *module, PyObject *handle) {
  const schedc_source *source = source_of(handle);
  Written text = {0};
  Call call;
  if (!source || call_open(&call, core_of(module), 0)) return NULL;
  const schedc_status status = schedc_format(call.context, source, write_piece, &text);
  return written_str(&text, call_close(&call, core_of(module), status));
}

int params_of(PyObject *tuple, schedc_param **out, size_t *count) {
  const Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
  if (n < 0) {
    PyErr_SetString(PyExc_TypeError, "params are a tuple of pairs");
    return -1;
  }
  *count = (size_t)n;
  *out = PyMem_Calloc(*count + 1, sizeof **out);
  if (!*out) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < n; i++)
    if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "ss", &(*out)[i].name, &(*out)[i].value)) {
      PyMem_Free(*out);
      *out = NULL;
      return -1;
    }
  return 0;
}

// instantiate(source, unit or None, case or None, params, unverified) -> kernel
static PyObject *instantiate(PyObject *module, PyObject *args) {
  PyObject *handle, *given;
  const char *unit, *kase;
  int unverified;
  schedc_param *params;
  size_t count;
  schedc_kernel *kernel = NULL;
  schedc_status status;
  Call call;
  if (!PyArg_ParseTuple(args, "OzzOp", &handle, &unit, &kase, &given, &unverified)) return NULL;
  const schedc_source *source = source_of(handle);
  if (!source || params_of(given, &params, &count)) return NULL;
  if (call_open(&call, core_of(module), unverified)) {
    PyMem_Free(params);
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS status =
      schedc_instantiate(&kernel, call.context, source, unit, kase, params, count);
  Py_END_ALLOW_THREADS PyMem_Free(params);
  if (call_close(&call, core_of(module), status)) {
    schedc_kernel_free(kernel);
    return NULL;
  }
  return kernel_handle(kernel);
}

// schedule(source, unit or None) -> (hash, name of the unit)
static PyObject *schedule(PyObject *module, PyObject *args) {
  PyObject *handle;
  const char *unit, *name = "";
  char hash[33] = "";
  Call call;
  if (!PyArg_ParseTuple(args, "Oz", &handle, &unit)) return NULL;
  const schedc_source *source = source_of(handle);
  if (!source || call_open(&call, core_of(module), 0)) return NULL;
  const schedc_status status = schedc_store_schedule(call.context, source, unit, hash, &name);
  if (call_close(&call, core_of(module), status)) return NULL;
  return Py_BuildValue("(ss)", hash, name);
}

// emit(source, unit or None, case or None, params, stage) -> text
static PyObject *emit(PyObject *module, PyObject *args) {
  PyObject *handle, *given;
  const char *unit, *kase, *stage;
  schedc_param *params;
  size_t count;
  schedc_status status;
  Written text = {0};
  Call call;
  if (!PyArg_ParseTuple(args, "OzzOs", &handle, &unit, &kase, &given, &stage)) return NULL;
  const schedc_source *source = source_of(handle);
  if (!source || params_of(given, &params, &count)) return NULL;
  if (call_open(&call, core_of(module), 0)) {
    PyMem_Free(params);
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS status =
      schedc_emit(call.context, source, unit, kase, params, count, stage, write_piece, &text);
  Py_END_ALLOW_THREADS PyMem_Free(params);
  return written_str(&text, call_close(&call, core_of(module), status));
}

PyMethodDef SOURCE_FUNCTIONS[] = {{"parse", parse, METH_VARARGS, NULL},
                                  {"units", units, METH_O, NULL},
                                  {"format", format, METH_O, NULL},
                                  {"instantiate", instantiate, METH_VARARGS, NULL},
                                  {"schedule", schedule, METH_VARARGS, NULL},
                                  {"emit", emit, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
