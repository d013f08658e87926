// Tests of the report on machine code: an excerpt of nvdisasm's text of a kernel of ours, as it is
// and edited; code that lies in another order than it runs; how the disassembler is found and run.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runtime/sass/sass.h"
#include "fixture.h"

// Each line of what changes is one of the schedule.
#define SCHEDULE(reg, step)                                               \
  "kernel two {\n"                                                        \
  "  in  Q : f16[64, 64], K : f16[N, 64], V : f16[N, 64]\n"               \
  "  out O : f32[64, 64]\n"                                               \
  "  grid (x : 1)\n"                                                      \
  "  ring q : f16[64, 64]\n"                                              \
  "  ring k : f16[16, 64] * 2\n"                                          \
  "  ring v : f16[16, 64] * 2\n"                                          \
  "  role load : 1 warp, 24 regs {\n"                                     \
  "    q <- Q[0..]\n"                                                     \
  "    for t in 0 .. cdiv(N, 16) { k <- K[t*16..];  v <- V[t*16..] }\n"   \
  "  }\n"                                                                 \
  "  role math : 1 warpgroup, 240 regs {\n"                               \
  "    reg s : f32[64, 16], p : f16[64, 16] = 0, o : f32[64, 64] = 0" reg \
  "\n"                                                                    \
  "    wait q\n"                                                          \
  "    for t in 0 .. cdiv(N, 16) {\n"                                     \
  "      wait k, v\n"                                                     \
  "      async s[i,j] = q[i,d] @ k[j,d]\n"                                \
  "      async o[i,d] += p[i,j] @ v[j,d]\n"                               \
  "      wait s\n" step                                                   \
  "    }\n"                                                               \
  "    release q\n"                                                       \
  "    O[i,d] = o[i,d]\n"                                                 \
  "  }\n"                                                                 \
  "}\n"
static const char schedule[] = SCHEDULE("",
                                        "      s[i,j] = exp2(s[i,j])\n"  // 20
                                        "      wait o;  release k, v\n"  // 21
                                        "      p[i,j] = s[i,j]\n");      // 22
// The statement of line 13 twice.
static const char twice[] = SCHEDULE(";  def weights() { s[i,j] = exp2(s[i,j]) }",
                                     "      weights()\n"
                                     "      wait o;  release k, v\n"
                                     "      weights();  p[i,j] = s[i,j]\n");
// Lines 21 and 23 exclude each other.
static const char arms[] = SCHEDULE("",
                                    "      if t > 0 {\n"
                                    "        wait o;  release k, v\n"
                                    "      } else {\n"
                                    "        wait o;  release k, v\n"
                                    "      }\n"
                                    "      p[i,j] = s[i,j]\n");

// The loop of 'math', with what stands around it cut short. Each piece is at its line.
#define AT(line) "\t//## File \"/there/two.sched\", line " #line "\n"
#define CALLED(line)                                                                    \
  "\t//## File \"/there/two.cu\", line 89 inlined at \"/there/two.sched\", line " #line \
  "\n" AT(line)
#define HEAD \
  "\t.section\t.text.two,\"ax\",@progbits\n" \
  AT(14) "        /*0390*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR13], R4 ;\n" \
  ".L_x_8:\n"
#define MOVE AT(16) "        /*0760*/                   R2UR UR7, R9 ;\n"
#define FULL                                                                            \
  CALLED(16)                                                                            \
  "        /*0770*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR7], R8 ;\n" \
  "        /*0780*/              @!P0 BRA `(.L_x_5) ;\n"                                \
  ".L_x_17:\n"
#define SCORES \
  CALLED(17) "        /*07e0*/                   WARPGROUP.ARRIVE ;\n" \
  CALLED(18) "        /*08a0*/                   HGMMA.64x16x16.F32 R56, gdesc[UR8], RZ, !UPT ;\n" \
  "        /*08c0*/                   HGMMA.64x16x16.F32 R56, gdesc[UR20], R56 ;\n" \
  CALLED(17) "        /*0910*/                   HGMMA.64x16x16.F32 R56, gdesc[UR20], R56 ;\n" \
  "        /*0920*/                   HGMMA.64x16x16.F32 R56, gdesc[UR8], R56, gsb0 ;\n"
#define VALUES                                                                                   \
  CALLED(18)                                                                                     \
  "        /*0940*/                   WARPGROUP.ARRIVE ;\n"                                      \
  "        /*0970*/                   HGMMA.64x64x16.F32 R24, R64, gdesc[UR8].tnspB, R24, gsb0 " \
  ";\n"
#define WAIT_S CALLED(19) "        /*0980*/                   WARPGROUP.DEPBAR.LE gsb0, 0x1 ;\n"
#define WEIGHTS                                              \
  AT(20)                                                     \
  "        /*0990*/                   MUFU.EX2 R56, R56 ;\n" \
  "        /*09a0*/                   MUFU.EX2 R57, R57 ;\n" \
  "        /*09a8*/                   FMUL R58, R58, R57 ;\n"
#define WAIT_O CALLED(21) "        /*0a20*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;\n"
#define RELEASE \
  CALLED(21)    \
  "        /*0a90*/              @!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R9+URZ], RZ ;\n"
#define PACK CALLED(22) "        /*0aa0*/                   F2FP.F16.F32.PACK_AB R64, R57, R56 ;\n"
#define TAIL \
  AT(15) "        /*0ab0*/               @P1 BRA `(.L_x_8) ;\n" \
  AT(25) "        /*0b00*/                   STG.E desc[UR10][R8.64], R24 ;\n" \
  "        /*0b10*/                   EXIT ;\n" \
  ".L_x_5:\n" \
  CALLED(14) "        /*0c00*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR7], R8 ;\n" \
  "        /*0c10*/              @!P0 BRA `(.L_x_5) ;\n" \
  "        /*0c20*/                   BRA `(.L_x_17) ;\n"

static const Kernel *kernel;
static SassText sass;
static SassReport report;

// The report's loop at line 15.
static const SassLoop *follow(Fixture *f, const char *text) {
  if (!kernel) kernel = compile(f, "here/two.sched", schedule);
  sc_read_sass(&f->sc, text, kernel->text->name, &sass);
  assert_int_equal(sass.function.n, 1);
  sc_follow_sass(&f->sc, kernel, &sass.function.at[0], &report);
  for (u32 i = 0; i < report.loop.n; i++)
    if (report.loop.at[i].head) return &report.loop.at[i];
  fail_msg("there is no loop");
  return NULL;
}

static const char *printed(Fixture *f) {
  Str out = {.sc = &f->sc};
  sc_print_sass(&out, &report, &(SassFigures){"nvdisasm", 256, 255, 0, 0});
  return out.at;
}

static int begin_kernel(void **state) { return kernel = NULL, begin(state); }
#define KERNEL_TEST(f) cmocka_unit_test_setup_teardown(f, begin_kernel, end)

static void instructions_are_read(void **state) {
  Fixture *f = *state;
  follow(f, HEAD FULL SCORES VALUES WAIT_S WEIGHTS WAIT_O RELEASE PACK TAIL);
  const SassFunction *two = &sass.function.at[0];
  assert_string_equal(two->name, "two");
  assert_int_equal(two->code.n, 20);  // up to the exit
  const Sass *s = &two->code.at[8];
  assert_string_equal(two->code.at[7].op, "HGMMA.64x16x16.F32");
  assert_true(s->kind == SASS_ARRIVE && s->line == 18);
  assert_true(two->code.at[7].ends_group && !two->code.at[6].ends_group);
  assert_int_equal(two->code.at[10].number, 1);
  assert_int_equal(two->code.at[14].number, 0);
}

static void rows_say_what_is_in_flight(void **state) {
  Fixture *f = *state;
  const SassLoop *l = follow(f, HEAD FULL SCORES VALUES WAIT_S WEIGHTS WAIT_O RELEASE PACK TAIL);
  static const u8 kind[] = {SASS_MBAR_WAIT, SASS_PRODUCT,    SASS_PRODUCT,     SASS_WAIT_GROUP,
                            SASS_OTHER,     SASS_WAIT_GROUP, SASS_MBAR_ARRIVE, SASS_OTHER};
  static const u32 count[] = {1, 4, 1, 1, 0, 1, 1, 0}, beside[] = {0, 0, 1, 2, 1, 1, 0, 0};
  assert_int_equal(l->row.n, COUNT(kind));
  for (u32 i = 0; i < COUNT(kind); i++) {
    assert_int_equal(l->row.at[i].kind, kind[i]);
    assert_int_equal(l->row.at[i].count, count[i]);
    assert_int_equal(l->row.at[i].beside.n, beside[i]);
  }
  assert_int_equal(l->row.at[1].line, 17);  // two of its instructions have the next one's
  assert_true(l->row.at[1].fenced && l->row.at[2].fenced);
  assert_int_equal(l->row.at[4].beside.at[0], 18);
  assert_int_equal(l->row.at[4].among.n[SASS_EXPONENTIAL], 2);
  assert_int_equal(l->row.at[4].among.n[SASS_ARITHMETIC], 1);
  assert_int_equal(l->beside.n[SASS_EXPONENTIAL], 2);
  assert_int_equal(l->beside.n[SASS_CONVERSION], 0);
  assert_int_equal(l->all.n[SASS_CONVERSION], 1);
  assert_int_equal(l->moved.n, 0);
}

static void the_report_is_a_table(void **state) {
  Fixture *f = *state;
  follow(f, HEAD MOVE FULL SCORES VALUES WAIT_S WEIGHTS WAIT_O RELEASE PACK TAIL);
  const char *text = one_line(&f->sc, printed(f));
  has(text, "two: 256 threads, 255 registers at entry, no spills ");
  has(text, "role math, 240 registers, line 15: for t in 0 .. cdiv(N, 16) ");
  has(text, " 17 async s[i,j] = q[i,d] @ k[j,d] 4 HGMMA.64x16x16.F32 ");
  has(text, " 19 wait s WARPGROUP.DEPBAR, 1 may stay 17, 18 ");
  has(text, " 2 exponentials, 1 other arithmetic (line 20) 18 ");
  has(text, " beside products in flight: 2 of 2 exponentials, 0 of 1 conversion ");
  has(text, " in the schedule's order"), has(text, " 1 uniform move 16 wait ");
}

static const SassMoved *moved(const SassLoop *l, SassMove move, u32 line) {
  for (u32 i = 0; i < l->moved.n; i++)
    if (l->moved.at[i].move == move && l->moved.at[i].line == line) return &l->moved.at[i];
  return NULL;
}

// A wait too early, or too late: what was to stand beside the product does not.
static void moved_waits_are_found(void **state) {
  Fixture *f = *state;
  const SassLoop *l = follow(f, HEAD FULL SCORES VALUES WAIT_S WAIT_O WEIGHTS RELEASE PACK TAIL);
  const SassMoved *m = moved(l, MOVED_BEHIND, 21);
  assert_non_null(m);
  assert_int_equal(m->exponentials, 2);
  assert_int_equal(l->beside.n[SASS_EXPONENTIAL], 0);
  has(one_line(&f->sc, printed(f)),
      "line 21, 'wait o': before 2 exponentials (line 20), in the schedule behind");
  l = follow(f, HEAD FULL SCORES VALUES WAIT_S WEIGHTS WAIT_O PACK RELEASE TAIL);
  m = moved(l, MOVED_BEFORE, 21);
  assert_non_null(m);
  assert_int_equal(m->conversions, 1);
  assert_int_equal(l->moved.n, 1);
}

static void moved_rows_are_found(void **state) {
  Fixture *f = *state;
  const SassLoop *l = follow(f, HEAD FULL SCORES WAIT_S VALUES WEIGHTS WAIT_O RELEASE PACK TAIL);
  const SassMoved *m = moved(l, MOVED_ROWS, 18);
  assert_non_null(m);
  assert_true(m->lines.n == 1 && m->lines.at[0] == 19);
  has(one_line(&f->sc, printed(f)),
      "line 18, 'async o[i,d] += p[i,j] @ v[j,d]': behind line 19, in the schedule before");
}

static void lost_and_added_ones_are_found(void **state) {
  Fixture *f = *state;
  const SassLoop *l = follow(f, HEAD FULL SCORES WAIT_S WEIGHTS WAIT_O RELEASE PACK TAIL);
  assert_non_null(moved(l, MOVED_ABSENT, 18));
  assert_int_equal(l->moved.n, 1);
  has(printed(f), "is not in this code");
  l = follow(f, HEAD FULL WAIT_S WEIGHTS WAIT_O RELEASE PACK TAIL);
  assert_int_equal(l->moved.n, 2);
  l = follow(f, HEAD FULL SCORES CALLED(17) "/*0*/ WARPGROUP.DEPBAR.LE gsb0, 0x0 ;\n" VALUES WAIT_S
                    WEIGHTS WAIT_O RELEASE PACK TAIL);
  assert_non_null(moved(l, MOVED_EXTRA, 17));
  has(printed(f), "WARPGROUP.DEPBAR.LE is not in the schedule");
}

// Operations that are alike: the first that explains where an instruction stands.
static void what_is_said_twice_is_told_apart(void **state) {
  Fixture *f = *state;
  kernel = compile(f, "two.sched", twice);
#define EXP AT(13) "/*0*/ MUFU.EX2 R56, R56 ;\n"
  const SassLoop *l = follow(f, HEAD FULL SCORES VALUES WAIT_S EXP WAIT_O RELEASE EXP PACK TAIL);
  assert_int_equal(l->moved.n, 0);
  l = follow(f, HEAD FULL SCORES VALUES WAIT_S EXP WAIT_O EXP RELEASE EXP PACK TAIL);
  const SassMoved *m = moved(l, MOVED_BEFORE, 21);
  assert_non_null(m);
  assert_int_equal(m->exponentials, 1);
  assert_int_equal(l->moved.n, 1);
}

static void arms_have_no_order(void **state) {
  Fixture *f = *state;
  kernel = compile(f, "two.sched", arms);
#define ARM(line) AT(line) "/*0*/ WARPGROUP.DEPBAR.LE gsb0, 0x0 ;\n/*8*/ SYNCS.ARRIVE.A1T0 RZ ;\n"
  const SassLoop *l = follow(f, HEAD FULL SCORES VALUES WAIT_S ARM(23) ARM(21) TAIL);
  assert_int_equal(l->moved.n, 0);
  l = follow(f, HEAD FULL SCORES VALUES ARM(23) ARM(21) WAIT_S TAIL);
  assert_non_null(moved(l, MOVED_ROWS, 19));
  assert_int_equal(l->moved.n, 1);
}

// A wait for an mbarrier whose line has none: then no line of such a wait says anything.
static void lines_of_waits_are_not_trusted(void **state) {
  Fixture *f = *state;
  const SassLoop *l = follow(f, HEAD SCORES FULL VALUES WAIT_S WEIGHTS WAIT_O RELEASE PACK TAIL);
  assert_non_null(moved(l, MOVED_ROWS, 16));
  l = follow(
      f, HEAD SCORES FULL VALUES WAIT_S WEIGHTS AT(
             20) "/*0*/ SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR7], R8 ;\n" WAIT_O RELEASE PACK TAIL);
  assert_int_equal(l->moved.n, 0);
  has(printed(f), "(near this line)");
}

// … or the loop's way back has another line.
static void loops_are_known_by_what_is_in_them(void **state) {
  Fixture *f = *state;
  const SassLoop *l = follow(f, HEAD FULL SCORES VALUES WAIT_S WEIGHTS WAIT_O RELEASE PACK
                             "/*0*/ @P1 BRA `(.L_x_8) ;\n" AT(25) "/*8*/ EXIT ;\n.L_x_5:\n");
  assert_int_equal(l->row.n, 8);
}

// A way out of the loop lies in its midst.
static void ways_out_stand_behind(void **state) {
  Fixture *f = *state;
  follow(
      f,
      HEAD FULL SCORES VALUES "/*0*/ @P2 BRA `(.L_x_50) ;\n" AT(
          25) "/*1*/ STG.E desc[UR10][R8.64], R24 ;\n/*2*/ BRA `(.L_x_51) ;\n.L_x_50:\n" WAIT_S
          WEIGHTS WAIT_O RELEASE PACK AT(15) "/*3*/ @P1 BRA `(.L_x_8) ;\n.L_x_51:\n/*4*/ EXIT ;\n");
  const SassFunction *two = &sass.function.at[0];
  u32 back = 0, store = 0;
  for (u32 i = 0; i < two->code.n; i++) {
    if (two->code.at[i].kind == SASS_BRANCH && two->code.at[i].line == 15) back = i;
    if (two->code.at[i].kind == SASS_GLOBAL) store = i;
  }
  assert_int_equal(two->code.at[store].loop, SC_NONE);
  assert_true(back && store > back);
}

static void spills_are_counted(void **state) {
  Fixture *f = *state;
  const SassLoop *l =
      follow(f, HEAD FULL SCORES VALUES WAIT_S WEIGHTS
             "/*0*/ STL.64 [R1], R56 ;\n/*8*/ LDL.64 R56, [R1] ;\n" WAIT_O RELEASE PACK TAIL);
  assert_int_equal(l->all.n[SASS_SPILL], 2);
  has(printed(f), "2 spills");
}

// The wait for o lies behind the exit's code, and is jumped to and back from; so is it the loop's.
static void code_is_followed_as_it_runs(void **state) {
  Fixture *f = *state;
  const SassLoop *l =
      follow(f, HEAD FULL SCORES VALUES WAIT_S WEIGHTS
             "/*a*/ BRA `(.L_x_40) ;\n.L_x_41:\n" RELEASE PACK AT(
                 15) "/*b*/ @P1 BRA `(.L_x_8) ;\n/*c*/ BRA `(.L_x_42) ;\n.L_x_40:\n" WAIT_O
                     "/*d*/ BRA `(.L_x_41) ;\n.L_x_42:\n/*e*/ EXIT ;\n");
  assert_int_equal(l->row.n, 8);
  assert_true(l->row.at[5].kind == SASS_WAIT_GROUP && l->row.at[5].line == 21);
  assert_int_equal(l->row.at[6].kind, SASS_MBAR_ARRIVE);
  assert_int_equal(l->moved.n, 0);
}

// Lines of another file are no lines of the schedule.
static void other_files_are_nobodys(void **state) {
  Fixture *f = *state;
  kernel = compile(f, "two.sched", schedule);
  sc_read_sass(&f->sc, HEAD "\t//## File \"/there/other.sched\", line 17\n/*0*/ EXIT ;\n",
               kernel->text->name, &sass);
  const SassFunction *two = &sass.function.at[0];
  assert_int_equal(two->code.at[0].line, 14);
  assert_int_equal(two->code.at[1].line, 0);
}

// ---- the disassembler

static char folder[64];

static const char *program(const char *name, const char *text) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
  assert_int_equal(chmod(path, 0700), 0);
  return path;
}

static int begin_folder(void **state) {
  strcpy(folder, "/tmp/schedc-sass-XXXXXX");
  return !mkdtemp(folder) || begin(state);
}

static int end_folder(void **state) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  unsetenv("SCHEDC_NVDISASM");
  return system(command) | end(state);
}

static void it_is_looked_for(void **state) {
  Fixture *f = *state;
  const char *path = NULL, *old = getenv("PATH");
  char *kept = sc_printf(&f->sc, "%s", old ? old : "");
  setenv("SCHEDC_NVDISASM", "/nonexistent/nvdisasm", 1);
  has(sc_disassembler(&f->sc, &path), "SCHEDC_NVDISASM names '/nonexistent/nvdisasm'");
  setenv("SCHEDC_NVDISASM", folder, 1);  // a folder is no program
  assert_non_null(sc_disassembler(&f->sc, &path));
  unsetenv("SCHEDC_NVDISASM");
  const char *ours = program("nvdisasm", "#!/bin/sh\n");
  setenv("PATH", sc_printf(&f->sc, "/nonexistent:%s", folder), 1);
  const char *wrong = sc_disassembler(&f->sc, &path);
  setenv("PATH", kept, 1);
  assert_null(wrong);
  assert_string_equal(path, ours);
}

static void it_is_run(void **state) {
  Fixture *f = *state;
  const char *text = NULL;
  const char *path = program("echoes", "#!/bin/sh\necho \"$@\"; cat \"$3\"\n");
  assert_null(sc_disassemble(&f->sc, path, "code", 4, &text));
  assert_string_equal(text, "-c -gi /dev/stdin\ncode");
  path = program("fails", "#!/bin/sh\necho 'it is no ELF file' >&2\necho more >&2\nexit 1\n");
  has(sc_disassemble(&f->sc, path, "code", 4, &text), "fails: it is no ELF file");
  path = program("stops", "#!/bin/sh\necho half\necho cut off >&2\nexit 1\n");
  has(sc_disassemble(&f->sc, path, "code", 4, &text), "fails: cut off");
  path = program("silent", "#!/bin/sh\nexit 0\n");
  has(sc_disassemble(&f->sc, path, "code", 4, &text), "fails and does not say why");
  has(sc_disassemble(&f->sc, "/nonexistent", "code", 4, &text), "cannot be run");
}

// More than a pipe holds, both ways.
static void much_is_read(void **state) {
  Fixture *f = *state;
  enum { MUCH = 1 << 20 };
  char *code = sc_new(&f->sc, MUCH + 1);
  const char *text = NULL;
  memset(code, 'x', MUCH);
  const char *path = program("copies", "#!/bin/sh\ncat \"$3\" \"$3\"\n");
  assert_null(sc_disassemble(&f->sc, path, code, MUCH, &text));
  assert_int_equal(strlen(text), 2 * MUCH);
}

// An allocator that gives so many bytes, and then nothing.
static void *scarce(void *user, size_t n) {
  size_t *left = user;
  if (n > *left) return NULL;
  *left -= n;
  return malloc(n);
}
static void give_back(void *user, void *block) {
  (void)user;
  free(block);
}

static u32 open_files(void) {
  u32 n = 0;
  for (int i = 0; i < 64; i++) n += fcntl(i, F_GETFD) >= 0;
  return n;
}

// False: it unwinds.
static bool reads(Sc *sc, const char *path) {
  jmp_buf here;
  const char *text = NULL;
  sc->unwind = &here;
  if (setjmp(here)) return false;
  assert_null(sc_disassemble(sc, path, "code", 4, &text));
  return true;
}

// Out of memory at any place, no file stays open.
static void files_are_closed(void **state) {
  (void)state;
  const char *path = program("copies", "#!/bin/sh\nprintf %200000s x\n");
  u32 before = open_files(), unwound = 0;
  for (size_t room = 0; room < 400000; room += 50000) {
    size_t left = room;
    schedc_allocator few = {scarce, give_back, &left};
    Sc sc;
    sc_init(&sc, &few);
    unwound += !reads(&sc, path);
    sc_free(&sc);
    assert_int_equal(open_files(), before);
  }
  assert_true(0 < unwound && unwound < 8);
}

// By the public interface: no disassembler is a fault of the machine.
static const char *said;
static void listen(void *user, const schedc_diagnostic *d) {
  (void)user;
  said = d->code;
}
static int drop(void *user, const char *bytes, size_t n) {
  (void)user, (void)bytes, (void)n;
  return 0;
}
static void none_is_a_fault_of_the_machine(void **state) {
  (void)state;
  schedc_options options = SCHEDC_OPTIONS_INIT;
  schedc_context *context = NULL;
  schedc_source *source = NULL;
  schedc_kernel *two = NULL;
  options.sink = listen;
  setenv("SCHEDC_NVDISASM", "/nonexistent/nvdisasm", 1);
  assert_int_equal(schedc_open(&context, &options), SCHEDC_OK);
  assert_int_equal(schedc_parse(&source, context, "two.sched", schedule, strlen(schedule)), 0);
  assert_int_equal(schedc_instantiate(&two, context, source, NULL, NULL, NULL, 0), SCHEDC_OK);
  assert_int_equal(schedc_report_sass(context, two, NULL, SCHEDC_TEXT, drop, NULL),
                   SCHEDC_EUNAVAIL);
  assert_string_equal(said, sc_diag_code(D_G_NVDISASM));
  assert_int_equal(schedc_report_sass(context, two, NULL, SCHEDC_TEXT, NULL, NULL), SCHEDC_EARG);
  schedc_kernel_free(two);
  schedc_source_free(source);
  schedc_close(context);
}

#define FOLDER_TEST(f) cmocka_unit_test_setup_teardown(f, begin_folder, end_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      KERNEL_TEST(instructions_are_read),
      KERNEL_TEST(rows_say_what_is_in_flight),
      KERNEL_TEST(the_report_is_a_table),
      KERNEL_TEST(moved_waits_are_found),
      KERNEL_TEST(moved_rows_are_found),
      KERNEL_TEST(lost_and_added_ones_are_found),
      KERNEL_TEST(what_is_said_twice_is_told_apart),
      KERNEL_TEST(arms_have_no_order),
      KERNEL_TEST(lines_of_waits_are_not_trusted),
      KERNEL_TEST(loops_are_known_by_what_is_in_them),
      KERNEL_TEST(ways_out_stand_behind),
      KERNEL_TEST(spills_are_counted),
      KERNEL_TEST(code_is_followed_as_it_runs),
      KERNEL_TEST(other_files_are_nobodys),
      FOLDER_TEST(it_is_looked_for),
      FOLDER_TEST(it_is_run),
      FOLDER_TEST(much_is_read),
      FOLDER_TEST(files_are_closed),
      FOLDER_TEST(none_is_a_fault_of_the_machine),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
