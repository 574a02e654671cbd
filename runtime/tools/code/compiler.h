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

/// How much a compiler optimizes a user's sources.
enum class Optimization {
  kFull,   ///< -O1: LibTorch does the work, so higher levels cost time and gain nothing.
  kQuick,  ///< -O0 where that is quicker, which it is with Clang.
};

/// The compiler for a user's sources: $STEPOP_CXX; else the newest Clang of `clang++-16` and up on
/// $PATH, which takes half the time of GCC; else GCC, which also compiles what `flags` compile with
/// OpenMP, as Clang's OpenMP is another library.
std::string compiler_for(const std::vector<std::string>& flags);

/// A compiler of a user's sources.
class Compiler {
 public:
  /// Throws Error when `path`, of `compiler_for`, is missing.
  Compiler(std::string path, InterruptCheck interrupt);

  /// The compiler's path and the version that it prints.
  const std::string& identity() const { return identity_; }
  /// The end of its errors: how to take GCC; empty for GCC, and for $STEPOP_CXX.
  const std::string& note() const { return note_; }

  /// Compiles `source` to the object file `object`, and returns the included headers, except
  /// headers of the system, LibTorch and stepop. `text` gets the compiler's warnings. Throws
  /// CompileError with the compiler's own message.
  std::vector<std::string> compile(const std::string& source, const std::string& object,
                                   const std::vector<std::string>& flags, Optimization optimization,
                                   std::string& text) const;

  /// Links object files to the shared library `library`. Throws CompileError.
  void link(const std::vector<std::string>& objects, const std::string& library,
            const std::vector<std::string>& flags) const;

  /// Precompiles `header` to `precompiled`. Throws CompileError.
  void precompile(const std::string& header, const std::string& precompiled) const;
  /// The end of the name of a precompiled header; empty for a compiler that is neither GCC nor
  /// Clang, whose precompiled headers are not used.
  const char* precompiled_extension() const;
  /// The flags that make a source begin with the precompiled `header`.
  std::vector<std::string> flags_for(const std::string& header) const;
  /// Whether sources with these flags may begin with a header that was precompiled without them.
  /// GCC itself passes over a header that does not fit.
  bool fits_header(const std::vector<std::string>& flags) const;

  bool is_clang() const { return kind_ == Kind::kClang; }

 private:
  enum class Kind { kGcc, kClang, kOther };

  /// Those of the build, for this compiler.
  std::vector<std::string> build_flags() const;
  void run(std::vector<std::string> words, std::string& text) const;

  std::string path_;
  InterruptCheck interrupt_;
  std::string identity_;
  std::string note_;
  Kind kind_ = Kind::kOther;
};

}  // namespace stepop
