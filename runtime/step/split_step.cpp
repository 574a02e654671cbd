#include "runtime/step/split_step.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "runtime/base/error_text.h"
#include "runtime/base/number_text.h"
#include "runtime/base/short_list.h"
#include "runtime/log/log_files.h"
#include "runtime/measure/describe_tensor.h"
#include "runtime/measure/profile.h"
#include "runtime/step/random_fork.h"

namespace stepop {

IteratorRegistry& iterators() {
  static IteratorRegistry registry("iterator");
  return registry;
}

namespace {

/// For LibTorch's complaint of tensors on two devices, which names no tensor.
std::string device_hint(const std::string& text) {
  const bool is_of_devices = text.find("on the same device") != std::string::npos ||
                             text.find("not on the expected device") != std::string::npos;
  if (!is_of_devices) return {};
  return "\nbatches and networks are on the device of the run: a tensor that the iterator makes "
         "has "
         "to be made there, as in at::zeros({2}, batch[\"image\"].options()), or moved: "
         ".to(context().device)";
}

}  // namespace

void rethrow_from(const std::string& split, const std::string& op) {
  try {
    throw;
  } catch (const UsageError&) {
    throw;
  } catch (const NonFinite&) {
    throw;  // it says where, and the loop looks into it
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    const std::string place = split + "/" + op;
    std::string text = error_text(error);
    if (text.starts_with("eval_op: ")) text.erase(0, 9);  // the place says it
    text += device_hint(text);
    throw Error(text.starts_with(place) ? text : place + ": " + text,
                ours != nullptr ? ours->exit_code() : 1);
  }
}

void rethrow_with_examples(const Context& context, const std::string& split, const Batch& batch) {
  try {
    throw;
  } catch (const UsageError&) {
    throw;
  } catch (const NonFinite&) {
    throw;  // its batch is recorded
  } catch (const Error& error) {
    std::vector<std::string> indices;
    for (const int64_t index : batch.indices()) indices.push_back(std::to_string(index));
    const int64_t steps = context.position.global_step;
    const std::string when =
        steps == 0 ? "in the first step" : fmt::format("after step {}", with_thousands(steps));
    throw Error(fmt::format("{}\n{}, with the examples {} of datasets/{}", error.what(), when,
                            short_list(indices), split),
                error.exit_code());
  }
}

SplitGuard::SplitGuard(Position& position, const std::string& split)
    : position_(position), before_(position.split) {
  if (position_.split != split) position_.split = split;
}

SplitGuard::~SplitGuard() {
  if (position_.split != before_) position_.split = before_;
}

StepOps call_step_op(Iterator& iterator, const Context& context, Position& position,
                     const std::string& split, bool is_training, const Batch& batch) {
  const Span span(context.profile.get(), {split, "/step_op"});
  const SplitGuard guard(position, split);
  context.networks.set_training(is_training);
  const at::AutoGradMode gradients(is_training);
  return run_op(context, split, "step_op", [&] { return iterator.step_op(batch); });
}

Error missing_op(const Context& context, const std::string& split, const std::string& op,
                 const StepOps& ops) {
  std::string hint;
  if (op == "train_op" && !ops.train_ops.empty()) {
    for (const auto& [name, closure] : ops.train_ops) {
      hint += fmt::format("{}train/{}", hint.empty() ? "" : ", ", name);
    }
    hint = fmt::format("\n  to call those, in this order: train_ops: [{}]", hint);
  }
  return Error(fmt::format(
      "{}/{} is due, but step_op of the iterator {} did not return it for the split {}; it "
      "returned: {}{}",
      split, op, read_component(context.config, "iterator").name, split, ops.names(), hint));
}

const Logs& checked(const Logs& logs, const std::string& name) {
  for (const auto& [key, value] : logs.scalars) {
    const at::Tensor* tensor = value.tensor();
    if (tensor != nullptr && (!tensor->defined() || tensor->numel() != 1)) {
      value.read(name + "/" + key);  // throws, and says what it is
    }
  }
  check_file_name("the op", name);
  for (const auto& [key, text] : logs.texts) check_file_name("the text", key);
  for (const auto& [key, image] : logs.images) {
    check_file_name("the image", key);
    if (!image.defined() || image.dim() != 4 || (image.size(1) != 1 && image.size(1) != 3) ||
        !image.is_floating_point()) {
      throw Error(
          fmt::format("{}/{}: expected a batch of images, floats [B, C, H, W] with C = 1 "
                      "or 3, found {}",
                      name, key, image.defined() ? describe_tensor(image) : "an undefined tensor"));
    }
  }
  return logs;
}

SplitStep::SplitStep(std::string split, Iterator& iterator, const Context& context,
                     Position& position, LoaderOptions loader_options)
    : split_(std::move(split)),
      iterator_(iterator),
      context_(context),
      position_(position),
      options_(loader_options) {}

void SplitStep::begin() {
  logs_.clear();
  ops_.reset();
  batch_.reset();
}

uint64_t SplitStep::fork_seed() const {
  return mix_seed({context_.seed, seed_of(split_), static_cast<uint64_t>(position_.global_step)});
}

int64_t SplitStep::batch_size() {
  if (!batch_) {
    const Span span(context_.profile.get(), {"waiting for ", split_, " data"});
    if (!loader_) {
      loader_ = std::make_unique<Loader>(context_.splits.dataset(split_),
                                         context_.splits.order(split_), options_);
    }
    batch_ = loader_->next();
  }
  return batch_->size();
}

const StepOps& SplitStep::ops() {
  if (!ops_) {
    batch_size();
    const bool is_training = split_ == "train";
    const auto call = [&] {
      return call_step_op(iterator_, context_, position_, split_, is_training, *batch_);
    };
    std::optional<RandomFork> fork;
    if (!is_training) fork.emplace(fork_seed(), context_.device);
    ops_ = run_on(context_, split_, *batch_, call);
  }
  return *ops_;
}

Scalars SplitStep::train(const std::string& name) {
  const TrainOp* op = ops().find_train_op(name);
  if (op == nullptr) throw missing_op(context_, split_, name, ops());
  const Span span(context_.profile.get(), {split_, "/", name});
  const SplitGuard guard(position_, split_);
  return run_on(context_, split_, *batch_, [&] { return run_op(context_, split_, name, *op); });
}

const Logs& SplitStep::log(const std::string& name) {
  if (const Logs* done = logs_.find(name)) return *done;
  const LogOp* op = ops().find_log_op(name);
  if (op == nullptr) throw missing_op(context_, split_, name, ops());
  const Span span(context_.profile.get(), {split_, "/", name});
  const SplitGuard guard(position_, split_);
  const at::NoGradGuard no_grad;
  const RandomFork fork(mix_seed({fork_seed(), seed_of(name)}), context_.device);
  const Logs logs =
      run_on(context_, split_, *batch_, [&] { return run_op(context_, split_, name, *op); });
  return logs_.set(name, checked(logs, split_ + "/" + name));
}

}  // namespace stepop
