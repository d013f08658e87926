"""A list of checks that goes on when one fails: for tests/device.py (the model of a GPU) and tests/gpu/launch.py."""
import re
import time
import traceback

from libschedc import Failed


class Wrong(Exception):
    """A check did not hold."""


class Skip(Exception):
    """What a check needs is not here."""


def expect(good, text):
    if not good:
        raise Wrong(text)


def expect_failure(function, *words):
    """It fails, and the report has all the words."""
    try:
        function()
    except Failed as error:
        for word in words:
            expect(word in str(error), f"nothing says '{word}': {error}")
        return
    raise Wrong(f"no error says '{words[0]}'")


class Checks:
    """Runs functions; each is a check, passed unless it raises. Figures that it returns are kept."""

    def __init__(self, only=None):
        self.only, self.results = only or "", []

    def run(self, name, function, *args):
        if not re.search(self.only, name):
            return
        begun, result = time.monotonic(), {"name": name, "outcome": "passed"}
        try:
            self.begin()
            result.update(function(*args) or {})
        except Skip as why:
            result.update(outcome="skipped", why=str(why))
        except (Wrong, Failed) as error:
            result.update(outcome="failed", why=str(error).strip())
        except Exception:  # of a driver's, or of the script's: the others are run all the same
            result.update(outcome="failed", why=traceback.format_exc().strip())
        self.settle(name)
        result["seconds"] = round(time.monotonic() - begun, 3)
        self.results.append(result)
        if result["outcome"] != "passed":
            print(f"{result['outcome'].upper()} {name}: {result['why']}", flush=True)

    def begin(self):
        """Before each; what it raises fails the check."""

    def settle(self, name):
        """After each."""

    def count(self, outcome):
        return sum(c["outcome"] == outcome for c in self.results)

    def tell(self):
        """The last line, and the exit code."""
        print(f"{self.count('passed')} passed, {self.count('failed')} failed, {self.count('skipped')} skipped")
        return 1 if self.count("failed") or not self.results else 0
