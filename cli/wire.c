// wire.c - lines of text over TCP, and the file that says where rank 0 listens. The file has a
// token that only those who can read it know: whoever connects shows it first.
#include "cli/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_OF_A_LINE = 1 << 16, READ = 4096, WAITING = 64 };

// ---- lines

void wire_close(Wire *w) {
  if (w->fd >= 0) close(w->fd);
  w->fd = -1;
  free(w->in.at);
  w->in = (Buffer){0};
  w->taken = 0;
}

bool wire_send(Wire *w, const char *fmt, ...) {
  Buffer text = {0};
  char line[MOST_OF_A_LINE];
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  buffer_write(&text, line, n < 0 || n >= (int)sizeof line ? 0 : (size_t)n);
  buffer_puts(&text, "\n");
  bool sent =
      w->fd >= 0 && send(w->fd, text.at, text.n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)text.n;
  free(text.at);
  return sent;
}

// Bytes that have come, if they do within so many ms. False: none, or the end.
static bool more(Wire *w, int ms) {
  char bytes[READ];
  struct pollfd ready = {.fd = w->fd, .events = POLLIN};
  if (w->fd < 0 || poll(&ready, 1, ms) <= 0) return false;
  ssize_t n = recv(w->fd, bytes, sizeof bytes, 0);
  if (n > 0 && w->in.n + (size_t)n <= MOST_OF_A_LINE + w->taken) {
    buffer_write(&w->in, bytes, (size_t)n);
    return true;
  }
  if (n < 0 && errno == EINTR) return false;
  wire_close(w);
  return false;
}

char *wire_line(Wire *w, int ms) {
  for (;;) {
    char *at = w->in.n > w->taken ? w->in.at + w->taken : NULL;
    char *end = at ? memchr(at, '\n', w->in.n - w->taken) : NULL;
    if (end) {
      *end = 0;
      w->taken = (size_t)(end + 1 - w->in.at);
      return at;
    }
    if (w->taken) {
      memmove(w->in.at, w->in.at + w->taken, w->in.n -= w->taken);
      w->taken = 0;
    }
    if (!more(w, ms)) return NULL;
  }
}

char *wire_word(char **rest) {
  char *word = *rest, *end = word + strcspn(word, " ");
  *rest = *end ? end + 1 : end;
  *end = 0;
  return word;
}

// ---- the rendezvous

void rendezvous_name(Rendezvous *p, const char *out) {
  Buffer path = {0};
  buffer_printf(&path, "%s.ranks", out);
  *p = (Rendezvous){.path = path.at};
}

static bool draw_token(char to[33]) {
  unsigned char bits[16];
  if (getrandom(bits, sizeof bits, 0) != sizeof bits) return false;
  for (int i = 0; i < 16; i++) snprintf(to + 2 * i, 3, "%02x", bits[i]);
  return true;
}

static int listen_somewhere(int *port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_ANY)}};
  socklen_t size = sizeof at;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) || listen(fd, WAITING) ||
      getsockname(fd, (struct sockaddr *)&at, &size)) {
    if (fd >= 0) close(fd);
    return -1;
  }
  *port = ntohs(at.sin_port);
  return fd;
}

// Others see all of the file, or none.
static bool write_rendezvous(const Rendezvous *p) {
  Buffer beside = {0}, text = {0};
  buffer_printf(&beside, "%s.new", p->path);
  buffer_printf(&text, "schedc-ranks 1 %s %d %s\n", p->host, p->port, p->token);
  unlink(beside.at);
  int fd = open(beside.at, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool good = fd >= 0 && write(fd, text.at, text.n) == (ssize_t)text.n;
  if (fd >= 0 && close(fd)) good = false;
  if (good) good = !rename(beside.at, p->path);
  if (!good && fd >= 0) unlink(beside.at);
  free(beside.at);
  free(text.at);
  return good;
}

int rendezvous_open(Rendezvous *p, const char **why) {
  *why = "no random numbers";
  if (!draw_token(p->token)) return -1;
  *why = "this machine's name is not known";
  if (gethostname(p->host, sizeof p->host - 1)) return -1;
  *why = strerror(errno);
  int fd = listen_somewhere(&p->port);
  if (fd < 0) *why = strerror(errno);
  if (fd < 0 || write_rendezvous(p)) return fd;
  *why = strerror(errno);
  close(fd);
  return -1;
}

void rendezvous_close(Rendezvous *p) {
  if (p->port) unlink(p->path);
  free(p->path);
  *p = (Rendezvous){0};
}

static bool read_rendezvous(Rendezvous *p) {
  char text[512] = {0}, *rest = text;
  int fd = open(p->path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (n <= 0 || text[n - 1] != '\n') return false;
  text[n - 1] = 0;
  if (strcmp(wire_word(&rest), "schedc-ranks") != 0 || strcmp(wire_word(&rest), "1") != 0)
    return false;
  snprintf(p->host, sizeof p->host, "%s", wire_word(&rest));
  int port = atoi(wire_word(&rest));
  snprintf(p->token, sizeof p->token, "%s", wire_word(&rest));
  char here[256] = {0};
  if (!gethostname(here, sizeof here - 1) && strcmp(here, p->host) == 0)
    strcpy(p->host, "127.0.0.1");
  return port > 0 && (p->port = port);
}

bool rendezvous_find(Rendezvous *p, Wire *w) {
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
  char port[16];
  *w = (Wire){.fd = -1};
  if (!read_rendezvous(p)) return false;
  snprintf(port, sizeof port, "%d", p->port);
  p->port = 0;  // the file is not ours to remove
  if (getaddrinfo(p->host, port, &hints, &found)) return false;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && !connect(fd, found->ai_addr, found->ai_addrlen)) w->fd = fd;
  else if (fd >= 0) close(fd);
  freeaddrinfo(found);
  return w->fd >= 0;
}

// ---- what must be the same

void common_words(const Tune *t, Buffer *to) {
  const Args *a = t->args;
  Buffer text = {0};
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  schedc_format(t->session.context, t->session.source, buffer_write, &text);
  for (size_t i = 0; i < text.n; i++) hash = (hash ^ (unsigned char)text.at[i]) * 0x100000001b3;
  buffer_printf(to, "%s %016llx %u %s, seed %llu, %u measured of", schedc_version(),
                (unsigned long long)hash, t->about.driver_version, t->about.name,
                (unsigned long long)a->seed, a->measured);
  for (size_t i = 0; i < tune_kinds(a); i++) buffer_printf(to, " %s", tune_kind(a, i));
  free(text.at);
}
