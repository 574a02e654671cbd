#!/usr/bin/env bash
# Compiles this tree for aarch64 Linux with the Clang of another machine, and tries it there under QEMU. For root, with debootstrap,
# qemu-user-static, patchelf, clang-19 and lld-19; it takes some 3 GB.
#   tests/systems/aarch64.sh [COMMAND...]    in the build folder; default: the program and the tests are compiled, the digits
#                                            trained, the quick tests run
# The folder STEPOP_SYSTEMS/aarch64 (build/systems) keeps root/, a Debian whose packages are unpacked and not set up, packages/ with
# LibTorch, and build/. What is there is not made again. STEPOP_TORCH is what pip is to download, torch==2.13.0, or a wheel.
set -euo pipefail
cd "$(dirname "$0")/../.."
tree=$PWD
fail() { echo "systems: $*" >&2; exit 1; }
for program in debootstrap qemu-aarch64-static patchelf clang++-19 ld.lld-19 ninja; do
  command -v $program >/dev/null || fail "$program is missing"
done
[[ -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]] ||
  fail "Linux does not start programs of aarch64 by QEMU: mount binfmt_misc, and register /usr/lib/binfmt.d/qemu-aarch64.conf"

folder=${STEPOP_SYSTEMS:-$tree/build/systems}/aarch64
mkdir -p "$folder"
export STEPOP_AARCH64=$folder CCACHE_NAMESPACE=aarch64

# Packages of the system that a cross compiler reads and the program loads: those of cmake/install_deps.sh without its programs.
if [[ ! -e $folder/root/unpacked ]]; then
  eval "$(sed -n '/^packages_of()/,/^}/p' cmake/install_deps.sh)"
  packages=$({ packages_of build; packages_of test; } | tr ' ' '\n' | grep -E -- '^lib|-dev$|^g\+\+$' | paste -sd,)
  rm -rf --one-file-system "$folder/root"
  debootstrap --arch=arm64 --foreign --variant=minbase --include="$packages" bookworm "$folder/root" >"$folder/log.txt" 2>&1 ||
    fail "debootstrap failed: $folder/log.txt"
  find "$folder/root" -name '*.deb' | while IFS= read -r package; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder/root" --keep-directory-symlink -f -
  done
  # Links to libraries from / would lead to the host's.
  find "$folder/root/usr/lib" -type l -lname '/*' | while IFS= read -r link; do
    ln -sfn "$(realpath -ms --relative-to="$(dirname "$link")" "$folder/root/usr$(readlink "$link" | sed 's,^/usr,,')")" "$link"
  done
  touch "$folder/root/unpacked"
fi

# pip's LibTorch for aarch64 is the one with CUDA. Without CUDA's own library it is one for processors, and loads two of NVIDIA's.
if [[ ! -e $folder/packages/unpacked ]]; then
  rm -rf "$folder/packages" "$folder/wheels"
  download() {
    python3 -m pip download --quiet --no-deps --dest "$folder/wheels" --only-binary=:all: --python-version 3.11 \
      --platform manylinux_2_28_aarch64 --platform manylinux_2_25_aarch64 --platform manylinux2014_aarch64 "$@"
  }
  case ${STEPOP_TORCH:-cpu} in cpu | cuda) torch=torch==2.13.0 ;; *) torch=$STEPOP_TORCH ;; esac
  download "$torch" 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cupti==13.0.*'
  for wheel in "$folder"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$folder/packages"; done
  rm -f "$folder"/packages/torch/lib/lib{torch,c10}_cuda*.so
  patchelf --remove-needed libtorch_cuda.so "$folder/packages/torch/lib/libtorch.so"
  touch "$folder/packages/unpacked"
fi

# QEMU looks for files here before it looks in the host's root: for the loader and libraries, and for what Linux says of the processor,
# without which LibTorch crashes. Programs and scripts stay the host's.
rm -rf "$folder/libraries"
mkdir -p "$folder/libraries/usr" "$folder/libraries/proc"
ln -sfn ../root/usr/lib "$folder/libraries/lib"
ln -sfn ../../root/usr/lib "$folder/libraries/usr/lib"
features="fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp"
for ((i = 0; i < $(nproc); ++i)); do
  printf 'processor\t: %s\nFeatures\t: %s\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n' \
    "$i" "$features" >>"$folder/libraries/proc/cpuinfo"
  printf 'CPU revision\t: 1\n\n' >>"$folder/libraries/proc/cpuinfo"
  identification=$folder/libraries/sys/devices/system/cpu/cpu$i/regs/identification
  mkdir -p "$identification"
  echo 0x00000000413fd0c1 >"$identification/midr_el1"
done
export QEMU_LD_PREFIX=$folder/libraries QEMU_CPU=neoverse-n1

# Code of a user's own is compiled by the host's Clang too.
printf '#!/bin/sh\nexec clang++-19 --target=aarch64-linux-gnu "--sysroot=%s" -fuse-ld=lld-19 "$@"\n' "$folder/root" >"$folder/clang++"
chmod +x "$folder/clang++"
export STEPOP_CXX=$folder/clang++ STEPOP_CACHE=$folder/cache

cmake -S "$tree" -B "$folder/build" -G Ninja --toolchain "$tree/tests/systems/aarch64.cmake" "-DTorch_ROOT=$folder/packages/torch"
(($#)) || set -- "ninja stepop stepop_tests" "cd .. && build/stepop -n digits -b $tree/configs/digits.yaml -t" \
  "ctest -L quick -j2 --output-on-failure"
status=0
for command in "$@"; do
  begin=$SECONDS
  (cd "$folder/build" && bash -c "$command") && result=0 || result=$? status=1
  echo "systems: $command: exit status $result, $((SECONDS - begin)) s"
  ((result == 0)) || break
done
exit $status
