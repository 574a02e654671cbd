#!/usr/bin/env bash
# Tries this tree's last commit on another system: in a new and minimal root of it, a user with sudo clones the tree and
# types the README's commands. For root, with debootstrap; a system takes some 25 GB.
#   tests/systems/run.sh SYSTEM [COMMAND...]    bookworm, trixie, what debootstrap knows, noble; default: "make demo" "make test"
# noble is Ubuntu 24.04, whose keys STEPOP_KEYRING names: ubuntu-archive-keyring.gpg of Ubuntu's package ubuntu-keyring.
# The root is STEPOP_SYSTEMS/SYSTEM (build/systems), which is made anew. log.txt beside it has all that was printed, summary.txt
# a line for each command: its exit status, seconds, what it installed and how much the disk has more.
# Passed on are this machine's variables PIP_*, STEPOP_TORCH and *_proxy, and the certificates of /usr/local/share/ca-certificates.
set -euo pipefail
cd "$(dirname "$0")/../.."
system=${1:?expected a system: bookworm or trixie}
shift
(($#)) || set -- "make demo" "make test"
fail() { echo "systems: $*" >&2; exit 1; }
((EUID == 0)) || fail "only root can make a root"
command -v debootstrap >/dev/null || fail "apt-get install debootstrap"

folder=${STEPOP_SYSTEMS:-$PWD/build/systems}/$system
if [[ ${STEPOP_IN_NAMESPACE:-} != "$$" ]]; then
  # What is mounted below is mounted for this process alone, and gone with it.
  exec unshare --mount --propagation private env STEPOP_IN_NAMESPACE=$$ "$0" "$system" "$@"
fi
root=$folder/root
! grep -q " $root/" /proc/mounts || fail "$root: something is mounted there"
rm -rf --one-file-system "$folder"
mkdir -p "$folder"
log=$folder/log.txt
exec 3>"$folder/summary.txt"
say() { echo "$*" | tee -a "$log" >&3; echo "systems: $*"; }

echo "systems: $system, $root"
options=(--variant=minbase --include=ca-certificates,git,make,sudo --force-check-gpg)
source=()
if [[ $system == noble ]]; then  # Debian's debootstrap has no script of this name; Ubuntu's are all the same
  keys=${STEPOP_KEYRING:-/usr/share/keyrings/ubuntu-archive-keyring.gpg}
  [[ -f $keys ]] || fail "no $keys: STEPOP_KEYRING names the keys of Ubuntu"
  options+=(--components=main,universe --keyring="$keys")
  source=(http://archive.ubuntu.com/ubuntu /usr/share/debootstrap/scripts/gutsy)
fi
debootstrap "${options[@]}" "$system" "$root" "${source[@]}" >>"$log" 2>&1 || fail "debootstrap failed: $log"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
git bundle create "$root/stepop.bundle" HEAD >>"$log" 2>&1
mount --bind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs none "$root/run"
inside() { chroot "$root" "$@" </dev/null >>"$log" 2>&1; }
inside update-ca-certificates
inside useradd --create-home --shell /bin/bash someone
echo "someone ALL=(ALL) NOPASSWD: ALL" >"$root/etc/sudoers.d/someone"

variables=(HOME=/home/someone USER=someone LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin CCACHE_DISABLE=1)
while IFS= read -r name; do
  [[ $name == PIP_* || $name == STEPOP_TORCH || $name == *_proxy ]] && variables+=("$name=${!name}")
done < <(compgen -e)
as_user() { inside setpriv --reuid=someone --regid=someone --init-groups env -i "${variables[@]}" bash -c "cd && $1"; }

packages() { chroot "$root" dpkg-query -W -f '${Package} ${Version}\n'; }
say "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$root/etc/os-release"), commit $(git rev-parse --short HEAD), $(nproc) processors"
status=0
for command in "git clone -q /stepop.bundle stepop" "$@"; do
  packages >"$folder/before.txt"
  used=$(du -sxm "$root" | cut -f1)
  begin=$SECONDS
  [[ $command == git* ]] && line=$command || line="cd stepop && $command"
  as_user "$line" && result=0 || result=$? status=1
  seconds=$((SECONDS - begin))
  packages >"$folder/after.txt"
  say "$command: exit status $result, $seconds s, $(comm -13 "$folder/before.txt" "$folder/after.txt" | wc -l) packages, $(($(
    du -sxm "$root" | cut -f1) - used)) MB"
  ((result == 0)) || break
done
say "$(chroot "$root" bash -c 'for each in g++ cmake clang++-{16..30} python3; do command -v $each >/dev/null && $each --version | head -n 1; done' | paste -sd, | sed 's/,/, /g')"
exit $status
