// What schedc.h promises of the stack: a thread with little of it goes through all stages with
// texts as deep as the language has them, and runs.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "apikit.h"

static int count_bytes(void *user, const char *bytes, size_t n) {
  (void)bytes;
  *(size_t *)user += n;
  return 0;
}

// Blocks and parentheses as deep as the language has them.
static void put_nested(char *to) {
  enum { BLOCKS = 40, CALLS = 20 };
  to += sprintf(to,
                "kernel k {\n  in A : f32[M, 64]\n  out C : f32[M, 64]\n  grid (x : cdiv(M, 64))\n"
                "  spec { C[i,j] = A[i,j] }\n"
                "  role r : 1 warpgroup, 128 regs {\n reg c : f32[64, 64] = 0\n");
  for (int i = 0; i < BLOCKS; i++) to += sprintf(to, "for t%d in 0 .. M {\n", i);
  to += sprintf(to, "c[i,j] = ");
  for (int i = 0; i < CALLS; i++) to += sprintf(to, "exp(");
  to += sprintf(to, "c[i,j]");
  for (int i = 0; i < CALLS; i++) to += sprintf(to, ")");
  for (int i = 0; i < BLOCKS; i++) to += sprintf(to, "\n}");
  sprintf(to, "\nC[x*64 + i, j] = c[i,j]\n}\n}\n");
}

// A sum of so many terms that one more is refused; the last is nested in calls.
static void put_sum(char *to) {
  enum { TERMS = 240, CALLS = 10 };
  to +=
      sprintf(to,
              "kernel k {\n  in A : f32[M, 64]\n  out C : f32[M, 64]\n  grid (x : cdiv(M, 64))\n"
              "  role r : 1 warpgroup, 128 regs {\n reg c : f32[64, 64]\nc[i,j] = A[x*64 + i, j]\n"
              "C[x*64 + i, j] = ");
  for (int i = 0; i < TERMS; i++) to += sprintf(to, "c[i,j] + ");
  for (int i = 0; i < CALLS; i++) to += sprintf(to, "exp(");
  to += sprintf(to, "c[i,j]");
  for (int i = 0; i < CALLS; i++) to += sprintf(to, ")");
  sprintf(to, "\n}\n}\n");
}

// What goes wrong; NULL: nothing.
static const char *all_stages(schedc_context *context, const char *text, bool runs) {
  static float a[64 * 64], c[64 * 64];
  const schedc_tensor tensors[] = {{"A", a, SCHEDC_F32, 2, {64, 64}, {64, 1}},
                                   {"C", c, SCHEDC_F32, 2, {64, 64}, {64, 1}}};
  schedc_source *source = NULL;
  schedc_kernel *kernel = NULL;
  size_t n = 0;
  if (schedc_parse(&source, context, "n", text, strlen(text)) ||
      schedc_format(context, source, count_bytes, &n))
    return "a text";
  for (size_t i = 0; schedc_stage_at(i); i++) {
    if (!strcmp(schedc_stage_at(i), "cubin")) continue;  // NVRTC's stack is NVRTC's
    if (schedc_emit(context, source, NULL, NULL, NULL, 0, schedc_stage_at(i), count_bytes, &n))
      return schedc_stage_at(i);
  }
  if (runs && (schedc_instantiate(&kernel, context, source, NULL, NULL, NULL, 0) ||
               schedc_run_cpu(context, kernel, tensors, 2, NULL, 0, NULL)))
    return "a run";
  schedc_kernel_free(kernel);
  schedc_source_free(source);
  return NULL;
}

static void *with_little_stack(void *arg) {
  static char text[8192];
  schedc_context *context = NULL;
  schedc_source *source = NULL;
  schedc_kernel *kernel = NULL;
  size_t n = 0;
  (void)arg;
  if (schedc_open(&context, NULL)) return "no context";
  put_nested(text);
  const char *wrong = all_stages(context, text, false);
  put_sum(text);
  if (!wrong) wrong = all_stages(context, text, true);
  if (wrong) return (void *)wrong;
  if (schedc_parse(&source, context, "t.sched", good, sizeof good - 1) ||
      schedc_instantiate(&kernel, context, source, NULL, NULL, NULL, 0) ||
      schedc_describe(context, kernel, NULL, 0, SCHEDC_TEXT, count_bytes, &n) ||
      run_once(context, kernel))
    return "a run";
  schedc_kernel_free(kernel);
  schedc_source_free(source);
  schedc_close(context);
  return NULL;
}

// Not where a sanitizer makes frames larger.
static void little_stack(void **state) {
  (void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
  skip();
#endif
  pthread_attr_t attributes;
  pthread_t thread;
  void *wrong = "no thread";
  pthread_attr_init(&attributes);
  assert_int_equal(pthread_attr_setstacksize(&attributes, 128 << 10), 0);
  assert_int_equal(pthread_create(&thread, &attributes, with_little_stack, NULL), 0);
  pthread_join(thread, &wrong);
  pthread_attr_destroy(&attributes);
  if (wrong) fail_msg("%s", (char *)wrong);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(little_stack)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
