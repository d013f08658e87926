// launch.c - kernels loaded on a GPU, and their launches. In: tensors on that GPU, a stream. Out: a
// launch that is enqueued. The device's primary context, which PyTorch, CuPy and JAX use, is made
// current for the call if it is not. A launch holds the GIL, so a loaded kernel has one context of
// the library's for all its launches.
#include <stdlib.h>
#include <string.h>

#include "core.h"

enum { LAUNCH_FAILED = 719 };  // CUDA_ERROR_LAUNCH_FAILED

typedef struct Loaded {
  PyObject *kernel;  // its handle
  schedc_loaded *loaded;
  Call call;
  Device device;
} Loaded;

static Loaded *loaded_of(PyObject *handle) {
  Loaded *l = PyCapsule_GetPointer(handle, LOADED);
  if (!l || l->loaded) return l;
  PyErr_SetString(PyExc_ValueError, "the kernel was unloaded");
  return NULL;
}

// What has not been unloaded stays on the GPU: whether its last launch has ended is not known here.
static void free_loaded(PyObject *handle) {
  Loaded *l = PyCapsule_GetPointer(handle, LOADED);
  if (l->loaded) return;
  call_drop(&l->call);
  Py_XDECREF(l->kernel);
  free(l);
}

static int prepare(Loaded *l, Core *core, int unverified) {
  return device_open(&l->device, l->device.number) ? -1 : call_open(&l->call, core, unverified);
}

static int load_into(Loaded *l, Core *core, const schedc_load_options *options) {
  const schedc_kernel *kernel = kernel_of(l->kernel);
  schedc_status status;
  const int entered = kernel ? device_enter(&l->device) : -1;
  if (entered < 0) return -1;
  Py_BEGIN_ALLOW_THREADS status = schedc_load(&l->loaded, l->call.context, kernel, options);
  Py_END_ALLOW_THREADS device_leave(&l->device, entered);
  if (!call_report(&l->call, core, status)) return 0;
  schedc_unload(l->loaded);
  l->loaded = NULL;
  return -1;
}

// load(kernel, device, lenient, debug_waits, trust_elements, cubin or None, unverified) -> loaded
static PyObject *load(PyObject *module, PyObject *args) {
  PyObject *kernel;
  const char *cubin;
  Py_ssize_t bytes;
  int device, lenient, debug_waits, trust_elements, unverified;
  schedc_build_options build = SCHEDC_BUILD_OPTIONS_INIT;
  schedc_load_options options = SCHEDC_LOAD_OPTIONS_INIT;
  if (!PyArg_ParseTuple(args, "Oipppz#p", &kernel, &device, &lenient, &debug_waits, &trust_elements,
                        &cubin, &bytes, &unverified))
    return NULL;
  Loaded *l = calloc(1, sizeof *l);
  PyObject *handle = l ? PyCapsule_New(l, LOADED, free_loaded) : PyErr_NoMemory();
  if (!handle) {
    free(l);
    return NULL;
  }
  Py_INCREF(kernel);
  l->kernel = kernel;
  l->device.number = device;
  build.lenient = lenient;
  build.debug_waits = debug_waits;
  build.trust_elements = trust_elements;
  options.build = &build;
  options.cubin = cubin;
  options.cubin_bytes = cubin ? (size_t)bytes : 0;
  if (prepare(l, core_of(module), unverified) || load_into(l, core_of(module), &options))
    Py_CLEAR(handle);
  return handle;
}

static int on_its_device(const Loaded *l, const Views *views) {
  if (!views->device_type || (views->device_type == DL_CUDA && views->device == l->device.number))
    return 1;
  PyErr_Format(PyExc_ValueError, "the kernel is loaded on CUDA device %d, and the tensors are %s",
               l->device.number, views->device_type == DL_CPU ? "in host memory" : "on another");
  return 0;
}

static int open_there(Given *given, Core *core, const Loaded *l, PyObject *tensors,
                      PyObject *scalars) {
  if (!l || given_open(given, core, l->kernel, tensors, scalars, WRITES_OUTPUTS)) return -1;
  if (on_its_device(l, &given->views)) return 0;
  given_close(given);
  return -1;
}

// workspace(loaded, tensors, scalars or None) -> bytes that a launch needs
static PyObject *workspace(PyObject *module, PyObject *args) {
  PyObject *handle, *tensors, *scalars;
  size_t bytes = 0;
  Given given;
  if (!PyArg_ParseTuple(args, "OOO", &handle, &tensors, &scalars)) return NULL;
  Loaded *l = loaded_of(handle);
  if (open_there(&given, core_of(module), l, tensors, scalars)) return NULL;
  const schedc_status status =
      schedc_workspace_size(l->call.context, l->loaded, given.views.tensor, given.views.count,
                            given.scalar, given.scalars, &bytes);
  given_close(&given);
  return call_report(&l->call, core_of(module), status) ? NULL : PyLong_FromSize_t(bytes);
}

static int stream_of(PyObject *stream, const Views *views, void **out) {
  *out = views->stream;
  if (stream == Py_None && (views->stream_is_known || !views->count)) return 0;
  *out = stream == Py_None ? NULL : PyLong_AsVoidPtr(stream);
  return PyErr_Occurred() ? -1 : 0;
}

// 0, or -1 with an exception set.
static int enqueue(Loaded *l, Core *core, const Given *given, void *stream, void *workspace,
                   size_t bytes) {
  const int entered = device_enter(&l->device);
  if (entered < 0) return -1;
  const schedc_status status =
      schedc_launch(l->call.context, l->loaded, stream, given->views.tensor, given->views.count,
                    given->scalar, given->scalars, workspace, bytes);
  device_leave(&l->device, entered);
  return call_report(&l->call, core, status);
}

int loaded_is_current(PyObject *handle) {
  const Loaded *l = loaded_of(handle);
  if (l) return device_is_current(&l->device);
  PyErr_Clear();
  return 0;
}

int launch_on_its_stream(PyObject *handle, Core *core, const Given *given, void *workspace,
                         size_t bytes) {
  Loaded *l = loaded_of(handle);
  if (!l || !on_its_device(l, &given->views)) return -1;
  return enqueue(l, core, given, given->views.stream, workspace, bytes);
}

// launch(loaded, tensors, scalars or None, address of a workspace or None, its bytes, stream): a
// stream of None is the one that is current in the library whose tensors these are.
static PyObject *launch(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  void *stream = NULL;
  Given given;
  if (count != 6) {
    PyErr_SetString(PyExc_TypeError, "launch takes 6 arguments");
    return NULL;
  }
  Loaded *l = loaded_of(args[0]);
  if (open_there(&given, core_of(module), l, args[1], args[2])) return NULL;
  void *workspace = args[3] == Py_None ? NULL : PyLong_AsVoidPtr(args[3]);
  const size_t bytes = PyLong_AsSize_t(args[4]);
  const int failed = PyErr_Occurred() || stream_of(args[5], &given.views, &stream) ||
                     enqueue(l, core_of(module), &given, stream, workspace, bytes);
  given_close(&given);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

// What waits for the GPU lets other threads of Python run.
static PyObject *waited(const Loaded *l, void *stream, int for_all) {
  int error;
  const int entered = device_enter(&l->device);
  if (entered < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS error =
      for_all ? l->device.driver.wait_for_all() : l->device.driver.synchronize(stream);
  Py_END_ALLOW_THREADS device_leave(&l->device, entered);
  if (!error) Py_RETURN_NONE;
  PyErr_Format(PyExc_RuntimeError, "CUDA error %d on waiting for device %d%s", error,
               l->device.number,
               error == LAUNCH_FAILED ? ": perhaps a list is not as its schedule declares it; "
                                        "check_elements, before the launch, says which"
                                      : "");
  return NULL;
}

// wait(loaded, stream): until all that is on the stream has ended
static PyObject *wait(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *handle;
  unsigned long long stream;
  if (!PyArg_ParseTuple(args, "OK", &handle, &stream)) return NULL;
  const Loaded *l = loaded_of(handle);
  return l ? waited(l, (void *)(uintptr_t)stream, 0) : NULL;
}

// check_elements(loaded, tensors, scalars or None, stream): raises if elements of inputs are not
// what the schedule says. Once the stream has ended, it waits for no more than copies of these
// inputs.
static PyObject *check_elements(PyObject *module, PyObject *args) {
  PyObject *handle, *tensors, *scalars;
  unsigned long long stream;
  Given given;
  if (!PyArg_ParseTuple(args, "OOOK", &handle, &tensors, &scalars, &stream)) return NULL;
  Loaded *l = loaded_of(handle);
  if (open_there(&given, core_of(module), l, tensors, scalars)) return NULL;
  schedc_status status = SCHEDC_OK;
  const int entered = device_enter(&l->device);
  if (entered >= 0) {
    status =
        schedc_check_elements(l->call.context, l->loaded, (void *)(uintptr_t)stream,
                              given.views.tensor, given.views.count, given.scalar, given.scalars);
    device_leave(&l->device, entered);
  }
  given_close(&given);
  if (entered < 0 || call_report(&l->call, core_of(module), status)) return NULL;
  Py_RETURN_NONE;
}

// check_waits(loaded): raises if a wait of one that was loaded with debug_waits took too long
static PyObject *check_waits(PyObject *module, PyObject *handle) {
  Loaded *l = loaded_of(handle);
  const int entered = l ? device_enter(&l->device) : -1;
  if (entered < 0) return NULL;
  const schedc_status status = schedc_check_waits(l->call.context, l->loaded);
  device_leave(&l->device, entered);
  if (call_report(&l->call, core_of(module), status)) return NULL;
  Py_RETURN_NONE;
}

// unload(loaded): after all that its device has to do
static PyObject *unload(PyObject *module, PyObject *handle) {
  (void)module;
  Loaded *l = loaded_of(handle);
  PyObject *done = l ? waited(l, NULL, 1) : NULL;
  const int entered = done ? device_enter(&l->device) : -1;
  if (entered < 0) {
    Py_XDECREF(done);
    return NULL;
  }
  schedc_unload(l->loaded);
  l->loaded = NULL;
  device_leave(&l->device, entered);
  return done;
}

PyMethodDef LAUNCH_FUNCTIONS[] = {
    {"load", load, METH_VARARGS, NULL},
    {"workspace", workspace, METH_VARARGS, NULL},
    {"launch", (PyCFunction)(void (*)(void))launch, METH_FASTCALL, NULL},
    {"wait", wait, METH_VARARGS, NULL},
    {"check_elements", check_elements, METH_VARARGS, NULL},
    {"check_waits", check_waits, METH_O, NULL},
    {"unload", unload, METH_O, NULL},
    {NULL, NULL, 0, NULL}};
