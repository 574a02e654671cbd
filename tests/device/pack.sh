#!/bin/sh
# Packs a build for a machine with a GPU on which nothing can be installed: programs, tests, the wheel and the system's
# libraries that they need. LibTorch is that machine's own, of the same version as the one of the build.
#   tests/device/pack.sh [BUILD [FOLDER]]        build, build-device
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$source/build}" && pwd)
folder=${2:-$source/build-device}
mkdir -p "$folder"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

command -v patchelf >/dev/null || { echo "pack: missing: patchelf (apt-get install patchelf)" >&2 && exit 1; }
STEPOP_BUILD=$build python3 "$source/cmake/wheel/backend.py" "$scratch/wheel" >/dev/null 2>&1
mkdir -p "$scratch/build/stepop_program" "$scratch/system"
for file in "$build"/* "$build"/stepop_program/*; do
  [ -f "$file" ] && [ -x "$file" ] || continue
  case $(head -c 4 "$file" | tail -c 3) in ELF) ;; *) continue ;; esac
  copy=$scratch/build/${file#"$build"/}
  strip -o "$copy" "$file"
done
for test in "" tests tests/bench; do
  mkdir -p "$scratch/build/$test"
  sed 's/;CUDA_VISIBLE_DEVICES=//' "$build/$test/CTestTestfile.cmake" >"$scratch/build/$test/CTestTestfile.cmake"
done

# The C and C++ libraries of the other machine must be as new as ours; a newer one works with ours.
ldd "$scratch"/build/stepop_tests "$scratch"/build/stepop_bench "$scratch"/build/libstepop.so |
  awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE '/(libstepop|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s)\.so|/torch/lib/|/nvidia/' |
  while read -r library; do cp -L "$library" "$scratch/system/"; done
# Found without LD_LIBRARY_PATH, which other programs of that machine would see as well.
for file in "$scratch"/build/stepop* "$scratch"/build/*.so "$scratch"/build/stepop_program/*; do
  [ -f "$file" ] || continue
  patchelf --set-rpath "/tmp/stepop-device/system:$(patchelf --print-rpath "$file")" "$file"
done
for library in "$scratch"/system/*; do patchelf --set-rpath '$ORIGIN' "$library"; done

rpath=$(readelf -d "$build/libstepop.so" | sed -n 's/.*R[UN]*PATH.*\[\(.*\)\]/\1/p' | tr : '\n' | grep torch/lib | head -1)
printf 'source=%s\nbuild=%s\ntorch=%s\n' "$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$build/CMakeCache.txt")" \
  "$build" "${rpath%/lib}" >"$scratch/places"
tar -C "$scratch" -c . | xz -T0 -6 >"$folder/pack.tar.xz"
du -h "$folder/pack.tar.xz"
