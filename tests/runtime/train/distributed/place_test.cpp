#include "runtime/train/distributed/place.h"

#include <doctest/doctest.h>

#include <map>

#include "runtime/core/base/error.h"
#include "tests/message_of.h"

namespace stepop {
namespace place_test {

using Variables = std::map<std::string, std::string>;

Place place_in(const Variables& variables) {
  return read_place([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string message_in(const Variables& variables) {
  return message_of([&] { place_in(variables); });
}

/// `rank/size local_rank/local_size host:port launcher`
std::string text_of(const Place& place) {
  return fmt::format("{}/{} {}/{} {}:{} {}", place.rank, place.size, place.local_rank,
                     place.local_size, place.host, place.port, place.launcher);
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "node0"},
                             {"MASTER_PORT", "12345"}};
const Variables kSlurm = {{"SLURM_PROCID", "5"},
                          {"SLURM_STEP_NUM_TASKS", "8"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_STEP_NODELIST", "node[03-04]"},
                          {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                          {"SLURM_JOB_ID", "4012345"}};

TEST_CASE("without a launcher's variables a process is alone") {
  CHECK(text_of(place_in({})) == "0/1 0/1 127.0.0.1:29500 ");
  // A rank without a number of processes, or the other way round, is of something else.
  CHECK(place_in({{"RANK", "3"}}).size == 1);
  CHECK(place_in({{"WORLD_SIZE", "3"}}).size == 1);
}

TEST_CASE("a batch script of Slurm without srun is one process, whatever its job has") {
  CHECK(place_in({{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).size == 1);
}

TEST_CASE("the place of a process is that of torchrun's variables") {
  const Place place = place_in(kTorchrun);
  CHECK(text_of(place) == "5/8 1/4 node0:12345 torchrun");
  CHECK_FALSE(place.has_store);
  CHECK(place.attempt == "");
}

TEST_CASE("torchrun's own store is used, and its restarts are kept apart") {
  const Place place = place_in(with(
      kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RESTART_COUNT", "2"}}));
  CHECK(place.has_store);
  CHECK(place.attempt == "2");
  CHECK_FALSE(place_in(with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).has_store);
}

TEST_CASE("the place of a process is that of Slurm's step") {
  CHECK(text_of(place_in(kSlurm)) == "5/8 1/4 node03:22345 Slurm");
  // Tasks of unequal machines.
  CHECK(place_in(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "5,3"}})).local_size == 5);
  CHECK(place_in(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "strange"}})).local_size == 1);
}

TEST_CASE("MASTER_ADDR and MASTER_PORT win over what Slurm says") {
  const Place place =
      place_in(with(kSlurm, {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "4711"}}));
  CHECK(place.host == "10.0.0.1");
  CHECK(place.port == 4711);
  CHECK(place_in(with(kSlurm, {{"MASTER_ADDR", ""}})).host == "node03");
}

TEST_CASE("two jobs of Slurm that follow each other have different ports") {
  const int first = place_in(with(kSlurm, {{"SLURM_JOB_ID", "19999"}})).port;
  const int second = place_in(with(kSlurm, {{"SLURM_JOB_ID", "20000"}})).port;
  CHECK(first == 29999);
  CHECK(second == 20000);
}

TEST_CASE("the place of a process is that of Open MPI's or MPICH's launcher") {
  CHECK(text_of(place_in({{"OMPI_COMM_WORLD_RANK", "2"},
                          {"OMPI_COMM_WORLD_SIZE", "3"},
                          {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                          {"MASTER_ADDR", "big"}})) == "2/3 0/1 big:29500 Open MPI");
  CHECK(text_of(place_in({{"PMI_RANK", "1"},
                          {"PMI_SIZE", "2"},
                          {"MPI_LOCALRANKID", "1"},
                          {"MPI_LOCALNRANKS", "2"}})) == "1/2 1/2 127.0.0.1:29500 MPICH");
}

TEST_CASE("torchrun or mpirun within a job of Slurm counts, not the job") {
  CHECK(place_in(with(kSlurm, kTorchrun)).launcher == "torchrun");
  const Place place =
      place_in(with(kSlurm, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}));
  CHECK(place.launcher == "Open MPI");
  CHECK(place.size == 2);
  CHECK(place.host == "127.0.0.1");
}

TEST_CASE("a process that --processes started says so") {
  CHECK(place_in(with(kTorchrun, {{"STEPOP_PROCESSES", "8"}})).launcher == "--processes");
}

TEST_CASE("a variable that is no number, or cannot be, is named") {
  CHECK(message_in(with(kTorchrun, {{"RANK", "8"}})) ==
        "the environment variable RANK is \"8\": expected a number from 0 to 7, as the launcher of "
        "several processes sets it; to train in one process, unset it");
  for (const char* wrong : {"", "-1", "x", "3 ", " 3", "1e3", "99999999999999999999", "0x1"}) {
    CAPTURE(wrong);
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) {
      CHECK(message_in(with(kTorchrun, {{name, wrong}}))
                .starts_with(fmt::format("the environment variable {} is \"{}\": expected a "
                                         "number from ",
                                         name, wrong)));
    }
  }
  CHECK_THROWS_AS(place_in(with(kTorchrun, {{"WORLD_SIZE", "0"}})), UsageError);
  CHECK_THROWS_AS(place_in(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}})), UsageError);
  for (const char* port : {"0", "65536", "http"}) {
    CHECK_THROWS_AS(place_in(with(kTorchrun, {{"MASTER_PORT", port}})), UsageError);
  }
  CHECK_THROWS_AS(place_in(with(kSlurm, {{"SLURM_JOB_ID", "seven"}})), UsageError);
}

TEST_CASE("the first host of a list is found as Slurm writes it") {
  const std::map<std::string, std::string> lists = {
      {"node1", "node1"},
      {"node1,node2", "node1"},
      {"node[03-07,12],other", "node03"},
      {"node[3,5]", "node3"},
      {"node[12]", "node12"},
      {"other,node[1-2]", "other"},
      {"rack[1-2]-node", "rack1-node"},
      {"rack[1-2]-node,rack[7-8]-big", "rack1-node"},
      {"rack[1-2]node[05-09]", "rack1node05"},
      {"a-b.example.org", "a-b.example.org"},
      {"", ""},
  };
  for (const auto& [list, first] : lists) {
    CAPTURE(list);
    CHECK(first_host(list) == first);
  }
}

}  // namespace place_test
}  // namespace stepop
