// torchrun starts the remaining machines again when one is lost; machines here are two torchruns.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/cli/digits_run.h"

namespace stepop {
namespace elastic_test {

TEST_CASE("a machine that is lost: torchrun starts the others again, from the last checkpoint") {
  const ScratchFolder folder;
  const std::string script = kUntil + fmt::format(R"(
export OMP_NUM_THREADS=1
python={0}/.venv/bin/python3
port=$($python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
machine() {{
  exec $python -m torch.distributed.run --nnodes 1:2 --nproc-per-node 1 --max-restarts 3 \
    --rdzv-backend c10d --rdzv-endpoint 127.0.0.1:$port --rdzv-conf last_call_timeout=5,is_host=$1 \
    --no-python -- {1}/stepop -n e -b {2} -t --resume --num_epochs 3000
}}
machine true >first.txt 2>&1 & first=$!
machine false >second.txt 2>&1 & second=$!
until_ok 'ls logs/*_e/train/checkpoints/model-92.safetensors'
kill -9 $second $(pgrep -P $second)
until_ok 'grep "^resuming at step" first.txt second.txt'
until_ok 'sed "1,/^resuming at step/d" first.txt | grep "^checkpoint: "'
kill -TERM $first
wait $first
grep -h '^process\|^  *rank\|^saved' first.txt | sed 's/ .*//; s/^$/rank/'
)",
                                                  STEPOP_SOURCE_DIR, STEPOP_BINARY_DIR, kConfig);
  const CommandResult result = run_in(folder, script);
  CAPTURE(read_bytes(folder.path("first.txt")));
  // Two processes, then one alone, which was stopped and has saved.
  CHECK(result.out == "process\nrank\nprocess\nsaved;\n");
  CHECK(only_run(folder) != "");
}

}  // namespace elastic_test
}  // namespace stepop
