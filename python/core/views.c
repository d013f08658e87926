// views.c - arrays of other libraries as tensors of schedc.h. In: PyTorch, CuPy, JAX or NumPy
// arrays, or addresses with shapes. Out: Views, all on one device; nothing is copied.
//
// The fast way is DLPack's table of C functions, which a type offers as an attribute: a tensor then
// costs some ten nanoseconds. Everything else goes through the package's function `view`.
#include <string.h>

#include "core.h"

static int type_of_dl(const DlTensor *t, schedc_type *type) {
  static const struct {
    uint8_t code, bits;
    schedc_type type;
  } KNOWN[] = {{DL_FLOAT, 32, SCHEDC_F32}, {DL_FLOAT, 16, SCHEDC_F16}, {DL_BFLOAT, 16, SCHEDC_BF16},
               {DL_E4M3, 8, SCHEDC_E4M3},  {DL_E5M2, 8, SCHEDC_E5M2},  {DL_INT, 32, SCHEDC_I32}};
  for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
    if (t->lanes == 1 && KNOWN[i].code == t->code && KNOWN[i].bits == t->bits) {
      *type = KNOWN[i].type;
      return 0;
    }
  PyErr_Format(PyExc_TypeError,
               "schedc has no element type for DLPack's code %d with %d bits: its types are f32, "
               "f16, bf16, e4m3, e5m2 and i32",
               t->code, t->bits);
  return -1;
}

static int fits(long long rank) {
  if (rank >= 0 && rank <= SCHEDC_MAX_RANK) return 1;
  PyErr_Format(PyExc_TypeError, "a tensor of rank %lld: schedc's have %d at most", rank,
               SCHEDC_MAX_RANK);
  return 0;
}

static void rows_one_after_the_other(schedc_tensor *t) {
  int64_t step = 1;
  for (size_t i = t->rank; i-- > 0;) {
    t->strides[i] = step;
    step *= t->shape[i] > 1 ? t->shape[i] : 1;
  }
}

static int from_dl(schedc_tensor *t, const DlTensor *from) {
  if (!fits(from->rank) || type_of_dl(from, &t->type)) return -1;
  t->data = (char *)from->data + from->byte_offset;
  t->rank = (size_t)from->rank;
  memcpy(t->shape, from->shape, t->rank * sizeof *t->shape);
  if (from->strides) memcpy(t->strides, from->strides, t->rank * sizeof *t->strides);
  else rows_one_after_the_other(t);
  return 0;
}

// All tensors of a call lie on one device.
static int place(Views *views, int type, int device) {
  const int kind = type == DL_CUDA_HOST ? DL_CPU : type == DL_CUDA_MANAGED ? DL_CUDA : type;
  const int number = kind == DL_CPU ? 0 : device;
  if (kind != DL_CPU && kind != DL_CUDA) {
    PyErr_Format(PyExc_TypeError, "a tensor on a device of DLPack's kind %d: neither CPU nor CUDA",
                 type);
    return -1;
  }
  if (views->device_type && (views->device_type != kind || views->device != number)) {
    PyErr_SetString(PyExc_ValueError, "the tensors are on different devices");
    return -1;
  }
  views->device_type = kind;
  views->device = number;
  return 0;
}

// ---- by the table of C functions

// The table that the object's type offers, or NULL. Asked once for each run of equal types.
static const DlExchange *exchange_of(Core *core, PyObject *object) {
  PyObject *type = (PyObject *)Py_TYPE(object);
  if (type == core->last_type) return core->last_exchange;
  const DlExchange *found = NULL;
  PyObject *capsule = PyObject_GetAttr(type, core->exchange_name);
  if (capsule) found = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  PyErr_Clear();
  Py_XDECREF(capsule);  // the table lives as long as its library
  while (found && found->major > 1) found = found->older;
  if (found && (found->major != 1 || !found->tensor_of_object || !found->current_stream))
    found = NULL;
  Py_XDECREF(core->last_type);
  Py_INCREF(type);
  core->last_type = type;
  core->last_exchange = found;
  return found;
}

static int from_exchange(Views *views, size_t i, const DlExchange *table, PyObject *object) {
  DlTensor t;
  memset(&t, 0, sizeof t);
  if (table->tensor_of_object(object, &t) || from_dl(&views->tensor[i], &t) ||
      place(views, t.device_type, t.device))
    return -1;
  if (views->stream_is_known || views->device_type != DL_CUDA) return 0;
  views->stream_is_known = 1;
  return table->current_stream(DL_CUDA, views->device, &views->stream);
}

// ---- by the package: (address, type, shape, strides or None, device kind, device, readonly, keep)

static int numbers(PyObject *tuple, int64_t *out, size_t count) {
  if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != (Py_ssize_t)count) {
    PyErr_SetString(PyExc_TypeError, "shape and strides are tuples of the same length");
    return -1;
  }
  for (size_t i = 0; i < count; i++) {
    out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, (Py_ssize_t)i));
    if (out[i] == -1 && PyErr_Occurred()) return -1;
  }
  return 0;
}

static int from_package(Views *views, size_t i, Core *core, PyObject *object, int is_written) {
  schedc_tensor *t = &views->tensor[i];
  unsigned long long address;
  int type, kind, device, readonly;
  PyObject *shape, *strides, *keep;
  PyObject *said = views->keep[i] = PyObject_CallFunctionObjArgs(core->view, object, NULL);
  if (!said) return -1;
  if (!PyArg_ParseTuple(said, "KiOOiipO", &address, &type, &shape, &strides, &kind, &device,
                        &readonly, &keep))
    return -1;
  if (readonly && is_written) {
    PyErr_SetString(PyExc_ValueError, "an array that may not be written");
    return -1;
  }
  const Py_ssize_t rank = PyTuple_Check(shape) ? PyTuple_Size(shape) : -1;
  if (!fits(rank)) return -1;
  t->data = (void *)(uintptr_t)address;
  t->type = (schedc_type)type;
  t->rank = (size_t)rank;
  if (numbers(shape, t->shape, t->rank)) return -1;
  if (strides == Py_None) rows_one_after_the_other(t);
  else if (numbers(strides, t->strides, t->rank)) return -1;
  return place(views, kind, device);
}

// What a capsule of `__dlpack__` holds, as from_package takes it.
PyObject *core_decode(PyObject *module, PyObject *capsule) {
  (void)module;
  const int versioned = PyCapsule_IsValid(capsule, "dltensor_versioned");
  void *held = PyCapsule_GetPointer(capsule, versioned ? "dltensor_versioned" : "dltensor");
  if (!held) return NULL;
  const DlVersioned *v = held;
  const DlTensor *from = versioned ? &v->tensor : &((const DlManaged *)held)->tensor;
  const int readonly = versioned && v->flags & DL_READ_ONLY;
  schedc_tensor t;
  if (from_dl(&t, from)) return NULL;
  PyObject *shape = PyTuple_New((Py_ssize_t)t.rank), *strides = PyTuple_New((Py_ssize_t)t.rank);
  for (size_t i = 0; shape && strides && i < t.rank; i++) {
    PyTuple_SetItem(shape, (Py_ssize_t)i, PyLong_FromLongLong(t.shape[i]));
    PyTuple_SetItem(strides, (Py_ssize_t)i, PyLong_FromLongLong(t.strides[i]));
  }
  return Py_BuildValue("(KiNNiiOO)", (unsigned long long)(uintptr_t)t.data, (int)t.type, shape,
                       strides, from->device_type, from->device, readonly ? Py_True : Py_False,
                       capsule);
}

// ---- all of a call

// Says of which tensor the error is.
static void name_error(const char *name) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (value && (PyErr_GivenExceptionMatches(type, PyExc_TypeError) ||
                PyErr_GivenExceptionMatches(type, PyExc_ValueError))) {
    PyErr_Format(type, "%s: %S", name, value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
  } else {
    PyErr_Restore(type, value, trace);
  }
}

int views_begin(Views *views, size_t room) {
  memset(views, 0, sizeof *views);
  views->tensor = PyMem_Malloc((room + 1) * sizeof *views->tensor);
  views->keep = PyMem_Calloc(room + 1, sizeof *views->keep);
  if (views->tensor && views->keep) return 0;
  views_close(views);
  PyErr_NoMemory();
  return -1;
}

int views_add(Views *views, Core *core, PyObject *array, const char *name, int is_written) {
  const size_t i = views->count;
  const DlExchange *table = exchange_of(core, array);
  views->tensor[i].name = name;
  if (table ? from_exchange(views, i, table, array)
            : from_package(views, i, core, array, is_written)) {
    if (name) name_error(name);
    return -1;
  }
  views->count++;
  return 0;
}

int views_open(Views *views, Core *core, const schedc_kernel *kernel, PyObject *tensors,
               long written) {
  const size_t count = schedc_tensor_count(kernel);
  memset(views, 0, sizeof *views);
  if (!PyTuple_Check(tensors) || (size_t)PyTuple_Size(tensors) != count) {
    PyErr_Format(PyExc_TypeError, "%s takes a tuple of %zu tensors", schedc_kernel_name(kernel),
                 count);
    return -1;
  }
  if (views_begin(views, count)) return -1;
  for (size_t i = 0; i < count; i++) {
    schedc_tensor_info info = SCHEDC_TENSOR_INFO_INIT;
    schedc_tensor_at(kernel, i, &info);
    const int is_written =
        written == WRITES_OUTPUTS ? (info.direction & SCHEDC_OUT) != 0 : written == (long)i;
    if (!views_add(views, core, PyTuple_GetItem(tensors, (Py_ssize_t)i), info.name, is_written))
      continue;
    views_close(views);
    return -1;
  }
  return 0;
}

void views_close(Views *views) {
  for (size_t i = 0; views->keep && i <= views->count; i++) Py_XDECREF(views->keep[i]);
  PyMem_Free(views->keep);
  PyMem_Free(views->tensor);
  memset(views, 0, sizeof *views);
}

int scalar_of(PyObject *number, schedc_scalar *out) {
  out->value = number == Py_None ? Py_NAN : PyFloat_AsDouble(number);
  return out->value == -1 && PyErr_Occurred() ? -1 : 0;
}

static int scalars_of(PyObject *tuple, Given *given) {
  const size_t count = schedc_scalar_count(given->kernel);
  if (tuple == Py_None || !count) return 0;
  if (!PyTuple_Check(tuple) || (size_t)PyTuple_Size(tuple) != count) {
    PyErr_Format(PyExc_TypeError, "%s takes a tuple of %zu scalars",
                 schedc_kernel_name(given->kernel), count);
    return -1;
  }
  given->scalar = PyMem_Calloc(count, sizeof *given->scalar);
  if (!given->scalar) {
    PyErr_NoMemory();
    return -1;
  }
  for (; given->scalars < count; given->scalars++) {
    PyObject *number = PyTuple_GetItem(tuple, (Py_ssize_t)given->scalars);
    if (scalar_of(number, &given->scalar[given->scalars])) return -1;
  }
  return 0;
}

int given_open(Given *given, Core *core, PyObject *kernel, PyObject *tensors, PyObject *scalars,
               long written) {
  memset(given, 0, sizeof *given);
  given->kernel = kernel_of(kernel);
  if (!given->kernel || views_open(&given->views, core, given->kernel, tensors, written)) return -1;
  if (!scalars_of(scalars, given)) return 0;
  given_close(given);
  return -1;
}

void given_close(Given *given) {
  views_close(&given->views);
  PyMem_Free(given->scalar);
}
