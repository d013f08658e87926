#!/usr/bin/env python3
"""Writes the tables of bench/results/README.md, and the one on the first page, from the JSON of measurements and the tables
of tuned params.

  bench/report.py [--results bench/results]    rewrites what stands between the marks
  bench/report.py --check                      exit code 1 if they are not what the JSON says
"""
import argparse
import glob
import json
import math
import os
import re
import statistics
import sys
import textwrap

import ablation
from adversarial import KINDS
from calls import TUNED_POINTS, read_points

PAGE = os.path.join("bench", "results", "README.md")
# The table of the first page: what a line is called, its JSON, and the points that it is of.
FIRST = [("forward, `fa3_stale`, d128, 8448 tokens", "peers", "^fwd d128 s8448 full$"),
         ("forward, FlashAttention-3's algorithm `fa3_fwd`, d128, 8448 tokens", "peers", "^fwd d128 s8448 full, as the paper has it$"),
         ("forward, `fa3_stale`, {} points of d64 to d256, with and without a mask", "peers", "^fwd (?!.* as the paper has it)"),
         ("forward in 8 bits, `fa3_fp8`, a scale for each head, d128, 16384 tokens", "fp8_peers", "^fp8 d128 s16384 full, a scale for a head$"),
         ("forward in 8 bits, {} points of d64 to d256, with and without a mask", "fp8_peers", "^fp8 d.*, a scale for a head$"),
         ("backward, `fa3_bwd`, d128, 16384 tokens", "peers", "^bwd d128 s16384 full$"),
         ("backward, {} points of d64 to d256, with and without a mask", "peers", "^bwd ")]
FIGURES = re.compile(r"^(<!-- figures -->\n)(.*?)^(<!-- end -->)$", re.M | re.S)
PART = re.compile(r"^(<!-- (\w+)\.json -->\n)(.*?)^(<!-- end -->)$", re.M | re.S)


def rows(head, lines):
    """A table in Markdown."""
    return "".join("| " + " | ".join(line) + " |\n" for line in [head, ["---"] * len(head), *lines])


def where(document):
    """On what, and when."""
    said = [document["device"], f"{document['multiprocessors']} multiprocessors"]
    if "driver" in document:
        said.append(f"driver for CUDA {document['driver'] // 1000}.{document['driver'] % 1000 // 10}")
    if "torch" in document:
        cudnn = document["cudnn"]
        said += [f"PyTorch {document['torch']}", f"cuDNN {cudnn // 10000}.{cudnn % 10000 // 100}.{cudnn % 100}"]
    if document.get("flash3"):
        said.append(f"FlashAttention-3 of {document['flash3']}")
    return textwrap.fill(f"{', '.join(said)}; {document['date'][:10]}.", 120) + "\n\n"


def durations(measured):
    return f"{1e3 * measured['cold_ms']:.0f} / {1e3 * measured['sustained_ms']:.0f}" if measured else ""


def rates(measured):
    return f"{measured['tflops_cold']:.0f} / {measured['tflops_sustained']:.0f}" if measured else ""


# The range of n normal numbers, in standard deviations.
RANGE = {2: 1.128, 3: 1.693, 4: 2.059, 5: 2.326, 6: 2.534, 7: 2.704, 8: 2.847}


def noise(ours, theirs, rounds):
    """The standard error of a ratio of two sustained times, in proportion, by how far apart the rounds of each lie."""
    if rounds not in RANGE:
        return None
    errors = [(t["most_ms"] - t["least_ms"]) / t["sustained_ms"] / RANGE[rounds] for t in (ours, theirs)]
    return math.hypot(*errors) / math.sqrt(rounds)


def told(ratio, bar, unsure):
    """A bar, and by how much it is missed."""
    if not ratio or ratio >= bar:
        return f"{bar:.2f}"
    within = ", less than the noise" if unsure and bar / ratio - 1 < unsure else ""
    return f"{bar:.2f}, missed by {100 * (1 - ratio / bar):.1f} %{within}"


def bars():
    """The ratio that each point is asked to reach today: a result keeps those of its own day."""
    found = {}
    for name in ("points.json", "fp8_points.json", "small_points.json"):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), encoding="utf-8") as file:
            found.update({point["name"]: point["bar"] for point in json.load(file)["points"]})
    return found


def share(point, of, multiprocessors):
    """How much of what tensor cores can do at the clock that was read is asked of them; None: no clock was read."""
    times = point["times"][of]
    each = 8192 if "fp8" in point["schedule"] else 4096  # operations of a multiprocessor in a cycle
    mhz = times.get("clock_mhz")
    return mhz and times["tflops_sustained"] * 1e6 / (multiprocessors * each * mhz)


def missed(document):
    """A line for each point that misses its bar: clock, power, how busy tensor cores are, and would have to be."""
    lines, bar_of = [], bars()
    for point in document["points"]:
        bar, ratio, times = bar_of.get(point["name"]), point.get("ratio"), point.get("times", {})
        busy = share(point, "schedc", document["multiprocessors"]) if ratio else None
        other = next((times[name] for name in ("cudnn", "cublas") if name in times), None)
        if busy and bar and ratio < bar:
            lines.append([point["name"], f"{times['schedc']['clock_mhz']:.0f}", f"{times['schedc']['power_w']:.0f}",
                          f"{100 * busy:.0f} %", f"{other['clock_mhz']:.0f}", f"{other['power_w']:.0f}", f"{ratio:.3f}", f"{bar:.2f}",
                          f"{100 * busy * bar / ratio:.0f} %"])
    head = ["misses its bar", "MHz", "W", "of the tensor cores", "theirs: MHz", "W", "ratio", "bar", "it would take"]
    return "\n" + rows(head, lines) if lines else ""


def peers(document, figures=rates):
    lines, bar_of = [], bars()
    for point in document["points"]:
        times, bar = point.get("times", {}), bar_of.get(point["name"])
        ratio = point.get("ratio")
        other = times.get("cudnn") or times.get("cublas")
        unsure = noise(times["schedc"], other, point["rounds"]) if ratio else None
        lines.append({"point": point["name"], "schedule": os.path.basename(point.get("schedule", "")).removesuffix(".sched"),
                      "schedc": figures(times.get("schedc")) or "wrong or not measured", "cuDNN, cuBLAS": figures(other),
                      "FlashAttention-2": figures(times.get("flash2")), "FlashAttention-3": figures(times.get("flash3")),
                      "ratio": with_noise(ratio, unsure) if ratio else "",
                      "bar": told(ratio, bar, unsure) if bar else "", "to FlashAttention-3": over_flash3(times, point.get("rounds"))})
    head = [name for name in lines[0] if not ("Flash" in name or name == "bar") or any(line[name] for line in lines)]
    return where(document) + rows(head, [[line[name] for name in head] for line in lines]) + missed(document)


def over_flash3(times, rounds):
    """FlashAttention-3's sustained time over ours, where it was measured."""
    if "flash3" not in times:
        return ""
    ratio = times["flash3"]["sustained_ms"] / times["schedc"]["sustained_ms"]
    return with_noise(ratio, noise(times["schedc"], times["flash3"], rounds))


def with_noise(ratio, unsure):
    return f"{ratio:.3f}" + (f" ± {ratio * unsure:.3f}" if unsure else "")


def ablations(document):
    parts = []
    for table in document["tables"]:
        if "variants" in table:
            parts += [f"{name}:\n\n{rows(head, lines)}" for name, head, lines in ablation.tables_of(table)]
        else:
            parts.append(f"{table['name']}: not measured.\n")
    return where(document) + "\n".join(parts)


def adversarial(document):
    lines = []
    for name, entry in document["configurations"].items():
        found = {v["inputs"]: v for v in entry["measured"].get("variants", [])} if entry["slowdown"] else {}
        lines.append([name, rates(found.get("normal")) or "wrong or not measured",
                      *(f"{entry['slowdown'][kind]:.2f}" if found else "" for kind in KINDS[1:])])
    return where(document) + rows(["", *KINDS], lines)


def run(document):
    name, driver, clock, power = document["gpu"].split(", ")
    return (f"Made by `tests/gpu/run` on {document['date'][:10]} on one {name} "
            f"(up to {clock}, {power}; driver {driver}) in\n{document['seconds']} s: {document['passed']} checks "
            f"passed, {document['failed']} failed, {document['skipped']} were skipped.\n")


def predictions(document):
    lines = []
    for g in document["groups"]:
        cycles = f"{100 * g['cycles_error']:.1f} %" if g["cycles_error"] is not None else ""
        lines.append([g["group"], str(g["points"]), f"{g['rank']:.2f}", f"{100 * g['error']:.1f} %", f"{100 * g['most']:.1f} %",
                      cycles, f"{g['chosen']:.3f}"])
    return rows(["measured", "points", "rank correlation", "error, median", "at most", "of cycles, median", "chosen / best"],
                lines)


def builds(document):
    lines = []
    for p in document["points"]:
        took, bar = statistics.median(p["nvrtc"]), p["bar"]
        verdict = "" if bar is None else f"{bar:.0f}" if took < bar else f"{bar:.0f}, missed"
        lines.append([p["name"], f"{1e3 * statistics.median(p['cuda_c']):.0f}", f"{took:.2f}",
                      f"{min(p['nvrtc']):.2f} to {max(p['nvrtc']):.2f}", verdict])
    head = ["schedule", "schedc, to CUDA C (ms)", "NVRTC, to machine code (s)", "its rounds", "bar (s)"]
    libraries = ", ".join(sorted({p["library"] for p in document["points"]}))
    return f"{document['processor']}, {document['cores']} cores, {libraries}; {document['date'][:10]}.\n\n" + rows(head, lines)


def cuda(version):
    return f"{version // 1000}.{version % 1000 // 10}"


def point_of(record, points):
    """The name of the point that a record is of."""
    for p in points:
        same = all(p["dims"].get(name) == n for name, n in record["dims"].items())
        params = all(record["problem"].get(name) == str(v).lower() for name, v in {"T": "f16", **p["params"]}.items())
        unit = p.get("kernel", os.path.basename(p["schedule"]).removesuffix(".sched"))
        if same and params and unit == record["unit"]:
            return p["name"]
    return ", ".join(f"{name} = {n}" for name, n in record["dims"].items())


def tuned(document):
    """What the tables have, and what it gains."""
    parts = []
    for records in document["tables"]:
        first, last = records[0], max(r["date"] for r in records)
        lines = [[point_of(r, document["points"]), r["unit"], " ".join(f"{n}={v}" for n, v in r["tuning"].items()),
                  f"{r['sustained_ms']:.4f}", f"{r['reference_ms']:.4f}",
                  f"{100 * (r['reference_ms'] / r['sustained_ms'] - 1):.1f} %"] for r in records]
        parts.append(f"{first['gpu']}, driver for CUDA {cuda(first['driver'])}, NVRTC {cuda(first['nvrtc'])}; {last[:10]}.\n\n"
                     + rows(["point", "unit", "params for tuning", "ms", "of the defaults", "gain"], lines))
    return "\n".join(parts)


def read_tables(folder):
    """All tables of tuned params, with the points that scripts/tune-all makes them of; None: there is none."""
    found = sorted(glob.glob(os.path.join(folder, "*.jsonl")))
    tables = []
    for path in found:
        with open(path, encoding="utf-8") as file:
            tables.append([json.loads(line) for line in file if line.strip()])
    points = [point for path in TUNED_POINTS for point in read_points(path, None)]
    return {"tables": tables, "points": points} if found else None


def fp8_accuracy(document):
    """A line for each length and head dimension, and what the paper has."""
    rmse, variants, paper = {}, [], {}
    for row in document["rows"]:
        rmse.setdefault((row["length"], row["width"]), {})[row["variant"]] = row["rmse"]
        variants += [] if row["variant"] in variants else [row["variant"]]
        paper[row["variant"]] = row["paper"]
    lines = [[str(n), str(d), *(f"{found[v]:.1e}" for v in variants)] for (n, d), found in rmse.items()]
    lines.append(["the paper", "", *(f"{paper[v]:.1e}" for v in variants)])
    on = {"cpu": "Interpreted", "model": "On the model of a GPU", "cuda": "On a GPU"}[document["on"]]
    return f"{on}; {document['date']}.\n\n" + rows(["tokens", "d", *variants], lines)


def fp8_speed(document):
    """A line for each variant that was right."""
    lines = [[v["params"]["D"], "causal" if v["params"]["causal"] == "true" else "full", v["params"]["block"],
              f"{v['tflops_cold']:.0f}", f"{v['tflops_sustained']:.0f}", f"{v['clock_mhz']:.0f}",
              f"{100 * v['tensor_utilisation']:.0f} %"] for v in document["variants"] if v.get("pass")]
    return (f"{document['device']}, {document['date'][:10]}: 16384 tokens, 16 heads.\n\n"
            + rows(["d", "", "block", "TFLOP/s cold", "sustained", "MHz", "tensor cores busy"], lines))


def gigabytes(measured):
    return f"{measured['gb_cold']:.0f} / {measured['gb_sustained']:.0f}" if measured else ""


def memory(document):
    lines = []
    for one in document["points"]:
        times = one.get("times", {})
        bar = f"{one['bar']:.2f}" + ("" if one["met"] else ", missed") if "met" in one else ""
        lines.append([one["name"], gigabytes(times.get("schedc")) or "wrong or not measured", gigabytes(times.get("torch")),
                      f"{one['ratio']:.3f}" if "ratio" in one else "", f"{one['of_copy']:.3f}" if "of_copy" in one else "", bar])
    return where(document) + rows(["GB/s, cold / sustained", "schedc", "PyTorch", "ratio", "of its copy", "bar"], lines)


TABLES = {"run": run, "build": builds, "memory": memory, "predict": predictions, "peers": peers, "peers_h100": peers, "peers_h100_bwd": peers, "ablation": ablations,
          "adversarial": adversarial, "tuned": tuned,
          "fp8_accuracy": fp8_accuracy, "fp8_peers": peers, "fp8_levels": peers, "hard_peers": peers, "hard_peers_h100": peers, "fa3_fp8": fp8_speed,
          "small_peers": lambda document: peers(document, durations)}


def page(text, read):
    """Where the JSON is missing, what stands there stays."""
    lost = sorted(set(TABLES) - {found[2] for found in PART.finditer(text)})
    if lost:
        raise SystemExit(f"report.py: {PAGE} has no '<!-- {lost[0]}.json -->' with an '<!-- end -->' behind it")

    def part(found):
        document = read(found[2])
        return found[1] + (TABLES[found[2]](document) if document else found[3]) + found[4]
    return PART.sub(part, text)


def spread(ratios):
    """A ratio, or the least and the most of several."""
    least, most = (f"{x:.2f}" for x in (min(ratios), max(ratios)))
    return least if least == most else f"{least} to {most}"


def first_line(what, document, pattern):
    """A line of the first page's table: rates of a single point, ratios of all."""
    asked = [p for p in document["points"] if re.search(pattern, p["name"])] if document else []
    points = [p for p in asked if "ratio" in p]
    if not points:
        raise SystemExit(f"report.py: no figures of '{what}' ({pattern})")
    what = what.format(len(points)) + (f"; {len(asked) - len(points)} more are wrong, or were not measured" if len(asked) > len(points) else "")
    times = [p["times"] for p in points]
    rate = [f"{times[0][of]['tflops_sustained']:.0f}" if len(points) == 1 else "" for of in ("schedc", "cudnn", "flash3")]
    over = [spread([t[of]["sustained_ms"] / t["schedc"]["sustained_ms"] for t in times]) for of in ("cudnn", "flash3")]
    gpu = re.sub(r"^NVIDIA (\w+).*", r"\1", document["device"])
    return [what, gpu, *rate, *over]


def first_page(text, read):
    documents = {name: read(name) for name in {name for _, name, _ in FIRST}}
    lines = [first_line(what, documents[name], pattern) for what, name, pattern in FIRST]
    if len(FIGURES.findall(text)) != 1:
        raise SystemExit("report.py: README.md has no '<!-- figures -->' with an '<!-- end -->' behind it")
    head = ["TFLOP/s sustained", "GPU", "schedc", "cuDNN", "FlashAttention-3", "to cuDNN", "to FlashAttention-3"]
    return FIGURES.sub(lambda m: m[1] + rows(head, lines) + m[3], text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", default=os.path.join("bench", "results"), help="where the JSON is")
    parser.add_argument("--tables", default=os.path.join("schedules", "tuned"), help="where the tables of tuned params are")
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args()
    results = os.path.abspath(args.results)
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

    def read(name):
        if name == "tuned":
            return read_tables(args.tables)
        path = os.path.join(results, name + ".json")
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    other = []
    makers = {PAGE: lambda text: page(text, read), "README.md": lambda text: first_page(text, read)}
    for path, make in makers.items():
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if make(text) == text:
            continue
        other.append(path)
        if not args.check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(make(text))
    for path in other:
        print(f"{path} {'is not what the JSON says: bench/report.py' if args.check else 'is written'}")
    return 1 if args.check and other else 0


if __name__ == "__main__":
    sys.exit(main())
