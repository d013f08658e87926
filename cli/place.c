// place.c - what comes with the command: beside it in a build's folder, or where `cmake --install`
// puts it, as seen from there.
#define _GNU_SOURCE  // memrchr
#include "cli/cli.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool place_find(const char *beside, const char *installed, char *path, size_t room) {
  const char *const places[] = {beside, installed};
  char self[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
  for (size_t i = 0; slash && i < COUNT(places); i++) {
    if (snprintf(path, room, "%.*s/%s", (int)(slash - self), self, places[i]) < (int)room &&
        access(path, R_OK) == 0)
      return true;
  }
  return false;
}
