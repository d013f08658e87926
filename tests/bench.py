#!/usr/bin/env python3
"""`schedc bench` and samples as far as no GPU is needed: variants, what a launch takes, JSON, errors.

  bench.py --schedc build/schedc
"""
import argparse
import ast
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from tally import expect, skip, tell

FA3 = "schedules/fa3_fwd.sched"


def call(schedc, *arguments):
    done = subprocess.run([schedc, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                          encoding="utf-8")
    return done.returncode, done.stdout, done.stderr


def dry(schedc, *arguments):
    code, out, _ = call(schedc, "bench", "--dry-run", "--format", "json", *arguments)
    return json.loads(out)["variants"] if code == 0 else []


def lengths(schedc):
    """What is counted of sequences of different lengths is what the list says, also where tensors are too large to fill."""
    counted = [dry(schedc, "schedules/fa_varlen.sched", *(w for s in ("B=2", f"TQ={n}", f"TK={n}", "H=1", "G=1", f"maxq={m}",
                                                                      f"cq=[0, {m}, {n}]", f"ck=[0, {m}, {n}]") for w in ("--set", s)))
               for n, m in ((11264, 5632), (2816, 1408))]
    expect("products of sequences", [16 * small["product_operations"] for (small,) in counted[1:]]
           == [large["product_operations"] for (large,) in counted[:1]], counted)


def variants(schedc):
    got = dry(schedc, FA3, "--case", "small", "--vary", "stages=1,2", "--vary", "B=1,3")
    expect("four variants", [v["variant"] for v in got]
           == ["stages=1 B=1", "stages=1 B=3", "stages=2 B=1", "stages=2 B=3"])
    expect("params are set", [v["params"]["stages"] for v in got] == ["1", "1", "2", "2"])
    expect("dimensions are set", [v["dims"]["B"] for v in got] == [1, 3, 1, 3])
    got = dry(schedc, FA3, "schedules/gemm.sched", "gemm", "schedules/copy.sched", "--case", "small")
    expect("three files", [v["kernel"] for v in got] == ["fa3_fwd", "gemm", "copy"])
    got = dry(schedc, FA3, "stages=1", "M=5", FA3, "fa3_fwd", "stages=2", "--case", "small")
    expect("settings of a file", [(v["params"]["stages"], v["dims"]["M"], v["variant"]) for v in got]
           == [("1", 5, "stages=1 M=5"), ("2", 192, "stages=2")])
    got = dry(schedc, FA3, "stages=1", "--case", "small", "--vary", "B=1,3", "--inputs", "normal,ramp-down")
    expect("inputs vary fastest", [(v["variant"], v["inputs"], v["dims"]["B"]) for v in got]
           == [("stages=1 B=1 inputs=normal", "normal", 1), ("stages=1 B=1 inputs=ramp-down", "ramp-down", 1),
               ("stages=1 B=3 inputs=normal", "normal", 3), ("stages=1 B=3 inputs=ramp-down", "ramp-down", 3)])
    (got,) = dry(schedc, FA3, "--case", "small", "--inputs", "spike")
    expect("one kind is no variant", (got["variant"], got["inputs"]) == ("", "spike"))
    got = dry(schedc, FA3, "--case", "small", "--vary", "causal=false,true", "-p", "stages=1", "--set", "B=2")
    expect("with -p and --set", [(v["params"]["causal"], v["params"]["stages"], v["dims"]["B"]) for v in got]
           == [("false", "1", 2), ("true", "1", 2)])


def work(schedc):
    small = ["--case", "small", "--set", "M=256", "--set", "N=352"]
    full, causal = dry(schedc, FA3, *small, "--vary", "causal=false,true")
    products = 2 * 2 * 2 * 256 * 352 * 128  # two heads, two products; tiles of 128 by 176 fit
    expect("as the schedule says", full["operations"] == products and full["operations_from"] == "work")
    expect("of products", full["product_operations"] == products)
    expect("cycles", full["tensor_cycles"] == products / 4096)
    expect("bytes", full["bytes"] == 2 * 128 * (256 * 2 + 352 * 2 + 256 * 2) + 4 * 2 * 256)
    expect("causal counts half", causal["operations"] == products / 2)
    # Tile 0 of rows sees keys up to 128 + 96 = 224: two tiles; tile 1 all of 352: two.
    expect("causal, as scheduled", causal["product_operations"] == products)
    (mlp,) = dry(schedc, "schedules/mlp.sched", "--case", "small")
    expect("no work is said", mlp["operations_from"] == "products"
           and mlp["operations"] == mlp["product_operations"] > 0)
    (gemm,) = dry(schedc, "schedules/gemm_pingpong.sched", "--case", "small")  # one tile each
    expect("tiles dealt", gemm["product_operations"] == gemm["operations"] == 2 * 192 * 512 * 192)


def errors(schedc):
    for arguments, code, text in (
            (["--vary", "stages"], 2, "NAME=VALUE"),
            (["--vary", "Z=1"], 2, "'Z' is not a dimension, scalar or tensor"),
            (["--vary", "B=1,x"], 2, "wants a length"),
            (["-p", "stages=9"], 1, "P.domain"),
            (["--vary", "stages=9", "nokernel"], 1, "P.unit"),
            (["--rounds", "99"], 2, "--rounds is 16 at most, not 99"),
            (["--repeat", "-1"], 2, "--repeat wants a number"),
            (["--inputs", "normal,hill"], 2, "'hill' is not a value of --inputs (normal, "),
            (["--inputs", "ramp,"], 2, "'' is not a value of --inputs"),
            (["--inputs", "ramp,spike,ramp"], 2, "--inputs names 'ramp' twice"),
            (["--vary", "B=" + ",".join("1" * 300)], 2, "more than 256 variants"),
            (["nokernel"], 1, "P.unit"),
            (["fa3_fwd", "again"], 2, "'again' is neither a file nor a setting"),
            (["Z=1"], 2, "'Z' is not a dimension, scalar or tensor"),
            (["missing.sched"], 3, "cannot open")):
        got, _, err = call(schedc, "bench", "--dry-run", FA3, "--case", "small", *arguments)
        expect(f"bench {' '.join(arguments)[:40]}: {code}, {text}", got == code and text in err)
    code, out, err = call(schedc, "bench", FA3, "--case", "small")
    expect("without a GPU: says so; with one: passes", (code == 3 and "GPU" in err and not out) or "PASS" in out)
    code, _, err = call(schedc, "run", FA3, "--inputs", "ramp,spike")
    expect("run takes one kind", code == 2 and "one kind" in err)
    tests = [json.loads(call(schedc, "test", "--format", "json", "schedules/copy.sched", *a)[1]) for a in ([], ["--inputs", "ramp,spike"])]
    count = [t["passed"] - 3 * t["other_lengths"] for t in tests]  # a run under each policy at these, on one kind
    expect("test takes some of the kinds", count[0] == 4 * count[1] > 0)
    code, out, err = call(schedc, "test", "--on", "cuda", "schedules/copy.sched")
    expect("test without a GPU", (code == 3 and err.count("G.run") == 1) or " 0 failed" in out)


# B = 1 and 2 are right, 3 is rejected when it is built, 4 is wrong, 5 does not fit; the default is refused.
SWEPT = """kernel swept {
  param B = 5 in { 1 .. 6 }
  in  X : f32[M, 32]
  out Y : f32[M, 32]
  spec { Y[i,j] = 2 * X[i,j] }
  case small { M = 64 }
  grid (x : cdiv(M, 64))
  ring r : f32[64, 32] * (B == 5 ? 60 : 2)
  role load : 1 warp, 40 regs { r <- X[x*64..] }
  role math : 1 warpgroup, 128 regs {
    for t in 0 .. B == 3 ? 2 : 1 {
      wait r
      Y[x*64 + i, j] = (B == 4 ? 3 : 2) * r[i,j]
      release r
    }
  }
}
"""


def sweep(schedc):
    """What cannot be measured is a row among those that can."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "swept.sched")
        with open(path, "w", encoding="utf-8") as file:
            file.write(SWEPT)
        model = [schedc, "bench", path, "--on", "model", "--rounds", "2"]
        code, out, err = call(*model, "--vary", "B=5,3,1,4,2")
        expect("a sweep with a wrong variant", code == 1 and not err and "\nFAIL\n" in out, out, err)
        rows = {n: [line for line in out.splitlines() if f" B={n} " in line] for n in range(1, 6)}
        expect("refused", "refused: R8.smem, the rings need 4" in rows[5][-1], rows[5])
        expect("rejected by the build", "refused: R5.agree, the roles disagree about 'r'" in rows[3][-1], rows[3])
        expect("wrong", rows[4][-1].endswith("wrong: see above"), rows[4])
        expect("figures of the others", all(" %  " in rows[n][-1] for n in (1, 2)), rows)
        code, out, err = call(*model, "--vary", "B=5,3,1,4,2", "--format", "json")
        told = [(v.get("refused", {}).get("code"), v.get("pass"), "sustained_ms" in v) for v in json.loads(out)["variants"]]
        expect("the same as JSON", told == [("R8.smem", None, False), ("R5.agree", None, False), (None, True, True),
                                            (None, False, False), (None, True, True)], told)
        code, out, _ = call(*model, "--vary", "B=5,3,1")
        expect("refusals alone fail nothing", code == 0 and "\nPASS\n" in out and "ratio" in out, out)
        code, out, _ = call(*model, "--vary", "B=5,3")
        expect("but one is needed", code == 1 and "refused: R5.agree" in out, out)
        code, out, err = call(schedc, "bench", path, "--dry-run", "--vary", "B=5,1")
        expect("a dry run", code == 0 and "refused: R8.smem" in out and "case small)  B=1" in out, out, err)


def samples(schedc):
    code, out, _ = call(schedc, "run", FA3, "--case", "small", "--sample", "20", "--format", "json")
    o, l = json.loads(out)["outputs"]
    expect("a sample", code == 0 and o["compared"] == 20 * 128 and o["elements"] == 192 * 2 * 128)
    expect("a sample of rows", l["compared"] == 20 and l["elements"] == 192 * 2)
    code, out, _ = call(schedc, "run", FA3, "--case", "small", "--sample", "20")
    expect("the sample is told of", "of 49152, a sample" in out)
    code, out, _ = call(schedc, "run", FA3, "--case", "small")
    expect("small cases are compared whole", "sample" not in out)
    code, _, err = call(schedc, "run", FA3, "--sample", "few")
    expect("--sample few", code == 2 and "--sample wants a number" in err)


# What `schedc bench` prints on a GPU, made of what it prints without one: normal inputs take 2 ms, of the other kinds
# each 0.1 ms more than the one before; with a mask `spike` is wrong.
FAKE = """#!{python}
import json, subprocess, sys
words = sys.argv[1:]
got = json.loads(subprocess.run(["{schedc}", *words, "--dry-run"], stdout=subprocess.PIPE, check=True).stdout)
wrong = "causal=true" in words and "M=8448" in words
for n, v in enumerate(got["variants"]):
    v["pass"] = not (wrong and v["inputs"] == "spike")
    if not wrong and "M=8448" in words:
        v.update(cold_ms=1 + n, sustained_ms=2 + n / 10, tflops_sustained=600, tflops_cold=700)
got.update(device="a GPU", driver=13000)
print(json.dumps(got))
sys.exit(wrong)
"""


def builds(schedc):
    """bench/build.py: each round's times of what it is asked for; what does not build ends it."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "b.json")
        command = [sys.executable, "bench/build.py", "--schedc", os.path.abspath(schedc), "--rounds", "2", "--out", out]
        done = subprocess.run([*command, "--only", "gemm"], capture_output=True, timeout=120, encoding="utf-8", check=False)
        with open(out, encoding="utf-8") as file:
            document = json.load(file)
        points = document["points"]
        expect("one point", done.returncode == 0 and [p["name"] for p in points] == ["gemm_pingpong"], done.stderr)
        expect("a time of each round", all(len(points[0][n]) == 2 and min(points[0][n]) > 0 for n in ("cuda_c", "nvrtc", "whole")) and
               all(w > n for w, n in zip(points[0]["whole"], points[0]["nvrtc"])), points)
        done = subprocess.run([*command, "--only", "nothing"], capture_output=True, timeout=60, encoding="utf-8", check=False)
        expect("nothing to measure", done.returncode == 2 and "nothing to measure" in done.stderr, done.stderr)
        env = {**os.environ, "SCHEDC_NVRTC": "/no/nvrtc.so"}
        done = subprocess.run([*command, "--only", "gemm"], capture_output=True, timeout=60, encoding="utf-8", check=False, env=env)
        expect("what does not build", done.returncode == 1 and done.stderr.startswith("gemm_pingpong: "), done.stderr)


def adversarial(schedc):
    import adversarial as program
    from libschedc import Kernel, Library

    def call_it(*arguments):
        done = subprocess.run([sys.executable, "bench/adversarial.py", *arguments], stdout=subprocess.PIPE, timeout=300,
                              encoding="utf-8", check=False)
        return done.returncode, done.stdout
    text = call(schedc, "bench", "--help")[1]
    kinds = [line.split()[0] for line in text.split("inputs:\n")[1].splitlines()]
    expect("every kind of input", kinds == program.KINDS)
    with tempfile.TemporaryDirectory() as folder:
        fake, out = os.path.join(folder, "schedc"), os.path.join(folder, "out.json")
        with open(fake, "w", encoding="utf-8") as file:
            file.write(FAKE.format(python=sys.executable, schedc=os.path.abspath(schedc)))
        os.chmod(fake, 0o755)
        code, text = call_it("--schedc", schedc, "--dry-run", "--out", out)
        with open(out, encoding="utf-8") as file:
            document = json.load(file)
        with open("bench/points.json", encoding="utf-8") as file:
            points = [p for p in json.load(file)["points"] if p["peer"] == "attention"]
        library = Library(os.path.join(os.path.dirname(os.path.abspath(schedc)), "libschedc.so"))
        shipped = []
        for point in points:
            kernel = Kernel(library, point["schedule"], params=point["params"])
            shipped.append(kernel.params())
            kernel.close()
        for part in ("ragged", "measured"):
            params = [entry[part]["params"] for entry in document["configurations"].values()]
            expect(f"{part}: every point's parameters, once", all(p in params for p in shipped)
                   and all(p in shipped for p in params) and len({json.dumps(p) for p in params}) == len(params))
        expect("nothing measured", code == 0 and document["worst"] is None and " 0 failed, 0 skipped" in text)
        code, text = call_it("--schedc", fake, "--only", "D=64|fa3_fwd", "--out", out)
        with open(out, encoding="utf-8") as file:
            document = json.load(file)
        last = kinds[-1]
        expect("the worst", code == 1 and "at worst 1.350 (fa3_stale D=64 causal=false, ramp-down)" in text
               and document["worst"]["inputs"] == last and document["device"] == "a GPU")
        expect("a wrong one", "WRONG: measured spike" in text and "5 passed, 1 failed, 0 skipped" in text)
        entry = document["configurations"]["fa3_fwd"]
        expect("slowdowns", entry["slowdown"]["outliers"] == 1.05 and entry["slowdown_cold"][last] == len(kinds))


def peers(schedc):
    """The scripts that run kernels through the Python package, on that beside the command; what they say without one."""
    def call_it(script, package):
        return subprocess.run([sys.executable, f"bench/{script}.py", "--dry-run"], capture_output=True, timeout=120,
                              encoding="utf-8", check=False, env={**os.environ, "PYTHONPATH": package})
    package = os.path.join(os.path.dirname(os.path.abspath(schedc)), "python")
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "schedc"))  # without what a build puts there
        with open(os.path.join(folder, "schedc", "__init__.py"), "w", encoding="utf-8") as file:
            file.write("from . import _core\n")
        done = call_it("peers", folder)
    expect("without the package", done.returncode == 1 and done.stderr.startswith("peers.py: the Python package")
           and "-DSCHEDC_PYTHON=ON" in done.stderr and done.stderr.count("\n") == 1, done.stderr)
    if not os.path.exists(os.path.join(package, "schedc", "_core.abi3.so")):
        skip("bench with the package", "it is not built beside the command")
        return
    done = call_it("peers", package)
    with open("bench/points.json", encoding="utf-8") as file:
        points = json.load(file)["points"]
    expect("every point's kernel", done.returncode == 0 and all(p["name"] in done.stdout for p in points), done.stderr)
    work = {name: float(n) for name, n in re.findall(r"^(.*?) +\w+ +([\d.]+) TFLOP", done.stdout, re.M)}
    pairs = [(name, name.replace("bwd", "fwd")) for name in work if name.startswith("bwd")]
    expect("gradients count 2.5 times", pairs and all(abs(work[b] / work[f] - 2.5) < 0.02 for b, f in pairs))
    done = call_it("memory", package)
    with open("bench/memory_points.json", encoding="utf-8") as file:
        points = json.load(file)["points"]
    expect("every point that moves memory", done.returncode == 0 and all(p["name"] in done.stdout for p in points), done.stderr)


def arguments(_):
    """What scripts of bench/ call of each other takes what they give: most of it runs on a GPU only."""
    trees = {}
    for path in glob.glob("bench/*.py"):
        with open(path, encoding="utf-8") as file:
            trees[os.path.basename(path).removesuffix(".py")] = ast.parse(file.read())
    takes = {(module, f.name): f.args for module, tree in trees.items() for f in tree.body if isinstance(f, ast.FunctionDef)}
    wrong, looked_at = [], 0
    for module, tree in trees.items():
        known = {f: (module, f) for m, f in takes if m == module}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in trees:
                known.update({name.asname or name.name: (node.module, name.name) for name in node.names})
        for node in ast.walk(tree):
            args = takes.get(known.get(node.func.id)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
            if not args or args.vararg or args.kwarg or any(isinstance(a, ast.Starred) for a in node.args):
                continue
            looked_at += 1
            named = {k.arg for k in node.keywords}
            wanted = [a.arg for a in args.args[len(node.args):len(args.args) - len(args.defaults)]]
            if len(node.args) > len(args.args) or (None not in named and not named.issuperset(wanted)):
                wrong.append(f"bench/{module}.py:{node.lineno}")
    expect("calls between the scripts", looked_at > 50 and not wrong, wrong or looked_at)


def ablation(schedc):
    """bench/ablation.py: its variants, and its tables for figures that are made up."""
    import report
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.json")
        done = subprocess.run([sys.executable, "bench/ablation.py", "--schedc", schedc, "--dry-run", "--out", path],
                              stdout=subprocess.PIPE, timeout=300, encoding="utf-8", check=False)
        expect("every variant of the ablation", done.returncode == 0 and "5 passed, 0 failed" in done.stdout)
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    first = document["tables"][0]["variants"]
    for n, v in enumerate(first):
        v.update(tflops_cold=700 + n, tflops_sustained=500 + 10 * n, tensor_utilisation=0.5 + n / 100)
    document.update(device="a GPU", multiprocessors=1, driver=13020, date="2026-11-22T00:00:00Z")
    document["tables"].append({"name": "another", "error": "why"})
    text = report.ablations(document)
    expect("where", text.startswith("a GPU, 1 multiprocessors, driver for CUDA 13.2; 2026-11-22.\n"))
    expect("a variant beside its counterpart",
           "| + ping-pong | 702 / 520 | 52 % | 1.020 | + ping-pong | 601, 79 % | 1.085 |\n" in text)
    expect("the paper's table", "| both | 706 / 560 | 1.000 | 661 | 1.000 |\n" in text
           and "| no warp specialisation | 700 / 500 | 0.893 | 570 | 0.862 |\n" in text)
    expect("what is not measured", "\n\nanother: not measured.\n" in text)
    (edited,) = (v for v in first if "edit" in v)
    files = "schedules/fa3_stale.sched", edited["file"]
    wide, narrow = (call(schedc, "build", file, "--to", "cu", "-o", "-", "-p", "staged=false")[1] for file in files)
    expect("the edit does what it is for", "uint4 *)(row_out" in wide and "uint4 *)(row_out" not in narrow)


def reported(_):
    """bench/report.py: the pages are what the JSON beside them says, and other JSON is told."""
    import calls
    import report

    def call_it(*arguments):
        done = subprocess.run([sys.executable, "bench/report.py", "--check", *arguments], stdout=subprocess.PIPE, timeout=60,
                              encoding="utf-8", check=False)
        return done.returncode, done.stdout
    expect("figures of the pages: bench/report.py writes them", call_it() == (0, ""))
    with tempfile.TemporaryDirectory() as folder:
        for name in ("peers", "fp8_peers", "ablation", "adversarial"):
            shutil.copy(f"bench/results/{name}.json", folder)
        path = os.path.join(folder, "peers.json")
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        document["points"] = [p for p in document["points"] if "times" in p]
        document["points"][0]["times"]["schedc"]["tflops_sustained"] += 10
        for p in document["points"]:
            if not p["name"].startswith(("fwd d128 s8448 full", "bwd ")):
                p.clear()
                p.update({"name": "a point", "pass": False, "error": "why"})
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        everything = {"device": "a GPU", "points": [p for name in ("peers", "fp8_peers")
                                                     for p in calls.read_points(os.path.join(folder, name + ".json"), None)]}
        code, text = call_it("--results", folder)
        expect("figures of another run", code == 1 and
               [line.split()[0] for line in text.splitlines()] == ["bench/results/README.md", "README.md"])
        record = {"unit": "fa3_stale", "gpu": "a GPU", "driver": 13000, "nvrtc": 12090, "date": "2026-11-24T10:00:00Z",
                  "problem": {"T": "f16", "D": "128", "causal": "true"}, "tuning": {"pair": "1", "BM": "128"},
                  "dims": {"B": 8, "M": 2048, "N": 2048, "H": 16, "G": 16}, "sustained_ms": 0.2, "reference_ms": 0.21}
        with open(os.path.join(folder, "a-gpu.jsonl"), "w", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n" + json.dumps({**record, "dims": {"B": 8, "M": 7}, "sustained_ms": 0.3}) + "\n")
        said = report.tuned(report.read_tables(folder))
        expect("what is tuned", said.startswith("a GPU, driver for CUDA 13.0, NVRTC 12.9; 2026-11-24.\n\n") and
               "| fwd d128 s2048 causal | fa3_stale | pair=1 BM=128 | 0.2000 | 0.2100 | 5.0 % |\n| B = 8, M = 7 |" in said, said)
        expect("no table", report.read_tables(os.path.join(folder, "none")) is None)
        lost = {**everything, "points": [*everything["points"], {"name": "bwd d64 s1", "pass": False, "error": "why"}]}
        expect("a point without figures is told", report.first_line("{} points", lost, "^bwd ")[0] ==
               "8 points; 1 more are wrong, or were not measured")
    for what, make in (("a table", lambda: report.page("no marks", None)),
                       ("the figures", lambda: report.first_page("no figures", lambda name: everything))):
        try:
            make()
            expect(f"a page without {what} is told", False)
        except SystemExit as error:
            expect(f"a page without {what} is told", "README.md has no " in str(error))


def paths(_):
    """No path of the machine that measured is in what it wrote."""
    import calls
    given, sys.argv = sys.argv, ["bench/peers.py", "--schedc", "build/release/schedc", os.path.abspath("bench/points.json"), "/a/b/c.json"]
    told, sys.argv = calls.command_line(), given
    expect("a command as it is kept", told == ["bench/peers.py", "--schedc", "build/release/schedc", "bench/points.json", "c.json"], told)
    results = glob.glob("bench/results/*.json")
    for file in results:
        with open(file, encoding="utf-8") as opened:
            found = re.findall(r'"(?:/|[A-Za-z]:\\\\)[^"]*"', opened.read())
        expect(f"{file} has no absolute path", not found, found)
    expect("there are results", len(results) > 5)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedc", required=True)
    schedc = parser.parse_args().schedc
    sys.path.insert(0, "bench")
    for part in (variants, lengths, work, errors, sweep, samples, builds, arguments, peers, ablation, adversarial, reported, paths):
        part(schedc)
    return tell()


if __name__ == "__main__":
    sys.exit(main())
