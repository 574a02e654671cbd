#include "runtime/train/run/thread_wait.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/train/run/device.h"
#include "tests/message_of.h"

namespace stepop {
namespace thread_wait_test {

Config config_of(const std::string& yaml) { return Config(parse_yaml(yaml, {"a.yaml", 0})); }

/// Puts two variables back.
class Environment {
 public:
  Environment() {
    for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) {
      const char* value = std::getenv(name);
      before_[name] = value != nullptr ? std::optional<std::string>(value) : std::nullopt;
    }
  }
  ~Environment() {
    for (const auto& [name, value] : before_) set(name, value);
  }
  static void set(const std::string& name, const std::optional<std::string>& value) {
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_CASE("each way to wait is known by the variables that ask for it") {
  const Environment environment;
  for (const std::string name : kThreadWaits) {
    CAPTURE(name);
    set_variables(variables_of_thread_wait(name));
    CHECK(own_thread_wait() == name);
    set_default_thread_wait();
    CHECK(own_thread_wait() == name);
  }
  Environment::set("OMP_WAIT_POLICY", std::nullopt);
  Environment::set("GOMP_SPINCOUNT", "77");
  CHECK(own_thread_wait().empty());
  set_default_thread_wait();
  CHECK(std::getenv("GOMP_SPINCOUNT") == std::string("77"));
}

TEST_CASE("without variables the way to wait is auto, with those for its crowds from then on") {
  const Environment environment;
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) Environment::set(name, {});
  CHECK(own_thread_wait() == "auto");
  set_default_thread_wait();
  CHECK(own_thread_wait() == "auto");
  CHECK(std::getenv("OMP_WAIT_POLICY") == std::string("active"));
  CHECK(std::getenv("GOMP_SPINCOUNT") == std::string("300000"));
}

TEST_CASE("another word for how threads wait is refused with its place") {
  CHECK(read_thread_wait(config_of("a: 1")).empty());
  CHECK(read_thread_wait(config_of("thread_wait: spin")) == "spin");
  CHECK(message_of([] { read_thread_wait(config_of("thread_wait: busy")); }) ==
        "a.yaml:1: thread_wait: expected auto, sleep, brief or spin, found \"busy\"");
}

TEST_CASE("denormals count as 0 in every thread once they are flushed, and not before") {
  // Half of the smallest normal number: 2^-127.
  const auto halves = [] {
    const at::Tensor smallest = at::full({1'000'000}, 1.17549435e-38F);
    return smallest * 0.5F;
  };
  const int threads = at::get_num_threads();
  apply_backend_settings(config_of("num_threads: 2\nflush_denormals: true"));
  const at::Tensor flushed = halves();
  apply_backend_settings(config_of("num_threads: 2\nflush_denormals: false"));
  const at::Tensor kept = halves();
  at::set_num_threads(threads);
  CHECK((flushed == 0).all().item<bool>());
  CHECK((kept > 0).all().item<bool>());
}

TEST_CASE("the number of processes must be one") {
  CHECK(message_of([] { apply_backend_settings(config_of("processes: 0")); }) ==
        "a.yaml:1: processes: expected 1 or more, found 0");
}

}  // namespace thread_wait_test
}  // namespace stepop
