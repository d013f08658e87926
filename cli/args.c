// args.c - options. One table says for each option its name, argument, the commands that take it
// and what --help says; getopt_long and --help both read it.
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
  RUN = 1,
  TEST = 2,
  CHECK = 4,
  FMT = 8,
  INFO = 16,
  EXPLAIN = 32,
  BUILD = 64,
  BENCH = 128,
  TUNE = 256,
  ALL = 511,
  KERNELS = RUN | TEST | CHECK | INFO | BUILD | BENCH | TUNE
};
enum {
  OPT_CASE = 256,
  OPT_SET,
  OPT_IN,
  OPT_OUT,
  OPT_ON,
  OPT_POLICY,
  OPT_SEED,
  OPT_INPUTS_SEED,
  OPT_INPUTS,
  OPT_THREADS,
  OPT_SMS,
  OPT_FORMAT,
  OPT_EMIT,
  OPT_CHECK,
  OPT_QUICK,
  OPT_FULL,
  OPT_TIME,
  OPT_SAMPLE,
  OPT_TO,
  OPT_NAME,
  OPT_LENIENT,
  OPT_UNVERIFIED,
  OPT_NO_CACHE,
  OPT_TRUST_ELEMENTS,
  OPT_DEBUG_WAITS,
  OPT_VARY,
  OPT_ROUNDS,
  OPT_REPEAT,
  OPT_DRY_RUN,
  OPT_REPORT,
  OPT_DEVICE,
  OPT_ALL_PARAMS,
  OPT_ALL_CASES,
  OPT_SHAPES,
  OPT_BUDGET,
  OPT_STRATEGY,
  OPT_JOBS,
  OPT_MEASURED,
  OPT_TOP,
  OPT_STORE,
  OPT_TUNED,
  OPT_GPU,
  OPT_RESUME,
  OPT_WINNERS
};

static const struct Option {
  const char *name;
  int val;          // a letter is also the short form
  const char *arg;  // NULL: takes none
  int commands;
  const char *what;
} options[] = {
    {"param", 'p', "NAME=VALUE", KERNELS, "a parameter, over the case's and the default"},
    {"case", OPT_CASE, "NAME", KERNELS, "the case that gives dimensions and parameters"},
    {"set", OPT_SET, "NAME=VALUE", RUN | INFO | BENCH | TUNE,
     "a dimension or scalar, over the case's; or an input's elements, as a case lists them"},
    {"vary", OPT_VARY, "NAME=V,V,...", BENCH,
     "a variant for each value (several of them: each combination)"},
    {"in", OPT_IN, "TENSOR=FILE.npy", RUN | BENCH,
     "an input from a file; its shape sets dimensions"},
    {"out", OPT_OUT, "TENSOR=FILE.npy", RUN,
     "write an output to a file ('-': standard output; the report goes to standard error)"},
    {"on", OPT_ON, "cpu|cuda|model", RUN | TEST,
     "where to run: interpreted, on a GPU, or as emitted, on a model of one (default: cuda\n"
     "                                 where there is a Hopper GPU, else cpu; test: cpu)"},
    {"on", OPT_ON, "cuda|model", BENCH | TUNE,
     "where to run: on a GPU, or as emitted, on a model of one (default: cuda)"},
    {"device", OPT_DEVICE, "N", RUN | TEST | BENCH | TUNE,
     "which CUDA device, counted from 0 (default: 0); without --on it asks for cuda"},
    {"policy", OPT_POLICY, "POLICY", RUN | TEST,
     "when asynchronous work takes place: early, late or random; on the model also laggard:\n"
     "                                 one warp, or engine, by the seed, as late as can be "
     "(default: late;\n"
     "                                 test, which takes it with --on model: each)"},
    {"seed", OPT_SEED, "N", RUN | TEST | BENCH | TUNE,
     "of policies random and laggard, the order of roles, and the inputs (default: 0)"},
    {"inputs-seed", OPT_INPUTS_SEED, "N", RUN, "of the inputs, if it is another (default: --seed)"},
    {"inputs", OPT_INPUTS, "KIND", RUN | TEST | BENCH | TUNE,
     "one of those below; test, bench and tune: KIND,... (default: normal; test: all; tune:\n"
     "                                 normal,outliers,ramp: right on all; see --measured)"},
    {"threads", OPT_THREADS, "N", RUN | TEST | BENCH, "worker threads (default: one a core)"},
    {"sms", OPT_SMS, "N", RUN | TEST | BENCH | TUNE,
     "multiprocessors that persistent grids see; of the model (default: 4)"},
    {"debug-waits", OPT_DEBUG_WAITS, NULL, RUN | TEST | BUILD,
     "bound each wait on a GPU; run and test say which did not end"},
    {"time", OPT_TIME, NULL, RUN, "with --on cuda: measure, cold and sustained"},
    {"rounds", OPT_ROUNDS, "N", BENCH, "of 2 s of each variant (0: none; default: 3)"},
    {"repeat", OPT_REPEAT, "N", TEST | BENCH,
     "on the GPU: runs that must give the same bits (default: test 3, bench 1)"},
    {"dry-run", OPT_DRY_RUN, NULL, BENCH, "say what would be measured; needs no GPU"},
    {"sample", OPT_SAMPLE, "N", RUN | BENCH,
     "compare at N places of the specification's loop (0: all; default: few seconds')"},
    {"quick", OPT_QUICK, NULL, TEST, "each pair of values once, small cases only"},
    {"full", OPT_FULL, NULL, TEST, "more seeds, larger cases"},
    {"emit", OPT_EMIT, "STAGE", CHECK, "write what the compiler knows after a stage"},
    {"all-params", OPT_ALL_PARAMS, NULL, CHECK,
     "every point of the domains of the params that -p does not give"},
    {"all-cases", OPT_ALL_CASES, NULL, CHECK, "the default params, and those of every case"},
    {"shapes", OPT_SHAPES, "FILE", TUNE,
     "tune each line's shape in turn: [CASE] [NAME=VALUE]..., as --case, --set and -p"},
    {"budget", OPT_BUDGET, "TIME", TUNE,
     "about so long for each shape: 90s, 5m, 1h; a number alone is of seconds (default: until\n"
     "                                 all is measured)"},
    {"strategy", OPT_STRATEGY, "STRATEGY", TUNE,
     "halving, exhaustive or model, as described above (default: halving)"},
    {"measured", OPT_MEASURED, "N", TUNE,
     "measure on the first N kinds of --inputs, and take the mean of their times (default: 1)"},
    {"jobs", OPT_JOBS, "N", TUNE, "threads that build (default: one a core)"},
    {"top", OPT_TOP, "N", TUNE, "how many get into the finals, besides the default (default: 8)"},
    {"out", OPT_STORE, "FILE.jsonl", TUNE, "a store, which gets a line for each measurement"},
    {"tuned", OPT_TUNED, "FILE.jsonl", RUN | BENCH | BUILD,
     "params for tuning from a store that 'schedc tune' made, by the shape (default: see above)"},
    {"gpu", OPT_GPU, "NAME", BUILD,
     "a C header with params by the shape as measured on GPUs of this name"},
    {"resume", OPT_RESUME, NULL, TUNE, "what --out has already is not measured again"},
    {"winners", OPT_WINNERS, "FILE.jsonl", TUNE,
     "what won there, also in another form of the schedule or at another shape, is measured first"},
    {"output", 'o', "FILE", CHECK | FMT | BUILD, "where it goes ('-': standard output)"},
    {"to", OPT_TO, "cu|ptx|cubin|h", BUILD, "what to build, where FILE's ending does not say it"},
    {"name", OPT_NAME, "NAME", BUILD,
     "what all names in a C header begin with (default: the kernel's name)"},
    {"report", OPT_REPORT, "sass", BUILD,
     "show what stands in each loop of the machine code (needs nvdisasm)"},
    {"lenient", OPT_LENIENT, NULL, BUILD | RUN | TEST | BENCH | TUNE,
     "spills, serialized products and the like are warnings"},
    {"unverified", OPT_UNVERIFIED, NULL, CHECK | BUILD | RUN | TEST | BENCH | TUNE,
     "what is rejected because it may race or hang, or may not be what was checked (G.ptx), is a "
     "warning"},
    {"trust-elements", OPT_TRUST_ELEMENTS, NULL, BUILD | RUN | TEST | BENCH | TUNE,
     "launches do not look whether lists are as the schedule says ('in 0 .. n', 'rising')"},
    {"no-cache", OPT_NO_CACHE, NULL, BUILD | RUN | TEST | BENCH | TUNE,
     "neither use the cache of machine code nor add to it"},
    {"check", OPT_CHECK, NULL, FMT, "write nothing; exit 1 if a file is not in canonical form"},
    {"in-place", 'i', NULL, FMT, "rewrite the files"},
    {"format", OPT_FORMAT, "text|json|sarif", KERNELS,
     "of results and diagnostics (sarif: check only)"},
    {"help", 'h', NULL, ALL, "this page"},
};

static int bit_of(const Command *c) {
  static const char *const name[] = {"run",     "test",  "check", "fmt", "info",
                                     "explain", "build", "bench", "tune"};
  for (size_t i = 0; i < COUNT(name); i++) {
    if (strcmp(name[i], c->name) == 0) return 1 << i;
  }
  return 0;
}

void args_help(FILE *to, const Command *c) {
  fprintf(to, "schedc %s: %s\n\nusage: schedc %s %s [options]\n\n%s%s", c->name, c->what, c->name,
          c->operands, c->more, *c->more ? "\n" : "");
  for (size_t i = 0; i < COUNT(options); i++) {
    const struct Option *o = &options[i];
    if (!(o->commands & bit_of(c))) continue;
    char left[64];
    int n = o->val < 256 ? snprintf(left, sizeof left, "-%c, --%s", o->val, o->name)
                         : snprintf(left, sizeof left, "    --%s", o->name);
    if (o->arg) snprintf(left + n, sizeof left - (size_t)n, " %s", o->arg);
    fprintf(to, "  %-30s %s\n", left, o->what);
  }
  if (bit_of(c) & CHECK) {
    fputs("\nstages:\n", to);
    for (size_t i = 0; schedc_stage_at(i); i++)
      fprintf(to, "  %-12s %s\n", schedc_stage_at(i), schedc_stage_summary(schedc_stage_at(i)));
  }
  if (bit_of(c) & (RUN | TEST | BENCH | TUNE)) {
    fputs("\ninputs:\n", to);
    for (size_t i = 0; schedc_input_at(i); i++)
      fprintf(to, "  %-12s %s\n", schedc_input_at(i), schedc_input_summary(schedc_input_at(i)));
  }
}

bool pairs_have(const Pairs *pairs, const char *name) {
  for (size_t i = 0; i < pairs->n; i++)
    if (strcmp(pairs->at[i].name, name) == 0) return true;
  return false;
}

static int add_pair(const Args *args, Pairs *pairs, const char *option, const char *text) {
  const char *eq = strchr(text, '=');
  if (!eq || eq == text) return cli_usage(args, "--%s wants NAME=VALUE, not '%s'", option, text);
  for (size_t i = 0; i < pairs->n && pairs != &args->out; i++)  // outputs may go to several files
    if (!strncmp(pairs->at[i].name, text, (size_t)(eq - text)) && !pairs->at[i].name[eq - text])
      return cli_usage(args, "--%s gives '%s' twice: '%s' and '%s'", option, pairs->at[i].name,
                       pairs->at[i].value, eq + 1);
  pairs->at = need(realloc(pairs->at, sizeof *pairs->at * (pairs->n + 1)));
  char *name = need(malloc((size_t)(eq - text) + 1));
  memcpy(name, text, (size_t)(eq - text));
  name[eq - text] = 0;
  pairs->at[pairs->n++] = (schedc_param){name, eq + 1};
  return 0;
}

static int read_word(const Args *args, const char *option, const char *text,
                     const char *const *words, int n, int *out) {
  for (int i = 0; i < n; i++) {
    if (strcmp(words[i], text) == 0) {
      *out = i;
      return 0;
    }
  }
  Buffer known = {0};
  for (int i = 0; i < n; i++) buffer_printf(&known, "%s%s", i ? ", " : "", words[i]);
  int code = cli_usage(args, "'%s' is not a value of --%s (%s)", text, option, known.at);
  free(known.at);
  return code;
}

static int read_number(const Args *args, const char *option, const char *text, uint64_t max,
                       uint64_t *out) {
  char *end;
  errno = 0;
  unsigned long long v = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end)
    return cli_usage(args, "--%s wants a number, not '%s'", option, text);
  if (errno == ERANGE || v > max)
    return cli_usage(args, "--%s is %" PRIu64 " at most, not %s", option, max, text);
  *out = v;
  return 0;
}

// `90`, `90s`, `5m`, `1h`.
static int read_time(const Args *args, const char *option, const char *text, double *out) {
  char *end;
  double unit = 1;
  *out = strtod(text, &end);
  bool good = *text >= '0' && *text <= '9' && *out > 0 && *out < 1e9;
  if (*end == 'm') unit = 60;
  else if (*end == 'h') unit = 3600;
  else if (*end && *end != 's') good = false;
  if (!good || (*end && end[1]))
    return cli_usage(args, "--%s wants a time, such as 90s or 5m, not '%s'", option, text);
  *out *= unit;
  return 0;
}

// `normal,ramp`, each at most once. `run` takes one.
static int read_inputs(Args *a, const char *option, const char *text) {
  char word[32];
  const char *kinds[MAX_INPUTS];
  int known = 0;
  bool more = true;
  while (known < MAX_INPUTS && schedc_input_at((size_t)known))
    kinds[known] = schedc_input_at((size_t)known), known++;
  a->input_count = 0;
  for (size_t n; more; text += n + more) {
    n = strcspn(text, ",");
    more = text[n] == ',';
    int kind = 0;
    snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word), text);
    if (read_word(a, option, word, kinds, known, &kind)) return EXIT_USAGE;
    for (size_t i = 0; i < a->input_count; i++)
      if (a->inputs[i] == (InputKind)kind)
        return cli_usage(a, "--%s names '%s' twice", option, word);
    a->inputs[a->input_count++] = (InputKind)kind;
  }
  if (a->input_count > 1 && bit_of(a->command) & RUN)
    return cli_usage(a, "--%s takes one kind of input here", option);
  return 0;
}

// Where an option that keeps its text as it is keeps it; NULL: it is not one of these.
static const char **text_of(Args *a, int val) {
  switch (val) {
    case OPT_CASE: return &a->case_name;
    case OPT_EMIT: return &a->emit;
    case 'o': return &a->output;
    case OPT_TO: return &a->to;
    case OPT_NAME: return &a->name;
    case OPT_REPORT: return &a->report;
    case OPT_SHAPES: return &a->shapes;
    case OPT_STORE: return &a->store;
    case OPT_TUNED: return &a->tuned;
    case OPT_WINNERS: return &a->winners;
    case OPT_GPU: return &a->gpu;
    default: return NULL;
  }
}

static Pairs *pairs_of(Args *a, int val) {
  switch (val) {
    case 'p': return &a->param;
    case OPT_SET: return &a->set;
    case OPT_VARY: return &a->vary;
    case OPT_IN: return &a->in;
    case OPT_OUT: return &a->out;
    default: return NULL;
  }
}

static int take_count(Args *a, const char *name, const char *text, uint64_t max, unsigned *out) {
  uint64_t number = 0;
  int code = read_number(a, name, text, max, &number);
  *out = (unsigned)number;
  return code;
}

// Options of `tune` alone.
static int take_search(Args *a, int val, const char *name, const char *text) {
  static const char *const strategy[] = {"halving", "exhaustive", "model"};
  int word = 0, code;
  switch (val) {
    case OPT_BUDGET: return read_time(a, name, text, &a->budget);
    case OPT_JOBS: return take_count(a, name, text, 64, &a->jobs);
    case OPT_MEASURED: return take_count(a, name, text, MAX_INPUTS, &a->measured);
    case OPT_TOP: return take_count(a, name, text, 100, &a->top);
    default:
      code = read_word(a, name, text, strategy, COUNT(strategy), &word);
      a->strategy = (schedc_strategy)word;
      return code;
  }
}

static int take_value(Args *a, int val, const char *name, const char *text) {
  const char *const policy[] = {policy_name(POLICY_EARLY), policy_name(POLICY_LATE),
                                policy_name(POLICY_RANDOM), policy_name(POLICY_LAGGARD)};
  static const char *const on[] = {"cpu", "cuda", "model"};
  static const char *const format[] = {"text", "json", "sarif"};
  int code = 0, word = 0;
  uint64_t number = 0;
  if (text_of(a, val)) {
    *text_of(a, val) = text;
    return 0;
  }
  if (pairs_of(a, val)) return add_pair(a, pairs_of(a, val), name, text);
  switch (val) {
    case OPT_POLICY:
      code = read_word(a, name, text, policy, COUNT(policy), &word);
      a->policy = (Policy)word;
      a->policy_given = true;
      return code;
    case OPT_INPUTS: return read_inputs(a, name, text);
    case OPT_ON:
      code = read_word(a, name, text, on, COUNT(on), &word);
      a->cuda = word > 0;
      a->model = word == 2;
      a->on_given = true;
      return code;
    case OPT_FORMAT:
      code = read_word(a, name, text, format, 3, &word);
      a->format = (Format)word;
      if (!code && a->format == FORMAT_SARIF && !(bit_of(a->command) & CHECK))
        return cli_usage(a, "--format sarif is for 'schedc check'");
      return code;
    case OPT_BUDGET:
    case OPT_JOBS:
    case OPT_MEASURED:
    case OPT_TOP:
    case OPT_STRATEGY: return take_search(a, val, name, text);
    case OPT_REPEAT: return read_number(a, name, text, 1000000, &a->repeat);
    case OPT_ROUNDS: return take_count(a, name, text, 16, &a->rounds);
    case OPT_DEVICE:
      code = read_number(a, name, text, INT_MAX, &number);
      a->device = (int)number;
      a->device_given = true;
      return code;
    case OPT_SAMPLE:
      a->sample_given = true;
      return read_number(a, name, text, UINT64_MAX, &a->sample);
    case OPT_INPUTS_SEED:
      a->inputs_seed_given = true;
      return read_number(a, name, text, UINT64_MAX, &a->inputs_seed);
    case OPT_SEED: return read_number(a, name, text, UINT64_MAX, &a->seed);
    case OPT_THREADS: return take_count(a, name, text, 4096, &a->threads);
    case OPT_SMS: return take_count(a, name, text, 65536, &a->sms);
    default: abort();  // an option of the table that is not read
  }
}

static bool *flag_of(Args *a, int val) {
  switch (val) {
    case OPT_QUICK: return &a->quick;
    case OPT_FULL: return &a->full;
    case OPT_TIME: return &a->bench;
    case OPT_DEBUG_WAITS: return &a->debug_waits;
    case OPT_DRY_RUN: return &a->dry_run;
    case OPT_LENIENT: return &a->lenient;
    case OPT_UNVERIFIED: return &a->unverified;
    case OPT_NO_CACHE: return &a->no_cache;
    case OPT_TRUST_ELEMENTS: return &a->trust_elements;
    case OPT_CHECK: return &a->check;
    case OPT_ALL_PARAMS: return &a->all_params;
    case OPT_ALL_CASES: return &a->all_cases;
    case OPT_RESUME: return &a->resume;
    case 'i': return &a->in_place;
    case 'h': return &a->help;
    default: abort();  // a flag of the table that is not read
  }
}

// What getopt_long does not take: val is ':' where an argument is missing, else '?'.
static int not_taken(const Args *args, const struct option *known, int val, char **argv) {
  const char *word = argv[optind - 1];
  for (; known->name && (!optopt || known->val != optopt);) known++;
  if (val == ':') return cli_usage(args, "'%s' lacks its argument", word);
  if (known->name) return cli_usage(args, "'--%s' takes no argument", known->name);
  if (optopt) return cli_usage(args, "'-%c' is not an option here", optopt);
  return cli_usage(args, "'%s' is not an option here", word);
}

// Options that contradict each other, or of which one would be ignored.
static int check_together(const Args *args) {
  int takes = bit_of(args->command);
  bool interprets = !args->cuda && (args->on_given || args->policy_given || args->sms);
  if (args->bench && interprets)
    return cli_usage(args, "'--time' measures on a GPU: leave it out, or say '--on cuda'");
  if (args->debug_waits && (takes & TEST ? !args->cuda : takes & RUN && interprets))
    return cli_usage(args,
                     "'--debug-waits' is of emitted code: it needs '--on cuda' or "
                     "'--on model'");
  if (args->policy == POLICY_LAGGARD && !args->model)
    return cli_usage(args, "'--policy laggard' needs '--on model'");
  if (takes & TEST && args->policy_given && !args->model)
    return cli_usage(args, "'schedc test' runs under all policies: '--policy' needs '--on model'");
  if (takes & (BENCH | TUNE) && args->on_given && !args->cuda)
    return cli_usage(args, "'schedc %s' runs on cuda or on the model: leave '--on cpu' out",
                     args->command->name);
  if (args->resume && !args->store)
    return cli_usage(args, "'--resume' goes on from what '--out' has: say which file");
  if (args->quick && args->full) return cli_usage(args, "--quick and --full exclude each other");
  return 0;
}

int args_read(Args *args, const Command *command, int argc, char **argv) {
  struct option table[COUNT(options) + 1];
  char letters[2 * COUNT(options) + 2] = ":";  // tell a missing argument from an unknown option
  size_t n = 0, l = 1;
  memset(table, 0, sizeof table);
  for (size_t i = 0; i < COUNT(options); i++) {
    const struct Option *o = &options[i];
    if (!(o->commands & bit_of(command))) continue;
    table[n++] = (struct option){o->name, o->arg ? required_argument : no_argument, NULL, o->val};
    if (o->val < 256) letters[l++] = (char)o->val;
    if (o->val < 256 && o->arg) letters[l++] = ':';
  }
  letters[l] = 0;
  *args =
      (Args){.command = command, .policy = POLICY_LATE, .rounds = 3, .argc = argc, .argv = argv};
  args->measured = 1;
  opterr = 0;
  optind = 1;
  for (int val, which = -1; (val = getopt_long(argc, argv, letters, table, &which)) != -1;) {
    if (val == '?' || val == ':') return not_taken(args, table, val, argv);
    const char *name = "";
    for (size_t i = 0; i < n; i++)
      if (table[i].val == val) name = table[i].name;
    if (!optarg) *flag_of(args, val) = true;
    else if (take_value(args, val, name, optarg)) return EXIT_USAGE;
  }
  args->operand = argv + optind;
  args->operands = argc - optind;
  if (args->help) return 0;
  if (args->operands < command->min)
    return cli_usage(args, "an operand is missing: %s", command->operands);
  if (args->operands > command->max)
    return cli_usage(args, "'%s' is one operand too many", args->operand[command->max]);
  if (args->device_given && args->on_given && !args->cuda)
    return cli_usage(args, "'--device' is of a GPU: leave it, or '--on cpu', out");
  if (args->device_given) args->cuda = args->on_given = true;
  return check_together(args);
}

static void free_pairs(Pairs *p) {
  for (size_t i = 0; i < p->n; i++) free((char *)p->at[i].name);
  free(p->at);
}

void args_free(Args *a) {
  free_pairs(&a->param);
  free_pairs(&a->set);
  free_pairs(&a->vary);
  free_pairs(&a->in);
  free_pairs(&a->out);
}
