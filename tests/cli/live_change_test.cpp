// A config that changes while the training runs, with the real binary.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "tests/cli/digits_run.h"
#include "tests/places.h"
#include "tests/same_state.h"

namespace stepop {
namespace live_change_test {

const std::string kSlow = "'" STEPOP_BINARY_DIR "/stepop_slow'";

/// Some 200 steps a second.
constexpr const char* kSmall = R"(
iterator: Classifier
model: {class: MLP, inputs: 16, hidden: [8]}
datasets:
  train: {class: SlowDataset, seconds: 5e-4, dataset: {class: Synthetic, size: 64, shape: [1, 4, 4], classes: 3}}
batch_size: 8
optimizer: {class: Adam, lr: 0.01}
log_ops: [train/log_op]
log_freq: 64
ckpt_freq: 500
checkpoints: {keep_last: 2}
n_data_processes: 0
num_threads: 1
)";

/// Writes a change for the run that is there, as somebody did some seconds ago.
std::string change(const std::string& yaml) {
  return "printf '" + yaml +
         "' > new.yaml; touch -d '10 seconds ago' new.yaml; "
         "mv new.yaml $(echo logs/*)/train/change.yaml; ";
}

/// Trains in the background until some steps are logged.
const std::string kBegin = std::string(kUntil) + "export OMP_NUM_THREADS=1; " + kSlow +
                           " -n a -b c.yaml -t --num_steps 1000000 >out 2>err & "
                           "until_ok 'grep -s \"step 127/\" logs/*/train/log.txt'; ";

int64_t step_after(const std::string& text, const std::string& before) {
  const size_t begin = text.find(before);
  REQUIRE(begin != std::string::npos);
  std::string digits;
  for (size_t i = begin + before.size(); text[i] != ' '; ++i) {
    if (text[i] != ',') digits += text[i];
  }
  return std::stoll(digits);
}

TEST_CASE("a change in mid-run is what a resume with it would have been, also after a kill") {
  const ScratchFolder folder;
  folder.write("c.yaml", kSmall);
  run_in(folder, kBegin + change("optimizer: {lr: 0.002}\\nnum_steps: 1500\\n") +
                     "until_ok 'ls logs/*/configs/change_*'; " +
                     "kill -KILL $!; wait $! 2>/dev/null; cp logs/*/train/log.txt log.txt");
  const std::string run = only_run(folder);
  const std::string log = read_bytes(folder.path("log.txt"));
  CHECK(log.find(".yaml, but for:\n") != std::string::npos);
  CHECK(log.find("optimizer/lr: 0.01 -> 0.002") != std::string::npos);
  const int64_t step = step_after(log, "resuming at step ");
  CHECK(step >= 127);
  CHECK_FALSE(std::filesystem::exists(folder.path(run) + "/train/change.yaml"));
  run_well(folder, kSlow + " -p " + run + " -t --datasets/train/seconds 0");

  const ScratchFolder other;
  other.write("c.yaml", kSmall);
  run_well(
      other,
      fmt::format("{} -n b -b c.yaml -t --datasets/train/seconds 0 --num_steps {}", kSlow, step),
      ": ckpt_freq: is never due in this training of ");
  run_well(other, kSlow + " -p " + only_run(other) + " -t --optimizer/lr 0.002 --num_steps 1500");
  CHECK(differences(state_after(folder, 1500), state_after(other, 1500)) == "");
}

TEST_CASE("a run in a folder that --logs names takes a change, also one that lies beside train") {
  const ScratchFolder folder;
  folder.write("c.yaml", kSmall);
  std::string script = kBegin + change("optimizer: {lr: 0.002}\\nnum_steps: 300\\n") + "wait $!";
  for (size_t at = script.find("logs/"); at != std::string::npos;
       at = script.find("logs/", at + 6)) {
    script.replace(at, 5, "runs/");
  }
  script.replace(script.find("-n a"), 4, "-n a --logs runs");
  script.replace(script.find("/train/change.yaml"), 6, "");
  const CommandResult result = run_in(folder, script);
  CHECK(result.exit_code == 0);
  CHECK(read_bytes(folder / "err").find("--logs") == std::string::npos);
  CHECK(read_bytes(folder / "out").find("optimizer/lr: 0.01 -> 0.002") != std::string::npos);
}

TEST_CASE("a change is taken when the start that has it is recorded, for who waits for it") {
  const ScratchFolder folder;
  folder.write("c.yaml", kSmall);
  folder.write("watch.py", R"(
import ctypes, os, struct, sys
libc, moved_to = ctypes.CDLL(None), 0x80
notify = libc.inotify_init()
assert libc.inotify_add_watch(notify, sys.argv[1].encode(), moved_to) >= 0
print("ready", flush=True)
is_taken = False
while not is_taken:
    events = os.read(notify, 65536)  # several at once, where the machine is busy
    while events:
        size = struct.unpack_from("iIII", events)[3]
        name = events[16:16 + size].rstrip(b"\0").decode()
        events = events[16 + size:]
        is_taken = is_taken or name.startswith("change_")
        print(name, flush=True)
)");
  const std::string python = "'" STEPOP_SOURCE_DIR "/.venv/bin/python3' -B";
  const CommandResult result =
      run_in(folder, kBegin + "training=$!; " + python + " watch.py logs/*/configs >events & " +
                         "until_ok 'grep ready events'; " + change("optimizer: {lr: 0.002}\\n") +
                         "until_ok 'grep change_ events'; kill -TERM $training; wait");
  CHECK(result.err == "");
  const std::string events = read_bytes(folder.path("events"));
  CAPTURE(events);
  const size_t taken = events.find("\nchange_");
  REQUIRE(taken != std::string::npos);
  const std::string time = events.substr(taken + 8, 19);
  CHECK(events.find("\ntrain_" + time + ".json\n") < taken);
}

TEST_CASE("a change that cannot be is refused, and the training goes on as it was") {
  const ScratchFolder folder;
  folder.write("c.yaml", kSmall);
  const auto result = run_in(
      folder, kBegin + change("optimizer: {lrr: 0.002}\\n") +
                  "until_ok 'grep -s \"is refused\" logs/*/train/log.txt'; " +
                  change("batch_size: [\\n") +
                  "until_ok '[ $(grep -s \"is refused\" logs/*/train/log.txt | wc -l) = 2 ]'; " +
                  "kill -TERM $!; wait $!; echo $?");
  CHECK(result.out == "143\n");
  const std::string run = only_run(folder);
  const std::string log = read_bytes(folder.path(run) + "/train/log.txt");
  CHECK(log.find("train/change.yaml.refused; the training continues unchanged: ") !=
        std::string::npos);
  CHECK(log.find("unknown key \"optimizer/lrr\": did you mean \"optimizer/lr\"?") !=
        std::string::npos);
  CHECK(log.find("optimizer/lr: 0.01 -> ") == std::string::npos);
  CHECK(read_bytes(folder.path(run) + "/train/change.yaml.refused").find("\n# refused: ") !=
        std::string::npos);
}

}  // namespace live_change_test
}  // namespace stepop
