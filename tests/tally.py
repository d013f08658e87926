"""What several scripts of checks share: a count of what holds, and a folder for what a check writes."""
import os

passed = failed = skipped = 0


def expect(what, holds, *shown):
    """Counts a check; one that does not hold is printed, with what is shown of it."""
    global passed, failed
    passed += bool(holds)
    failed += not holds
    if not holds:
        print("FAIL", what, *shown, flush=True)


def skip(what, why):
    """What a check needs is not here."""
    global skipped
    skipped += 1
    print(f"SKIPPED {what}: {why}", flush=True)


def tell():
    """The last line of such a script, and its exit code."""
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


class Folder:
    """A folder of its own for schedules, stores and the cache; `env` is the environment of the commands that work in it."""

    def __init__(self, schedc, folder, **env):
        self.schedc, self.folder = os.path.abspath(schedc), folder
        self.env = {**os.environ, "SCHEDC_CACHE": self.path("cache"), **env}

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)
