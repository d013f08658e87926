// progress.c - time, and a line on the terminal for what takes longer than a second.
#include "cli.h"

#include <time.h>
#include <unistd.h>

double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void progress_start(Progress *p, const char *what) {
  *p = (Progress){.what = what, .start = seconds(), .terminal = isatty(STDERR_FILENO)};
}

int progress_report(void *progress, double done) {
  Progress *p = progress;
  double now = seconds();
  if (!p->terminal || now - p->start < 1 || now - p->shown < 0.1) return 0;
  p->shown = now;
  fprintf(stderr, "\r%s: %3.0f %%  %.0f s\033[K", p->what, done * 100, now - p->start);
  return 0;
}

void progress_end(Progress *p) {
  if (p->shown > 0) fputs("\r\033[K", stderr);
  p->shown = 0;
}
