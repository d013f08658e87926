// Tests of what a launch does before the GPU has to do with it: checks that name the tensor, tensor
// maps, argument blocks, workspaces, counters.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "fakedriver.h"

static void plans_are_kept(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor t[2];
  begin(&f, copy, NULL, false);
  set(&t[0], X_AT, 2, 100);
  set(&t[1], Y_AT, 2, 100);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  assert_int_equal(note.encoded, 1);
  assert_int_equal(note.grid, 4);
  assert_int_equal(note.threads, f.l.k->threads);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  t[0].data = DATA(X_AT + 16);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  assert_int_equal(note.encoded, 1);
  assert_int_equal(note.replaced, 1);
  for (i64 m = 1; m <= 9; m++) {  // one more than are remembered
    set(&t[0], X_AT, 1, m * 64);
    set(&t[1], Y_AT, 1, m * 64);
    assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
    assert_int_equal(note.grid, m);
  }
  assert_int_equal(note.encoded, 10);
  set(&t[0], X_AT, 2, 100);
  set(&t[1], Y_AT, 2, 100);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  assert_int_equal(note.encoded, 11);
  end(&f);
}

static void arguments_lie_as_declared(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor t[2];
  begin(&f, copy, NULL, false);
  set(&t[0], X_AT, 3, 130);
  set(&t[1], Y_AT, 3, 130);
  t[1].strides[0] = 20000;
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  struct {
    u64 y;
    i64 stride[3];
    int b, m, tiles;
  } want = {Y_AT, {20000, 64, 1}, 3, 130, 9};
  assert_memory_equal(note.args, &want, offsetof(__typeof__(want), tiles) + 4);
  assert_int_equal(note.extent[1], 130);
  assert_int_equal(note.extent[2], 3);
  assert_int_equal(note.stride[2], 130 * 64 * 2);
  end(&f);
}

static void tensors_are_checked(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor good[2], t[2];
  begin(&f, copy, NULL, false);
  set(&good[0], X_AT, 2, 100);
  set(&good[1], Y_AT, 2, 100);
#define BAD(which, change, code, word) \
  memcpy(t, good, sizeof t), t[which].change, refused(&f, t, code, word)
  BAD(0, data = DATA(X_AT + 2), D_T_ALIGN, "'X'");
  BAD(1, data = DATA(Y_AT + 8), D_T_ALIGN, "'Y'");
  BAD(0, data = NULL, D_T_NULL, "'X'");
  BAD(0, strides[1] = 68, D_T_ALIGN, "'X'");
  BAD(1, strides[0] = 6404, D_T_ALIGN, "'Y'");
  BAD(0, strides[0] = (i64)1 << 39, D_T_ALIGN, "'X'");
  BAD(0, type = SCHEDC_BF16, D_T_TYPE, "'X'");
  BAD(0, rank = 2, D_T_RANK, "'X'");
  BAD(1, shape[2] = 32, D_T_SHAPE, "'Y'");
  BAD(0, strides[2] = 2, D_T_STRIDE, "'X'");
  BAD(0, strides[0] = -6400, D_T_STRIDE, "'X'");
  BAD(1, strides[0] = 0, D_T_STRIDE, "'Y'");
#undef BAD
  assert_int_equal(launch(&f, good, NULL), SCHEDC_OK);
  good[0].data = DATA(X_AT + 4);  // a plan that is remembered still looks at addresses
  refused(&f, good, D_T_ALIGN, "'X'");
  good[0].data = DATA(X_AT);
  int other;
  current = &other;
  refused(&f, good, D_G_RUN, "another CUDA context is current");
  current = NULL;
  refused(&f, good, D_G_RUN, "no CUDA context is current");
  current = &the_context;
  end(&f);
}

static void broadcast_has_stride_zero(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor t[2];
  begin(&f, copy, NULL, false);
  set(&t[0], X_AT, 4, 64);
  set(&t[1], Y_AT, 4, 64);
  t[0].strides[0] = 0;
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  assert_int_equal(note.extent[2], 4);
  assert_int_equal(note.stride[2], 0);
  note.refuse_stride_0 = true;
  set(&t[0], X_AT, 5, 64);
  set(&t[1], Y_AT, 5, 64);
  t[0].strides[0] = 0;
  refused(&f, t, D_T_STRIDE, "'X'");
  end(&f);
}

static void empty_tensors(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor t[2];
  begin(&f, copy, NULL, false);
  set(&t[0], 0, 0, 100);
  set(&t[1], 0, 0, 100);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  set(&t[0], X_AT + 2, 2, 0);  // a slice of no rows may start anywhere
  set(&t[1], Y_AT + 2, 2, 0);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  assert_int_equal(note.launches, 0);
  end(&f);
}

static u64 counter_of(const Fixture *f) {
  u64 at;
  for (const SclSlot *s = f->l.tabled.table.slot;; s++) {
    memcpy(&at, note.args + s->offset, sizeof at);
    if (s->kind == SCL_PUT_COUNTER) return at;
  }
}

// The counter of a launch on a stream.
static u64 launch_on(Fixture *f, const schedc_tensor *t, u64 stream) {
  LaunchCall call = {.stream = DATA(stream), .tensor = t};
  assert_int_equal(sc_launch(&f->sc, &f->l, &call), SCHEDC_OK);
  return counter_of(f);
}

static void counters_differ(void **state) {
  (void)state;
  static Fixture f;
  begin(&f, dynamic, NULL, false);
  const schedc_tensor t[2] = {
      {.data = DATA(X_AT), .type = SCHEDC_F16, .rank = 2, .shape = {1000, 64}, .strides = {64, 1}},
      {.data = DATA(Y_AT), .type = SCHEDC_F16, .rank = 2, .shape = {1000, 64}, .strides = {64, 1}}};
  u64 own = launch_on(&f, t, 0), other = launch_on(&f, t, 1);
  assert_int_not_equal(own, other);
  for (u32 i = 0; i < 1000; i++)  // a long launch on stream 1 may outlast them all
    assert_int_equal(launch_on(&f, t, 0), own);
  for (u32 i = 2; i < SCL_STREAMS; i++) {
    u64 at = launch_on(&f, t, i);
    assert_true(at != own && at != other);
  }
  assert_int_equal(launch_on(&f, t, 0), own);
  // of the stream that is the longest without
  assert_int_equal(launch_on(&f, t, SCL_STREAMS), other);
  note.capturing = true;
  u64 last = launch_on(&f, t, 0);
  assert_true(last >= f.l.kernel.memory + SCL_COUNTERS_AT + SCL_STREAMS * SCL_COUNTER_BYTES);
  for (u32 i = 1; i < SCL_CAPTURES; i++, last = counter_of(&f))
    assert_int_equal(launch_on(&f, t, 0), last + SCL_COUNTER_BYTES);
  note.capturing = false;
  assert_int_equal(launch_on(&f, t, 0), own);
  note.lost = true;
  assert_int_equal(launch(&f, t, NULL), SCHEDC_EUNAVAIL);
  assert_int_equal(f.sc.diags->id, D_G_RUN);
  note.lost = false;
  // Scalars are part of what is checked, and bound what is computed from them.
  assert_int_equal(launch(&f, t, (double[]){5}), SCHEDC_OK);
  assert_int_equal(launch(&f, t, (double[]){2e9}), SCHEDC_EINPUT);
  assert_int_equal(f.sc.diags->id, D_T_RANGE);
  assert_non_null(strstr(f.sc.diags->text, "far"));
  end(&f);
}

static void workspaces_are_the_callers(void **state) {
  (void)state;
  static Fixture f;
  const schedc_tensor t[1] = {
      {.data = DATA(X_AT), .type = SCHEDC_F32, .rank = 2, .shape = {1000, 64}, .strides = {64, 1}}};
  begin(&f, ordered, "both", false);
  LaunchCall call = {.tensor = t};
  const SclPlan *p = sc_plan(&f.sc, &f.l, &call);
  assert_non_null(p);
  assert_int_equal(p->bytes, 2 * 256 + 64 * 64 * 4);
  assert_int_equal(p->zeroed, p->bytes);
  refused(&f, t, D_T_NULL, "workspace");
  call.workspace = 0x60000000;
  call.workspace_bytes = p->bytes;
  assert_int_equal(sc_launch(&f.sc, &f.l, &call), SCHEDC_OK);
  assert_int_equal(note.memsets, 1);
  assert_int_equal(note.memset_bytes, p->bytes);
  assert_int_equal(note.launches, 2);
  call.workspace += 16;
  assert_int_equal(sc_launch(&f.sc, &f.l, &call), SCHEDC_EINPUT);
  end(&f);
}

#define STAGE(name, from, to)                                       \
  "kernel " name " {\n  in " from " : f16[M, 64]\n  out " to        \
  " : f16[M, 64]\n  grid (x : cdiv(M, 64))\n"                       \
  "  role all : 1 warpgroup, 128 regs {\n    reg s : f16[64, 64]\n" \
  "    s[i,j] = " from "[x*64 + i, j]\n    " to "[x*64 + i, j] = s[i,j]\n  }\n}\n"

// What is found out about the second kernel's tensors keeps the first from being launched.
static void sequences_start_whole(void **state) {
  (void)state;
  static Fixture f;
  begin(&f, STAGE("first", "X", "Y") STAGE("second", "Y", "Z") "sequence both { first; second }\n",
        "both", false);
  schedc_tensor t[3];
  for (u32 i = 0; i < 3; i++)
    t[i] = (schedc_tensor){.data = DATA((u64)X_AT * (i + 1)),
                           .type = SCHEDC_F16,
                           .rank = 2,
                           .shape = {100, 64},
                           .strides = {64, 1}};
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  assert_int_equal(note.launches, 2);
  assert_int_equal(note.overlapping, 1);  // not with what the stream had before
  t[2].data = DATA((u64)X_AT * 3 + 8);
  refused(&f, t, D_T_ALIGN, "'Z' is not a multiple of 16 bytes");
  t[2].data = DATA((u64)X_AT * 3 + 1);
  refused(&f, t, D_T_ALIGN, "'Z'");
  end(&f);
}

static int write_nothing(void *user, const char *text, size_t n) {
  (void)user, (void)text, (void)n;
  return 0;
}

// Each job once a round; rounds begin with other ones, and none follows the same one again before
// all strides have been used.
static void measured_in_turns(void **state) {
  (void)state;
  static const u32 strides[] = {1, 1, 2,  2, 4,  2, 6, 4,
                                6, 4, 10, 4, 12, 6, 8, 8};  // Euler's totient
  enum { MOST = sizeof strides / sizeof *strides };
  for (u32 n = 1; n <= MOST; n++) {
    bool followed[MOST][MOST] = {{0}};
    for (u32 round = 0; round < MOST; round++) {
      bool had[MOST] = {0};
      for (u32 k = 0, before = 0; k < n; k++) {
        u32 i = sc_gpu_turn(round, k, n);
        assert_true(i < n && !had[i]);
        had[i] = true;
        if (!k) assert_int_equal(i, round % n);
        if (k && round < strides[n - 1]) {
          assert_false(followed[before][i]);
          followed[before][i] = true;
        }
        before = i;
      }
    }
  }
}

// Of CTAs that wait for each other's turns none may be left out.
static void clusters_that_fit(void **state) {
  (void)state;
  static Fixture f;
  static const struct {
    const char *grid;
    int room;
    unsigned ctas;
  } row[] = {{"persistent cluster (x : 4)", 1000, 132},
             {"persistent cluster (x : 4)", 32, 128},
             {"dynamic cluster (x : 4)", 1, 4},
             {"cluster (x : 4)", 1, 160},
             {"persistent", 1, 132}};
  schedc_tensor t[2];
  for (u32 i = 0; i < COUNT(row); i++) {
    char source[1024];
    snprintf(
        source, sizeof source,
        "kernel k {\n  in X : f32[M, 64]\n  inout Y : f32[64, 64]\n  grid (x : cdiv(M, 64)) %s\n"
        "  turn order : x\n  ring c : f32[64, 64]\n  role load : 1 warp { c <- X[x*64..] }\n"
        "  role add : 1 warp {\n    wait c\n    acquire order;  Y[0.., 0..] += c;  wait Y\n"
        "    release order\n    release c\n  }\n}\n",
        row[i].grid);
    room_for_clusters = row[i].room;
    begin(&f, source, NULL, false);
    for (u32 n = 0; n < 2; n++) {
      t[n] = (schedc_tensor){.data = DATA(n ? Y_AT : X_AT), .type = SCHEDC_F32, .rank = 2};
      t[n].shape[0] = n ? 64 : 160 * 64, t[n].shape[1] = t[n].strides[0] = 64, t[n].strides[1] = 1;
    }
    LaunchCall call = {.tensor = t, .workspace = 0x60000000, .workspace_bytes = 1 << 16};
    assert_int_equal(sc_launch(&f.sc, &f.l, &call), SCHEDC_OK);
    assert_int_equal(note.grid, row[i].ctas);
    if (!i) {
      room_for_clusters = 0;
      sc_unload(&f.l);
      const char *wrong = sc_load(&f.l, &fake);
      assert_non_null(wrong);
      assert_non_null(strstr(wrong, "no cluster of kernel 'k', of 4 CTAs, fits"));
    }
    end(&f);
  }
  room_for_clusters = 1000;
}

// Two zeros are two plans.
static void zeros_differ(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor y = {
      .data = DATA(Y_AT), .type = SCHEDC_F32, .rank = 1, .shape = {64}, .strides = {1}};
  begin(&f,
        "kernel k {\n  in a : f32\n  out Y : f32[M]\n  grid (x : cdiv(M, 64))\n"
        "  role r : 1 warpgroup { reg v : f32[64] = 1 / a\n  Y[x*64 + i] = v[i] }\n}\n",
        NULL, false);
  for (u32 i = 0; i < 4; i++) {
    double zero = i % 2 ? -0.0 : 0.0;
    float given;
    assert_int_equal(launch(&f, &y, &zero), SCHEDC_OK);
    memcpy(&given, note.args + 20, sizeof given);
    assert_int_equal(!signbit(given), i % 2 == 0);
  }
  end(&f);
}

static void hear(void *user, const schedc_diagnostic *d) { strcpy(user, d->code); }

// Without a driver, NVRTC or a current context; the arguments are looked at first.
static void loading_says_what_is_missing(void **state) {
  (void)state;
  char code[32] = "", why[8] = "";
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_context *context;
  schedc_source *source;
  schedc_kernel *kernel;
  schedc_loaded *loaded = (schedc_loaded *)&note;
  size_t bytes;
  options.sink = hear;
  options.sink_user = code;
  assert_int_equal(schedc_open(&context, &options), SCHEDC_OK);
  assert_int_equal(schedc_parse(&source, context, "copy.sched", copy, sizeof copy - 1), SCHEDC_OK);
  assert_int_equal(schedc_instantiate(&kernel, context, source, NULL, NULL, NULL, 0), SCHEDC_OK);
  assert_int_equal(schedc_load(&loaded, context, NULL, NULL), SCHEDC_EARG);
  assert_null(loaded);
  assert_int_equal(schedc_load(&loaded, context, kernel, NULL), SCHEDC_EUNAVAIL);
  assert_null(loaded);
  assert_int_equal(strncmp(code, "G.", 2), 0);
  assert_int_equal(schedc_launch(context, NULL, NULL, NULL, 0, NULL, 0, NULL, 0), SCHEDC_EARG);
  assert_int_equal(schedc_workspace_size(context, NULL, NULL, 0, NULL, 0, &bytes), SCHEDC_EARG);
  assert_int_equal(schedc_check_elements(context, NULL, NULL, NULL, 0, NULL, 0), SCHEDC_EARG);
  assert_int_equal(schedc_check_waits(context, NULL), SCHEDC_EARG);
  schedc_build_options build = SCHEDC_BUILD_OPTIONS_INIT;
  build.debug_waits = 1;  // whom would a header tell?
  assert_int_equal(
      schedc_build(context, kernel, SCHEDC_C_HEADER, &build, write_nothing, NULL, NULL),
      SCHEDC_EARG);
  assert_int_equal(schedc_build(context, kernel, SCHEDC_CUDA_C, &build, write_nothing, NULL, NULL),
                   SCHEDC_OK);
  build.debug_waits = 0;
  build.name = "good";
  assert_int_equal(schedc_build(context, kernel, SCHEDC_CUDA_C, &build, write_nothing, NULL, NULL),
                   SCHEDC_EARG);
  build.name = "not good";
  assert_int_equal(
      schedc_build(context, kernel, SCHEDC_C_HEADER, &build, write_nothing, NULL, NULL),
      SCHEDC_EARG);
  if (schedc_gpu_available(context, 0, why, sizeof why)) assert_true(strlen(why) == sizeof why - 1);
  schedc_unload(NULL);
  schedc_kernel_free(kernel);
  schedc_source_free(source);
  schedc_close(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_are_kept),
      cmocka_unit_test(arguments_lie_as_declared),
      cmocka_unit_test(tensors_are_checked),
      cmocka_unit_test(broadcast_has_stride_zero),
      cmocka_unit_test(empty_tensors),
      cmocka_unit_test(counters_differ),
      cmocka_unit_test(workspaces_are_the_callers),
      cmocka_unit_test(sequences_start_whole),
      cmocka_unit_test(measured_in_turns),
      cmocka_unit_test(clusters_that_fit),
      cmocka_unit_test(zeros_differ),
      cmocka_unit_test(loading_says_what_is_missing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
