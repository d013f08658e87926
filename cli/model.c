// model.c - `--on model`: the library that stands in for NVRTC and the driver (model/), found
// beside the command or where it is installed; and how it is to run, which it reads from its
// environment at each launch.
#define _GNU_SOURCE  // secure_getenv
#include "cli/cli.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

int model_open(const Args *args) {
  char path[PATH_MAX];
  const char *chosen = secure_getenv("SCHEDC_MODEL_LIBRARY");
  if (!args->model) return 0;
  if (chosen && *chosen) {
    if (!realpath(chosen, path))
      return cli_fail(args, "SCHEDC_MODEL_LIBRARY names '%s', where there is no file", chosen);
  } else if (!place_find("libschedc_model.so", SCHEDC_MODEL_PLACE "/libschedc_model.so", path,
                         sizeof path)) {
    return cli_fail(
        args,
        "libschedc_model.so, the model of a GPU, is neither beside schedc nor installed with it; "
        "SCHEDC_MODEL_LIBRARY=PATH says where it is");
  }
  void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);  // and stays open: it is used next
  if (!library || !dlsym(library, "schedc_model_fault"))
    return cli_fail(args,
                    "'%s' is not libschedc_model.so, the model of a GPU (%s); "
                    "SCHEDC_MODEL_LIBRARY=PATH says where that is",
                    path, dlerror());
  setenv("SCHEDC_DRIVER", path, 1);
  setenv("SCHEDC_NVRTC", path, 1);
  model_run_as(&(ModelRun){args->policy, args->seed, args->sms, false});
  return 0;
}

const char *policy_name(Policy policy) {
  static const char *const name[] = {"early", "late", "random", "laggard"};
  return name[policy];
}

void model_run_as(const ModelRun *run) {
  char text[128];
  int n = snprintf(text, sizeof text, "policy=%s,seed=%llu,lanes=%s", policy_name(run->policy),
                   (unsigned long long)run->seed, run->together ? "together" : "apart");
  if (run->sms) snprintf(text + n, sizeof text - (size_t)n, ",sms=%u", run->sms);
  setenv("SCHEDC_MODEL", text, 1);
}
