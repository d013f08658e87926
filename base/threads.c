// threads.c - work on several host threads at once.
#include "base/base.h"

#include <pthread.h>
#include <unistd.h>

u32 sc_threads(u32 wanted, u32 most) {
  long n = wanted ? (long)wanted : sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : n > (long)most ? most : (u32)n;
}

void sc_on_threads(u32 n, void *(*work)(void *), void *jobs, size_t bytes) {
  pthread_t id[SC_MAX_THREADS];
  char *at = jobs;
  u32 started = 1;
  while (started < n && !pthread_create(&id[started], NULL, work, at + started * bytes)) started++;
  for (u32 i = 0; i < n; i = i ? i + 1 : started) work(at + i * bytes);
  while (--started) pthread_join(id[started], NULL);
}
