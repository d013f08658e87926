// report.c - how `target` reports what it finds.
#include "compiler/target/target.h"

void tgt_cannot(Target *s, Span at, const char *what, const char *name, const char *help) {
  const char *quote = name ? "'" : "";
  Diag *d = sc_report(s->sc, D_G_EMIT, at, "%s%s%s%s%s", quote, name ? name : "", quote,
                      name ? " " : "", what);
  if (help) sc_help(s->sc, d, "%s", help);
}

const Buf *tgt_buf(const Target *s, u32 view) { return &s->k->buf.at[s->k->view.at[view].buf]; }
