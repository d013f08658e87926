// fakenvrtc.c - an NVRTC that makes an empty ELF file of every text, for the machine that
// FAKE_MACHINE says (default: 190, NVIDIA's GPUs), and PTX that is the file FAKE_PTX (default: that
// of the kernel `copy`): for tests of what is done with machine code. With FAKE_LOG it refuses
// every text, and that is why.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPILATION = 6 };  // NVRTC_ERROR_COMPILATION

static unsigned char code[64];
static char ptx[1 << 16];

static void read_ptx(void) {
  const char *path = getenv("FAKE_PTX");
  FILE *f = fopen(path ? path : COPY_PTX, "rb");
  size_t n = f ? fread(ptx, 1, sizeof ptx - 1, f) : 0;
  ptx[n] = 0;
  if (f) fclose(f);
}

int nvrtcVersion(int *major, int *minor) { return *major = 13, *minor = 0; }
int nvrtcCreateProgram(void **program, const char *source, const char *name, int headers,
                       const char *const *texts, const char *const *names) {
  const char *machine = getenv("FAKE_MACHINE");
  (void)source, (void)name, (void)headers, (void)texts, (void)names;
  memcpy(code, "\177ELF\2\1", 6);
  read_ptx();
  code[18] = (unsigned char)(machine ? atoi(machine) : 190);
  return *program = code, 0;
}
int nvrtcDestroyProgram(void **program) { return *program = NULL, 0; }
int nvrtcCompileProgram(void *program, int options, const char *const *option) {
  return (void)program, (void)options, (void)option, getenv("FAKE_LOG") ? COMPILATION : 0;
}
static const char *log_of(void) { return getenv("FAKE_LOG") ? getenv("FAKE_LOG") : ""; }
int nvrtcGetProgramLogSize(void *program, size_t *n) {
  return (void)program, *n = strlen(log_of()) + 1, 0;
}
int nvrtcGetProgramLog(void *program, char *to) { return (void)program, strcpy(to, log_of()), 0; }
int nvrtcGetPTXSize(void *program, size_t *n) { return (void)program, *n = strlen(ptx) + 1, 0; }
int nvrtcGetPTX(void *program, char *to) { return (void)program, strcpy(to, ptx), 0; }
int nvrtcGetCUBINSize(void *program, size_t *n) { return (void)program, *n = sizeof code, 0; }
int nvrtcGetCUBIN(void *program, char *to) {
  return (void)program, memcpy(to, code, sizeof code), 0;
}
