// core.c - the module schedc._core: its state, and its functions out of the tables of the other
// files.
#include "core.h"

Core *core_of(PyObject *module) { return PyModule_GetState(module); }

// version() -> text
static PyObject *version(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return PyUnicode_FromString(schedc_version());
}

// codes() -> [(code, summary)]
static PyObject *codes(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  const char *code;
  for (size_t i = 0; list && (code = schedc_code_at(i)); i++) {
    PyObject *pair = Py_BuildValue("(ss)", code, schedc_code_summary(code));
    if (!pair || PyList_Append(list, pair)) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

// stages() -> [name], in the order of the pipeline
static PyObject *stages(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  const char *stage;
  for (size_t i = 0; list && (stage = schedc_stage_at(i)); i++) {
    PyObject *name = PyUnicode_FromString(stage);
    if (!name || PyList_Append(list, name)) Py_CLEAR(list);
    Py_XDECREF(name);
  }
  return list;
}

// explain(code) -> a page, or None
static PyObject *explain(PyObject *module, PyObject *code) {
  (void)module;
  const char *name = PyUnicode_AsUTF8AndSize(code, NULL);
  return name ? text_or_none(schedc_explain(name)) : NULL;
}

// connect(report, view): the package's functions that the module calls
static PyObject *connect(PyObject *module, PyObject *args) {
  Core *core = core_of(module);
  PyObject *report, *view;
  if (!PyArg_ParseTuple(args, "OO", &report, &view)) return NULL;
  Py_INCREF(report);
  Py_INCREF(view);
  Py_XDECREF(core->report);
  Py_XDECREF(core->view);
  core->report = report;
  core->view = view;
  Py_RETURN_NONE;
}

static PyMethodDef OWN_FUNCTIONS[] = {{"version", version, METH_NOARGS, NULL},
                                      {"codes", codes, METH_NOARGS, NULL},
                                      {"stages", stages, METH_NOARGS, NULL},
                                      {"explain", explain, METH_O, NULL},
                                      {"connect", connect, METH_VARARGS, NULL},
                                      {"decode", core_decode, METH_O, NULL},
                                      {NULL, NULL, 0, NULL}};

static int execute(PyObject *module) {
  Core *core = core_of(module);
  core->exchange_name = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  if (!core->exchange_name || PyModule_AddFunctions(module, OWN_FUNCTIONS) ||
      PyModule_AddFunctions(module, SOURCE_FUNCTIONS) ||
      PyModule_AddFunctions(module, STORE_FUNCTIONS) ||
      PyModule_AddFunctions(module, KERNEL_FUNCTIONS) ||
      PyModule_AddFunctions(module, RUN_FUNCTIONS) ||
      PyModule_AddFunctions(module, TUNE_FUNCTIONS) ||
      PyModule_AddFunctions(module, LAUNCH_FUNCTIONS))
    return -1;
  return PyModule_AddFunctions(module, PREPARED_FUNCTIONS);
}

static int traverse(PyObject *module, visitproc visit, void *arg) {
  Core *core = core_of(module);
  Py_VISIT(core->report);
  Py_VISIT(core->view);
  Py_VISIT(core->last_type);
  return 0;
}

static int clear(PyObject *module) {
  Core *core = core_of(module);
  Py_CLEAR(core->report);
  Py_CLEAR(core->view);
  Py_CLEAR(core->last_type);
  Py_CLEAR(core->exchange_name);
  return 0;
}

static void free_module(void *module) { clear(module); }

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};

static PyModuleDef DEFINITION = {
    PyModuleDef_HEAD_INIT,
    "schedc._core",
    "The C library under the package schedc.",
    sizeof(Core),
    NULL,
    SLOTS,
    traverse,
    clear,
    free_module,
};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&DEFINITION); }
