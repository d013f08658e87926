#!/usr/bin/env python3
"""What schedc writes for machines: JSON that parses and says what the text says, SARIF that fits its schema.

  formats.py --schedc build/schedc
"""
import argparse
import json
import os
import subprocess
import sys

import jsonschema

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def expect(self, what, holds):
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        if not holds:
            print("FAIL", what)


def output(schedc, *args):
    done = subprocess.run([schedc, *args], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def check_reports(checks, schedc, schema, path):
    text = output(schedc, "check", path)[2]
    reports = json.loads(output(schedc, "check", "--format", "json", path)[1])
    for r in reports:
        head = f"{r['file']}:{r['range']['line']}:{r['range']['column']}: {r['severity']}[{r['code']}]: {r['text']}"
        checks.expect(f"{path}: the text form has '{head}'", head in text)
    checks.expect(f"{path}: as many reports", len(reports) == text.count("error[") + text.count("warning["))
    log = json.loads(output(schedc, "check", "--format", "sarif", path)[1])
    try:
        jsonschema.Draft7Validator(schema).validate(log)
        checks.expect("", True)
    except jsonschema.ValidationError as error:
        checks.expect(f"{path}: SARIF: {error.message} at {list(error.absolute_path)}", False)
    rules = [rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]]
    results = log["runs"][0]["results"]
    checks.expect(f"{path}: SARIF has the same", [r["ruleId"] for r in results] == [r["code"] for r in reports])
    for result in results:
        checks.expect(f"{path}: rule index", rules[result["ruleIndex"]] == result["ruleId"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--schedc", required=True)
    schedc = os.path.abspath(parser.parse_args().schedc)
    with open(os.path.join(HERE, "sarif.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    checks = Checks()
    bad = sorted(f for f in os.listdir(os.path.join(HERE, "bad")) if f.endswith(".sched"))
    for name in bad:
        check_reports(checks, schedc, schema, f"tests/bad/{name}")
    check_reports(checks, schedc, schema, "schedules/copy.sched")
    code, text, _ = output(schedc, "info", "--format", "json", "schedules/fa3_fwd.sched")
    info = json.loads(text)[0]
    checks.expect("info: name", code == 0 and info["name"] == "fa3_fwd")
    checks.expect("info: roles", [r["name"] for r in info["roles"]] == ["load", "math"])
    checks.expect("info: shared memory", 0 < info["shared_memory_bytes"] <= 232448)
    code, text, _ = output(schedc, "run", "--format", "json", "schedules/copy.sched")
    result = json.loads(text)
    checks.expect("run", code == 0 and result["pass"] and result["outputs"][0]["tensor"] == "Y")
    code, text, _ = output(schedc, "test", "--quick", "--format", "json", "schedules/copy.sched")
    result = json.loads(text)
    checks.expect("test", code == 0 and result["failed"] == 0 and result["passed"] > 0 and result["failures"] == [])
    checks.expect("exit code of a usage error", output(schedc, "run")[0] == 2)
    checks.expect("exit code of a missing file", output(schedc, "check", "no such file")[0] == 3)
    checks.expect("exit code of --on cuda", output(schedc, "run", "--on", "cuda", "schedules/copy.sched")[0] == 3)
    print(f"{checks.passed} passed, {checks.failed} failed, 0 skipped")
    return checks.failed != 0


if __name__ == "__main__":
    sys.exit(main())
