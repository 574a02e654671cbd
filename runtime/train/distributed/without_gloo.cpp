// Replaces the files that connect processes, in builds without c10d's Gloo.
#include "runtime/train/distributed/world.h"

#include <string>
#include <utility>

#include "runtime/train/distributed/gradient_sum.h"

namespace stepop {

class Link {};

World::World() = default;
World::~World() = default;

bool World::can_join() { return false; }

std::unique_ptr<World> World::join(const Place& place, const InterruptCheck& /*interrupt*/) {
  if (place.size == 1) return std::make_unique<World>();
  throw UsageError(
      "this build trains in one process: gloo's headers were not there when it was made (Debian: "
      "libgloo-dev); the launcher started " +
      std::to_string(place.size));
}

std::string World::describe(int /*rank*/) const { return "this process"; }
void World::set_time_limit(double /*seconds*/) {}
std::string World::use_backend(const std::string& name, c10::Device /*device*/) {
  return name == "gloo" || name == "nccl" ? "" : "expected gloo or nccl, found \"" + name + "\"";
}
bool World::stays_on(c10::Device /*device*/) const { return false; }
void World::sum(const at::Tensor& /*tensor*/) {}
void World::max(const at::Tensor& /*tensor*/) {}
void World::broadcast(const at::Tensor& /*tensor*/, int /*from*/) {}
std::vector<double> World::max(const std::vector<double>& numbers) { return numbers; }
std::string World::broadcast_text(const std::string& text) { return text; }
std::vector<std::string> World::gather_texts(const std::string& text) { return {text}; }
std::vector<std::string> World::gather_bytes_at_root(const std::string& bytes) { return {bytes}; }
std::string World::from_root(const std::function<std::string()>& work) { return work(); }
void World::wait_for_root(const std::function<void()>& work) { work(); }
void World::check_same(const std::string& /*what*/, const std::string& /*value*/) {}
void World::set_step(int64_t /*step*/) {}
void World::report_failure(const std::string& /*text*/, int /*exit_code*/) noexcept {}
bool World::is_broken() { return false; }
bool World::is_cut_off() const { return false; }
void World::finish() {}

class GradientSum::Overlapped {};

GradientSum::GradientSum(World& world, std::vector<at::Tensor> parameters)
    : world_(world), parameters_(std::move(parameters)) {}
GradientSum::~GradientSum() = default;
bool GradientSum::overlaps() const { return false; }
void GradientSum::overlap(const at::Tensor& /*loss*/, const std::function<void()>& backward,
                          Profile* /*profile*/) {
  backward();
}
void GradientSum::sum(const at::Tensor& /*beside*/) {}
void GradientSum::sum(at::TensorList /*parameters*/, const at::Tensor& /*beside*/) {}

}  // namespace stepop
