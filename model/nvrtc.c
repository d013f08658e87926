// nvrtc.c - NVRTC's entry points: the text of emitted kernels, built by the host's C++ compiler as
// a shared object. In: the text that NVRTC would get. Before it goes kernel.hpp, with a second body
// for each function that touches the machine; the first bodies are cut out, as
// compiler/emit/prims.def has them, and those of wgmma, which are known by their names. The rest is
// built as it stands. Out: the object's bytes, in which driver and model find `md_kernel_NAME`.
//
// Loads and stores are shown to the model by -fsanitize=thread; its library is not linked (global.c
// has its functions). CXX names the compiler; c++ if it is not set.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model.h"

extern char **environ;

enum {
  OUT_OF_MEMORY = 1,
  CREATION_FAILURE = 2,
  INVALID_INPUT = 3,
  INVALID_PROGRAM = 4,
  COMPILATION = 6,
  INTERNAL = 11,
  MAJOR = 13
};

typedef struct Text {
  char *at;
  size_t n, cap;
  bool lost;  // memory ran out
} Text;

typedef struct Program {
  char *source;
  Text log, object;
} Program;

static const char kernel_text[] = {
#include "kernel_text.inc"
    , 0};

static const char *const machine[] = {
#define HEAD(text) text,
#define SECTION(text)
#define PRIM(name, text)
#define MACHINE(name, text) text,
#include "compiler/emit/prims.def"
#undef HEAD
#undef SECTION
#undef PRIM
#undef MACHINE
};

static void put(Text *t, const char *at, size_t n) {
  if (t->n + n + 1 > t->cap) {
    size_t cap = 2 * t->cap + n + 1024;
    char *more = realloc(t->at, cap);
    if (!more) {
      t->lost = true;
      return;
    }
    t->at = more;
    t->cap = cap;
  }
  memcpy(t->at + t->n, at, n);
  t->n += n;
  t->at[t->n] = 0;
}

static void puts_to(Text *t, const char *s) { put(t, s, strlen(s)); }

// ---- first bodies

// Blanks out `n` bytes, but keeps their lines.
static void blank(char *at, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (at[i] != '\n') at[i] = ' ';
  }
}

static void cut_machine(char *source) {
  for (u32 i = 0; i < COUNT(machine); i++) {
    char *at = strstr(source, machine[i]);
    if (at) blank(at, strlen(machine[i]));
  }
}

static const char *element(const char **p) {
  static const char *const names[] = {"bf16", "f16", "e4m3", "e5m2"}, *const elems[] = {
                                                                          "MD_BF16", "MD_F16",
                                                                          "MD_E4M3", "MD_E5M2"};
  for (u32 i = 0; i < COUNT(names); i++) {
    size_t n = strlen(names[i]);
    if (strncmp(*p, names[i], n) != 0 || (*p)[n] != '_') continue;
    *p += n + 1;
    return elems[i];
  }
  return NULL;
}

// "sc_wgmma_e4m3_e5m2_n64_ss_at": types of a and b (one if they are the same), columns, where a is;
// stored MN-major.
static bool second_wgmma(Text *out, const char *name, size_t n) {
  char line[512];
  const char *p = name + strlen("sc_wgmma_"), *end = name + n, *a = element(&p), *b = element(&p);
  unsigned columns;
  char where[3];
  int used = 0;
  if (!a || sscanf(p, "n%u_%2[rs]%n", &columns, where, &used) != 2) return false;
  bool regs = where[0] == 'r', a_mn = false, b_mn = false;
  for (p += used; p < end; p++) {
    a_mn |= *p == 'a';
    b_mn |= *p == 't';
  }
  snprintf(line, sizeof line,
           "template <int %s> DEV void %.*s(float *d, %s a, u64 b, int scale_d) {\n"
           "  sc_issue<%s, %s, %u, %d, %d>(d, %s, %s, b + b_at, scale_d);\n}\n",
           regs ? "b_at" : "a_at, int b_at", (int)n, name, regs ? "const u32 *" : "u64", a,
           b ? b : a, columns, a_mn, b_mn, regs ? "a" : "nullptr", regs ? "0" : "a + a_at");
  puts_to(out, line);
  return true;
}

// The functions of wgmma: cut out of the source, and written to `out`.
static bool cut_wgmma(char *source, Text *out) {
  static const char head[] = "DEV void sc_wgmma_", start[] = "template <int ", tail[] = "\n}\n";
  bool good = true;
  for (char *at = source; (at = strstr(at, head));) {
    const char *name = at + strlen("DEV void ");
    size_t n = strcspn(name, "(");
    char *from = at, *end = strstr(at, tail);
    while (from > source && strncmp(from, start, strlen(start)) != 0) from--;
    if (!end) return false;
    good &= second_wgmma(out, name, n);
    end += strlen(tail);
    blank(from, (size_t)(end - from));
    at = end;
  }
  return good;
}

// ---- kernels

static const char *next_code(const char *p) {  // past blanks and #line
  while (*p == ' ' || *p == '\n' || *p == '#') p += *p == '#' ? strcspn(p, "\n") : 1;
  return p;
}

// What follows a kernel's text: how the driver calls it. Its parameters' types stand behind
// __grid_constant__.
static bool put_kernel(Text *out, const char *at) {
  static const char word[] = "__grid_constant__ ";
  char line[1024];
  unsigned threads, cluster = 1, params = 0;
  size_t first = strcspn(at, "\n");
  const char *bounds = strstr(at, "__launch_bounds__("), *dims = strstr(at, "__cluster_dims__(");
  if (!bounds || sscanf(bounds, "__launch_bounds__(%u", &threads) != 1) return false;
  if (dims && dims < at + first) sscanf(dims, "__cluster_dims__(%u", &cluster);
  const char *name = next_code(at + first), *end = strstr(name, ") {\n");
  int n = (int)strcspn(name, "(");
  Text bytes = {0}, args = {0};
  for (const char *p = name; end && (p = strstr(p, word)) && p < end; params++) {
    p += strlen(word);
    int m = (int)strcspn(p, " ");
    snprintf(line, sizeof line, "sizeof(%.*s), ", m, p);
    puts_to(&bytes, line);
    snprintf(line, sizeof line, "%s*(const %.*s *)md_p[%u]", params ? ", " : "", m, p, params);
    puts_to(&args, line);
  }
  snprintf(line, sizeof line, "\nstatic void md_call_%.*s(void **md_p) { %.*s(", n, name, n, name);
  puts_to(out, line);
  puts_to(out, args.at ? args.at : "");
  snprintf(line, sizeof line, "); }\nstatic const unsigned md_bytes_%.*s[] = {", n, name);
  puts_to(out, line);
  puts_to(out, bytes.at ? bytes.at : "");
  snprintf(line, sizeof line,
           "0};\nextern \"C\" const MdKernel md_kernel_%.*s = {%u, %u, %u, md_bytes_%.*s, "
           "md_call_%.*s};\n",
           n, name, threads, cluster, params, n, name, n, name);
  puts_to(out, line);
  free(bytes.at);
  free(args.at);
  return params > 0;
}

static bool put_kernels(Text *out, const char *source) {
  bool any = false;
  for (const char *p = source; (p = strstr(p, "extern \"C\" __global__")); p++) {
    if (!put_kernel(out, p)) return false;
    any = true;
  }
  return any;
}

// What the host's compiler gets. False: this is no emitted text.
static bool translate(const Program *p, Text *out) {
  char *source = strdup(p->source);
  if (!source) return false;
  cut_machine(source);
  puts_to(out, kernel_text);
  bool good = cut_wgmma(source, out);
  puts_to(out, source);
  good &= put_kernels(out, source);
  free(source);
  return good && !out->lost;
}

// ---- the host's compiler

static bool write_file(const char *path, const char *at, size_t n) {
  FILE *f = fopen(path, "w");
  if (!f) return false;
  bool good = fwrite(at, 1, n, f) == n;
  return !fclose(f) && good;
}

static bool read_file(const char *path, Text *to) {
  char part[1 << 16];
  FILE *f = fopen(path, "r");
  if (!f) return false;
  for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) put(to, part, n);
  bool good = !ferror(f) && !to->lost;
  fclose(f);
  return good;
}

// Runs it with its words in the file `log`; its exit code, -1 if it cannot be started, -2 if it did
// not end by itself.
static int run(char *const *argv, const char *log) {
  posix_spawn_file_actions_t files;
  pid_t pid;
  int status = -1;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  if (posix_spawnp(&pid, argv[0], &files, NULL, argv, environ) == 0) {
    pid_t ended;
    while ((ended = waitpid(pid, &status, 0)) < 0 && errno == EINTR) continue;
    status = ended == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -2;
  }
  posix_spawn_file_actions_destroy(&files);
  return status;
}

static const char *compiler(void) {
  const char *chosen = secure_getenv("CXX");
  return chosen && *chosen ? chosen : "c++";
}

// The host's compiler is not there, or says nothing of what it does not like.
static int no_compiler(Program *p, int exit_code) {
  char line[400];
  if (exit_code == -1)
    snprintf(
        line, sizeof line,
        "nvrtc: error: the model needs a C++ compiler of the host, and there is no '%s': set CXX\n",
        compiler());
  else
    snprintf(line, sizeof line,
             "nvrtc: error: the host's C++ compiler, '%s', ends with exit code %d: set CXX\n",
             compiler(), exit_code);
  puts_to(&p->log, line);
  return INTERNAL;
}

static int build_in(Program *p, const char *folder, const Text *text) {
  char source[300], object[300], library[300], log[300];
  Dl_info self;
  snprintf(source, sizeof source, "%s/kernel.cpp", folder);
  snprintf(object, sizeof object, "%s/kernel.o", folder);
  snprintf(library, sizeof library, "%s/kernel.so", folder);
  snprintf(log, sizeof log, "%s/log", folder);
  if (!dladdr((void *)(uintptr_t)build_in, &self) || !write_file(source, text->at, text->n))
    return INTERNAL;
  char *const compile[] = {(char *)compiler(),
                           "-std=c++17",
                           "-O1",
                           "-g1",
                           "-fPIC",
                           "-w",
                           "-fno-strict-aliasing",
                           "-ffp-contract=off",
                           "-fno-optimize-sibling-calls",
                           "-fno-exceptions",
                           "-fsanitize=thread",
                           "-c",
                           source,
                           "-o",
                           object,
                           NULL};
  // -Bsymbolic: a kernel called `exit` is this one
  char *const link[] = {(char *)compiler(),
                        "-shared",
                        "-Wl,-Bsymbolic",
                        "-nodefaultlibs",
                        object,
                        "-o",
                        library,
                        (char *)self.dli_fname,
                        "-lm",
                        "-lc",
                        NULL};
  int e = run(compile, log);
  if (!e) e = run(link, log);
  read_file(log, &p->log);
  if (e) return e > 0 && p->log.n ? COMPILATION : no_compiler(p, e);
  return read_file(library, &p->object) && p->object.n ? 0 : no_compiler(p, e);
}

static void remove_folder(const char *folder) {
  static const char *const names[] = {"kernel.cpp", "kernel.o", "kernel.so", "log"};
  char path[300];
  for (u32 i = 0; i < COUNT(names); i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
  rmdir(folder);
}

// "FILE:LINE:COLUMN: error: TEXT" becomes "FILE(LINE): error: TEXT", as NVRTC has it.
static void like_nvrtc(Text *log) {
  Text out = {0};
  char file[400], rest[4096];
  unsigned line, column;
  for (const char *p = log->at; p && *p; p += strcspn(p, "\n") + (p[strcspn(p, "\n")] == '\n')) {
    int n = (int)strcspn(p, "\n");
    snprintf(rest, sizeof rest, "%.*s", n, p);
    char shown[5000];
    int used = 0;
    if (sscanf(rest, "%399[^:]:%u:%u: %n", file, &line, &column, &used) == 3 && used)
      snprintf(shown, sizeof shown, "%s(%u): %s\n", file, line, rest + used);
    else snprintf(shown, sizeof shown, "%s\n", rest);
    puts_to(&out, shown);
  }
  free(log->at);
  *log = out;
}

static int build(Program *p) {
  Text text = {0};
  char folder[200];
  const char *tmp = secure_getenv("TMPDIR");
  p->log.n = p->object.n = 0;
  if (!translate(p, &text)) {
    puts_to(&p->log, "nvrtc: error: the model builds only what schedc emits\n");
    free(text.at);
    return COMPILATION;
  }
  snprintf(folder, sizeof folder, "%s/schedc-model-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!mkdtemp(folder)) {
    puts_to(&p->log, "nvrtc: error: the model can make no folder '");
    puts_to(&p->log, folder);
    puts_to(&p->log, "' for the host's compiler: set TMPDIR\n");
    free(text.at);
    return INTERNAL;
  }
  int e = build_in(p, folder, &text);
  remove_folder(folder);
  if (e) like_nvrtc(&p->log);
  free(text.at);
  return e;
}

// ---- entry points

int nvrtcVersion(int *major, int *minor) { return *major = MAJOR, *minor = 0, 0; }

int nvrtcCreateProgram(Program **program, const char *source, const char *name, int headers,
                       const char *const *texts, const char *const *names) {
  (void)name, (void)texts, (void)names;
  if (!source || headers) return INVALID_INPUT;
  Program *p = calloc(1, sizeof *p);
  if (p) p->source = strdup(source);
  if (!p || !p->source) {
    free(p);
    return OUT_OF_MEMORY;
  }
  return *program = p, 0;
}

int nvrtcDestroyProgram(Program **program) {
  Program *p = *program;
  if (!p) return INVALID_PROGRAM;
  free(p->source);
  free(p->log.at);
  free(p->object.at);
  free(p);
  *program = NULL;
  return 0;
}

// Of the options (the architecture, and what ptxas is to say) only one matters: whether it is for
// machine code.
int nvrtcCompileProgram(Program *p, int options, const char *const *option) {
  if (!p) return INVALID_PROGRAM;
  for (int i = 0; i < options; i++) {
    if (!strstr(option[i], "=compute_")) continue;
    puts_to(&p->log, "nvrtc: error: the model makes no PTX, only machine code of its own\n");
    return INTERNAL;
  }
  return build(p);
}

int nvrtcGetProgramLogSize(const Program *p, size_t *n) { return *n = p->log.n + 1, 0; }

int nvrtcGetProgramLog(const Program *p, char *to) {
  memcpy(to, p->log.at ? p->log.at : "", p->log.n + 1);
  return 0;
}

int nvrtcGetCUBINSize(const Program *p, size_t *n) { return *n = p->object.n, 0; }
int nvrtcGetCUBIN(const Program *p, char *to) { return memcpy(to, p->object.at, p->object.n), 0; }

int nvrtcGetPTXSize(const Program *p, size_t *n) { return (void)p, *n = 0, CREATION_FAILURE; }
int nvrtcGetPTX(const Program *p, char *to) { return (void)p, (void)to, CREATION_FAILURE; }
