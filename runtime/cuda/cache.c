// cache.c - keeps on disk what NVRTC made. An entry is one file: a head, the key, the log, the
// code. Its name is a hash of the key. The key itself is stored and compared, so that two kernels
// with the same hash are not confused. A checksum over all of it finds damage. The folder
// guarantees that nobody else wrote an entry: it must belong to the user, be closed to others and
// be no link, and every file is opened through it. Entries appear whole, by renaming. An entry's
// modification time is when it was last used, and a new entry may remove the oldest ones. Several
// processes may use the cache at once: at worst an entry is gone that one of them would have used.
// Whatever is wrong, the kernel is built again; nothing here is an error of the caller's.
#include "runtime/cuda/build.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MAX_ENTRY = 256 << 20 };

typedef struct Head {
  char magic[16];
  u64 check;           // XXH3 of all that follows
  u64 key, log, code;  // bytes of each; they follow in this order
} Head;

static const char magic[16] = "schedc cubin 2\n";

u64 sc_hash(const void *at, size_t n) { return XXH3_64bits(at, n); }

// ---- the image of an entry

bool sc_cache_parse(const void *image, size_t n, Blob *key, Blob *log, Blob *code) {
  Head h;
  if (n < sizeof h || n > MAX_ENTRY) return false;
  memcpy(&h, image, sizeof h);
  size_t left = n - sizeof h;
  if (memcmp(h.magic, magic, sizeof magic) || h.key > left || h.log > left - h.key ||
      h.code != left - h.key - h.log)
    return false;
  const char *at = image;
  if (XXH3_64bits(at + offsetof(Head, key), n - offsetof(Head, key)) != h.check) return false;
  at += sizeof h;
  *key = (Blob){at, (size_t)h.key};
  *log = (Blob){at + h.key, (size_t)h.log};
  *code = (Blob){at + h.key + h.log, (size_t)h.code};
  return true;
}

// Joins the parts to one blob, each after its length.
static Blob join(Sc *sc, const Blob *part, u32 parts) {
  size_t n = 0;
  for (u32 i = 0; i < parts; i++) n += sizeof(u64) + part[i].n;
  char *at = sc_new(sc, n + 1), *to = at;
  for (u32 i = 0; i < parts; i++) {
    u64 length = part[i].n;
    memcpy(to, &length, sizeof length);
    if (part[i].n) memcpy(to + sizeof length, part[i].at, part[i].n);
    to += sizeof length + part[i].n;
  }
  return (Blob){at, n};
}

static const char *file_name(Sc *sc, Blob key) {
  XXH128_hash_t h = XXH3_128bits(key.at, key.n);
  return sc_printf(sc, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

static Blob make_image(Sc *sc, Blob key, const Binary *code) {
  Blob log = {code->log, strlen(code->log)};
  Head h = {.key = key.n, .log = log.n, .code = code->n};
  memcpy(h.magic, magic, sizeof magic);
  size_t n = sizeof h + key.n + log.n + code->n;
  char *at = sc_new(sc, n);
  memcpy(at + sizeof h, key.at, key.n);
  if (log.n) memcpy(at + sizeof h + key.n, log.at, log.n);
  if (code->n) memcpy(at + sizeof h + key.n + log.n, code->at, code->n);
  memcpy(at, &h, sizeof h);
  h.check = XXH3_64bits(at + offsetof(Head, key), n - offsetof(Head, key));
  memcpy(at, &h, sizeof h);
  return (Blob){at, n};
}

// ---- the folder

const char *sc_cache_folder(Sc *sc, const char *chosen) {
  const char *at;
  if (chosen && *chosen) return chosen;
  if ((at = sc_variable("SCHEDC_CACHE"))) return at;
  if ((at = sc_variable("XDG_CACHE_HOME")) && *at == '/') return sc_printf(sc, "%s/schedc", at);
  if ((at = sc_variable("HOME")) && *at == '/') return sc_printf(sc, "%s/.cache/schedc", at);
  return NULL;
}

// "4G", "500M", "0": bytes.
static bool read_size(const char *text, u64 *out) {
  static const char units[] = "KMG";
  const char *unit;
  char *end;
  if (*text < '0' || *text > '9') return false;
  errno = 0;
  unsigned long long n = strtoull(text, &end, 10);
  u32 shift = 0;
  if (*end && (unit = strchr(units, *end))) shift = 10 * (u32)(unit - units + 1), end++;
  *out = (u64)n << shift;
  return !*end && !errno && n <= UINT64_MAX >> shift;
}

u64 sc_cache_limit(u64 chosen, const char **wrong) {
  u64 limit = 1 << 30;
  const char *text = chosen ? NULL : sc_variable("SCHEDC_CACHE_SIZE");
  *wrong = text && *text && !read_size(text, &limit) ? text : NULL;
  return chosen ? chosen : *wrong ? 1 << 30 : limit;
}

// Makes the folder and those above it that are missing, for the user alone.
static void make_folder(Sc *sc, const char *folder) {
  char *path = sc_printf(sc, "%s", folder);
  for (char *p = path + 1; *p; p++) {
    if (*p != '/') continue;
    *p = 0;
    mkdir(path, 0700);
    *p = '/';
  }
  mkdir(path, 0700);
}

// The folder, open; -1 if it is not there, not the user's, or open to others.
static int open_folder(const char *folder) {
  struct stat st;
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & 077)) return fd;
  close(fd);
  return -1;
}

// ---- reading

static bool read_all(int fd, char *to, size_t n) {
  while (n) {
    ssize_t got = read(fd, to, n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    n -= (size_t)got;
  }
  return true;
}

// The size of an entry; 0 if it is not a plain file of the user's own. Closes `dir`.
static size_t entry_size(int dir, const char *name) {
  struct stat st;
  bool good = dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
              S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) &&
              st.st_size > 0 && st.st_size <= MAX_ENTRY;
  if (dir >= 0) close(dir);
  return good ? (size_t)st.st_size : 0;
}

// Reads the n bytes of an entry. Closes `dir`.
static bool read_entry(int dir, const char *name, char *to, size_t n) {
  int fd = dir < 0 ? -1 : openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  bool good = fd >= 0 && read_all(fd, to, n);
  if (good) futimens(fd, NULL);  // it is used
  if (fd >= 0) close(fd);
  if (dir >= 0) close(dir);
  return good;
}

static bool equal(Blob a, Blob b) { return a.n == b.n && !memcmp(a.at, b.at, a.n); }

// Allocation may unwind to the boundary of the library, so it happens while no file is open.
bool sc_cache_load(Sc *sc, const char *folder, const Blob *key, u32 parts, Binary *out) {
  Blob want = join(sc, key, parts), have, log, code;
  const char *name = file_name(sc, want);
  size_t n = entry_size(open_folder(folder), name);
  if (!n) return false;
  char *image = sc_new(sc, n);
  if (!read_entry(open_folder(folder), name, image, n) ||
      !sc_cache_parse(image, n, &have, &log, &code))
    return false;
  if (!equal(want, have)) return false;
  *out = (Binary){code.at, code.n, sc_printf(sc, "%.*s", (int)log.n, (const char *)log.at)};
  return true;
}

// ---- writing

static bool write_all(int fd, const char *from, size_t n) {
  while (n) {
    ssize_t put = write(fd, from, n);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    from += put;
    n -= (size_t)put;
  }
  return true;
}

// Creates a file of a new name, which it puts into `name`.
static int open_new(int dir, char name[64]) {
  for (int attempt = 0; attempt < 16; attempt++) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    snprintf(name, 64, ".new-%ld-%lld%09ld", (long)getpid(), (long long)t.tv_sec, t.tv_nsec);
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

// ---- pruning

enum { STALE_SECONDS = 3600 };  // what is written takes less, or its process has died

typedef struct Entry {
  char name[64];
  struct timespec used;
  u64 bytes;
} Entry;

// The entries that were used longest ago, oldest first.
typedef struct Oldest {
  Entry at[64];
  u32 n;
  u64 all;  // bytes of all entries
} Oldest;

static bool older(const Entry *a, const Entry *b) {
  if (a->used.tv_sec != b->used.tv_sec) return a->used.tv_sec < b->used.tv_sec;
  if (a->used.tv_nsec != b->used.tv_nsec) return a->used.tv_nsec < b->used.tv_nsec;
  return strcmp(a->name, b->name) < 0;
}

static void note(Oldest *o, const Entry *e) {
  o->all += e->bytes;
  if (o->n == COUNT(o->at) && !older(e, &o->at[o->n - 1])) return;
  u32 i = o->n < COUNT(o->at) ? o->n++ : o->n - 1;
  for (; i && older(e, &o->at[i - 1]); i--) o->at[i] = o->at[i - 1];
  o->at[i] = *e;
}

// Is it a name that file_name makes?
static bool is_entry_name(const char *name) {
  return strlen(name) == 32 && strspn(name, "0123456789abcdef") == 32;
}

// Is it a name that open_new makes?
static bool is_new_name(const char *name) {
  return !strncmp(name, ".new-", 5) && strlen(name) < 64 &&
         strspn(name + 5, "0123456789-") == strlen(name + 5);
}

// Looks at every file of the folder that we may have made; nothing else in it is touched. Removes
// what a process that died left behind.
static bool look(int dir, Oldest *o) {
  int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = again < 0 ? NULL : fdopendir(again);
  if (!d && again >= 0) close(again);
  if (!d) return false;
  o->n = 0;
  o->all = 0;
  for (const struct dirent *f; (f = readdir(d));) {
    bool entry = is_entry_name(f->d_name);
    struct stat st;
    if ((!entry && !is_new_name(f->d_name)) ||
        fstatat(dir, f->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) ||
        st.st_uid != geteuid())
      continue;
    Entry e = {.used = st.st_mtim, .bytes = (u64)st.st_size};
    strcpy(e.name, f->d_name);
    if (entry) note(o, &e);
    else if (time(NULL) - st.st_mtim.tv_sec > STALE_SECONDS) unlinkat(dir, e.name, 0);
  }
  closedir(d);
  return true;
}

static void prune(int dir, u64 limit) {
  Oldest o;
  while (look(dir, &o) && o.all > limit) {
    u64 before = o.all;
    for (u32 i = 0; i < o.n && o.all > limit; i++) {
      if (unlinkat(dir, o.at[i].name, 0) && errno != ENOENT) continue;
      o.all -= o.at[i].bytes;
    }
    if (o.all == before) return;
  }
}

void sc_cache_store(Sc *sc, const char *folder, u64 limit, const Blob *key, u32 parts,
                    const Binary *code) {
  Blob whole = join(sc, key, parts), image = make_image(sc, whole, code);
  const char *name = file_name(sc, whole);
  char temporary[64];
  if (image.n > MAX_ENTRY) return;
  make_folder(sc, folder);
  int dir = open_folder(folder);
  if (dir < 0) return;
  int fd = open_new(dir, temporary);
  if (fd >= 0) {
    bool good = write_all(fd, image.at, image.n);
    good = close(fd) == 0 && good;
    if (!good || renameat(dir, temporary, dir, name)) unlinkat(dir, temporary, 0);
  }
  prune(dir, limit);
  close(dir);
}
