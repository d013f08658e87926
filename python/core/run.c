// run.c - runs on tensors in host memory, inputs for them, comparisons with the specification,
// work, times by the cost model, and building.
#include "core.h"

#define ON_A_GPU "the tensors are on a GPU: here they must be in host memory"

// For those that read the tensors here.
static int host_open(Given *given, Core *core, PyObject *kernel, PyObject *tensors,
                     PyObject *scalars, long written) {
  if (given_open(given, core, kernel, tensors, scalars, written)) return -1;
  if (given->views.device_type != DL_CUDA) return 0;
  PyErr_SetString(PyExc_ValueError, ON_A_GPU);
  given_close(given);
  return -1;
}

int core_interrupted(void *user, double done) {
  (void)user, (void)done;
  const PyGILState_STATE held = PyGILState_Ensure();
  const int stop = PyErr_CheckSignals();
  PyGILState_Release(held);
  return stop;
}

// run_cpu(kernel, tensors, scalars or None, policy, seed, threads, sms, most steps)
static PyObject *run_cpu(PyObject *module, PyObject *args) {
  PyObject *handle, *tensors, *scalars;
  int policy;
  unsigned long long seed, steps;
  schedc_run_options options = SCHEDC_RUN_OPTIONS_INIT;
  schedc_status status;
  Given given;
  Call call;
  if (!PyArg_ParseTuple(args, "OOOiKIIK", &handle, &tensors, &scalars, &policy, &seed,
                        &options.threads, &options.sms, &steps))
    return NULL;
  options.policy = (schedc_policy)policy;
  options.seed = seed;
  options.step_budget = steps;
  options.progress = core_interrupted;
  if (host_open(&given, core_of(module), handle, tensors, scalars, WRITES_OUTPUTS)) return NULL;
  if (call_open(&call, core_of(module), 0)) {
    given_close(&given);
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS status =
      schedc_run_cpu(call.context, given.kernel, given.views.tensor, given.views.count,
                     given.scalar, given.scalars, &options);
  Py_END_ALLOW_THREADS given_close(&given);
  if (call_close(&call, core_of(module), status)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *error_tuple(const schedc_error *e) {
  PyObject *worst = PyList_New(0);
  for (int i = 0; worst && i < SCHEDC_MAX_RANK && e->worst[i] >= 0; i++) {
    PyObject *at = PyLong_FromLongLong(e->worst[i]);
    if (!at || PyList_Append(worst, at)) Py_CLEAR(worst);
    Py_XDECREF(at);
  }
  return Py_BuildValue("(sNNKKKKddddNddd)", e->tensor, PyBool_FromLong(e->pass),
                       PyBool_FromLong(e->unproven), (unsigned long long)e->elements,
                       (unsigned long long)e->total, (unsigned long long)e->unwritten,
                       (unsigned long long)e->overflowed, e->max_error, e->max_allowed,
                       e->mean_error, e->mean_allowed, worst, e->worst_out, e->worst_ref,
                       e->looseness);
}

static PyObject *error_list(const schedc_error *errors, size_t count) {
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list && i < count; i++) {
    PyObject *one = error_tuple(&errors[i]);
    if (!one || PyList_Append(list, one)) Py_CLEAR(list);
    Py_XDECREF(one);
  }
  return list;
}

// compare(kernel, tensors, scalars or None, tensors before the run or None, places, operations)
//   -> [an error as a tuple]
static PyObject *compare(PyObject *module, PyObject *args) {
  PyObject *handle, *tensors, *scalars, *earlier;
  unsigned long long places, operations;
  schedc_compare_options options = SCHEDC_COMPARE_OPTIONS_INIT;
  schedc_status status;
  Given given;
  Views before = {0};
  Call call;
  if (!PyArg_ParseTuple(args, "OOOOKK", &handle, &tensors, &scalars, &earlier, &places,
                        &operations) ||
      host_open(&given, core_of(module), handle, tensors, scalars, WRITES_NOTHING))
    return NULL;
  const size_t count = schedc_output_count(given.kernel);
  schedc_error *errors = PyMem_Calloc(count + 1, sizeof *errors);
  PyObject *list = NULL;
  if (!errors) PyErr_NoMemory();
  else if ((earlier == Py_None ||
            !views_open(&before, core_of(module), given.kernel, earlier, WRITES_NOTHING)) &&
           !call_open(&call, core_of(module), 0)) {
    errors[0] = (schedc_error)SCHEDC_ERROR_INIT;
    options.places = places;
    options.operations = operations;
    options.before = before.tensor;
    options.before_count = before.count;
    options.progress = core_interrupted;
    Py_BEGIN_ALLOW_THREADS status =
        schedc_compare(call.context, given.kernel, given.views.tensor, given.views.count,
                       given.scalar, given.scalars, &options, errors);
    Py_END_ALLOW_THREADS if (!call_close(&call, core_of(module), status)) list =
        error_list(errors, count);
  }
  PyMem_Free(errors);
  views_close(&before);
  given_close(&given);
  return list;
}

// work(kernel, tensors, scalars or None) -> (said, products, tensor cycles, bytes)
static PyObject *work(PyObject *module, PyObject *args) {
  PyObject *handle, *tensors, *scalars;
  schedc_work work = SCHEDC_WORK_INIT;
  Given given;
  Call call;
  if (!PyArg_ParseTuple(args, "OOO", &handle, &tensors, &scalars) ||
      host_open(&given, core_of(module), handle, tensors, scalars, WRITES_NOTHING))
    return NULL;
  if (call_open(&call, core_of(module), 0)) {
    given_close(&given);
    return NULL;
  }
  const schedc_status status =
      schedc_count_work(call.context, given.kernel, given.views.tensor, given.views.count,
                        given.scalar, given.scalars, &work);
  given_close(&given);
  if (call_close(&call, core_of(module), status)) return NULL;
  return Py_BuildValue("(dddd)", work.said, work.products, work.tensor_cycles, work.bytes);
}

// build(kernel, artifact, lenient, name or None, unverified) -> bytes
static PyObject *build(PyObject *module, PyObject *args) {
  PyObject *handle;
  int artifact, lenient, unverified;
  schedc_build_options options = SCHEDC_BUILD_OPTIONS_INIT;
  schedc_status status;
  Written bytes = {0};
  Call call;
  if (!PyArg_ParseTuple(args, "Oipzp", &handle, &artifact, &lenient, &options.name, &unverified))
    return NULL;
  const schedc_kernel *kernel = kernel_of(handle);
  if (!kernel || call_open(&call, core_of(module), unverified)) return NULL;
  options.lenient = lenient;
  Py_BEGIN_ALLOW_THREADS status = schedc_build(call.context, kernel, (schedc_artifact)artifact,
                                               &options, write_piece, &bytes, NULL);
  Py_END_ALLOW_THREADS return written_bytes(&bytes, call_close(&call, core_of(module), status));
}

// predict(kernel, tensors, scalars or None) -> (ms, cycles, clock in MHz, tensor cycles, tensor
// use, waves, bytes, what is used most), by the cost model
static PyObject *predict(PyObject *module, PyObject *args) {
  PyObject *kernel, *tensors, *scalars;
  schedc_prediction p = SCHEDC_PREDICTION_INIT;
  Given given;
  Call call;
  if (!PyArg_ParseTuple(args, "OOO", &kernel, &tensors, &scalars) ||
      given_open(&given, core_of(module), kernel, tensors, scalars, WRITES_NOTHING))
    return NULL;
  if (call_open(&call, core_of(module), 0)) {
    given_close(&given);
    return NULL;
  }
  schedc_status status = schedc_predict(call.context, given.kernel, given.views.tensor,
                                        given.views.count, given.scalar, given.scalars, NULL, &p);
  given_close(&given);
  if (call_close(&call, core_of(module), status)) return NULL;
  return Py_BuildValue("(ddddddds)", p.ms, p.cycles, p.clock_mhz, p.tensor_cycles, p.tensor_use,
                       p.waves, p.bytes, p.bound);
}

// draw(kernel, tensors, index, kind or None, seed): inputs of a kind, or what outputs begin with
static PyObject *draw(PyObject *module, PyObject *args) {
  PyObject *kernel, *tensors;
  unsigned long index;
  unsigned long long seed;
  const char *kind;
  Views views;
  if (!PyArg_ParseTuple(args, "OOkzK", &kernel, &tensors, &index, &kind, &seed)) return NULL;
  const schedc_kernel *of = kernel_of(kernel);
  if (!of || views_open(&views, core_of(module), of, tensors, (long)index)) return NULL;
  if (views.device_type == DL_CUDA) {
    views_close(&views);
    PyErr_SetString(PyExc_ValueError, ON_A_GPU);
    return NULL;
  }
  schedc_status status = index >= views.count ? SCHEDC_EARG
                         : kind               ? schedc_draw(&views.tensor[index], kind, seed)
                                              : schedc_poison(&views.tensor[index]);
  views_close(&views);
  if (!status) Py_RETURN_NONE;
  PyErr_Format(PyExc_ValueError, "no inputs of kind %s", kind ? kind : "");
  return NULL;
}

// run_gpu(kernel, tensors in host memory, scalars or None, device)
static PyObject *run_gpu(PyObject *module, PyObject *args) {
  PyObject *kernel, *tensors, *scalars;
  int device;
  schedc_gpu *gpu = NULL;
  schedc_gpu_job job = SCHEDC_GPU_JOB_INIT;
  schedc_status status;
  Given given;
  Call call;
  if (!PyArg_ParseTuple(args, "OOOi", &kernel, &tensors, &scalars, &device) ||
      given_open(&given, core_of(module), kernel, tensors, scalars, WRITES_OUTPUTS))
    return NULL;
  if (call_open(&call, core_of(module), 0)) {
    given_close(&given);
    return NULL;
  }
  job.kernel = given.kernel;
  job.tensors = given.views.tensor, job.tensor_count = given.views.count;
  job.scalars = given.scalar, job.scalar_count = given.scalars;
  Py_BEGIN_ALLOW_THREADS status = schedc_gpu_new(&gpu, call.context, device);
  if (!status) status = schedc_gpu_run(gpu, &job, 1, NULL);
  schedc_gpu_free(gpu);
  Py_END_ALLOW_THREADS given_close(&given);
  if (call_close(&call, core_of(module), status)) return NULL;
  Py_RETURN_NONE;
}

PyMethodDef RUN_FUNCTIONS[] = {
    {"run_cpu", run_cpu, METH_VARARGS, NULL}, {"run_gpu", run_gpu, METH_VARARGS, NULL},
    {"compare", compare, METH_VARARGS, NULL}, {"draw", draw, METH_VARARGS, NULL},
    {"work", work, METH_VARARGS, NULL},       {"predict", predict, METH_VARARGS, NULL},
    {"build", build, METH_VARARGS, NULL},     {NULL, NULL, 0, NULL}};
