// Tests of what is told of waits that were in vain: which role's, at which line, for what.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fakedriver.h"

static const char turns[] =
    "kernel k {\n"
    "  in X : f16[M, 64], W : f16[64, 64]\n"
    "  out Y : f32[M, 64]\n"
    "  grid (x : cdiv(M, 128))\n"
    "  ring w : f16[64, 64], r : f16[128, 64] * 2\n"
    "  turn go : math\n"
    "  role load : 1 warp, 40 regs { w <- W[0.., 0..];  r <- X[x*128..] }\n"
    "  role math[w2] : 2 warpgroups, 128 regs {\n"
    "    reg t : f16[64, 64], y : f32[64, 64]\n"
    "    wait w, r\n"
    "    t[i,k] = r[64*w2 + i, k]\n"
    "    r[64*w2 + i, k] = 2 * t[i,k]\n"
    "    acquire go\n"
    "    async y[i,j] = r[64*w2 + i, k] @ w[j,k]\n"
    "    release go\n"
    "    wait y;  release w, r\n"
    "    Y[x*128 + 64*w2 + i, j] = y[i,j]\n"
    "  }\n"
    "}\n";

// An entry that a step's kernel wrote, of the first site of a kind, and what is made of it.
static void told(Fixture *f, u32 step, WaitKind kind, u32 thread, u32 saw, u32 generation,
                 const char *text) {
  const CudaText *t = sc_step_text(f->l.text, step);
  u32 site = 0, *at = (u32 *)(void *)note.host;
  for (u32 i = 0; i < step; i++) at += sc_step_text(f->l.text, i)->wait_words;
  while (t->site[site].kind != kind) assert_true(++site < t->sites);
  at += (1 + site * (sc_step_kernel(f->l.k, step)->threads / 32) + thread / 32) * WAIT_WORDS;
  at[0] = 13, at[1] = thread, at[2] = kind == WAIT_CTA_TURN ? saw : 1024 + saw, at[3] = generation;
  f->sc.diags = NULL, f->sc.diag_end = &f->sc.diags;
  assert_int_equal(sc_report_waits(&f->sc, &f->l), SCHEDC_EFAULT);
  assert_int_equal(f->sc.diags->id, D_G_WAIT);
  assert_string_equal(f->sc.diags->text, text);
  assert_null(f->sc.diags->next);
  assert_true(f->sc.diags->at.hi > f->sc.diags->at.lo);
  assert_int_equal(sc_report_waits(&f->sc, &f->l), SCHEDC_OK);  // said once
}

static void waits_are_told(void **state) {
  (void)state;
  static Fixture f;
  schedc_tensor t[2];
  begin(&f, copy, NULL, true);
  set(&t[0], X_AT, 2, 100);
  set(&t[1], Y_AT, 2, 100);
  assert_int_equal(launch(&f, t, NULL), SCHEDC_OK);
  assert_int_equal(sc_report_waits(&f.sc, &f.l), SCHEDC_OK);
  const Kernel *k = f.l.k;
  told(&f, 0, WAIT_FULL, 200, k->ring.at[0].barrier + 8, 17,
       "'work' (CTA 12, thread 200) waited in vain for fill 35 of 'r': full barrier, stage 1, "
       "generation 17");
  told(&f, 0, WAIT_EMPTY, 0, k->ring.at[0].barrier + 16, 3,
       "'load' (CTA 12, thread 0) waited in vain for the release of fill 6 of 'r': empty barrier, "
       "stage 0, generation 3");
  end(&f);
  begin(&f, dynamic, NULL, true);
  told(&f, 0, WAIT_TILE_FULL, 130, sc_slot_barriers(f.l.k) + 8, 2,
       "'work' (CTA 12, thread 130) waited in vain for tile 5 that this CTA draws: full barrier of "
       "the next tile, slot 1, generation 2");
  told(&f, 0, WAIT_TILE_EMPTY, 0, sc_slot_barriers(f.l.k) + 16, 2,
       "'load' (CTA 12, thread 0) waited in vain for tile 4 that this CTA draws to be read by all "
       "roles: empty barrier of the next tile, slot 0, generation 2");
  end(&f);
  begin(&f, ordered, "both", true);  // two launches of one kernel: the second one's
  told(&f, 1, WAIT_CTA_TURN, 0, 3, 4,
       "'all' (CTA 12, thread 0) waited in vain for turn 4 of 'go', which was passed on 3 times");
  end(&f);
}

// Instances tell of themselves, each once; of turns and meetings by the barrier's number.
static void waits_of_instances_are_told(void **state) {
  (void)state;
  static Fixture f;
  begin(&f, turns, NULL, true);
  const Kernel *k = f.l.k;
  u32 named = sc_step_text(f.l.text, 0)->named;
  assert_true(k->role.at[1].barrier && named >= k->smem);
  told(&f, 0, WAIT_TURN, 256, named + 8 * (k->turn.at[0].barrier + 1), 2,
       "'math[1]' (CTA 12, thread 256) waited in vain for its turn 'go': named barrier 2, "
       "generation 2");
  told(&f, 0, WAIT_SYNC, 255, named + 8u * k->role.at[1].barrier, 0,
       "'math[0]' (CTA 12, thread 255) waited in vain for the other warps of its warpgroup: named "
       "barrier 3, generation 0");
  const CudaText *text = sc_step_text(f.l.text, 0);
  u32 *at = (u32 *)(void *)note.host + WAIT_WORDS;
  for (u32 i = 0; i < k->threads / 32 * text->sites; i++) at[i * WAIT_WORDS] = 1;
  f.sc.diags = NULL, f.sc.diag_end = &f.sc.diags;
  assert_int_equal(sc_report_waits(&f.sc, &f.l), SCHEDC_EFAULT);
  u32 reports = 0;
  for (const Diag *d = f.sc.diags; d; d = d->next) reports++;
  u32 expected = 0;
  for (u32 i = 0; i < text->sites; i++) expected += k->role.at[text->site[i].role].instances;
  assert_int_equal(reports, expected);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(waits_are_told),
      cmocka_unit_test(waits_of_instances_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
