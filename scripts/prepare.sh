# prepare.sh - sourced by demo and test: the tools that the build needs, installed where they are missing.
# Debian and Ubuntu; elsewhere it names what is missing.

# need COMMAND PACKAGE: notes PACKAGE if COMMAND is not there.
missing=()
need() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need_file() { compgen -G "$1" >/dev/null || missing+=("$2"); }

install_missing() {
  [ ${#missing[@]} -eq 0 ] && return 0
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "please install: ${missing[*]}" >&2
    exit 3
  fi
  local sudo=
  [ "$(id -u)" -eq 0 ] || sudo=sudo
  echo "installing: ${missing[*]}"
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  missing=()
}

need_build_tools() {
  need gcc gcc
  need_file "/usr/include/stdio.h" libc6-dev
  need cmake cmake
  need ninja ninja-build
  need re2c re2c
  need lemon lemon
  need_file "/usr/include/xxhash.h" libxxhash-dev
}

need_test_tools() {
  need c++ g++
  need clang clang
  need clang-format clang-format
  need gcovr gcovr
  need addr2line binutils
  need python3 python3
  need pkg-config pkg-config
  need valgrind valgrind
  need mpirun openmpi-bin
  need_file "/usr/include/cmocka.h" libcmocka-dev
  need_file "/usr/share/i18n/locales/de_DE" locales
  need_file "/usr/include/python3*/Python.h" python3-dev
  need_file "/usr/lib/python3/dist-packages/numpy" python3-numpy
  need_file "/usr/lib/python3/dist-packages/jsonschema" python3-jsonschema
}

# NVRTC, for building CUDA C: the toolkit's where there is one, else the package from PyPI in a folder of ours. Where
# neither can be had, the tests that need it say so and are counted as skipped.
NVRTC_VERSION=13.0.88
find_nvrtc() {
  [ -n "${SCHEDC_NVRTC:-}" ] && return 0
  local folder
  for folder in ${CUDA_HOME:+"$CUDA_HOME"} ${CUDA_PATH:+"$CUDA_PATH"} /usr/local/cuda; do
    compgen -G "$folder/lib64/libnvrtc.so*" >/dev/null && return 0
  done
  ldconfig -p 2>/dev/null | grep -q 'libnvrtc\.so\.1[23]' && return 0
  local venv=build/nvrtc-$NVRTC_VERSION
  if ! compgen -G "$venv/lib/python*/site-packages/nvidia/cu13/lib/libnvrtc.so.13" >/dev/null; then
    need_file "/usr/lib/python3*/ensurepip" python3-venv
    install_missing
    python3 -m venv "$venv" && "$venv/bin/pip" -q --disable-pip-version-check install nvidia-cuda-nvrtc==$NVRTC_VERSION || return 0
  fi
  SCHEDC_NVRTC=$(compgen -G "$PWD/$venv/lib/python*/site-packages/nvidia/cu13/lib/libnvrtc.so.13" | head -1)
  export SCHEDC_NVRTC
}

# nvdisasm, for the report on machine code: likewise.
NVDISASM_VERSION=13.2.51
find_nvdisasm() {
  [ -n "${SCHEDC_NVDISASM:-}" ] && return 0
  command -v nvdisasm >/dev/null && return 0
  local folder
  for folder in ${CUDA_HOME:+"$CUDA_HOME"} ${CUDA_PATH:+"$CUDA_PATH"} /usr/local/cuda; do
    [ -x "$folder/bin/nvdisasm" ] && return 0
  done
  local venv=build/nvdisasm-$NVDISASM_VERSION
  if ! compgen -G "$venv/lib/python*/site-packages/nvidia/cu13/bin/nvdisasm" >/dev/null; then
    need_file "/usr/lib/python3*/ensurepip" python3-venv
    install_missing
    python3 -m venv "$venv" && "$venv/bin/pip" -q --disable-pip-version-check install nvidia-cuda-nvdisasm==$NVDISASM_VERSION || return 0
  fi
  SCHEDC_NVDISASM=$(compgen -G "$PWD/$venv/lib/python*/site-packages/nvidia/cu13/bin/nvdisasm" | head -1)
  export SCHEDC_NVDISASM
}

# package_venv FOLDER: an environment for the Python package with what its tests use beside it (PyTorch, which is large, only
# if SCHEDC_TORCH is set). Fails where PyPI cannot be reached.
package_venv() {
  need_file "/usr/lib/python3*/ensurepip" python3-venv
  install_missing
  /usr/bin/python3 -m venv "$1" && "$1/bin/pip" -q --disable-pip-version-check install numpy ml_dtypes mypy ${SCHEDC_TORCH:+torch}
}
