// info.c - `schedc info`: what the compiler worked out about a kernel.
#include "cli/cli.h"

int command_info(const Args *args) {
  Session s;
  Data d = {0};
  schedc_kernel *kernel = NULL;
  size_t kase = SIZE_MAX;
  int code = session_open(&s, args, 0);
  if (!code) code = session_kernel(&s, &kernel, &kase);
  if (!code) code = data_dims(&d, &s, kernel, kase, NULL, &args->set);
  if (!code) {
    schedc_format_kind kind = args->format == FORMAT_JSON ? SCHEDC_JSON : SCHEDC_TEXT;
    code = session_status(
        &s, schedc_describe(s.context, kernel, d.dims, d.dim_count, kind, stdout_write, NULL));
  }
  data_close(&d);
  schedc_kernel_free(kernel);
  session_close(&s);
  return code;
}
