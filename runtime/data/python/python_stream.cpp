#include "runtime/data/python/python_stream.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "runtime/core/base/json_text.h"
#include "runtime/core/base/random.h"
#include "runtime/data/python/python_answer.h"
#include "runtime/data/views/cache/example_bytes.h"

namespace stepop {
namespace {

constexpr const char* kExample = "example";

}  // namespace

void PythonStream::begin(const StreamPass& pass) {
  pass_ = pass;
  place_ = "null";
  is_moved_ = true;
  state_ = "null";
  number_ = given_ = early_ = 0;
  is_end_ = false;
  ahead_.clear();
}

std::optional<Record> PythonStream::next(const InterruptCheck& interrupt) {
  if (ahead_.empty() && !is_end_) receive(interrupt);
  if (ahead_.empty()) return std::nullopt;
  Record record{.name = fmt::format("example {}", number_ + given_), .parts = {}};
  record.parts.set(kExample, std::move(ahead_.front()));
  ahead_.pop_front();
  ++given_;
  return record;
}

void PythonStream::receive(const InterruptCheck& interrupt) {
  if (!worker_ || !worker_->is_usable()) {
    worker_.reset();
    worker_ = std::make_unique<PythonWorker>(*server_, timeout_, interrupt);
  }
  const uint64_t seed = mix_seed({pass_.seed, static_cast<uint64_t>(pass_.number)});
  const std::string request =
      is_moved_ ? fmt::format(R"({{"pass":{},"seed":{},"place":{}}})", pass_.number, seed, place_)
                : "{}";
  // After a failure or an interruption, the next request returns to this place.
  place_ = save();
  is_moved_ = true;
  std::string bytes;
  try {
    bytes = worker_->ask(request, interrupt);
  } catch (const PythonError& error) {
    worker_.reset();  // its dataset has stopped in the middle of a pass
    throw Error(fmt::format("example {}: {}", error.index(), error.what()));
  }
  PythonAnswer answer(bytes);
  if (answer.text(1) != "R") throw Error("Python sent an answer of an unknown kind");
  const auto number = answer.number<int64_t>();
  const auto early = answer.number<uint32_t>();
  const auto state = answer.text(answer.number<uint32_t>());
  if (number < 0 || early > 1 || try_read_json(state).is_discarded()) {
    throw Error("Python sent a place in the dataset that cannot be read");
  }
  number_ = number - early;
  early_ = early;
  given_ = 0;
  state_ = state;
  is_end_ = answer.number<uint32_t>() != 0;
  const auto count = answer.number<uint32_t>();
  for (uint32_t i = 0; i < count; ++i) ahead_.emplace_back(answer.text(answer.number<uint32_t>()));
  is_moved_ = false;
}

std::string PythonStream::save() const {
  if (is_moved_ || given_ < early_) return place_;
  return fmt::format(R"({{"state":{},"number":{},"after":{}}})", state_, number_ + early_,
                     given_ - early_);
}

void PythonStream::load(const std::string& state, const InterruptCheck& interrupt) {
  const auto json = try_read_json(state);
  if (json.is_null()) return;  // the beginning
  const bool is_place = json.is_object() && json.contains("state") && json.contains("number") &&
                        json["number"].is_number_integer() && json.contains("after") &&
                        json["after"].is_number_integer();
  if (!is_place) throw Error("the checkpoint's place in the dataset cannot be read: " + state);
  if (json["number"] == 0 && json["after"] == 0) return;  // the beginning
  place_ = state;
  is_moved_ = true;
  ahead_.clear();
  receive(interrupt);
}

Example PythonStream::decode(const Record& record, Random& /*random*/) const {
  const std::string& bytes = *record.parts.find(kExample);
  at::Tensor memory = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
  std::memcpy(memory.mutable_data_ptr(), bytes.data(), bytes.size());
  if (auto example = example_in(memory, 0)) {
    classes_.apply(example->tensors);
    return std::move(*example);
  }
  throw Error("Python sent an example that cannot be read");
}

std::optional<int64_t> PythonStream::count(const InterruptCheck& /*interrupt*/) {
  if (server_->facts().size < 0) return std::nullopt;
  return server_->facts().size;
}

}  // namespace stepop
