// fiber.c - a stack of its own for each thread of the model. A stack is entered for the first time
// with makecontext, and from then on with _setjmp and _longjmp alone, which save no signal mask and
// cost no system call.
#define _GNU_SOURCE  // memfd_create
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "model.h"

enum {
  GUARD = 4096,
  CALLEES = 256
};  // CALLEES: what a thread that has left still needs below its frame

static jmp_buf outside;  // who entered
static ucontext_t first;
static struct {
  void (*run)(void *);
  void *arg;
} starting;

static void begin(void) {
  void (*run)(void *) = starting.run;
  void *arg = starting.arg;
  run(arg);
  _longjmp(outside, 1);  // it leaves for the last time itself: run does not return
}

// Registers that nobody has written are NaN: each stack is a copy of one file in memory, made page
// by page as it is used.
static int unwritten(void) {
  static int file = -1;
  static char nan[STACK_BYTES];
  if (file >= 0) return file;
  memset(nan, 0xff, sizeof nan);
  int made = memfd_create("schedc-stack", MFD_CLOEXEC);
  if (made >= 0 && write(made, nan, sizeof nan) == (ssize_t)sizeof nan) return file = made;
  if (made >= 0) close(made);
  return -1;
}

static char *new_stack(void) {
  char *at = mmap(NULL, GUARD + STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0),
       *stack = at;
  if (at != MAP_FAILED)
    stack = mmap(at + GUARD, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                 unwritten(), 0);
  if (stack == MAP_FAILED) {
    if (at != MAP_FAILED) munmap(at, GUARD + STACK_BYTES);
    md_fault("host", NULL, "the host has no memory for another thread's stack");
  }
  return stack;
}

static void start(Fiber *f, void (*run)(void *), void *arg) {
  f->fresh = false;
  starting.run = run;
  starting.arg = arg;
  getcontext(&first);
  first.uc_stack.ss_sp = f->stack;
  first.uc_stack.ss_size = STACK_BYTES;
  first.uc_link = NULL;  // run does not return
  makecontext(&first, begin, 0);
  setcontext(&first);
}

void md_fiber_enter(Fiber *f, void (*run)(void *), void *arg) {
  if (!f->stack) {
    f->stack = new_stack();
    f->fresh = true;
  }
  if (_setjmp(outside)) return;
  if (!f->fresh) _longjmp(f->at, 1);
  start(f, run, arg);
}

void md_fiber_leave(Fiber *f) {
  f->rest = (char *)((uintptr_t)__builtin_frame_address(0) - CALLEES);
  if (!_setjmp(f->at)) _longjmp(outside, 1);
}

void md_fiber_forget(Fiber *f, char *low) {
  char *top = f->fresh || !f->rest ? f->stack + STACK_BYTES : f->rest;
  if (f->stack && low >= f->stack && low < top) memset(low, 0xff, (size_t)(top - low));
}
