"""What becomes of a mutant of a schedule. In: the schedule and the mutant as statements. Out: a Verdict: what notices it, what
became of the witness of a rejection, and why what nobody notices does what the schedule does.

RUNS is what is run of each schedule. Each run has the same inputs under each policy, so that bits can be compared.
"""
import dataclasses
import hashlib
import json
import os
import re
import subprocess
import sys

import equivalent
import witnesses
from mutants import join

# Policies of runs, their seeds, and how many multiprocessors there are.
POLICIES = {"cpu": [("early", 0, 2), ("late", 0, 2), ("random", 1, 2), ("random", 2, 2)],
            "model": [("early", 0, 2), ("late", 0, 2), ("random", 1, 2)]}
SPREAD = [("late", 0, 8), ("random", 1, 8)]  # of the schedule itself: CTAs that add up do so in another order
VERDICTS = ["one role", "all roles", "interpreter", "model only", "survived"]
FAILS, OTHERWISE, PASSES, NOT_RUN = "fails as was said", "fails otherwise", "does not fail", "cannot be run"
UNSEEN = "says nothing of a run"
SAME, SLOWER, TURNLESS, NEEDLESS = "same text", "only more order", "needs no turn", "less order"
CLASSES = [SAME, SLOWER, TURNLESS, NEEDLESS]
ENGINES = 4  # of the model
SEVERAL = {"R5.agree", "R6.deadlock", "R6.dealt", "R6.key", "R10.race"}  # what is wrong between roles
RACES = {"R3.release", "R10.race", "X.race"}
# What a run says of them; of others: witnesses.FAULTS.
FAULTS = {"R3.release": witnesses.RACE, "R10.race": witnesses.RACE, "R6.dealt": witnesses.PHASE, "R6.key": witnesses.KEY}

SHORT = "B=2 H=2 G=1 TQ=300 TK=110 maxq=170 maxk=60 cq=[0,130,300] ck=[0,50,110]"  # a tile of keys for each sequence

# What is run of a schedule: options, and dimensions, on two multiprocessors. Several rounds of each ring, several tiles a
# CTA, a ragged end each way, a sequence without keys, rings of one stage where it may have them; and what other branches
# and roles need.
RUNS = {
    "copy": [("", "M=320 N=512"), ("-p stages=2 -p BN=64", "M=100 N=200"),
             ("-p stages=2 -p BN=64", "M=700 N=56")],
    "fa3_alg1": [("-p D=64", "B=1 H=2 G=1 M=300 N=500"), ("-p D=64 -p causal=true -p stages=1", "B=1 H=1 G=1 M=200 N=300")],
    "fa3_alone": [("-p D=64", "B=1 H=2 G=1 M=300 N=500"), ("-p D=64 -p causal=true", "B=1 H=1 G=1 M=200 N=130")],
    "fa3_bwd": [("attention -p D=64", "B=1 H=2 G=1 M=300 N=200"), ("attention -p D=64 -p stages=1", "B=1 H=1 G=1 M=300 N=200"),
                ("attention -p D=256 -p causal=true", "B=1 H=2 G=1 M=200 N=150"),
                ("attention -p D=256 -p stages=1", "B=1 H=1 G=1 M=200 N=150"), ("attention -p D=64", "B=1 H=1 G=1 M=0 N=70"),
                ("attention -p D=64", "B=1 H=1 G=1 M=300 N=60"), ("attention -p D=256", "B=1 H=1 G=1 M=200 N=60")],
    "fa3_bwd_ordered": [("forward -p D=64", "B=1 H=2 G=1 M=300 N=200"), ("forward -p D=64 -p causal=true", "B=1 H=1 G=1 M=100 N=200"),
                        ("fa3_bwd_ordered -p D=64", "B=1 H=2 G=1 M=300 N=300"),
                        ("fa3_bwd_ordered -p D=64 -p causal=true -p stages=1", "B=1 H=2 G=2 M=300 N=200"),
                        ("fa3_bwd_ordered -p D=64", "B=1 H=1 G=1 M=70 N=150")],
    "fa3_fwd": [("-p D=64", "B=1 H=2 G=1 M=300 N=500"), ("-p D=64 -p causal=true", "B=1 H=1 G=1 M=200 N=130"),
                ("-p D=64 -p stages=1", "B=1 H=1 G=1 M=200 N=300")],
    "fa3_stage3": [("-p D=64", "B=1 H=2 G=1 M=300 N=900"), ("-p D=64", "B=1 H=2 G=1 M=200 N=600"),
                   ("-p D=64 -p causal=true", "B=1 H=1 G=1 M=200 N=130")],
    "fa3_stale": [("", "B=1 H=2 G=1 M=300 N=700"),
                  ("-p causal=true -p pair=2 -p BN=80 --inputs ramp", "B=1 H=1 G=1 M=500 N=300"),
                  ("-p causal=true -p pair=2 -p stages=1", "B=1 H=1 G=1 M=300 N=300"),
                  ("-p D=64", "B=1 H=1 G=1 M=200 N=130 scale=4")],
    "fa3_fp8": [("fa3_fp8 --case small -p D=64", ""), ("fa3_fp8 --case causal -p D=64 -p stages=1", "M=250 N=400"),
                ("fa3_fp8 --case lengths -p pingpong=false", ""), ("fa3_fp8 --case d256", "M=100 N=150"),
                ("fa3_fp8 --case small -p D=64 -p levels=2", ""),
                ("fa3_fp8_from16 --case small -p D=64", ""), ("fa3_fp8_from16 --case plain -p D=64", "M=70 N=200")],
    "fa_varlen": [("--case tiles", ""), ("--case long", ""), ("--case empty", ""), ("--case long -p stages=1", "")],
    "fa_varlen_bwd": [("forward --case small -p D=64", ""), ("forward --case small -p D=64 -p causal=true", ""),
                      ("fa_varlen_bwd --case small -p D=64", ""), ("fa_varlen_bwd --case long -p D=64 -p stages=1", ""),
                      ("fa_varlen_bwd --case empty -p D=64 -p causal=true", ""), ("fa_varlen_bwd --case long -p D=256", ""),
                      ("fa_varlen_bwd --case small -p D=256 -p causal=true -p stages=1", ""),
                      ("fa_varlen_bwd -p D=64", SHORT), ("fa_varlen_bwd -p D=256", SHORT)],
    "gemm": [("", "M=128 N=256 K=640"), ("", "M=65 N=136 K=0")],
    "gemm_bias_gelu": [("", "M=320 N=704 K=576"), ("-p stages=2", "M=65 N=136 K=200")],
    "gemm_fp8": [("", "M=300 N=528 K=912"), ("-p levels=2 -p T=e5m2 -p TO=f16", "M=65 N=144 K=208")],
    "gemm_cooperative": [("", "M=300 N=1104 K=448"), ("-p stages=2", "M=65 N=136 K=200")],
    "gemm_pingpong": [("", "M=400 N=704 K=448"), ("-p stages=2", "M=200 N=136 K=200")],
    "gemm_roles": [("", "M=300 N=400 K=704"), ("-p stages=2", "M=65 N=136 K=200")],
    "gqa_fwd_2wg": [("-p D=64", "B=1 H=2 G=1 M=100 N=500"), ("-p D=64 -p causal=true", "B=1 H=2 G=1 M=200 N=130")],
    "mlp": [("", "M=300 F=900"), ("-p BM=64 -p stages=1", "M=65 F=300")],
    "layernorm_rows": [("", "M=320 N=1100"), ("-p stages=2 -p BN=128", "M=65 N=400")],
    "argmax_rows": [("", "M=320 N=1100"), ("-p stages=2 -p BN=128", "M=65 N=400")],
    "softmax_rows": [("", "M=320 N=1100"), ("-p stages=2 -p BN=128", "M=65 N=400")],
}


def run(command, timeout):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                              encoding="utf-8", errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return None, ""


@dataclasses.dataclass
class Verdict:
    """Of a mutant: what noticed it."""
    kind: str             # one of VERDICTS; "no program"
    said: str = None      # by check or the interpreter: a rule's code
    model: str = None     # by the model
    proved: bool = False  # by check
    witness: str = None   # what became of it
    seen: str = None      # instead, if the witness is not right: by a run, or the rule that forbids to run it
    order: str = None     # CLASSES; of a mutant that is noticed SLOWER or none
    seconds: float = 0


class Judge:
    """Of a schedule's mutants: what check, the interpreter and the model say."""

    def __init__(self, args, folder, name, own):
        self.args, self.name, self.runs, self.folder, self.own = args, name, RUNS[name], folder, own
        self.path = os.path.join(folder, name + ".sched")
        self.timeout = args.timeout
        self.options = list(dict.fromkeys(options for options, _ in self.runs))
        self.bits = {}  # the schedule's own, by run, policy and tensor; filled by its own runs
        self.outputs = {}
        self.text = {}        # the schedule's own, emitted, by options
        self.lagged = []      # the runs in which each warp and engine of the schedule itself has lagged
        self.turnless = None  # is the schedule right without turns?

    def write(self, text):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(text)

    def check(self, options, *more):
        return run([self.args.schedc, "check", self.path, *options.split("--inputs")[0].split(), *more], self.timeout)

    def rejected(self):
        """(The code with which one of the runs' checks rejects it, or None; what is said; with which options; is it proved?)"""
        proved = True
        for options in self.options:
            status, text = self.check(options)
            code = re.search(r"error\[([\w.-]+)\]", text)
            if status is None:
                sys.exit(f"{self.path}: check has no answer within {self.timeout} s")
            if status != 0:
                return code.group(1) if code else "?", text, options, False
            verdicts = [line for line in text.splitlines() if re.match(r"\w+: ", line)]
            proved &= bool(verdicts) and all(line.endswith("proved for all trip counts") for line in verdicts)
        return None, "", None, proved

    def command(self, on, policy, options, dims):
        name, seed, sms = policy
        sets = [word for dim in dims.split() for word in ("--set", dim)]
        return [self.args.schedc, "run", self.path, *options.split(), *sets, "--on", on, "--sms", str(sms), "--policy", name,
                "--seed", str(seed), "--inputs-seed", "0"]

    def tensors(self, of):
        """The outputs of a run."""
        if of not in self.outputs:
            _, text = run(self.command("cpu", POLICIES["cpu"][0], *of) + ["--format", "json"], self.timeout)
            self.outputs[of] = [output["tensor"] for output in json.loads(text)["outputs"]]
        return self.outputs[of]

    def ordered(self, on, of, name):
        """Has an output the same bits in all the schedule's own runs? (Where it has not, its sums have no order.)"""
        return len({bits for (other, n), bits in self.bits.items() if (other[0], other[2], n) == (on, of, name)}) == 1

    def same_bits(self, key, files):
        """Are the outputs those of the schedule itself?"""
        on, _, of = key
        same = True
        for name, path in files.items():
            with open(path, "rb") as file:
                now = hashlib.sha256(file.read()).digest()
            own = self.bits.setdefault((key, name), now)
            same &= now == own or not self.ordered(on, of, name)
        return same

    def noticed(self, on, runs, policies=None):
        """What the first of these runs on the interpreter or the model that notices says; None: none does."""
        for policy in policies or POLICIES[on]:
            for of in runs:
                files = {name: os.path.join(self.folder, name + ".npy") for name in self.tensors(of)}
                out = [word for name, path in files.items() for word in ("--out", f"{name}={path}")]
                status, text = run(self.command(on, policy, *of) + out, self.timeout)
                code = re.search(r"error\[([\w.-]+)\]", text)
                rule = re.search(r"error\[G\.model\].*\((\w+)\)", text)
                if status is None:
                    return "hung"
                if code:
                    return rule.group(1) if rule else code.group(1)
                if status != 0:
                    return "wrong" if "FAIL" in text else f"exit status {status}"
                if not self.same_bits((on, policy, of), files):
                    return "other bits"
        return None

    def begin(self):
        """Judges the schedule itself; what is wrong with it, or None."""
        self.write(join(self.own))
        code, _, _, proved = self.rejected()
        ways = ["cpu", "model"] if self.args.on == "both" else ["cpu"]
        wrong = code
        for on in ways:
            wrong = wrong or self.noticed(on, self.runs, POLICIES[on] + SPREAD)
        if wrong or not proved:
            return wrong or "it is not proved"
        self.text = {options: self.emitted(options) for options in self.options}
        for on in ways:
            for name in {name for of in self.runs for name in self.tensors(of)}:
                if not any(self.ordered(on, of, name) for of in self.runs if name in self.tensors(of)):
                    return f"{name} has no bits to compare in any run ({on})"
        return None

    def emitted(self, options):
        """The program's text, without what names places of the schedule, and declarations that set nothing."""
        _, text = self.check(options, "--emit=cuda", "-o", "-")
        lines = [re.sub(r"//.*", "", line).strip() for line in text.splitlines()]
        return [line for line in lines if line and not re.match(r"#line|[\w ]+\[\d+\];$", line)]

    def other_runs(self):
        """The runs whose emitted text is not the schedule's own: on the model the rest are what the schedule's own are."""
        same = {options for options in self.options if self.emitted(options) == self.text[options]}
        return [of for of in self.runs if of[0] not in same]

    def lags(self):
        """The policies of the model under which each warp and each engine is the last in its turn."""
        text = "\n".join(line for of in self.text.values() for line in of)
        threads = max(map(int, re.findall(r"__launch_bounds__\((\d+)", text)))
        ctas = max(map(int, re.findall(r"__cluster_dims__\((\d+)", text)), default=1)
        return [("laggard", n, 2) for n in range(threads // 32 * ctas + ENGINES)]

    def right_without_turns(self):
        """Is the schedule without its turns proved, with the bits of the schedule?"""
        if self.turnless is None:
            self.write(equivalent.without_turns(join(self.own)))
            code, _, _, proved = self.rejected()
            self.turnless = not code and proved and not self.noticed("cpu", self.runs)
        return self.turnless

    def equivalence(self, mutant, runs):
        """(Of which class is a survivor with these other runs?, what the model notices when somebody lags)"""
        if not runs:
            return SAME, None
        if equivalent.lost(self.own, mutant) == []:
            return SLOWER, None
        if equivalent.turn_alone(self.own, mutant) and self.right_without_turns():
            return TURNLESS, None
        if self.args.on != "both":
            return NEEDLESS, None
        new = [of for of in runs if of not in self.lagged]
        self.write(join(self.own))
        self.noticed("model", new, self.lags())
        self.lagged += new
        self.write(join(mutant))
        return NEEDLESS, self.noticed("model", runs, self.lags())

    def forced(self, faults):
        """(What becomes of it in runs with --unverified, what is seen instead)"""
        other = None
        for policy in POLICIES["cpu"]:
            for of in self.runs:
                status, text = run(self.command("cpu", policy, *of) + ["--unverified"], self.timeout)
                found = witnesses.codes(text)
                if found & faults:
                    return FAILS, None
                if status != 0 and all(code.startswith("X.") for code in found):
                    other = other or ", ".join(sorted(found)) or "wrong"
        return (OTHERWISE, other) if other else (PASSES, None)

    def replayed(self, code, text, options):
        """(What became of the witness of a rejection, what is seen instead)"""
        if code not in SEVERAL | set(FAULTS):
            return None, None
        faults = FAULTS.get(code, witnesses.FAULTS)
        shown = witnesses.replay(self.args.schedc, self.path, text, faults)
        if shown:
            return FAILS if shown[0] else PASSES, None
        status, text = self.check(options, "--unverified")
        if status != 0:
            return NOT_RUN, re.search(r"error\[([\w.-]+)\]", text).group(1)
        return self.forced(faults)

    def judge(self, mutant):
        if not self.text:
            wrong = self.begin()
            if wrong:
                print(f"{self.name} itself does not pass: {wrong}", file=sys.stderr)
                sys.exit(2)
        self.write(join(mutant))
        slower = SLOWER if equivalent.lost(self.own, mutant) == [] else None
        code, text, options, proved = self.rejected()
        if code and code.startswith("S."):
            return Verdict("no program", code)
        if code:
            witness, seen = self.replayed(code, text, options) if self.args.witnesses else (None, None)
            return Verdict("all roles" if code in SEVERAL else "one role", code, witness=witness, seen=seen, order=slower)
        cpu, runs = self.noticed("cpu", self.runs), self.other_runs()
        model = self.noticed("model", runs) if self.args.on == "both" else None
        if cpu or model:
            return Verdict("interpreter" if cpu else "model only", cpu, model, proved, order=slower)
        order, model = self.equivalence(mutant, runs)
        return Verdict("model only" if model else "survived", None, model, proved, order=order)
