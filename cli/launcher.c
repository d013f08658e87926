// launcher.c - what mpirun and srun tell a process in its environment.
#include "cli/ranks.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct Names {
  const char *needs;  // a variable without which the others say nothing
  const char *rank, *size, *local, *local_size;
} Names;

// A batch script of Slurm has the task's variables too, but is no step.
static const Names known[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_SIZE", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
     "SLURM_STEP_TASKS_PER_NODE"},
};

static int number(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text && *text >= '0' && *text <= '9' ? atoi(text) : otherwise;
}

Launcher launcher_find(void) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const Names *n = &known[i];
    int size = number(n->size, 1), rank = number(n->rank, 0);
    if (!getenv(n->needs) || size < 2 || rank >= size) continue;
    Launcher l = {rank, size, number(n->local, 0), number(n->local_size, 1)};
    if (l.local >= l.local_size) l.local_size = l.local + 1;
    return l;
  }
  return (Launcher){0, 1, 0, 1};
}

unsigned launcher_jobs(const Launcher *l, const Args *args) {
  if (args->jobs || l->size == 1) return args->jobs;
  long cores = sysconf(_SC_NPROCESSORS_ONLN) / l->local_size;
  return cores < 1 ? 1 : cores > 64 ? 64 : (unsigned)cores;
}
