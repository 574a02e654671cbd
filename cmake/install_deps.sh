#!/usr/bin/env bash
# Installs what is missing, and only that: Debian's packages, LibTorch, the tests' Python packages.
#   cmake/install_deps.sh [build] [test] [docs] [develop]     default: all four
set -euo pipefail
cd "$(dirname "$0")/.."

# LibTorch comes inside of the Python package `torch`. The one of PyPI holds the CUDA libraries too;
# for another one, set CMAKE_PREFIX_PATH to a LibTorch of yours, or point pip at another index.
torch=torch==2.13.0
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

install_packages() {
  local installed package missing=() root=()
  if ! command -v dpkg-query apt-get >/dev/null; then
    say "this is not Debian, so no system package is installed; CMake names what is missing"
    return
  fi
  installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' "$@" 2>/dev/null || true)"
  for package in "$@"; do
    [[ $installed == *" installed:$package "* ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}"
  if ((EUID)); then
    command -v sudo >/dev/null ||
      fail "only root can install them, and sudo is not here; as root: apt-get install ${missing[*]}"
    root=(sudo)
  fi
  "${root[@]}" apt-get update -qq
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

# Packages and options of pip. Python compiles what runs of them when it runs: to compile all of LibTorch takes longer
# than to install it.
install_python_packages() {
  local package missing=() options=() python folder="$venv/lib/python3*/site-packages"
  for package in "$@"; do
    [[ $package == --target=* ]] && folder=${package#*=}
    [[ $package == -* ]] && options+=("$package") && continue
    has_python_package "$package" "$folder" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  if ! "$venv/bin/python3" -m pip --version >/dev/null 2>&1; then
    for python in /usr/bin/python3 python3 ""; do
      "$python" -c 'import ensurepip, venv' 2>/dev/null && break
    done
    [[ $python ]] || fail "no python3 with the module venv; install python3-venv"
    "$python" -m venv "$venv"
  fi
  say "installing ${missing[*]} into ${folder%%/lib/*}"
  "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check --no-compile "${options[@]}" "${missing[@]}"
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
    build) [[ $(cmake -P cmake/libtorch.cmake 2>&1) ]] || python_packages+=("$torch") ;;
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
