#!/usr/bin/env python3
"""A mutation test: is every wait, release and acquire of a schedule needed, and does schedc notice?

Each mutant deletes one of them, drops one name of its list, moves it (by one statement up or down, or next
to the synchronising statement before or after it in its role), or swaps two of a role. A mutant is rejected by
`schedc check`; or else it is run, by the interpreter and, as emitted, on the model of a GPU: either notices it by
a race, a deadlock, a broken rule or a wrong result. What survives must be in the list of known equivalent
mutants, with the reason why nothing is wrong with it. What only one of the two notices is listed.

  mutate.py --schedc build/schedc [--file schedules/fa3_fwd.sched …| --all] [--on cpu] [--table tests/mutate.md]
  exit status: 0 every survivor is expected, 1 some is not, 2 the test itself could not be run
"""
import argparse
import collections
import difflib
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SYNC = re.compile(r"(wait|release|acquire)\b")
SHORT_BLOCK = re.compile(r"([^{}]*\{|\} else \{)([^{}]*\b(?:wait|release|acquire)\b[^{}]*)\}$")
POLICIES = {"cpu": [("early", 0), ("late", 0), ("random", 1), ("random", 2)],
            "model": [("early", 0), ("late", 0), ("random", 1)]}

# What is run of a schedule: options, and dimensions, on two multiprocessors. Several rounds of each ring, several tiles a
# CTA, a ragged end each way, a sequence without keys, rings of one stage where it may have them; and what other branches
# and roles need.
RUNS = {
    "copy": [("", "M=320 N=512"), ("-p stages=1", "M=100 N=200")],
    "fa3_alg1": [("-p D=64", "B=1 H=2 G=1 M=300 N=500"), ("-p D=64 -p causal=true -p stages=1", "B=1 H=1 G=1 M=200 N=300")],
    "fa3_alone": [("-p D=64", "B=1 H=2 G=1 M=300 N=500"), ("-p D=64 -p causal=true", "B=1 H=1 G=1 M=200 N=130")],
    "fa3_bwd": [("attention -p D=64", "B=1 H=2 G=1 M=300 N=200"), ("attention -p D=64 -p stages=1", "B=1 H=1 G=1 M=300 N=200"),
                ("attention -p D=256 -p causal=true", "B=1 H=2 G=1 M=200 N=150"),
                ("attention -p D=256 -p stages=1", "B=1 H=1 G=1 M=200 N=150"), ("attention -p D=64", "B=1 H=1 G=1 M=0 N=70")],
    "fa3_fwd": [("-p D=64", "B=1 H=2 G=1 M=300 N=500"), ("-p D=64 -p causal=true", "B=1 H=1 G=1 M=200 N=130"),
                ("-p D=64 -p stages=1", "B=1 H=1 G=1 M=200 N=300")],
    "fa3_stage3": [("-p D=64", "B=1 H=2 G=1 M=300 N=900"), ("-p D=64", "B=1 H=2 G=1 M=200 N=600"),
                   ("-p D=64 -p causal=true", "B=1 H=1 G=1 M=200 N=130")],
    "fa3_stale": [("", "B=1 H=2 G=1 M=300 N=700"),
                  ("-p causal=true -p pair=2 -p BN=80 --inputs ramp", "B=1 H=1 G=1 M=500 N=300"),
                  ("-p causal=true -p pair=2 -p stages=1", "B=1 H=1 G=1 M=300 N=300"),
                  ("-p D=64", "B=1 H=1 G=1 M=200 N=130 scale=4")],
    "fa_varlen": [("--case tiles", ""), ("--case long", ""), ("--case empty", ""), ("--case long -p stages=1", "")],
    "gemm": [("", "M=128 N=256 K=640"), ("", "M=65 N=136 K=0")],
    "gemm_bias_gelu": [("", "M=320 N=704 K=576"), ("-p stages=2", "M=65 N=136 K=200")],
    "gemm_cooperative": [("", "M=300 N=1104 K=448"), ("-p stages=2", "M=65 N=136 K=200")],
    "gemm_pingpong": [("", "M=400 N=704 K=448"), ("-p stages=2", "M=200 N=136 K=200")],
    "gemm_roles": [("", "M=300 N=400 K=704"), ("-p stages=2", "M=65 N=136 K=200")],
    "gqa_fwd_2wg": [("-p D=64", "B=1 H=2 G=1 M=100 N=500"), ("-p D=64 -p causal=true", "B=1 H=2 G=1 M=200 N=130")],
    "mlp": [("", "M=300 F=900"), ("-p BM=64 -p stages=1", "M=65 F=300")],
    "softmax_rows": [("", "M=320 N=1100"), ("-p stages=2", "M=65 N=200")],
}


class Statement:
    """A statement, a block's opening line or a closing brace, of a role or a definition outside of roles."""

    def __init__(self, text, role):
        self.text, self.role = text, role
        self.sync = role is not None and SYNC.match(text) is not None


def spread(line):
    """A block on one line that synchronises, on several."""
    block = SHORT_BLOCK.match(line)
    return [block.group(1).strip(), *block.group(2).split(";"), "}"] if block else [line]


def split(source):
    """The file as statements, one a line: comments dropped, `a;  b` taken apart, other one-line blocks kept whole."""
    out, role, kernel, depth = [], None, "", 0
    kernels = len(re.findall(r"^kernel", source, re.M))
    for line in source.splitlines():
        line = re.sub(r"//.*", "", line).strip()
        if depth == 0 and re.match(r"kernel", line):
            kernel = line.split()[1] + "." if kernels > 1 else ""
        if depth == 1:
            header = re.match(r"(?:role|def) (\w+).*\{", line)
            role = kernel + header.group(1) if header else None
        for text in spread(line) if role else [line]:
            parts = text.split(";") if role and "{" not in text else [text]
            out += [Statement(part.strip(), role) for part in parts if part.strip()]
        depth += line.count("{") - line.count("}")
    return out


def join(statements):
    lines, depth = [], 0
    for s in statements:
        lines.append("  " * (depth - s.text.startswith("}")) + s.text + "\n")
        depth += s.text.count("{") - s.text.count("}")
    return "".join(lines)


def names(statements):
    """A name for each synchronising statement that does not change with line numbers."""
    seen, out = collections.Counter(), {}
    for n, s in enumerate(statements):
        if s.sync:
            seen[s.role, s.text] += 1
            out[n] = f"{s.role}: {s.text} [{seen[s.role, s.text]}]"
    return out


def mutants(statements):
    """Yields (operator, name, statements)."""
    label = names(statements)
    sync = list(label)
    unchanged = join(statements)
    seen = {unchanged}

    def moved(n, to):
        rest = statements[:n] + statements[n + 1:]
        return rest[:to] + [statements[n]] + rest[to:]

    def candidates():
        for at, n in enumerate(sync):
            s = statements[n]
            yield "delete", label[n], statements[:n] + statements[n + 1:]
            verb, rest = s.text.split(None, 1)
            listed = rest.split(", ")
            if len(listed) > 1:
                for item in listed:
                    text = verb + " " + ", ".join(x for x in listed if x != item)
                    yield f"drop {item}", label[n], statements[:n] + [Statement(text, s.role)] + statements[n + 1:]
            yield "up", label[n], moved(n, n - 1)
            yield "down", label[n], moved(n, n + 1)
            if at > 0 and statements[sync[at - 1]].role == s.role:
                yield "before", f"{label[n]} | {label[sync[at - 1]]}", moved(n, sync[at - 1])
            if at + 1 < len(sync) and statements[sync[at + 1]].role == s.role:
                yield "after", f"{label[n]} | {label[sync[at + 1]]}", moved(n, sync[at + 1])
            for m in [m for m in sync[at + 1:] if statements[m].role == s.role]:
                other = statements[:]
                other[n], other[m] = other[m], other[n]
                yield "swap", f"{label[n]} | {label[m]}", other

    for operator, name, mutant in candidates():
        text = join(mutant)
        if text not in seen:  # the same text by another way is tried once
            seen.add(text)
            yield operator, name, mutant


def run(command, timeout):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                              encoding="utf-8", errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return None, ""


class Judge:
    """Of a schedule's mutants: what check, the interpreter and the model say."""

    def __init__(self, args, folder, name):
        self.args, self.name, self.runs = args, name, RUNS[name]
        self.path = os.path.join(folder, name + ".sched")
        self.timeout = args.timeout

    def rejected(self):
        """The code with which one of the runs' checks rejects it, or None."""
        for options in dict.fromkeys(options for options, _ in self.runs):
            status, text = run([self.args.schedc, "check", self.path] + options.split("--inputs")[0].split(), self.timeout)
            code = re.search(r"error\[([\w.-]+)\]", text)
            if status != 0:
                return code.group(1) if code else "hung" if status is None else "?"
        return None

    def noticed(self, on):
        """What the first run on the interpreter or the model that notices says; None: none does."""
        for policy, seed in POLICIES[on]:
            for options, dims in self.runs:
                sets = [word for dim in dims.split() for word in ("--set", dim)]
                status, text = run([self.args.schedc, "run", self.path, *options.split(), *sets, "--on", on, "--sms", "2",
                                    "--policy", policy, "--seed", str(seed)], self.timeout)
                code = re.search(r"error\[([\w.-]+)\]", text)
                rule = re.search(r"error\[G\.model\].*\((\w+)\)", text)
                if status is None:
                    return "hung"
                if code:
                    return rule.group(1) if rule else code.group(1)
                if status != 0:
                    return "wrong" if "FAIL" in text else f"exit status {status}"
        return None

    def judge(self, mutant):
        """(class, what check or the interpreter says, what the model says)."""
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(join(mutant))
        code = self.rejected()
        if code:
            return "rejected", code, None
        cpu = self.noticed("cpu")
        model = self.noticed("model") if self.args.on == "both" else None
        return "interpreter" if cpu else "model only" if model else "survived", cpu, model


def read_expected(path):
    """{(schedule, mutant): reason} of lines `operator  name  # reason`, in sections `[schedule]`."""
    known, name = {}, None
    for line in open(path, encoding="utf-8"):
        section = re.match(r"\[(\w+)\]$", line.strip())
        if section:
            name = section.group(1)
        elif line.strip() and not line.startswith("#"):
            mutant, _, reason = line.partition("  # ")
            if not reason.strip():
                sys.exit(f"{path}: a mutant without a reason: {line.strip()}")
            known[name, mutant.strip()] = reason.strip()
    return known


class Outcome:
    """Of a schedule: how many mutants are of each operator and class, and which ones a list names."""

    def __init__(self, name):
        self.name = name
        self.count = collections.defaultdict(collections.Counter)  # by operator
        self.details = collections.Counter()
        self.model_only, self.interpreter_only, self.survivors = [], [], []

    def add(self, operator, name, verdict, cpu, model, mutant, both):
        self.count[operator.split()[0]][verdict] += 1
        if verdict == "survived":
            self.survivors.append((f"{operator}  {name}", mutant))
        else:
            self.details[f"{verdict} {cpu or model}"] += 1
        if verdict == "model only":
            self.model_only.append((f"{operator}  {name}", model))
        if verdict == "interpreter" and both and not model:
            self.interpreter_only.append((f"{operator}  {name}", cpu))

    def total(self):
        return sum(self.count.values(), collections.Counter())


def mutate(args, folder, path):
    """The outcome of a schedule; exits where it does not pass itself."""
    name = os.path.basename(path).removesuffix(".sched")
    if name not in RUNS:
        sys.exit(f"{name}: RUNS does not say what is to be run of it")
    with open(path, encoding="utf-8") as file:
        statements = split(file.read())
    judge, outcome = Judge(args, folder, name), Outcome(name)
    verdict, cpu, model = judge.judge(statements)
    if verdict != "survived":
        print(f"{name} itself does not pass: {verdict} {cpu or model}", file=sys.stderr)
        sys.exit(2)
    for operator, label, mutant in mutants(statements):
        verdict, cpu, model = judge.judge(mutant)
        outcome.add(operator, label, verdict, cpu, model, mutant, args.on == "both")
        if args.verbose:
            print(f"{name} {verdict:11} {cpu or '-':16} {model or '-':16} {operator}  {label}", flush=True)
    return outcome, join(statements)


VERDICTS = ["rejected", "interpreter", "model only", "survived"]


def report(outcome, whole, known, expected):
    """Prints what a schedule's mutants came to; how many survivors are not expected."""
    print(f"{outcome.name:16}" + "".join(f"{v:>13}" for v in VERDICTS) + f"{'total':>10}")
    for kind, count in [*outcome.count.items(), ("all", outcome.total())]:
        print(f"  {kind:14}" + "".join(f"{count[v]:13}" for v in VERDICTS) + f"{sum(count.values()):10}")
    for what, count in outcome.details.most_common():
        print(f"{count:6}  {what}")
    unexpected = 0
    for mutant, text in outcome.survivors:
        reason = known.pop((outcome.name, mutant), None)
        unexpected += reason is None
        print(f"\nsurvivor: {mutant}\n" + (f"equivalent: {reason}" if reason else "NOT EXPECTED"))
        diff = difflib.unified_diff(whole.splitlines(True), join(text).splitlines(True), n=2)
        print("".join(list(diff)[2:]), end="")
    for name, mutant in known:
        if name == outcome.name:
            print(f"\n{expected}: no longer survives: {mutant}")
            unexpected += 1
    print(flush=True)
    return unexpected


HEAD = """# Mutants of the schedules

One wait, release or acquire of a schedule is left out, moved, or swapped with another of its role. `rejected`: by
`schedc check`. The others are run. `interpreter`: it notices. `model only`: neither check nor the interpreter does, but the
emitted text fails on the model of a GPU. `survived`: nothing is wrong with them (tests/mutate.expected has the reasons).
Written by `tests/mutate.py --all --table tests/mutate.md`.

"""


def write_list(out, title, found):
    """Mutants of (schedule, mutant, what is said of it)."""
    out.write(f"\n{title}\n\n")
    if not found:
        out.write("None.\n")
        return
    out.write("| schedule | mutant | what it says |\n| --- | --- | --- |\n")
    for name, mutant, said in found:
        cell = mutant.replace("|", "\\|")
        out.write(f"| {name} | `{cell}` | {said} |\n")


def write_table(path, outcomes):
    rows = [(o.name, o.total()) for o in outcomes]
    rows.append(("all", sum((count for _, count in rows), collections.Counter())))
    with open(path, "w", encoding="utf-8") as out:
        out.write(HEAD + "| schedule | mutants | " + " | ".join(VERDICTS) + " |\n| --- |" + " --- |" * (len(VERDICTS) + 1) + "\n")
        for name, count in rows:
            out.write(f"| {name} | {sum(count.values())} | " + " | ".join(str(count[v]) for v in VERDICTS) + " |\n")
        write_list(out, "Noticed by the model alone:", [(o.name, *m) for o in outcomes for m in o.model_only])
        write_list(out, "Noticed by the interpreter, and not by the model:",
                   [(o.name, *m) for o in outcomes for m in o.interpreter_only])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedc", default=os.path.join(ROOT, "build", "schedc"))
    parser.add_argument("--file", action="append", help="a schedule (fa3_fwd, if none is named)")
    parser.add_argument("--all", action="store_true", help="all of schedules/")
    parser.add_argument("--on", choices=["cpu", "both"], default="both", help="the interpreter, or the model as well")
    parser.add_argument("--expected", default=os.path.join(HERE, "mutate.expected"))
    parser.add_argument("--table")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--verbose", action="store_true", help="one line a mutant")
    args = parser.parse_args()
    files = sorted(glob.glob(os.path.join(ROOT, "schedules", "*.sched"))) if args.all else args.file
    known = read_expected(args.expected)
    outcomes, unexpected = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for path in files or [os.path.join(ROOT, "schedules", "fa3_fwd.sched")]:
            outcome, whole = mutate(args, folder, path)
            outcomes.append(outcome)
            unexpected += report(outcome, whole, known, args.expected)
    if args.table:
        write_table(args.table, outcomes)
    count = sum(sum(o.total().values()) for o in outcomes)
    print(f"{count} mutants, {sum(len(o.survivors) for o in outcomes)} equivalent ones among them\n"
          f"{count - unexpected} passed, {unexpected} failed, 0 skipped")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
