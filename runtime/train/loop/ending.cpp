#include "runtime/train/loop/ending.h"

#include <fmt/format.h>

#include "runtime/core/base/number_text.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/train/optim/non_finite.h"
#include "runtime/train/when/logged_metric.h"

namespace stepop {

std::string end_of(StopReason::Kind kind) {
  using Kind = StopReason::Kind;
  if (kind == Kind::kChange) return "changed";
  const bool is_to_resume = kind == Kind::kTime || kind == Kind::kStep || kind == Kind::kSignal;
  return is_to_resume ? "stopped" : "done";
}

std::string saved_text(int64_t step) {
  return fmt::format("\nthe state after step {} was saved", with_thousands(step));
}

std::exception_ptr ending_error(const std::string& saved, const NonFiniteRecorder& non_finite,
                                const RunDirectory& directory, const Batch* batch) {
  try {
    throw;
  } catch (const NonFinite& error) {
    return std::make_exception_ptr(non_finite.record(error, batch));
  } catch (const NonFiniteWeights& error) {
    return std::make_exception_ptr(non_finite.with_what_next(error.what()));
  } catch (const UnknownMetric& error) {
    return std::make_exception_ptr(ErrorWithCommand(
        fmt::format("{}\nwhat was saved is whole; resume with the right name:  {} {}", error.what(),
                    resume_command(directory.root()), error.argument()),
        error.exit_code()));
  } catch (const std::exception& error) {
    if (saved.empty()) return std::current_exception();
    const auto* ours = dynamic_cast<const Error*>(&error);
    return std::make_exception_ptr(
        Error(error_text(error) + saved, ours != nullptr ? ours->exit_code() : 1));
  } catch (...) {
    return std::make_exception_ptr(Error(text_of_current_exception()));
  }
}

}  // namespace stepop
