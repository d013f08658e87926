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
  need clang clang
  need gcovr gcovr
  need python3 python3
  need_file "/usr/include/cmocka.h" libcmocka-dev
  need_file "/usr/lib/python3/dist-packages/numpy" python3-numpy
  need_file "/usr/lib/python3/dist-packages/jsonschema" python3-jsonschema
}
