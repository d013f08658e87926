"""The clock of a GPU's multiprocessors and the power that its board draws, by NVIDIA's management library, which comes with the
driver. Where the library or the device is not found, nothing is known."""
import ctypes

CLOCK_SM = 1


class Sensors:
    def __init__(self, uuid):
        """uuid: of the device, as PyTorch has it."""
        self._library, self._device = None, ctypes.c_void_p()
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if library.nvmlInit_v2() == 0 and library.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}".encode(), ctypes.byref(self._device)) == 0:
            self._library = library

    def read(self):
        """(MHz, W), or None."""
        mhz, milliwatts = ctypes.c_uint(), ctypes.c_uint()
        if (not self._library or self._library.nvmlDeviceGetClockInfo(self._device, CLOCK_SM, ctypes.byref(mhz))
                or self._library.nvmlDeviceGetPowerUsage(self._device, ctypes.byref(milliwatts))):
            return None
        return mhz.value, milliwatts.value * 1e-3
