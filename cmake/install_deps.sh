#!/usr/bin/env bash
# Installs what is missing, and only that: Debian's packages, LibTorch, the tests' Python packages.
#   cmake/install_deps.sh [build] [test] [docs] [develop]     default: all four
set -euo pipefail
cd "$(dirname "$0")/.."

# LibTorch comes inside of the Python package `torch`. STEPOP_TORCH chooses the one for processors (cpu) or for NVIDIA's GPUs (cuda), or
# is what pip is to install: 'torch==2.11.0', or a wheel. By default a machine with NVIDIA's driver has the one for GPUs. For a LibTorch of
# yours set CMAKE_PREFIX_PATH.
torch=torch==2.13.0
# PyPI's is the one for GPUs, for x86-64 and for aarch64. PyTorch has an index for the other one.
processors=https://download.pytorch.org/whl/cpu
# Installed without what it asks for, so that no other torch comes in.
torchmetrics=torchmetrics==1.9.0
venv=.venv
# Beside the environment: torchmetrics imports what it finds of these, which takes seconds and may fail.
networks=$venv/networks

say() { echo "deps: $*" >&2; }
fail() { say "$@"; exit 1; }

packages_of() {
  case $1 in
    build) echo cmake g++ clang-19 git make ninja-build ccache python3-venv libyaml-cpp-dev libcxxopts-dev \
      libhdf5-dev nlohmann-json3-dev libfmt-dev libpng-dev libjpeg-dev zlib1g-dev libxxhash-dev \
      libpcre2-dev libutf8proc-dev libtcmalloc-minimal4 libgloo-dev doctest-dev ;;
    test) echo python3-venv hdf5-tools libfaketime libsndfile1 libwebp7 ;;
    docs) echo python3-venv doxygen ;;
    develop) echo clang-format clang-tidy ;;
  esac
}

# The names of the installed packages, and of what they provide: libtcmalloc-minimal4 is ...4t64 on newer systems.
installed_packages() {
  dpkg-query -W -f '${db:Status-Status}:${Package}, ${Provides}\n' | sed -n 's/^installed://p' | tr ',' '\n' | sed 's/(.*//; s/ //g'
}

# Of the names of packages on standard input the Clang to compile the tree by: 19, by which releases are tested, else the newest from
# 16 on; else nothing.
best_clang() {
  local names
  names=$(grep -xE 'clang-(1[6-9]|[2-9][0-9])' | sort -V)
  grep -xF clang-19 <<<"$names" || tail -n 1 <<<"$names"
}

install_packages() {
  local installed package missing=() root=() clang
  if ! command -v dpkg-query apt-get >/dev/null; then
    say "this is not Debian, so no system package is installed; CMake names what is missing"
    return
  fi
  installed=$(installed_packages)
  for package in "$@"; do
    [[ $package == clang-19 && $(best_clang <<<"$installed") ]] && continue
    grep -qxF "$package" <<<"$installed" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}"
  if ((EUID)); then
    command -v sudo >/dev/null ||
      fail "only root can install them, and sudo is not here; as root: apt-get install ${missing[*]}"
    root=(sudo)
  fi
  "${root[@]}" apt-get update -qq
  clang=$(apt-cache pkgnames clang- | best_clang || true)  # without one g++ compiles
  mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sed "s/^clang-19$/$clang/; /^$/d")
  ((${#missing[@]})) || return 0
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Whether pip has installed `name==version` into a folder, to its end.
has_python_package() {
  local name=${1%%==*} version=${1##*==} folder=$2
  name=${name//-/_}  # as its folder is called
  compgen -G "$folder/$name-$version.dist-info/INSTALLER" >/dev/null ||
    compgen -G "$folder/$name-$version+*.dist-info/INSTALLER" >/dev/null
}

make_venv() {
  local python
  "$venv/bin/python3" -m pip --version >/dev/null 2>&1 && return
  for python in /usr/bin/python3 python3 ""; do
    "$python" -c 'import ensurepip, venv' 2>/dev/null && break
  done
  [[ $python ]] || fail "no python3 with the module venv; install python3-venv"
  "$python" -m venv "$venv"
}

# Packages and options of pip. Python compiles what runs of them when it runs: to compile all of LibTorch takes longer
# than to install it.
install_python_packages() {
  local package missing=() options=() folder="$venv/lib/python3*/site-packages"
  for package in "$@"; do
    [[ $package == --target=* ]] && folder=${package#*=}
    [[ $package == -* ]] && options+=("$package") && continue
    has_python_package "$package" "$folder" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  make_venv
  say "installing ${missing[*]} into ${folder%%/lib/*}"
  "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check --no-compile "${options[@]}" "${missing[@]}"
}

# Whether PyTorch's index for processors answers at once, and has the version for this machine.
index_answers() {
  timeout 10 "$venv/bin/python3" -c '
import os, sys, urllib.request
with urllib.request.urlopen(sys.argv[1] + "/torch/", timeout=5) as page:
    names = (sys.argv[2].replace("==", "-") + "%2Bcpu-", os.uname().machine)
    sys.exit(not any(all(name in line for name in names) for line in page.read().decode().splitlines()))
' "$processors" "$torch" 2>/dev/null
}

install_torch() {
  local kind=${STEPOP_TORCH:-} there
  there=$(compgen -G "$venv/lib/python3*/site-packages/torch-*.dist-info" | head -n 1 || true)
  case $kind in
    "")
      has_python_package "$torch" "$venv/lib/python3*/site-packages" && return
      [[ -e /proc/driver/nvidia/version ]] || command -v nvidia-smi >/dev/null && kind=cuda || kind=cpu
      ;;
    cpu | cuda)
      if [[ $there ]]; then
        [[ $there == *+cpu.dist-info && $kind == cuda || $there != *+cpu.dist-info && $kind == cpu ]] || return 0
        fail "STEPOP_TORCH is $kind, and $there is of the other kind: rm -r $venv build, and again"
      fi
      ;;
    *)
      install_python_packages "$kind"
      return
      ;;
  esac
  if [[ $kind == cuda ]]; then
    say "LibTorch for NVIDIA's GPUs, some 3 GB (190 MB for processors alone: STEPOP_TORCH=cpu)"
    install_python_packages "$torch"
    return
  fi
  make_venv
  if index_answers; then
    say "LibTorch for processors, some 190 MB, of $processors (for GPUs: STEPOP_TORCH=cuda)"
    install_python_packages "--extra-index-url=$processors" "$torch+cpu"
    return
  fi
  say "LibTorch as pip finds it, as $processors does not answer or has none for $(uname -m): PyPI's is the one for GPUs, some 3 GB"
  install_python_packages "$torch"
}

(($#)) || set -- build test docs develop
packages=()
for part in "$@"; do
  [[ $part =~ ^(build|test|docs|develop)$ ]] || fail "unknown part \"$part\"; known are: build test docs develop"
  read -ra more <<<"$(packages_of "$part")"
  packages+=("${more[@]}")
done
install_packages "${packages[@]}"

python_packages=()
for part in "$@"; do
  case $part in
    build) [[ $(cmake -P cmake/libtorch.cmake 2>&1) ]] || install_torch ;;
    test) mapfile -t -O "${#python_packages[@]}" python_packages < <(grep -v '^#' tests/requirements.txt) ;;
    docs) mapfile -t -O "${#python_packages[@]}" python_packages < <(grep -v '^#' cmake/site/requirements.txt) ;;
  esac
done
install_python_packages "${python_packages[@]}"
if [[ " $* " == *" test "* ]]; then
  install_python_packages --no-deps "$torchmetrics"
  mapfile -t python_packages < <(grep -v '^#' tests/models/packages/requirements.txt)
  install_python_packages --no-deps --upgrade "--target=$networks" "${python_packages[@]}"
fi
