"""The Python package, for the scripts that measure: `from find_schedc import schedc`. It is the one that PYTHONPATH names, or
else that of the folder build/release, or else an installed one."""
import os
import sys

from calls import ROOT

BUILT = os.path.join(ROOT, "build", "release", "python")
sys.path.insert(sys.path.index(os.path.dirname(os.__file__)), BUILT)  # before what is installed
try:
    import schedc  # noqa: F401
except ImportError as error:
    BUILD = "build it by `cmake --preset release -DSCHEDC_PYTHON=ON && cmake --build --preset release`, or `pip install .`"
    sys.exit(f"{os.path.basename(sys.argv[0])}: the Python package of schedc is needed ({error}): "
             f"{'`pip install numpy`' if error.name == 'numpy' else BUILD}")
