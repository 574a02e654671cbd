#!/usr/bin/env bash
# compile.sh TARGET FILE HEADERS: builds `all` or another target of build/. When build/FILE is not there yet, it says
# how long that will take, by the time in which this machine compiles the precompiled header of HEADERS.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$1 file=$2 headers=$3
export NINJA_STATUS="[%f of %t, %es] "

# All objects take as long as 22 such headers, on one core.
say_time() {
  local begin=$EPOCHSECONDS header=$1 minutes
  until [[ -e $header ]]; do sleep 1; done
  minutes=$(((22 * (EPOCHSECONDS - begin) / $(nproc) + 59) / 60))
  printf '\rstepop: compiling build/%s, which takes about %d min in all on this machine\n' "$file" "$minutes"
}

if [[ ! -e build/$file ]]; then
  echo "stepop: compiling build/$file, for the first time here"
  header=$(ninja -C build -t targets all | sed -n "s/^\(.*$headers.*cmake_pch\.hxx\.[gp]ch\):.*/\1/p" | head -1)
  if [[ $header && ! -e build/$header ]]; then  # it is there when a first build was interrupted
    say_time "build/$header" &
    trap 'kill %1 2>/dev/null || true' EXIT
  fi
fi
cmake --build build --target "$target"
