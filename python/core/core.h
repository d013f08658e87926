// core.h - what the files of the extension module schedc._core share. The module is the thin layer
// of C under the Python package: each function takes plain Python values and handles, makes one
// call of schedc.h, and returns plain values. Names, classes and documentation are the package's.
//
// Handles are capsules, one kind for each kind of object of schedc.h; the capsule owns it. What a
// call reports is handed to the package's function `report` (Reports), which raises or warns.
// Written for the stable ABI: one binary serves Python 3.10 and later.
#ifndef SCHEDC_PYTHON_CORE_H
#define SCHEDC_PYTHON_CORE_H
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
#include <schedc.h>

#include "dlpack.h"

#define SOURCE "schedc.source"
#define KERNEL "schedc.kernel"
#define LOADED "schedc.loaded"
#define STORE "schedc.store"
#define SPACE "schedc.space"
#define TUNER "schedc.tuner"

// The module's state.
typedef struct Core {
  PyObject *report;         // the package's: (status, name of it, its text, diagnostics) -> None
  PyObject *view;           // the package's: (array) -> description, as views.c reads it
  PyObject *exchange_name;  // "__dlpack_c_exchange_api__"
  PyObject *last_type;      // the type that was asked for its exchange last, and what it has
  const DlExchange *last_exchange;
} Core;

// ---- report.c: a context, and what it reports

typedef struct Reports Reports;
typedef struct Call {
  schedc_context *context;
  Reports *reports;
} Call;
// 0, or -1 with an exception set.
int call_open(Call *call, Core *core, int unverified);
// Hands what was reported since the last time to the package: 0, or -1 with an exception set.
int call_report(Call *call, Core *core, schedc_status status);
// call_report, and the context is closed.
int call_close(Call *call, Core *core, schedc_status status);
void call_drop(Call *call);

// Text that the library writes piece by piece; `data` is freed by the reader.
typedef struct Written {
  char *data;
  size_t length, room;
} Written;
int write_piece(void *user, const char *bytes, size_t length);
// Takes the text over; NULL, with an exception set, if the call failed.
PyObject *written_str(Written *written, int failed);
PyObject *written_bytes(Written *written, int failed);

// ---- views.c: tensors of other libraries

typedef struct Views {
  size_t count;
  schedc_tensor *tensor;
  PyObject **keep;  // what must live until the call has ended
  int device_type;  // of all of them: DL_CPU or DL_CUDA; 0: there are none
  int device;       // its number
  void *stream;     // the current one of whose tensors these are, where their library tells it
  int stream_is_known;
} Views;
// Which tensors a call writes, so that their arrays must allow it; else the index of the only one.
enum { WRITES_OUTPUTS = -1, WRITES_NOTHING = -2 };
// None yet, and room for so many; one more, of that name (NULL: none) in reports. `tensors`: a
// tuple of arrays, as many as the kernel has. 0, or -1 with an exception set.
int views_begin(Views *views, size_t room);
int views_add(Views *views, Core *core, PyObject *array, const char *name, int is_written);
int views_open(Views *views, Core *core, const schedc_kernel *kernel, PyObject *tensors,
               long written);
void views_close(Views *views);
PyObject *core_decode(PyObject *module, PyObject *capsule);

// A schedc_progress: Ctrl-C ends a call. The exception is set then.
int core_interrupted(void *user, double done);

// What a run, a comparison or a launch takes. `scalars`: a tuple of numbers in the kernel's order,
// None in it for the default; None: all defaults. 0, or -1 with an exception set.
typedef struct Given {
  const schedc_kernel *kernel;
  Views views;
  schedc_scalar *scalar;
  size_t scalars;
} Given;
int given_open(Given *given, Core *core, PyObject *kernel, PyObject *tensors, PyObject *scalars,
               long written);
void given_close(Given *given);

// A number, or None for the default. 0, or -1 with an exception set.
int scalar_of(PyObject *number, schedc_scalar *out);

// Params from a tuple of (name, value), dimensions from one of (name, number); to be freed by
// PyMem_Free. The texts stay the tuple's. 0, or -1 with an exception set.
int params_of(PyObject *tuple, schedc_param **out, size_t *count);
int dims_of(PyObject *tuple, schedc_dim **out, size_t *count);

// ---- device.c: the CUDA device of a caller's tensors

// What is used of the CUDA driver.
typedef struct Driver {
  void *library;
  int (*init)(unsigned flags);
  int (*find)(int *device, int number);
  int (*retain)(void **context, int device);
  int (*current)(void **context);
  int (*push)(void *context);
  int (*pop)(void **context);
  int (*synchronize)(void *stream);
  int (*wait_for_all)(void);
} Driver;

typedef struct Device {
  Driver driver;
  void *context;  // of CUDA: the device's primary one
  int number;
} Device;
int device_open(Device *device, int number);
// Makes the context current: 1 if that is to be undone, 0 if it was, -1 with an exception.
int device_enter(const Device *device);
int device_is_current(const Device *device);
void device_leave(const Device *device, int entered);

// ---- launch.c: kernels on a GPU

// Is the context of its device current?
int loaded_is_current(PyObject *loaded);
// A launch on the stream that is current in the library whose tensors are given, if it tells which,
// or else on the default one: 0, or -1 with an exception set.
int launch_on_its_stream(PyObject *loaded, Core *core, const Given *given, void *workspace,
                         size_t bytes);

// ---- handles

const schedc_source *source_of(PyObject *handle);
schedc_kernel *kernel_of(PyObject *handle);
PyObject *kernel_handle(schedc_kernel *kernel);
Core *core_of(PyObject *module);
PyObject *text_or_none(const char *text);

// ---- the tables of functions, in the order of schedc.h
extern PyMethodDef SOURCE_FUNCTIONS[];    // source.c
extern PyMethodDef STORE_FUNCTIONS[];     // store.c
extern PyMethodDef KERNEL_FUNCTIONS[];    // kernel.c
extern PyMethodDef RUN_FUNCTIONS[];       // run.c
extern PyMethodDef TUNE_FUNCTIONS[];      // tune.c
extern PyMethodDef LAUNCH_FUNCTIONS[];    // launch.c
extern PyMethodDef PREPARED_FUNCTIONS[];  // prepared.c
#endif
