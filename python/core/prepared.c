// prepared.c - calls that are prepared once for all tensors of the same types and shapes. In: the
// calls by their keys, the inputs of one, its scalars. Out: outputs that were made, and a launch
// that is enqueued. One function does all of it, as Python takes some microseconds for the same.
#include <string.h>

#include "core.h"

enum { MOST = 16, TENSOR_WORDS = 1 + SCHEDC_MAX_RANK };

// What is given to a call. Tensors are followed by those that are made.
typedef struct Asked {
  Views views;
  schedc_scalar scalar[MOST];
  size_t scalars;
} Asked;

// A prepared call: a tuple of the package's. A maker is a pair of a function and its arguments.
typedef struct Prepared {
  PyObject *loaded;    // a kernel on a GPU, or None: `run` is called
  PyObject *run;       // a function of (all tensors, scalars), or None
  PyObject *here;      // makers of the outputs on the device that is current, or None
  PyObject *anywhere;  // on any
  int has_workspace;   // a maker of it stands behind those of the outputs
  size_t bytes;        // of the workspace
} Prepared;

static int asked_open(Asked *asked, Core *core, PyObject *inputs, PyObject *scalars) {
  memset(asked, 0, sizeof *asked);
  if (!PyTuple_Check(inputs) || !PyTuple_Check(scalars) || PyTuple_Size(inputs) > MOST ||
      PyTuple_Size(scalars) > MOST) {
    PyErr_Format(PyExc_TypeError, "a prepared call takes tuples of at most %d", MOST);
    return -1;
  }
  const size_t count = (size_t)PyTuple_Size(inputs);
  asked->scalars = (size_t)PyTuple_Size(scalars);
  for (size_t i = 0; i < asked->scalars; i++)
    if (scalar_of(PyTuple_GetItem(scalars, (Py_ssize_t)i), &asked->scalar[i])) return -1;
  if (views_begin(&asked->views, 2 * MOST)) return -1;
  for (size_t i = 0; i < count; i++) {
    if (!views_add(&asked->views, core, PyTuple_GetItem(inputs, (Py_ssize_t)i), NULL, 0)) continue;
    views_close(&asked->views);
    return -1;
  }
  return 0;
}

// Which call it is, the device, types, shapes, whether elements of a row stand beside each other,
// and the scalars: what calls that are prepared as one agree in.
static PyObject *key_of(const Asked *asked, PyObject *what) {
  int64_t words[2 + MOST * TENSOR_WORDS + MOST], *at = words;
  *at++ = PyLong_AsLongLong(what);
  if (PyErr_Occurred()) return NULL;
  *at++ = (int64_t)asked->views.device_type << 32 | asked->views.device;
  for (size_t i = 0; i < asked->views.count; i++) {
    const schedc_tensor *t = &asked->views.tensor[i];
    const int are_rows = !t->rank || t->strides[t->rank - 1] == 1;
    *at++ = (int64_t)t->type << 32 | (int64_t)t->rank << 1 | are_rows;
    for (size_t d = 0; d < t->rank; d++) *at++ = t->shape[d];
  }
  for (size_t i = 0; i < asked->scalars; i++) memcpy(at++, &asked->scalar[i].value, sizeof(double));
  return PyBytes_FromStringAndSize((const char *)words, (char *)at - (char *)words);
}

// key(what, inputs, scalars) -> bytes
static PyObject *key(PyObject *module, PyObject *args) {
  PyObject *what, *inputs, *scalars;
  Asked asked;
  if (!PyArg_ParseTuple(args, "OOO", &what, &inputs, &scalars) ||
      asked_open(&asked, core_of(module), inputs, scalars))
    return NULL;
  PyObject *made = key_of(&asked, what);
  views_close(&asked.views);
  return made;
}

static int prepared_of(PyObject *tuple, Prepared *p) {
  Py_ssize_t bytes;
  if (!PyArg_ParseTuple(tuple, "OOOOpn", &p->loaded, &p->run, &p->here, &p->anywhere,
                        &p->has_workspace, &bytes))
    return -1;
  p->bytes = (size_t)bytes;
  const Py_ssize_t made = PyTuple_Check(p->anywhere) ? PyTuple_Size(p->anywhere) : MOST + 1;
  const Py_ssize_t same = p->here == Py_None ? made : PyTuple_Size(p->here);
  if (made >= p->has_workspace && made <= MOST && same == made) return 0;
  PyErr_Format(PyExc_TypeError, "a prepared call makes at most %d tensors", MOST);
  return -1;
}

static PyObject *make(PyObject *maker) {
  PyObject *function, *args;
  if (!PyArg_ParseTuple(maker, "OO", &function, &args)) return NULL;
  return PyObject_Call(function, args, NULL);
}

// The outputs as a tuple; of the workspace, which is the last that is made, the address.
static PyObject *make_all(const Prepared *p, Core *core, Views *views, PyObject **workspace,
                          void **address) {
  const int is_here = p->here != Py_None && loaded_is_current(p->loaded);
  PyObject *makers = is_here ? p->here : p->anywhere;
  const Py_ssize_t outputs = PyTuple_Size(makers) - p->has_workspace;
  PyObject *made = PyTuple_New(outputs);
  for (Py_ssize_t i = 0; made && i < outputs; i++) {
    PyObject *one = make(PyTuple_GetItem(makers, i));
    if (!one || PyTuple_SetItem(made, i, one) || views_add(views, core, one, NULL, 1))
      Py_CLEAR(made);
  }
  if (!made || !p->has_workspace) return made;
  *workspace = make(PyTuple_GetItem(makers, outputs));
  if (!*workspace || views_add(views, core, *workspace, NULL, 1)) Py_CLEAR(made);
  else *address = views->tensor[--views->count].data;
  return made;
}

static int run(const Prepared *p, PyObject *inputs, PyObject *made, PyObject *scalars) {
  PyObject *all = PySequence_Concat(inputs, made);
  PyObject *done = all ? PyObject_CallFunctionObjArgs(p->run, all, scalars, NULL) : NULL;
  Py_XDECREF(all);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

static PyObject *make_and_run(const Prepared *p, Core *core, Asked *asked, PyObject *inputs,
                              PyObject *scalars) {
  PyObject *workspace = NULL;
  void *address = NULL;
  PyObject *made = make_all(p, core, &asked->views, &workspace, &address);
  const Given given = {NULL, asked->views, asked->scalar, asked->scalars};
  if (made &&
      (p->loaded == Py_None ? run(p, inputs, made, scalars)
                            : launch_on_its_stream(p->loaded, core, &given, address, p->bytes)))
    Py_CLEAR(made);
  Py_XDECREF(workspace);  // PyTorch gives it to nobody before what is on the stream has ended
  return made;
}

// call(calls, what, inputs, scalars) -> the outputs, or None: no call like this is prepared
static PyObject *call(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  Core *core = core_of(module);
  Asked asked;
  Prepared p;
  if (count != 4) {
    PyErr_SetString(PyExc_TypeError, "call takes 4 arguments");
    return NULL;
  }
  if (asked_open(&asked, core, args[2], args[3])) {
    PyErr_Clear();  // who prepares it says what is wrong
    Py_RETURN_NONE;
  }
  PyObject *made = NULL, *by = key_of(&asked, args[1]);
  PyObject *found = by ? PyDict_GetItemWithError(args[0], by) : NULL;
  Py_XINCREF(found);  // what is called may change the dictionary
  if (found && !prepared_of(found, &p)) made = make_and_run(&p, core, &asked, args[2], args[3]);
  else if (!found && by && !PyErr_Occurred()) {
    made = Py_None;
    Py_INCREF(made);
  }
  Py_XDECREF(found);
  Py_XDECREF(by);
  views_close(&asked.views);
  return made;
}

PyMethodDef PREPARED_FUNCTIONS[] = {
    {"key", key, METH_VARARGS, NULL},
    {"call", (PyCFunction)(void (*)(void))call, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};
