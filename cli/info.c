// info.c - `schedc info`: what the compiler worked out about a kernel; and, where its dimensions
// are known, how long it would take by the cost model.
#include "cli/cli.h"

#include <stdlib.h>

// The tensors as far as a prediction asks: contiguous, without data. False: a shape is not known.
static bool shapes_of(schedc_context *context, const schedc_kernel *kernel, const Data *d,
                      schedc_tensor *tensor) {
  for (size_t i = 0; i < schedc_tensor_count(kernel); i++) {
    schedc_tensor_info info = SCHEDC_TENSOR_INFO_INIT;
    int64_t step = 1;
    schedc_tensor_at(kernel, i, &info);
    tensor[i] = (schedc_tensor){.name = info.name, .type = info.type, .rank = info.rank};
    if (!data_shape(d, context, i, tensor[i].shape)) return false;
    for (size_t n = info.rank; n-- > 0; step *= tensor[i].shape[n]) tensor[i].strides[n] = step;
  }
  return true;
}

// A line, or nothing where it depends on what is not given: its context has no one to report to.
static void say_prediction(const schedc_kernel *kernel, const Data *d) {
  schedc_context *context = NULL;
  schedc_prediction said = SCHEDC_PREDICTION_INIT;
  size_t n = schedc_tensor_count(kernel);
  schedc_tensor *tensor = need(calloc(n + 1, sizeof *tensor));
  if (!schedc_open(&context, NULL) && shapes_of(context, kernel, d, tensor) &&
      !schedc_predict(context, kernel, tensor, n, d->scalars, d->scalar_count, NULL, &said) &&
      said.ms > 0)
    printf("\npredicted on an H200: %.3f ms at %.0f MHz, tensor cores busy %.0f %%, bound by %s\n",
           said.ms, said.clock_mhz, 100 * said.tensor_use, said.bound);
  schedc_close(context);
  free(tensor);
}

// Whole, or not at all: where it fails, the reports stand in its place.
static int describe(Session *s, const schedc_kernel *kernel, const Data *d) {
  schedc_format_kind kind = s->args->format == FORMAT_JSON ? SCHEDC_JSON : SCHEDC_TEXT;
  Buffer out = {0};
  int code = session_status(
      s, schedc_describe(s->context, kernel, d->dims, d->dim_count, kind, buffer_write, &out));
  if (!code && out.n) stdout_write(NULL, out.at, out.n);
  if (!code && kind == SCHEDC_TEXT) say_prediction(kernel, d);
  free(out.at);
  return code;
}

int command_info(const Args *args) {
  Session s;
  Data d = {0};
  schedc_kernel *kernel = NULL;
  size_t kase = SIZE_MAX;
  int code = session_open(&s, args, 0);
  if (!code) code = session_kernel(&s, &kernel, &kase);
  if (!code) code = data_dims(&d, &s, kernel, kase, NULL, &args->set);
  if (!code) code = describe(&s, kernel, &d);
  if (code && args->format == FORMAT_JSON) session_print_reports(&s);
  data_close(&d);
  schedc_kernel_free(kernel);
  session_close(&s);
  return code;
}
