// driver.h - what the files of the driver's entry points share.
#ifndef MD_DRIVER_H
#define MD_DRIVER_H

#include "model.h"

enum {
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  INVALID_IMAGE = 200,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  NO_BINARY = 209,
  NOT_FOUND = 500,
  NOT_READY = 600,
  LAUNCH_FAILED = 719,
  CAPTURE_UNSUPPORTED = 900
};

enum { MOST_SHARED = 227 << 10 };  // bytes of dynamic shared memory that a CTA can have

// INVALID_VALUE, and what cuGetErrorString says of it to this thread: what is wrong with a call,
// and what would be right.
int dr_refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

// Entry points that touch what threads share are let in alone, and refused once a launch has
// failed.
void dr_enter(void);
int dr_leave(int error);
#define DR_ENTER \
  dr_enter();    \
  if (dr_failed()) return dr_leave(LAUNCH_FAILED)
bool dr_failed(void);
void dr_fail(void);

// And those that wait, allocate or free, or are on the default stream, while a stream is captured
// in the mode that forbids them (CU_STREAM_CAPTURE_MODE_GLOBAL).
#define DR_ENTER_UNCAPTURED \
  DR_ENTER;                 \
  if (dr_capturing()) return dr_leave(CAPTURE_UNSUPPORTED)
bool dr_capturing(void);

// stream.c: runs what is enqueued on a stream, and what that has to wait for; the first error.
typedef struct Stream Stream;
int dr_drain(Stream *s);
int dr_drain_all(void);
void dr_forget_work(void);  // what is enqueued is never run

#endif
