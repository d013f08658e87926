// ranks.h - `schedc tune` under a launcher (mpirun, srun): one process for each GPU. Rank 0
// searches as it would alone, and has the others measure as well; they find it by the file
// OUT.ranks beside
// --out, connect by TCP (IPv4), and are sent trials. runtime/tune/README.md has the lines that go
// over a connection.
#ifndef RANKS_H
#define RANKS_H

#include "cli/tune.h"

// ---- wire.c: lines over a connection, and the file by which it is found

typedef struct Wire {
  int fd;  // -1: closed
  Buffer in;
  size_t taken;  // bytes of `in` that lines have been read from
} Wire;
void wire_close(Wire *w);
// False: it is broken, or the other side does not read.
bool wire_send(Wire *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// The next line, without its end, until the next call; NULL: there is none within so many ms (then
// w->fd says whether there will be one), or a signal came.
char *wire_line(Wire *w, int ms);
// The next word of a line, which it ends with a NUL; "" at the end.
char *wire_word(char **rest);

typedef struct Rendezvous {
  char *path;  // OUT.ranks
  char host[256], token[33];
  int port;
} Rendezvous;
void rendezvous_name(Rendezvous *p, const char *out);
// Listens on a free port, and writes the file: the socket, or -1 and why.
int rendezvous_open(Rendezvous *p, const char **why);
void rendezvous_close(Rendezvous *p);  // removes the file
// Connects to whom the file tells of. False: there is no file, or nobody there.
bool rendezvous_find(Rendezvous *p, Wire *w);

// What ranks must have in common, as words of a line: schedc's version, the schedule, and the GPU
// with its driver.
void common_words(const Tune *t, Buffer *to);

// ---- lead.c: rank 0

typedef struct Lead Lead;
// NULL after a message. Others join at any time.
Lead *lead_open(const Args *args, const Launcher *who);
// Trials of this shape can be taken from now on; they go by `e`, which is filled in.
void lead_begin(Lead *l, size_t shape, Tune *t, schedc_elsewhere *e);
void lead_end(Lead *l);
void lead_close(Lead *l);

// ---- follow.c: another rank
int follow(const Args *args, const Launcher *who, const Shapes *shapes);

#endif
