// main.c - the `schedc` command: finds the subcommand and hands over to it. Exit codes are the same
// for all: 0 done; 1 the schedule is at fault or a result is wrong; 2 the command line is; 3 the
// machine is.
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static const Command commands[] = {
    {"run", "FILE [KERNEL]", "run a kernel and compare it with its specification",
     "Without --case the kernel's first case gives the dimensions and its params, unless --set and "
     "--in give\n"
     "all dimensions. Inputs are drawn from --inputs, or read from .npy files: float16, float32 "
     "and int32 as\n"
     "they are, bfloat16 as uint16, e4m3 and e5m2 as uint8 (their bits); float64 is rounded to "
     "float32 and\n"
     "int64 to int32 where the tensor wants these. What a sequence is `given` is made from the "
     "others.\n"
     "What has no specification is not compared; with --out its outputs are written all the same, "
     "else that is\n"
     "an error (T.spec).\n"
     "KERNEL is a kernel or sequence of the file; without it the last sequence, else the last "
     "kernel.\n"
     "On a GPU, params for tuning that -p does not give are those of its table for these "
     "dimensions, where a\n"
     "line of it fits; what was taken is said. $SCHEDC_STORE and --tuned name another store "
     "(empty: none),\n"
     "which counts on the CPU as well.\n",
     1, 2, command_run},
    {"test", "FILE [KERNEL]", "run all cases under all policies on several inputs",
     "Every combination of a case's `in { … }` values is run under the policies early, late and\n"
     "random; all must give the same bits where sums have a fixed order, and be as near to the\n"
     "specification as its tolerance asks. Persistent grids are run with one multiprocessor as "
     "well.\n"
     "--quick takes a cover in which each pair of values occurs; --full adds seeds and larger "
     "cases.\n"
     "Of each case the first three failures are told; --format json has all.\n"
     "\n"
     "The first case with each set of parameters is then run at other lengths: each dimension, "
     "and\n"
     "each integer scalar on which loops depend, is set to 0, to 1, and to values at which a ring "
     "is\n"
     "filled 2 to stages + 3 times in a tile. A value that a `require` excludes is skipped.\n"
     "Dimensions that are fixed by the elements that a case gives to a tensor are left out, and\n"
     "named; but a list of offsets, which begins with 0 and never falls, may get one more element, "
     "so\n"
     "that a sequence is empty.\n"
     "\n"
     "With --on cuda each combination is run on the GPU, several times on each input, and at no "
     "other\n"
     "lengths. With --on model the emitted text runs on a model of a GPU. There the policy (also\n"
     "laggard: one warp or engine is held back), one multiprocessor or several, and --debug-waits "
     "are\n"
     "further choices of a combination, which is run once; inputs and seeds go round. With --full, "
     "and\n"
     "with --policy laggard, each warp and engine lags in its turn.\n"
     "Of each failure the command after `again:` is one that repeats it.\n",
     1, 2, command_test},
    {"bench", "{FILE [KERNEL] [NAME=VALUE]...}...",
     "measure kernels on the GPU, and compare them with their specifications",
     "A variant is a file with the settings that follow it (of params, dimensions, scalars), and "
     "each choice of\n"
     "what --vary names. Each variant is run, compared with its specification, and measured, in "
     "turns with\n"
     "the others: `cold` is the median of 60 launches after pauses, `sustained` the mean of "
     "launches back to\n"
     "back in the second of two seconds, when power limits the clock, and of the rounds' means the "
     "median;\n"
     "`spread` is how far apart these lie. Rates count the operations that the kernel's `work` "
     "states, else\n"
     "those of its products. `tensor` is the tensor cores' ideal time over the measured one. If a "
     "variant is\n"
     "wrong, no figure is printed; with --vary it is a row that says so, and so is one that the "
     "schedule refuses.\n"
     "Without --vary, and with --tuned, each variant comes twice: as it is, and with the params "
     "for "
     "tuning of\n"
     "the line that fits it best in the GPU's table, in $SCHEDC_STORE (empty: none) or in "
     "--tuned's "
     "store.\n",
     1, 1 << 10, command_bench},
    {"tune", "FILE [KERNEL]", "find the fastest params for tuning, on the GPU",
     "Goes through the points of the domains of the params for tuning that -p does not give; "
     "--case and\n"
     "--set give the shape, for which a cost model ranks them. Threads build the programs ahead of "
     "the GPU.\n"
     "--strategy halving measures every program briefly, a quarter of them for longer, and so on; "
     "exhaustive\n"
     "each for long; model only those that the cost model has first. The default is measured over "
     "and over\n"
     "between them, as clocks drift. The best are compared with the specification, on several "
     "kinds of\n"
     "inputs, and those that are right measured in turns. What is not faster than the default by "
     "more than\n"
     "the noise is not chosen. Where speed depends on the numbers, --measured N measures on "
     "several kinds.\n"
     "--out FILE gets a line for each measurement (runtime/tune/README.md has its members), and "
     "for each\n"
     "finalist one that says 'verified'. Ctrl-C keeps what was found. A line of --shapes FILE is "
     "a case, or\n"
     "dimensions, scalars and params, or both: 'long B=1 M=16384'; '#' begins a comment.\n"
     "Under mpirun or srun each process measures on the GPU of its number on its machine; the one "
     "of rank 0\n"
     "searches, writes and reports. They find each other by FILE.ranks beside --out's FILE.\n",
     1, 2, command_tune},
    {"check", "FILE [KERNEL]", "report what is wrong with a schedule",
     "Checks every kernel and sequence of the file, or only KERNEL. With --emit=STAGE writes what "
     "the compiler\n"
     "knows after that stage instead; the stages are listed below.\n"
     "Params have their defaults, or what -p and --case say.\n"
     "With --all-params, at every point of the params' domains: it counts what is refused, by "
     "code, "
     "and\n"
     "proves one of the points that make the same program. That takes as long as the space is "
     "large, minutes\n"
     "where it has thousands of programs.\n"
     "Each role is checked by itself, and then all roles together, for every path and trip count.\n"
     "What is rejected comes with dimensions and a command that shows the fault. What is left "
     "open\n"
     "is a warning (V.open): only runs can tell there (schedc test).\n",
     1, 2, command_check},
    {"build", "FILE [KERNEL]", "make CUDA C, PTX, machine code or a C header with it",
     "The ending of -o FILE says which: .cu, .ptx (compute_90a), .cubin (sm_90a), .h; without -o, "
     "--to\n"
     "does and the file is KERNEL with that ending. Parameters have their defaults, or what --case "
     "and\n"
     "-p say. All but .cu need NVRTC (SCHEDC_NVRTC=PATH says where it is), none a GPU. Machine "
     "code is\n"
     "kept in $SCHEDC_CACHE, $XDG_CACHE_HOME/schedc or ~/.cache/schedc: what was used last, up to "
     "1 GiB\n"
     "($SCHEDC_CACHE_SIZE=500M sets another limit). The header holds machine code and functions "
     "that load\n"
     "and launch it; it needs the driver's cuda.h alone. Of a sequence, each kernel is an extern "
     "\"C\"\n"
     "function of its own, and the header's launch runs all of them, in a workspace of the "
     "caller's.\n"
     "Headers of one kernel with other parameters go together if --name differs.\n"
     "With --tuned, or --gpu, a header holds a variant for each shape of that store, of "
     "$SCHEDC_STORE or of the\n"
     "GPU's table (equal programs once), and a launch takes the one that 'schedc run' would take; "
     "where none\n"
     "fits, that of the defaults.\n"
     "--report sass shows the machine code loop by loop: products and the waits for them, what is\n"
     "computed beside products in flight, spills, and where the order is not the schedule's. It "
     "needs\n"
     "nvdisasm (SCHEDC_NVDISASM=PATH says where it is); without -o and --to nothing is written.\n",
     1, 2, command_build},
    {"fmt", "FILE...", "write a schedule in canonical form", "", 1, 1 << 20, command_fmt},
    {"info", "FILE [KERNEL]",
     "show parameters, tensors, roles, shared memory, barriers, work of a tile", "", 1, 2,
     command_info},
    {"explain", "[CODE]", "explain a diagnostic, or list all",
     "CODE is one such as R3.release, or a rule: R3 lists what is reported of it.\n", 0, 1,
     command_explain},
};

static void message(const Args *args, const char *fmt, va_list ap) {
  fputs("schedc", stderr);
  if (args && args->command) fprintf(stderr, " %s", args->command->name);
  fputs(": ", stderr);
  vfprintf(stderr, fmt, ap);
  fputc('\n', stderr);
}

int cli_fail(const Args *args, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  message(args, fmt, ap);
  va_end(ap);
  return EXIT_ENVIRONMENT;
}

int cli_usage(const Args *args, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  message(args, fmt, ap);
  va_end(ap);
  bool known = args && args->command;
  fprintf(stderr, "Try 'schedc %s%s--help'.\n", known ? args->command->name : "", known ? " " : "");
  return EXIT_USAGE;
}

int cli_unwritten(const Args *args, const char *path) {
  const char *why = strerror(errno);
  if (strcmp(path, "-") == 0) return cli_fail(args, "cannot write to standard output: %s", why);
  return cli_fail(args, "cannot write '%s': %s", path, why);
}

static void help(FILE *to) {
  fputs("schedc: a compiler for schedules of GPU tile pipelines\n\nusage: schedc COMMAND ...\n\n",
        to);
  for (size_t i = 0; i < COUNT(commands); i++) {
    fprintf(to, "  %-9s%-15s %s\n", commands[i].name, commands[i].operands, commands[i].what);
  }
  fputs(
      "\n'schedc COMMAND --help' says more; 'schedc --version' prints the version.\n"
      "run, test, check, build, info and fmt read standard input where FILE is '-'.\n"
      "Exit codes: 0 done; 1 the schedule is at fault or a result is wrong; 2 the command line is "
      "wrong;\n"
      "3 a file cannot be read or written, memory ran out, or the machine lacks something.\n",
      to);
}

static int dispatch(int argc, char **argv) {
  if (argc < 2) {
    help(stderr);
    return EXIT_USAGE;
  }
  const char *word = argv[1];
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
    help(stdout);
    return EXIT_GOOD;
  }
  if (strcmp(word, "--version") == 0) {
    printf("schedc %s\n", schedc_version());
    return EXIT_GOOD;
  }
  for (size_t i = 0; i < COUNT(commands); i++) {
    if (strcmp(commands[i].name, word) != 0) continue;
    Args args;
    int code = args_read(&args, &commands[i], argc - 1, argv + 1);
    if (code == 0) {
      if (args.help) args_help(stdout, &commands[i]);
      else code = commands[i].run(&args);
    }
    args_free(&args);
    return code;
  }
  return cli_usage(NULL, "'%s' is not a command", word);
}

int main(int argc, char **argv) {
  int code = dispatch(argc, argv);
  bool good = fflush(stdout) == 0 && !ferror(stdout);
  if (!good && code != EXIT_ENVIRONMENT) return cli_fail(NULL, "cannot write to standard output");
  return code;
}
