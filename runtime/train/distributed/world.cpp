#include "runtime/train/distributed/world.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/train/distributed/device_backend.h"
#include "runtime/train/distributed/link.h"
#include "runtime/train/distributed/meeting.h"

namespace stepop {
namespace {

std::atomic<bool> has_broken = false;

/// The bytes of a text as a tensor [n], which shares their memory.
at::Tensor tensor_of(const std::string& text) {
  return at::from_blob(const_cast<char*>(text.data()), {static_cast<int64_t>(text.size())},
                       at::TensorOptions(at::kByte));
}

std::string text_of(const at::Tensor& bytes, int64_t size) {
  return {reinterpret_cast<const char*>(bytes.const_data_ptr<uint8_t>()),
          static_cast<size_t>(size)};
}

constexpr char kDone = '0';
constexpr char kInterrupted = '1';

}  // namespace

World::World() = default;

World::World(const Place& place, std::unique_ptr<Link> link)
    : place_(place), link_(std::move(link)) {}

World::~World() {
  // Threads of c10d wait for processes that no longer answer; nothing can end these threads.
  if (is_broken()) link_.release();
}

bool World::can_join() { return true; }

std::unique_ptr<World> World::join(const Place& place, const InterruptCheck& interrupt) {
  if (place.size == 1) return std::make_unique<World>();
  return std::unique_ptr<World>(new World(place, std::make_unique<Link>(place, interrupt)));
}

std::string World::describe(int rank) const {
  return link_ ? link_->names().at(static_cast<size_t>(rank)) : "this process";
}

void World::set_time_limit(double seconds) {
  if (link_) link_->set_time_limit(seconds);
}

void World::set_step(int64_t step) {
  if (link_) link_->set_step(step);
}

bool World::stays_on(c10::Device device) const { return link_ && link_->stays_on(device); }

std::string World::use_backend(const std::string& name, c10::Device device) {
  if (name == "gloo" || (name == "nccl" && is_alone())) return {};
  if (name == "nccl") {
    if (std::string missing = load_nccl(); !missing.empty()) return missing;
  }
  const auto found = device_backends().find(name);
  if (found == device_backends().end()) {
    return fmt::format("expected gloo or nccl, found \"{}\"", name);
  }
  if (is_alone()) return {};
  if (device.type() != found->second.device) {
    return fmt::format("{} carries tensors of {}, and the device is {}; use gloo", name,
                       c10::DeviceTypeName(found->second.device, /*lower_case=*/true),
                       device.str());
  }
  if (stays_on(device)) return {};  // since an earlier start in this process
  const std::vector<std::string> devices =
      gather_texts(fmt::format("{} {}", own_host(), found->second.identity(device)));
  for (int rank = 1; rank < size(); ++rank) {
    const auto here = devices.begin() + rank;
    const auto same = std::find(devices.begin(), here, *here);
    if (same == here) continue;
    return fmt::format(
        "{} needs a device for each process, and {} and {} have the same; start as many processes "
        "as there are devices, or use gloo",
        name, describe(static_cast<int>(same - devices.begin())), describe(rank));
  }
  link_->connect_devices(name, device);
  return {};
}

/// Gloo's messages lie in the host's memory: a tensor of a device goes there and comes back, unless
/// the devices are connected. `is_read`: what the tensor holds is part of the message.
void World::exchange(const at::Tensor& tensor, bool is_read, const Start& start) {
  const at::NoGradGuard no_grad;
  if (link_->stays_on(tensor)) {
    std::vector<at::Tensor> tensors{tensor.detach()};
    return link_->wait_on_device(start(tensors));
  }
  std::vector<at::Tensor> tensors{tensor.is_cpu() ? tensor
                                  : is_read
                                      ? tensor.cpu()
                                      : at::empty_like(tensor, tensor.options().device(at::kCPU))};
  link_->wait(start(tensors));
  if (!tensor.is_cpu()) tensor.detach().copy_(tensors[0]);
}

void World::sum(const at::Tensor& tensor) {
  if (!link_) return;
  exchange(tensor, /*is_read=*/true,
           [this](std::vector<at::Tensor>& tensors) { return link_->group()->allreduce(tensors); });
}

void World::max(const at::Tensor& tensor) {
  if (!link_) return;
  exchange(tensor, /*is_read=*/true, [this](std::vector<at::Tensor>& tensors) {
    c10d::AllreduceOptions options;
    options.reduceOp = c10d::ReduceOp::MAX;
    return link_->group()->allreduce(tensors, options);
  });
}

void World::broadcast(const at::Tensor& tensor, int from) {
  if (!link_ || tensor.numel() == 0) return;
  exchange(tensor, /*is_read=*/rank() == from, [&](std::vector<at::Tensor>& tensors) {
    c10d::BroadcastOptions options;
    options.rootRank = from;
    return link_->group()->broadcast(tensors, options);
  });
}

std::vector<double> World::max(const std::vector<double>& numbers) {
  std::vector<double> largest = numbers;
  if (!link_) return largest;
  // For so few bytes, gathering takes half as many messages as a sum or a maximum.
  const auto count = static_cast<int64_t>(numbers.size());
  at::Tensor own = at::from_blob(largest.data(), {count}, at::TensorOptions(at::kDouble)).clone();
  const at::Tensor all = at::empty({size(), count}, own.options());
  std::vector<std::vector<at::Tensor>> outputs{all.unbind()};
  std::vector<at::Tensor> inputs{own};
  link_->wait(link_->group()->allgather(outputs, inputs));
  const auto* number = all.const_data_ptr<double>();
  for (int64_t i = 0; i < all.numel(); ++i) {
    double& most = largest[static_cast<size_t>(i % count)];
    most = std::max(most, number[i]);
  }
  return largest;
}

std::string World::broadcast_text(const std::string& text) {
  if (!link_) return text;
  int64_t size = static_cast<int64_t>(text.size());
  broadcast(at::from_blob(&size, {1}, at::TensorOptions(at::kLong)));
  if (is_root()) {
    broadcast(tensor_of(text));
    return text;
  }
  const at::Tensor bytes = at::empty({size}, at::TensorOptions(at::kByte));
  broadcast(bytes);
  return text_of(bytes, size);
}

namespace {

/// Pads the text to `size` bytes, because all processes must contribute the same number of bytes.
at::Tensor padded(const std::string& text, int64_t size) {
  at::Tensor bytes = at::empty({size}, at::TensorOptions(at::kByte));
  if (!text.empty()) std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  return bytes;
}

std::vector<int64_t> gather_sizes(Link& link, int world_size, size_t own) {
  int64_t size = static_cast<int64_t>(own);
  std::vector<int64_t> sizes(static_cast<size_t>(world_size));
  std::vector<at::Tensor> input{at::from_blob(&size, {1}, at::TensorOptions(at::kLong))};
  std::vector<std::vector<at::Tensor>> output(1);
  for (int64_t& each : sizes) {
    output[0].push_back(at::from_blob(&each, {1}, at::TensorOptions(at::kLong)));
  }
  link.wait(link.group()->allgather(output, input));
  return sizes;
}

std::vector<std::string> texts_of(const std::vector<at::Tensor>& tensors,
                                  const std::vector<int64_t>& sizes) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < tensors.size(); ++i) texts.push_back(text_of(tensors[i], sizes[i]));
  return texts;
}

}  // namespace

std::vector<std::string> World::gather_texts(const std::string& text) {
  if (!link_) return {text};
  const std::vector<int64_t> sizes = gather_sizes(*link_, size(), text.size());
  const int64_t most = std::max<int64_t>(1, *std::max_element(sizes.begin(), sizes.end()));
  std::vector<at::Tensor> input{padded(text, most)};
  std::vector<std::vector<at::Tensor>> output(1);
  for (int i = 0; i < size(); ++i) output[0].push_back(at::empty_like(input[0]));
  link_->wait(link_->group()->allgather(output, input));
  return texts_of(output[0], sizes);
}

std::vector<std::string> World::gather_bytes_at_root(const std::string& bytes) {
  if (!link_) return {bytes};
  const std::vector<int64_t> sizes = gather_sizes(*link_, size(), bytes.size());
  const int64_t most = std::max<int64_t>(1, *std::max_element(sizes.begin(), sizes.end()));
  std::vector<at::Tensor> input{padded(bytes, most)};
  std::vector<std::vector<at::Tensor>> output;
  if (is_root()) {
    output.emplace_back();
    for (int i = 0; i < size(); ++i) output[0].push_back(at::empty_like(input[0]));
  }
  link_->wait(link_->group()->gather(output, input));
  return is_root() ? texts_of(output[0], sizes) : std::vector<std::string>();
}

std::string World::from_root(const std::function<std::string()>& work) {
  if (!link_) return work();
  const std::string key = fmt::format("root/{}", link_->next_number());
  if (is_root()) {
    std::string result;
    try {
      result = work();
    } catch (const Interrupted& error) {
      link_->set(key, fmt::format("{}{} {}", kInterrupted, error.exit_code(), error.what()));
      throw;
    }
    link_->set(key, kDone + result);
    return result;
  }
  const std::string answer = link_->wait_for(key);
  if (answer.at(0) == kDone) return answer.substr(1);
  const size_t space = answer.find(' ');
  throw Interrupted(answer.substr(space + 1), std::atoi(answer.c_str() + 1));
}

void World::wait_for_root(const std::function<void()>& work) {
  from_root([&] {
    work();
    return std::string();
  });
}

void World::check_same(const std::string& what, const std::string& value) {
  if (!link_) return;
  const std::vector<std::string> values = gather_texts(value);
  for (int rank = 1; rank < size(); ++rank) {
    const std::string& other = values[static_cast<size_t>(rank)];
    if (other == values[0]) continue;
    throw UsageError(fmt::format("{} is not the same in all processes\n  {}: {}\n  {}: {}", what,
                                 describe(0), values[0], describe(rank), other));
  }
}

void World::report_failure(const std::string& text, int exit_code) noexcept {
  if (!link_) return;
  has_broken = true;
  link_->report({.rank = rank(), .exit_code = exit_code, .text = text});
  link_->leave();
}

bool World::is_broken() { return has_broken; }

bool World::is_cut_off() const { return link_ && link_->is_cut_off(); }

void World::finish() {
  if (link_) link_->finish();
}

}  // namespace stepop
