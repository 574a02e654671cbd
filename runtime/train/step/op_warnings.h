#pragma once

#include <c10/util/Exception.h>

#include <optional>
#include <string>

#include "runtime/train/iterator/context.h"

namespace stepop {

/// While it lives, what LibTorch warns of in this thread is a warning of the run, with the place
/// `<split>/<op>`, once for each text, whatever numbers are in it. In the first step, losses of two
/// tensors are looked at as well: [16, 1] and [16] make [16, 16] differences, in silence.
class OpWarnings : public c10::WarningHandler {
 public:
  OpWarnings(const Context& context, const std::string& split, const std::string& op);
  ~OpWarnings() override;
  OpWarnings(const OpWarnings&) = delete;
  OpWarnings& operator=(const OpWarnings&) = delete;

  void process(const c10::Warning& warning) override;
  void warn_of_loss(const std::string& text);

 private:
  void warn_once(const std::string& text);

  RunLog& log_;
  const std::string& split_;
  const std::string& op_;
  c10::WarningHandler* before_;
  OpWarnings* outer_;
  std::optional<uint64_t> loss_watch_;
};

}  // namespace stepop
