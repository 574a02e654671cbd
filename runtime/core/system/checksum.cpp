#include "runtime/core/system/checksum.h"

#include <fmt/format.h>

#include "runtime/core/system/read_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace stepop {

struct Checksum::State {
  XXH3_state_t xxh3;  // needs an alignment of 64 bytes, which `new` provides
};

void Checksum::Delete::operator()(State* state) const { delete state; }

Checksum::Checksum() : state_(new State) { XXH3_64bits_reset(&state_->xxh3); }
Checksum::~Checksum() = default;

void Checksum::add(std::string_view bytes) {
  XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

std::string Checksum::text() const {
  return fmt::format("{:016x}", XXH3_64bits_digest(&state_->xxh3));
}

std::string content_checksum(std::string_view bytes) {
  Checksum sum;
  sum.add(bytes);
  return sum.text();
}

std::string file_checksum(const std::string& path) {
  return content_checksum(try_read_file(path).value_or(""));
}

}  // namespace stepop
