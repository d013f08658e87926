// disassemble.c - machine code as text, by NVIDIA's nvdisasm. In: machine code. Out: what it
// writes. It is found and run without a shell, with files in memory for its input and what it
// writes: nothing is left on disk, and no pipe can fill up.
#define _GNU_SOURCE  // memfd_create, execve's environ
#include "runtime/sass/sass.h"

#include "runtime/cuda/build.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOW_TO_GET_IT                                                \
  "it comes with the CUDA toolkit (12.3 or newer); or `pip install " \
  "nvidia-cuda-nvdisasm`, and set SCHEDC_NVDISASM to the path of the nvdisasm that it installs"

// ---- finding it

static bool is_program(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool found_in(Sc *sc, const char *folder, size_t n, const char *below, const char **path) {
  *path = sc_printf(sc, "%.*s%s/nvdisasm", (int)n, folder, below);
  return is_program(*path);
}

const char *sc_disassembler(Sc *sc, const char **path) {
  static const char *const homes[] = {"CUDA_HOME", "CUDA_PATH"};
  const char *chosen = *path = sc_variable("SCHEDC_NVDISASM");
  if (chosen && is_program(chosen)) return NULL;
  if (chosen) return sc_printf(sc, "SCHEDC_NVDISASM names '%s', where there is no program", chosen);
  const char *folder = sc_variable("PATH");
  for (size_t n; folder && *folder; folder += n + (folder[n] == ':')) {
    n = strcspn(folder, ":");
    if (n && found_in(sc, folder, n, "", path)) return NULL;
  }
  for (u32 i = 0; i < COUNT(homes); i++) {
    const char *home = sc_variable(homes[i]);
    if (home && found_in(sc, home, strlen(home), "/bin", path)) return NULL;
  }
  static const char usual[] = "/usr/local/cuda/bin";
  if (found_in(sc, usual, sizeof usual - 1, "", path)) return NULL;
  return "nvdisasm, which shows machine code, is missing: " HOW_TO_GET_IT;
}

// ---- running it

enum { INPUT, OUTPUT, ERRORS, FILES };  // also their numbers in the program that is run

static const char *why(Sc *sc, const char *what, int error) {
  return sc_printf(sc, "nvdisasm cannot be run: %s (%s)", what, strerror(error));
}

static const char *open_files(Sc *sc, int file[FILES], Blob code) {
  for (u32 i = 0; i < FILES; i++) {
    file[i] = memfd_create("schedc", MFD_CLOEXEC);
    if (file[i] < 0) return why(sc, "no file in memory", errno);
  }
  const char *at = code.at, *end = at + code.n;
  for (ssize_t put; at < end; at += put) {
    put = write(file[INPUT], at, (size_t)(end - at));
    if (put < 0 && errno != EINTR) return why(sc, "no room in memory", errno);
    if (put < 0) put = 0;
  }
  return NULL;
}

// What was written to a file, as text.
static char *contents(Sc *sc, int file) {
  struct stat st;
  if (fstat(file, &st) != 0) return sc_printf(sc, "%s", "");
  size_t n = (size_t)st.st_size, have = 0;
  char *text = sc_new(sc, n + 1);
  for (ssize_t got; have < n; have += (size_t)got) {
    got = pread(file, text + have, n - have, (off_t)have);
    if (got < 0 && errno == EINTR) got = 0;
    else if (got <= 0) break;
  }
  return text;
}

static const char *start(Sc *sc, const char *path, const int file[FILES], pid_t *child) {
  char *const words[] = {"nvdisasm", "-c", "-gi", "/dev/stdin", NULL};
  posix_spawn_file_actions_t actions;
  int wrong = posix_spawn_file_actions_init(&actions);
  if (wrong) return why(sc, "no memory", wrong);
  for (int i = 0; i < FILES && !wrong; i++)
    wrong = posix_spawn_file_actions_adddup2(&actions, file[i], i);
  if (!wrong) wrong = posix_spawn(child, path, &actions, NULL, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  return wrong ? why(sc, path, wrong) : NULL;
}

static const char *run(Sc *sc, const char *path, const int file[FILES], const char **text) {
  pid_t child = 0;
  int status = 0;
  const char *wrong = start(sc, path, file, &child);
  if (wrong) return wrong;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return why(sc, "its end is not seen", errno);
  *text = contents(sc, file[OUTPUT]);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && **text) return NULL;
  char *said = contents(sc, file[ERRORS]);
  said[strcspn(said, "\n")] = 0;
  if (!*said) return sc_printf(sc, "nvdisasm (%s) fails and does not say why", path);
  return sc_printf(sc, "nvdisasm (%s) fails: %s", path, said);
}

// Nothing may unwind while files are open: they would stay so. False: it did, and has to go on.
static bool guarded(Sc *sc, const char *path, int file[FILES], Blob code, const char **text,
                    const char **wrong) {
  jmp_buf *caller = sc->unwind, here;
  sc->unwind = &here;
  if (setjmp(here)) {
    sc->unwind = caller;
    return false;
  }
  *wrong = open_files(sc, file, code);
  if (!*wrong) *wrong = run(sc, path, file, text);
  sc->unwind = caller;
  return true;
}

const char *sc_disassemble(Sc *sc, const char *path, const void *code, size_t n,
                           const char **text) {
  int file[FILES] = {-1, -1, -1};
  const char *wrong = NULL;
  bool whole = guarded(sc, path, file, (Blob){code, n}, text, &wrong);
  for (u32 i = 0; i < FILES; i++)
    if (file[i] >= 0) close(file[i]);
  if (!whole) sc_unwind(sc, sc->why);
  return wrong;
}
