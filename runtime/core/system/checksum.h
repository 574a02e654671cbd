#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace stepop {

/// The XXH3-64 (https://xxhash.com) of bytes that come in parts. It detects corruption, not
/// tampering.
class Checksum {
 public:
  /// The number of hex digits of `text()`.
  static constexpr size_t kDigits = 16;

  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(std::string_view bytes);

  /// The checksum of all bytes so far, as 16 hex digits: `2d06800538d394c2` for no bytes.
  std::string text() const;

 private:
  struct State;
  struct Delete {
    void operator()(State* state) const;
  };
  std::unique_ptr<State, Delete> state_;
};

/// The checksum of bytes, or of a file's bytes; a file that cannot be read counts as empty.
std::string content_checksum(std::string_view bytes);
std::string file_checksum(const std::string& path);

}  // namespace stepop
