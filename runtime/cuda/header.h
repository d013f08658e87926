// header.h - inside the writer of C headers: header.c writes what there is once a file, header_step.c the functions of
// one kernel.
#ifndef SC_HEADER_H
#define SC_HEADER_H

#include "runtime/cuda/gpu.h"

typedef struct Header {
  Sc *sc;
  Str *out;
  const char *file;      // what all names here begin with: of the kernel or sequence
  const Kernel *k;       // whose expressions are being written: it, or a kernel of the sequence
  const CudaText *text;  // … that kernel's
  const char *name;      // … and what its functions' names begin with; of a kernel by itself, `file`
  u32 number;            // … and its own, among the functions of the module
  Span where;            // of what is being written, for reports
  bool refused;          // something cannot be said in it; it has been reported
} Header;

// header.c
void hd_put(Header *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *hd_field(const Header *h, Sym name);

// header_step.c
void hd_expression(Header *h, Xid x);  // of dimensions and scalars, in 64-bit integers and doubles
bool hd_has_turns(const Kernel *k);    // … over CTAs: they need a workspace
bool hd_asks_for_room(const Kernel *k);  // how many of its clusters run at once, which a launch must know
void hd_step(Header *h);               // NAME_tensors, NAME_tiles, NAME_turns, NAME_plan, NAME_prepare, NAME_enqueue

#endif
