#!/usr/bin/env bash
# applications.sh - programs that use the library as its users do: the examples in C and C++, with the installed library under
# valgrind, and with the library in one file under the address, undefined-behaviour and thread sanitizers. None may leak, race
# or touch what is not its own; each must do what it is for.
#
#   applications.sh BUILD-FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
to=$(mktemp -d)
trap 'rm -rf "$to"' EXIT
passed=0
unset SCHEDC_NVRTC SCHEDC_MODEL
export SCHEDC_DRIVER=/dev/null  # where there is a GPU, too, it is left alone: its driver is not what is watched

# watched NAME WORDS COMMAND…: it ends with 0 and says the words.
watched() {
  local name=$1 words=$2
  shift 2
  "$@" >"$to/said" 2>&1 && grep -q "$words" "$to/said" || { echo "FAIL $name"; tail -30 "$to/said"; echo "$passed passed, 1 failed, 0 skipped"; exit 1; }
  passed=$((passed + 1))
}

# compile SOURCE OUTPUT FLAG…
compile() {
  local source=$1 output=$2
  shift 2
  case $source in
    *.cpp) c++ -std=c++17 -Wall -Wextra -Werror -g "$source" "$@" -pthread -o "$output" ;;
    *) cc -std=c11 -Wall -Wextra -Werror -g "$source" "$@" -pthread -o "$output" ;;
  esac
}
programs=(embed.c:PASS tune_model.c:chosen tune_pair.c:chosen threads.cpp:PASS)

cmake --install "$build" --prefix "$to/installed" >/dev/null
lib=$(dirname "$(find "$to/installed" -name libschedc.so)")
read -ra flags < <(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs schedc)
export LD_LIBRARY_PATH=$lib
for program in "${programs[@]}"; do
  source=${program%:*}
  compile "examples/$source" "$to/program" "${flags[@]}"
  watched "$source under valgrind" "${program#*:}" valgrind -q --leak-check=full --error-exitcode=9 "$to/program"
done
unset LD_LIBRARY_PATH

scripts/amalgamate "$to" >/dev/null
for sanitizer in address,undefined thread; do
  cc -O1 -g1 -fsanitize=$sanitizer -fno-sanitize-recover=all -I"$to" -c "$to/schedc.c" -o "$to/schedc.o"
  for program in "${programs[@]}"; do
    source=${program%:*}
    compile "examples/$source" "$to/program" -fsanitize=$sanitizer -fno-sanitize-recover=all -I"$to" "$to/schedc.o" -lm -ldl
    watched "$source, $sanitizer" "${program#*:}" "$to/program"
  done
done
echo "$passed passed, 0 failed, 0 skipped"
