// driver.h - what the files of the driver's entry points share.
#ifndef MD_DRIVER_H
#define MD_DRIVER_H

#include "model.h"

enum {
  INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, NO_BINARY = 209, NOT_FOUND = 500,
  NOT_READY = 600, LAUNCH_FAILED = 719
};

// Each entry point is let in alone, and refused once a launch has failed.
void dr_enter(void);
int dr_leave(int error);
#define DR_ENTER \
  dr_enter();    \
  if (dr_failed()) return dr_leave(LAUNCH_FAILED)
bool dr_failed(void);
void dr_fail(void);

// stream.c: runs what is enqueued on a stream, and what that has to wait for; the first error.
typedef struct Stream Stream;
int dr_drain(Stream *s);
int dr_drain_all(void);

#endif
