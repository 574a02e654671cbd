// --profile: the real binary shows where the time of a training went.

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/cli/digits_run.h"
#include "tests/python.h"
#include "tests/same_state.h"

namespace stepop {
namespace cli_profile_test {

TEST_CASE("--profile ends with a table whose shares add up, and a trace of all threads") {
  const ScratchFolder folder;
  const CommandResult result =
      run_well(folder, "stepop -n a -b CONFIG -t --num_steps 46 --profile --n_data_processes 1");
  const std::string run = only_run(folder);
  const size_t table = result.out.find("where the time of 46 steps went:\n");
  REQUIRE(table != std::string::npos);
  CHECK(run_python(R"(
import glob, json, re, sys
out, run = sys.argv[1:]
rows = {}
for line in out.split('went:\n')[1].splitlines()[1:]:
    found = re.match(r'(.*?) +([0-9.]+) %  ', line)
    if not found: break
    rows[found[1]] = float(found[2])
top = {name: share for name, share in rows.items() if not name.startswith(' ')}
print(abs(sum(top.values()) - 100) < 0.7)
wanted = ['waiting for train data', 'train/step_op', 'train/train_op', 'logging', 'checkpoint',
          'evaluation', 'hooks', 'the rest']
print([name for name in wanted if name not in top])
print([name for name in ['  backward', '  update'] if name not in rows])

[path] = glob.glob(run + '/train/profile_*.json')
print('ui.perfetto.dev: logs/' + path.split('/logs/')[-1] in out)
events = json.load(open(path))['traceEvents']
threads = {e['tid']: e['args']['name'] for e in events if e['ph'] == 'M'}
print(sorted(set(threads.values()) & {'training loop', 'checkpoint writer'}))
spans = [e for e in events if e['ph'] == 'X']
steps = [e['args']['step'] for e in spans if e['name'] == 'train/train_op']
print(steps == list(range(46)))
loop = sorted((e for e in spans if e['tid'] == 0), key=lambda e: (e['ts'], -e['dur']))
open_ends = []
for e in loop:  # each lies within the one around it
    end = e['ts'] + e['dur']
    while open_ends and open_ends[-1] <= e['ts'] + 0.002: open_ends.pop()
    assert not open_ends or end <= open_ends[-1] + 0.002, e
    open_ends.append(end)
)",
                   {result.out, folder.path(run)}) ==
        "True\n[]\n[]\nTrue\n['checkpoint writer', 'training loop']\nTrue\n");
}

TEST_CASE("a training with --profile has the same weights as one without") {
  CHECK(differences(trained("--profile"), trained("")) == "");
}

TEST_CASE("--profile is for trainings") {
  const ScratchFolder folder;
  const std::string start = std::string("stepop -b ") + kConfig;
  const CommandResult evaluation = run_in(folder, start + " --profile");
  CHECK(evaluation.err ==
        "stepop: --profile shows where the time of a training goes: it needs -t\n");
  CHECK(evaluation.exit_code == 2);
  const CommandResult both = run_in(folder, start + " -t --check --profile");
  CHECK(both.err ==
        "stepop: --check ends before a training that --profile could measure: give one of them\n");
  CHECK(both.exit_code == 2);
}

}  // namespace cli_profile_test
}  // namespace stepop
