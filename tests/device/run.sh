#!/bin/sh
# Tries everything on a machine with a GPU, from what pack.sh packed: in order of worth, each part with a time limit.
#   tests/device/run.sh PACK RESULTS [PART...]   parts: start numbers processes commands template quick bench compiled
# RESULTS gets a log of each part, and results.jsonl with a line for each the moment that it ends. The programs' places
# are those of the machine that packed them; links are made there.
set -u
cd "$(dirname "$0")/../.."
tree=$PWD
pack=$1
results=$2
shift 2
[ $# -gt 0 ] || set -- start numbers processes commands template quick bench compiled
mkdir -p "$results"

say() { echo "== $(($(date +%s) - begin)) s: $*"; }
begin=$(date +%s)

unpacked=/tmp/stepop-device
if [ ! -f $unpacked/places ]; then
  mkdir -p $unpacked && xz -dc "$pack" | tar -C $unpacked -x || exit 1
fi
. $unpacked/places
link() {
  [ -e "$2" ] || { mkdir -p "$(dirname "$2")" && ln -sfn "$1" "$2"; }
}
link "$tree" "$source"
link $unpacked/build "$build"
own_torch=$(python3 -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])') || exit 1
link "$(dirname "$own_torch")" "$(dirname "$torch")"
# The tests call the tree's own Python.
if [ ! -e .venv/bin/python3 ]; then
  mkdir -p .venv/bin
  printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v python3)" >.venv/bin/python3
  chmod +x .venv/bin/python3
fi
device=${STEPOP_BENCH_DEVICE:-cuda}
export STEPOP_BENCH_DEVICE="$device"

# part NAME SECONDS COMMAND...
part() {
  name=$1 limit=$2
  shift 2
  from=$(date +%s)
  timeout -k 5 "$limit" "$@" >"$results/$name.log" 2>&1
  status=$?
  printf '{"part": "%s", "status": %d, "seconds": %d}\n' "$name" $status $(($(date +%s) - from)) >>"$results/results.jsonl"
  say "$name: status $status"
}

for wanted in "$@"; do
  case $wanted in
    start)
      nvidia-smi 2>/dev/null | sed -n 3,12p
      python3 -c 'import torch; print(torch.__version__, torch.version.cuda)'
      part start 60 "$build/stepop" -n start --logs "$unpacked/logs" -b configs/digits.yaml -t --device "$device" --num_steps 300
      tail -n 12 "$results/start.log"
      part check 60 "$build/stepop" -b configs/digits.yaml -t --device "$device" --check
      ;;
    numbers)
      part numbers 150 python3 -u tests/device/training_numbers.py "$build/stepop" "$device" "$unpacked/numbers"
      cat "$results/numbers.log"
      ;;
    processes | commands)
      part $wanted 150 python3 -u tests/device/$wanted.py "$build/stepop" "$device" "$unpacked/$wanted"
      cat "$results/$wanted.log"
      ;;
    template)
      part wheel 60 python3 -m pip install -q --no-deps --no-index --force-reinstall $unpacked/wheel/*.whl
      part template 120 sh -c "cd $unpacked && rm -rf mine && stepop new mine && cd mine && stepop -n first -b mine.yaml -t --num_steps 200 --device $device"
      tail -n 5 "$results/template.log"
      ;;
    quick)
      part quick 150 env OMP_NUM_THREADS=2 ctest --test-dir "$build" -L quick -j16 --output-on-failure --timeout 60
      sed -n '/tests passed/,$p' "$results/quick.log" | head -n 60
      ;;
    bench)
      part bench "${BENCH_SECONDS:-150}" "$build/stepop_bench" device
      cat "$results/bench.log"
      ;;
    compiled)
      for precision in float32 bfloat16; do
        part compiled-$precision "${COMPILED_SECONDS:-600}" env STEPOP="$build/stepop" python3 -u tests/bench/compiled.py --threads 1 --precision $precision
        cat "$results/compiled-$precision.log"
      done
      ;;
  esac
done
say done
