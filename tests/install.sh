#!/usr/bin/env bash
# install.sh - installs a build into a temporary folder, and builds and runs the embedding example against what
# is there: through pkg-config with the shared library and with the static one, and through the CMake package with
# both; then with a release's sources as a part of the example's own project, and with the library in one file. The example and the
# installed command run on the model of a GPU that is installed with them, too, also from another folder, and when all has been moved.
#   install.sh BUILD-FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
unset SCHEDC_DRIVER SCHEDC_NVRTC SCHEDC_MODEL SCHEDC_MODEL_LIBRARY
to=$(mktemp -d)
trap 'rm -rf "$to" "$to.moved"' EXIT
cmake --install "$build" --prefix "$to" >/dev/null
lib=$(dirname "$(find "$to" -name libschedc.so)")
export PKG_CONFIG_PATH=$lib/pkgconfig
read -ra flags < <(pkg-config --cflags --libs schedc)
cc examples/embed.c "${flags[@]}" -o "$to/embed"
LD_LIBRARY_PATH=$lib "$to/embed"
# The examples that tune find the installed schedules, wherever they run.
schedules=$(pkg-config --variable=schedules schedc)
for program in tune_model tune_pair; do
  cc -DSCHEDULES="\"$schedules\"" "$(dirname "$schedules")/../doc/schedc/examples/$program.c" "${flags[@]}" -o "$to/$program"
  (cd / && LD_LIBRARY_PATH=$lib "$to/$program" >"$to/said")
  grep -q chosen "$to/said"
done
read -ra flags < <(pkg-config --static --cflags --libs schedc | sed 's/-lschedc/-l:libschedc.a/')
cc examples/embed.c "${flags[@]}" -o "$to/embed"
"$to/embed"
mkdir "$to/project"
cat >"$to/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.18)
project(embed C)
find_package(schedc 0.2 REQUIRED)
add_executable(embed embed.c)
target_link_libraries(embed PRIVATE schedc::schedc)
add_executable(embed_static embed.c)
target_link_libraries(embed_static PRIVATE schedc::schedc_static)
END
cp examples/embed.c "$to/project"
cmake -G Ninja -S "$to/project" -B "$to/project/build" -DCMAKE_PREFIX_PATH="$to" >/dev/null
cmake --build "$to/project/build" >/dev/null
"$to/project/build/embed"
"$to/project/build/embed_static"
# A release, on a machine with neither re2c nor Lemon, as a part of the example's own project; the same bytes each time.
scripts/release "$to/first" >/dev/null
scripts/release "$to/second" >/dev/null
diff -r "$to/first" "$to/second"
mkdir "$to/tools" "$to/whole"
ln -s /usr/bin/* "$to/tools"
rm -f "$to/tools/re2c" "$to/tools/lemon"
tar -C "$to/whole" --strip-components=1 --one-top-level=schedc -xf "$to"/first/schedc-[0-9]*.tar.gz
cat >"$to/whole/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.18)
project(embed C)
add_subdirectory(schedc)
add_executable(embed "$PWD/examples/embed.c")
target_link_libraries(embed PRIVATE schedc::schedc_static)
END
PATH=$to/tools cmake -G Ninja -S "$to/whole" -B "$to/whole/build" -DCMAKE_BUILD_TYPE=Debug >/dev/null
PATH=$to/tools cmake --build "$to/whole/build" --target embed >/dev/null
"$to/whole/build/embed"
# The library in one file, without a warning.
tar -C "$to" --strip-components=1 --one-top-level=one -xf "$to"/first/schedc-amalgamation-*.tar.gz
cc -O0 -ffp-contract=off -Wall -Wextra -Werror -c "$to/one/schedc.c" -o "$to/one/schedc.o"
cc -I"$to/one" examples/embed.c "$to/one/schedc.o" -o "$to/one/embed" -lm -lpthread -ldl
"$to/one/embed"
for file in include/schedc.h share/schedc/schedules/{fa3_fwd.sched,tuned/README.md} share/doc/schedc/{LICENSE,README.md,lang/README.md}; do
  [ -s "$to/$file" ] || { echo "not installed: $file"; exit 1; }
done
find "$to/share/doc/schedc" -name '*.md' | while read -r page; do
  { grep -oE '\]\([^)#: ]+' "$page" || true; } | cut -c3- | while read -r link; do
    [ -e "$(dirname "$page")/$link" ] || { echo "$page names $link, which is not installed"; exit 1; }
  done
done
"$to/bin/schedc" --version
model=$lib/schedc/libschedc_model.so
SCHEDC_DRIVER=$model SCHEDC_NVRTC=$model "$to/project/build/embed" | tee "$to/said"
grep -q 'on the GPU: .*PASS' "$to/said"
copy=$PWD/schedules/copy.sched
(cd / && "$to/bin/schedc" run --on model "$copy" --case small | tail -1)
# Of both libraries, the public names and no others.
exported=$({ nm -D --defined-only "$lib/libschedc.so"; nm -g --defined-only "$lib/libschedc.a"; } |
  awk 'NF == 3 && $3 !~ /^schedc_/ {print $3}')
[ -z "$exported" ] || { echo "exported, but not public: $exported"; exit 1; }
mv "$to" "$to.moved"
(cd / && "$to.moved/bin/schedc" run --on model "$copy" --case small | tail -1)
echo "14 passed, 0 failed, 0 skipped"
