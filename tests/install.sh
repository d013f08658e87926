#!/usr/bin/env bash
# install.sh - installs a build into a temporary folder, and builds and runs the embedding example against what
# is there: through pkg-config with the shared library and with the static one, and through the CMake package with
# both; then with the sources as a part of the example's own project. The example and the installed command run on the model
# of a GPU that is installed with them, too, also from another folder, and when all has been moved.
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
mkdir "$to/whole"
cat >"$to/whole/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.18)
project(embed C)
add_subdirectory("$PWD" schedc)
add_executable(embed "$PWD/examples/embed.c")
target_link_libraries(embed PRIVATE schedc::schedc_static)
END
cmake -G Ninja -S "$to/whole" -B "$to/whole/build" -DCMAKE_BUILD_TYPE=Debug ${SCHEDC_PREGENERATED:+-DSCHEDC_PREGENERATED="$SCHEDC_PREGENERATED"} >/dev/null
cmake --build "$to/whole/build" --target embed >/dev/null
"$to/whole/build/embed"
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
echo "8 passed, 0 failed, 0 skipped"
