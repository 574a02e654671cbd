#pragma once

#include <string>
#include <vector>

#include "runtime/core/base/interrupt.h"

namespace stepop {

/// The compiler's errors in a user's source: its own text, which should be shown unchanged.
class CompileError : public Error {
 public:
  using Error::Error;
};

/// Runs the compiler that stepop was built with, or $STEPOP_CXX.
class Compiler {
 public:
  explicit Compiler(InterruptCheck interrupt);

  /// The compiler's path and the version that it prints. Throws Error when it is missing.
  const std::string& identity() const { return identity_; }

  /// Compiles `source` to the object file `object`, and returns the included headers, except
  /// headers of the system, LibTorch and stepop. `text` gets the compiler's warnings. Throws
  /// CompileError with the compiler's own message.
  std::vector<std::string> compile(const std::string& source, const std::string& object,
                                   const std::vector<std::string>& flags, std::string& text) const;

  /// Links object files to the shared library `library`. Throws CompileError.
  void link(const std::vector<std::string>& objects, const std::string& library,
            const std::vector<std::string>& flags) const;

  /// Precompiles `header` to `precompiled`. Throws CompileError.
  void precompile(const std::string& header, const std::string& precompiled) const;

  /// Whether the compiler makes and uses precompiled headers like GCC.
  bool is_gcc() const { return is_gcc_; }

 private:
  void run(std::vector<std::string> words, std::string& text) const;

  InterruptCheck interrupt_;
  std::string identity_;
  bool is_gcc_ = false;
};

}  // namespace stepop
