// Tests of machine code without NVRTC: from the cache, whichever made it, and from the caller, if
// it is the kernel's. tests/fakenvrtc.c makes the code.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fakedriver.h"

static char folder[64];

static int begin_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/schedc-build-XXXXXX");
  setenv("SCHEDC_NVRTC", FAKE_NVRTC, 1);
  unsetenv("FAKE_MACHINE");
  unsetenv("FAKE_PTX");
  return !mkdtemp(folder);
}

static int end_folder(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

// The loaded kernel of the fixture, built.
static schedc_status build(Fixture *f, bool debug_waits, bool no_cache, Built *out) {
  const BuildOptions options = {
      .cache = folder, .no_cache = no_cache, .emission.debug_waits = debug_waits};
  Loaded l;
  f->sc.errors = 0;
  f->sc.diags = NULL, f->sc.diag_end = &f->sc.diags;
  assert_true(sc_emit_all(&f->sc, f->l.k, &options, &l));
  return sc_build(&f->sc, l.k, l.text, TARGET_CUBIN, &options, out);
}

static void a_cached_cubin_needs_no_nvrtc(void **state) {
  (void)state;
  static Fixture f;
  Built made, again, alone;
  begin(&f, copy, NULL, false);
  assert_int_equal(build(&f, false, false, &made), SCHEDC_OK);
  assert_false(made.cached);
  assert_int_equal(build(&f, false, false, &again), SCHEDC_OK);
  assert_true(again.cached && !again.no_nvrtc);
  setenv("SCHEDC_NVRTC", "/nonexistent", 1);
  assert_int_equal(build(&f, false, false, &alone), SCHEDC_OK);
  assert_true(alone.cached && alone.no_nvrtc);
  assert_string_equal(alone.maker, made.maker);
  assert_int_equal(alone.code.n, made.code.n);
  assert_memory_equal(alone.code.at, made.code.at, made.code.n);
  assert_int_equal(build(&f, true, false, &alone), SCHEDC_EUNAVAIL);  // another text
  assert_int_equal(f.sc.diags->id, D_G_NVRTC);
  assert_int_equal(build(&f, false, true, &alone), SCHEDC_EUNAVAIL);
  const BuildOptions options = {.cache = folder};
  Loaded l;
  f.sc.errors = 0;
  assert_int_equal(sc_make_code(&f.sc, f.l.k, &options, (Blob){0}, &l), SCHEDC_OK);
  assert_null(sc_load(&l, &fake));
  sc_unload(&l);
  end(&f);
}

static void a_limit_that_is_no_size_is_said(void **state) {
  (void)state;
  static Fixture f;
  Built out;
  begin(&f, copy, NULL, false);
  setenv("SCHEDC_CACHE_SIZE", "lots", 1);
  assert_int_equal(build(&f, false, false, &out), SCHEDC_OK);
  assert_int_equal(f.sc.diags->id, D_G_CACHE);
  assert_int_equal(build(&f, false, true, &out), SCHEDC_OK);  // no cache is asked for
  assert_null(f.sc.diags);
  unsetenv("SCHEDC_CACHE_SIZE");
  end(&f);
}

// What the machine lacks is not the text's fault.
static void a_lack_of_memory_is_the_machine_s(void **state) {
  (void)state;
  static const struct {
    const char *log;
    schedc_status status;
  } row[] = {{"", SCHEDC_EUNAVAIL},
             {"ptxas fatal   : Memory allocation failure\n", SCHEDC_EUNAVAIL},
             {"ptxas fatal   : Ptx assembly aborted due to errors\n", SCHEDC_EUNAVAIL},
             {"ptxas error   : Entry function 'copy' uses too much shared data\n"
              "ptxas fatal   : Ptx assembly aborted due to errors\n",
              SCHEDC_EINPUT},
             {"copy.sched(3): error: identifier \"x\" is undefined\n", SCHEDC_EINPUT}};
  static Fixture f;
  Built out;
  begin(&f, copy, NULL, false);
  for (u32 i = 0; i < COUNT(row); i++) {
    setenv("FAKE_LOG", row[i].log, 1);
    assert_int_equal(build(&f, false, true, &out), row[i].status);
    assert_int_equal(f.sc.diags->id, D_G_NVRTC);
  }
  unsetenv("FAKE_LOG");
  end(&f);
}

// While there is one, what another made is not taken.
static void another_nvrtc_builds_anew(void **state) {
  (void)state;
  static Fixture f;
  Built made, again;
  char other[128], command[512];
  begin(&f, copy, NULL, false);
  assert_int_equal(build(&f, false, false, &made), SCHEDC_OK);
  snprintf(other, sizeof other, "%s/libnvrtc.so", folder);
  snprintf(command, sizeof command, "cp '%s' '%s'", FAKE_NVRTC, other);
  assert_int_equal(system(command), 0);
  setenv("SCHEDC_NVRTC", other, 1);
  assert_int_equal(build(&f, false, false, &again), SCHEDC_OK);
  assert_false(again.cached);
  setenv("SCHEDC_NVRTC", "/nonexistent", 1);
  assert_int_equal(build(&f, false, false, &again), SCHEDC_OK);
  assert_non_null(strstr(again.maker, other));  // it was the last
  end(&f);
}

static void code_for_another_machine_is_not_handed_on(void **state) {
  (void)state;
  static Fixture f;
  Built made;
  begin(&f, copy, NULL, false);
  setenv("FAKE_MACHINE", "62", 1);
  assert_int_equal(build(&f, false, false, &made), SCHEDC_OK);
  assert_int_equal(build(&f, false, false, &made), SCHEDC_OK);
  assert_true(made.cached);
  setenv("SCHEDC_NVRTC", "/nonexistent", 1);
  assert_int_equal(build(&f, false, false, &made), SCHEDC_EUNAVAIL);
  end(&f);
}

// What does not synchronise as the plan says is an error, and is not kept; nor is what cannot be
// compared.
static void other_ptx_is_refused(void **state) {
  (void)state;
  static Fixture f;
  Built made;
  char path[128];
  begin(&f, copy, NULL, false);
  snprintf(path, sizeof path, "%s/other.ptx", folder);
  setenv("FAKE_PTX", path, 1);
  assert_int_equal(build(&f, false, false, &made), SCHEDC_EUNAVAIL);  // there is none
  assert_int_equal(f.sc.diags->id, D_G_NVRTC);
  FILE *to = fopen(path, "w");
  fputs(".visible .entry copy(\n)\n{\n  ret;\n}\n", to);
  fclose(to);
  assert_int_equal(build(&f, false, false, &made), SCHEDC_EINPUT);
  assert_int_equal(f.sc.diags->id, D_G_PTX);
  assert_int_equal(build(&f, true, false, &made), SCHEDC_OK);  // debug_waits: not compared
  unsetenv("FAKE_PTX");
  assert_int_equal(build(&f, false, false, &made), SCHEDC_OK);
  assert_false(made.cached);
  end(&f);
}

static void a_seal_is_of_one_text(void **state) {
  (void)state;
  static Fixture f;
  begin(&f, copy, NULL, false);
  Blob code = {"\177ELF machine code", 17}, sealed = sc_seal(&f.sc, f.l.text, code);
  const void *back = NULL;
  assert_null(sc_unseal(&f.sc, f.l.text, sealed, &back));
  assert_memory_equal(back, code.at, code.n);
  for (size_t n = 0; n < sealed.n; n++) {
    char *damaged = sc_new(&f.sc, sealed.n);
    memcpy(damaged, sealed.at, sealed.n);
    damaged[n] ^= 1;
    assert_non_null(sc_unseal(&f.sc, f.l.text, (Blob){damaged, sealed.n}, &back));
    assert_non_null(sc_unseal(&f.sc, f.l.text, (Blob){sealed.at, n}, &back));
  }
  CudaText other = *f.l.text;
  other.text.n--;
  assert_non_null(strstr(sc_unseal(&f.sc, &other, sealed, &back), "of another kernel"));
  end(&f);
}

typedef struct Bytes {
  unsigned char at[1024];
  size_t n;
} Bytes;

static int take(void *user, const char *at, size_t n) {
  Bytes *b = user;
  memcpy(b->at + b->n, at, n);
  return b->n += n, 0;
}

static void hear(void *user, const schedc_diagnostic *d) { strcpy(user, d->code); }

// Through the interface: refused before the driver is asked for anything but its name.
static void loading_code(void **state) {
  (void)state;
  char code[32] = "";
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_load_options load = SCHEDC_LOAD_OPTIONS_INIT;
  schedc_build_options building = SCHEDC_BUILD_OPTIONS_INIT;
  schedc_context *context;
  schedc_source *source;
  schedc_kernel *kernel;
  schedc_loaded *loaded;
  Bytes cubin = {.n = 0};
  options.sink = hear;
  options.sink_user = code;
  building.cache = folder;
  assert_int_equal(schedc_open(&context, &options), SCHEDC_OK);
  assert_int_equal(schedc_parse(&source, context, "copy.sched", copy, sizeof copy - 1), SCHEDC_OK);
  assert_int_equal(schedc_instantiate(&kernel, context, source, NULL, NULL, NULL, 0), SCHEDC_OK);
  assert_int_equal(schedc_build(context, kernel, SCHEDC_CUBIN, &building, take, &cubin, NULL),
                   SCHEDC_OK);
  load.cubin = cubin.at;
  assert_int_equal(schedc_load(&loaded, context, kernel, &load), SCHEDC_EARG);  // no length
  load.cubin_bytes = cubin.n;
  cubin.at[cubin.n - 9] ^= 1;
  assert_int_equal(schedc_load(&loaded, context, kernel, &load), SCHEDC_EINPUT);
  assert_string_equal(code, "G.cubin");
  assert_null(loaded);
  schedc_kernel_free(kernel);
  schedc_source_free(source);
  schedc_close(context);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_folder, end_folder)
  const struct CMUnitTest tests[] = {TEST(a_cached_cubin_needs_no_nvrtc),
                                     TEST(a_limit_that_is_no_size_is_said),
                                     TEST(a_lack_of_memory_is_the_machine_s),
                                     TEST(another_nvrtc_builds_anew),
                                     TEST(code_for_another_machine_is_not_handed_on),
                                     TEST(other_ptx_is_refused),
                                     TEST(a_seal_is_of_one_text),
                                     TEST(loading_code)};
  return cmocka_run_group_tests_name("build", tests, NULL, NULL);
}
