// trap.c - a division by 0, which the host's processor traps. In: the signal. Out: the fault of the
// launch. (PTX leaves the quotient open, so that a GPU goes on with some number. Where the host's
// processor does so, too, there is no report.)
#include <signal.h>

#include "model.h"

static struct sigaction before;
static _Thread_local bool here;  // the launch runs on this thread of the host

static void trapped(int number, siginfo_t *info, void *context) {
  (void)context;
  if (here) md_fault("division", (char *)info->si_addr + 1, "an integer is divided by 0");
  sigaction(number, &before, NULL);  // it is another's: the division is made again, and trapped
}

void md_trap(bool on) {
  struct sigaction own = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigemptyset(&own.sa_mask);
  if (on) sigaction(SIGFPE, &own, &before);
  else if (here) sigaction(SIGFPE, &before, NULL);
  here = on;
}
