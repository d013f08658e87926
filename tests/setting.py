"""What the checks of tests/device.py share: the library with the model of a GPU for its driver, and kernels that are loaded."""
import ctypes
import os
import subprocess

import numpy

from checks import Checks
from driver import LAUNCH_FAILED, Context, Driver, Tensors
from libschedc import Kernel, Library

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ATTENTION = {"B": 2, "M": 70, "N": 190, "H": 4, "G": 2}
SHORT = {"B": 1, "M": 70, "N": 190, "H": 2, "G": 1}
GEMM = {"M": 70, "N": 136, "K": 72}
COPY = {"M": 130, "N": 136}
SOURCE = "schedules/{}.sched"


class BuildOptions(ctypes.Structure):
    """schedc_build_options"""
    _fields_ = [("size", ctypes.c_size_t), ("lenient", ctypes.c_int), ("no_cache", ctypes.c_int), ("cache", ctypes.c_char_p),
                ("log", ctypes.c_void_p), ("log_user", ctypes.c_void_p), ("cache_bytes", ctypes.c_uint64),
                ("debug_waits", ctypes.c_int), ("name", ctypes.c_char_p), ("variants", ctypes.c_void_p),
                ("trust_elements", ctypes.c_int)]


def load(s, kernel, **options):
    """By schedc_load, with options of building."""
    building = BuildOptions(size=ctypes.sizeof(BuildOptions), **options)
    how = (ctypes.c_size_t * 2)(16, ctypes.addressof(building))
    s.library.check(s.library.so.schedc_load(ctypes.byref(kernel.loaded), s.library.context, kernel.handle, how))


class Renewing(Checks):
    """A launch that fails takes its context with it: the next check has another."""

    def __init__(self, only, setting):
        super().__init__(only)
        self.setting = setting

    def settle(self, name):
        s = self.setting
        if s.context and s.driver.so.cuCtxSynchronize() == LAUNCH_FAILED:
            s.close()
            s.open()


class Setting:
    """The library, the model as its driver, a context that is current, and kernels that are loaded on it, once each."""
    is_model = True

    def __init__(self, args, folder):
        self.schedc, self.folder = args.schedc, folder
        beside = os.path.dirname(args.schedc)
        self.model = self.driver_path = os.path.join(beside, "libschedc_model.so")
        os.environ.update(SCHEDC_DRIVER=self.model, SCHEDC_NVRTC=self.model, SCHEDC_MODEL="sms=3")
        self.cache = os.environ.setdefault("SCHEDC_CACHE", os.path.join(folder, "cache"))
        self.library_path = os.path.join(beside, "libschedc.so")
        self.driver, self.library = Driver(self.model), self.fresh_library()
        self.open()

    def open(self):
        self.context, self.known = Context(self.driver), {}

    def fresh_library(self):
        return Library(self.library_path)

    def kernel(self, name, unit=None, **params):
        key = name, unit, tuple(sorted(params.items()))
        if key not in self.known:
            self.known[key] = self.fresh(name, unit, **params)
        return self.known[key]

    def fresh(self, name, unit=None, **params):
        kernel = self.parsed(name, unit, **params)
        kernel.load()
        return kernel

    def parsed(self, name, unit=None, **params):
        return Kernel(self.library, name if "/" in name else SOURCE.format(name), unit, params)

    def close(self):
        for kernel in self.known.values():
            kernel.close()
        self.context.close()
        self.context = None

    def tensors(self, kernel, dims, layout=None, seed=5):
        return Tensors(self.context, kernel, dims, layout, numpy.random.default_rng(seed))

    def run(self, *command, program=None, **environment):
        """schedc, in an environment without what makes the library find the model."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("SCHEDC_") or k == "SCHEDC_CACHE"}
        return subprocess.run([program or self.schedc, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              encoding="utf-8", env={**clean, **environment})


def run_as(policy="late", seed=0, sms=3):
    os.environ["SCHEDC_MODEL"] = f"policy={policy},seed={seed},sms={sms}"
