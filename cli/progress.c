// progress.c - time, and a line on the terminal for what takes longer than a second.
#include "cli/cli.h"

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

static void *tick(void *ticker) {
  Ticker *t = ticker;
  pthread_mutex_lock(&t->lock);
  while (!t->stop) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_cond_timedwait(&t->stopped, &t->lock, &until);
    if (t->stop) break;
    t->progress.shown = seconds();
    fprintf(stderr, "\r%s: %.0f s\033[K", t->progress.what, t->progress.shown - t->progress.start);
  }
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

void ticker_start(Ticker *t, const char *what) {
  *t = (Ticker){0};
  progress_start(&t->progress, what);
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->stopped, NULL);
  t->runs = t->progress.terminal && !pthread_create(&t->thread, NULL, tick, t);
}

void ticker_end(Ticker *t) {
  pthread_mutex_lock(&t->lock);
  t->stop = true;
  pthread_cond_signal(&t->stopped);
  pthread_mutex_unlock(&t->lock);
  if (t->runs) pthread_join(t->thread, NULL);
  pthread_cond_destroy(&t->stopped);
  pthread_mutex_destroy(&t->lock);
  progress_end(&t->progress);
}
