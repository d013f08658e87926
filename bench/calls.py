"""Calls of `schedc bench` and `schedc build`, and how their results are kept: what the measuring scripts share."""
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SECONDS = 240  # for a call: three rounds of two seconds of each of some twenty variants take half of it
TUNED_POINTS = [os.path.join(ROOT, "bench", name) for name in ("points.json", "memory_points.json", "tuned.json")]  # of scripts/tune-all
AS_WRITTEN = {**os.environ, "SCHEDC_STORE": ""}  # schedules with their own params, not with those of a table


def setting(name, value):
    """NAME=VALUE, as the command line has it."""
    if isinstance(value, list):
        value = "[" + ", ".join(map(str, value)) + "]"
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def read_points(path, only):
    """Points whose name matches."""
    with open(path, encoding="utf-8") as file:
        return [p for p in json.load(file)["points"] if not only or re.search(only, p["name"])]


def command_line():
    """This script's own command, as its results keep it: a file below the repository's root is named from there, and one
    elsewhere by the last part of its path alone."""
    def told(word):
        if not os.path.isabs(word):
            return word
        inside = os.path.relpath(word, ROOT)
        return os.path.basename(word) if inside.startswith("..") else inside
    return [told(word) for word in sys.argv]


def build(schedc, configurations, *options):
    """Fills the cache on all cores, so that the GPU does not wait for NVRTC; a configuration is a file, the settings of
    its params and, if the file's own choice is not meant, a kernel or sequence. What goes wrong is told by those that
    run it."""
    def one(configuration):
        file, settings, *unit = configuration
        params = [word for s in settings for word in ("-p", s)]
        try:
            subprocess.run([schedc, "build", file, *unit, *params, *options, "--to", "cubin", "-o", "-"], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            pass

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, configurations))


def bench(args, options, document):
    """Runs `schedc bench` on the case `paper`: (entry for the document, exit code). The entry has the variants, or an
    error; where and when it was goes into the document itself."""
    command = [args.schedc, "bench", "--case", "paper", "--format", "json", *options]
    command += ["--dry-run"] if args.dry_run else []
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False, env=AS_WRITTEN)
    except subprocess.TimeoutExpired:
        return {"command": command, "pass": False, "error": f"not done after {SECONDS} s"}, 1
    entry = {"command": command, "pass": done.returncode == 0}
    got = json.loads(done.stdout) if done.stdout else []
    if isinstance(got, dict):
        entry["variants"] = got["variants"]
        where = ("device", "multiprocessors", "driver", "date", "schedc")
        document.update({key: got[key] for key in where if key in got})
    else:  # a list of diagnostics
        said = done.stderr.replace("schedc bench: ", "")
        entry["error"] = ("".join(d["text"] + "\n" for d in got) + said).strip()
    return entry, done.returncode


def write(path, document):
    """As JSON, if a path is given. Done after each part: a run that is cut short leaves what it has."""
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
