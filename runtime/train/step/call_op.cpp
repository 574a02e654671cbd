#include "runtime/train/step/call_op.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/interrupt.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/log/log_files.h"
#include "runtime/core/measure/profile.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_grid.h"
#include "runtime/train/distributed/world.h"
#include "runtime/train/networks/network.h"
#include "runtime/train/optim/non_finite.h"
#include "runtime/train/step/batch_mistakes.h"
#include "runtime/train/step/out_of_memory.h"

namespace stepop {
namespace {

/// Explains an error of LibTorch about tensors on two devices, which names no tensor.
std::string device_hint(const std::string& text) {
  const bool is_of_devices = text.find("on the same device") != std::string::npos ||
                             text.find("not on the expected device") != std::string::npos;
  if (!is_of_devices) return {};
  return "\nbatches and networks are on the device of the run: a tensor that the iterator makes "
         "has "
         "to be made there, as in at::zeros({2}, batch[\"image\"].options()), or moved: "
         ".to(context().device)";
}

/// Explains an error about a layer that was declared and never made. LibTorch does not know its
/// name.
std::string empty_layer_hint(const std::string& text) {
  if (text.find("Accessing empty ModuleHolder") == std::string::npos) return {};
  return fmt::format(
      "\na layer was declared, as in torch::nn::Linear layer_{{nullptr}}, and never made: {} in "
      "the constructor",
      kRegisterModule);
}

}  // namespace

void rethrow_from(const std::string& split, const std::string& op) {
  try {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (const UsageError&) {
    throw;
  } catch (const PeerError&) {
    throw;  // the error arose in another process
  } catch (const NonFinite&) {
    throw;  // the error says where, and the loop looks into it
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    const std::string place = split + "/" + op;
    std::string text = error_text(error);
    if (text.starts_with("eval_op: ")) text.erase(0, 9);  // the place below already says so
    text += device_hint(text) + empty_layer_hint(text);
    throw Error(text.starts_with(place) ? text : place + ": " + text,
                ours != nullptr ? ours->exit_code() : 1);
  } catch (...) {
    throw Error(fmt::format("{}/{}: {}", split, op, text_of_current_exception()));
  }
}

void rethrow_with_examples(const Context& context, const std::string& split, const Batch& batch) {
  try {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (const UsageError&) {
    throw;
  } catch (const PeerError&) {
    throw;  // the error arose in another process
  } catch (const NonFinite&) {
    throw;  // the loop records the batch
  } catch (const Error& error) {
    std::vector<std::string> indices;
    for (const int64_t index : batch.indices()) indices.push_back(std::to_string(index));
    const int64_t steps = context.position.global_step;
    const std::string when =
        steps == 0 ? "in the first step" : fmt::format("after step {}", with_thousands(steps));
    throw Error(fmt::format("{}{}\n{}, with the examples {} of datasets/{}{}", error.what(),
                            batch_mistake_text(error.what(), context.networks, split, batch), when,
                            list_text(indices), split,
                            out_of_memory_text(error.what(), context, split, batch)),
                error.exit_code());
  }
}

SplitGuard::SplitGuard(Position& position, const std::string& split, double share)
    : position_(position),
      before_(position.split),
      share_before_(std::exchange(position.share, share)) {
  if (position_.split != split) position_.split = split;
}

SplitGuard::~SplitGuard() {
  if (position_.split != before_) position_.split = before_;
  position_.share = share_before_;
}

StepOps call_step_op(Iterator& iterator, const Context& context, Position& position,
                     const std::string& split, bool is_training, const Batch& batch) {
  const Span span(context.profile.get(), {split, "/step_op"});
  const SplitGuard guard(position, split);
  context.networks.set_training(is_training);
  const at::AutoGradMode gradients(is_training);
  return run_op(context, split, "step_op", [&] { return iterator.step_op(batch); });
}

namespace {

std::string described(const at::Tensor& tensor) {
  return tensor.defined() ? describe_tensor(tensor) : "an undefined tensor";
}

bool is_real(const at::Tensor& tensor) { return tensor.defined() && !tensor.is_complex(); }

/// Checks the pictures of a log; two pictures with one name would be one file.
void check_pictures(const Logs& logs, const std::string& name) {
  std::set<std::string> names;
  const auto check_name = [&](const char* what, const std::string& key) {
    check_file_name(what, key);
    if (names.insert(key).second) return;
    throw Error(fmt::format(
        "{}/{}: two of images, videos, audio, histograms and curves have this name", name, key));
  };
  for (const auto& [key, image] : logs.images) {
    check_name("the image", key);
    if (!is_image_batch(image)) {
      throw Error(fmt::format(
          "{}/{}: expected a batch of images, floats [B, C, H, W], found {}{}", name, key,
          described(image),
          image.defined() && image.dim() == 4 && image.is_floating_point() && image.numel() > 0
              ? "; .permute({0, 3, 1, 2}) moves channels from the last dimension there"
              : ""));
    }
  }
  for (const auto& [key, video] : logs.videos) {
    check_name("the video", key);
    check_video(video, fmt::format("{}/{}", name, key));
  }
  for (const auto& [key, audio] : logs.audio) {
    check_name("the sound", key);
    check_audio(audio, fmt::format("{}/{}", name, key));
  }
  for (const auto& [key, numbers] : logs.histograms) {
    check_name("the histogram", key);
    if (is_real(numbers)) continue;
    throw Error(fmt::format("{}/{}: expected a real tensor for a histogram, found {}", name, key,
                            described(numbers)));
  }
  for (const auto& [key, curve] : logs.curves) {
    check_name("the curve", key);
    check_curve(curve, name + "/" + key);
  }
}

}  // namespace

const Logs& checked(const Logs& logs, const std::string& name) {
  for (const auto& [key, value] : logs.scalars) {
    const at::Tensor* tensor = value.tensor();
    if (tensor != nullptr && (!tensor->defined() || tensor->numel() != 1)) {
      value.read(name + "/" + key);  // throws an error that describes the value
    }
  }
  check_file_name("the op", name);
  for (const auto& [key, text] : logs.texts) check_file_name("the text", key);
  check_pictures(logs, name);
  return logs;
}

}  // namespace stepop
