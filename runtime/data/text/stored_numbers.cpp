#include "runtime/data/text/stored_numbers.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/start_thread.h"
#include "runtime/core/system/usable_processors.h"

namespace stepop {
namespace {

constexpr uint64_t kSignature = 0x31736e656b6f7473;  // "stokens1"

/// A file's first bytes. The numbers follow, and then the key again, so that a truncated file is
/// detected.
struct FileHeader {
  uint64_t signature = kSignature;
  uint64_t key = 0;
};

/// Joins the threads in its destructor.
struct Threads {
  ~Threads() {
    for (auto& thread : all) thread.join();
  }
  std::vector<std::thread> all = {};
};

using Sink = std::function<void(std::span<const int32_t>)>;

/// Makes the numbers of some parts at a time, so that they are never all in memory.
void make_all(const NumbersSource& source, const Sink& sink) {
  const int64_t workers = std::clamp<int64_t>(usable_processors(), 1, 16);
  const int64_t at_once = std::min(4 * workers, source.parts);
  for (int64_t first = 0; first < source.parts; first += at_once) {
    const int64_t count = std::min(at_once, source.parts - first);
    std::vector<std::vector<int32_t>> made(static_cast<size_t>(count));
    std::vector<std::exception_ptr> failures(static_cast<size_t>(count));
    std::atomic<int64_t> next = 0;
    const auto work = [&] {
      for (int64_t i = next++; i < count; i = next++) {
        try {
          made[static_cast<size_t>(i)] = source.make(first + i);
        } catch (...) {
          failures[static_cast<size_t>(i)] = std::current_exception();
        }
      }
    };
    {
      Threads threads;
      for (int64_t i = 1; i < std::min(workers, count); ++i) {
        threads.all.push_back(start_thread("makes tokens", work));
      }
      work();
    }
    for (size_t i = 0; i < made.size(); ++i) {
      if (failures[i]) std::rethrow_exception(failures[i]);
      sink(made[i]);
    }
  }
}

/// Empty when there is no such file, or when it holds other numbers.
std::optional<MappedFile> open_numbers(const NumbersSource& source) {
  std::error_code ignored;
  if (!std::filesystem::exists(source.path, ignored)) return std::nullopt;
  MappedFile file(source.path);
  const std::string_view bytes = file.bytes();
  FileHeader header;
  uint64_t end = 0;
  if (bytes.size() < sizeof(header) + sizeof(end)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::memcpy(&end, bytes.data() + bytes.size() - sizeof(end), sizeof(end));
  const bool is_whole = header.signature == kSignature && header.key == end;
  if (!is_whole || header.key != source.key) return std::nullopt;
  return file;
}

}  // namespace

std::span<const int32_t> StoredNumbers::in_file() const {
  const std::string_view bytes = file_.bytes();
  const size_t size = bytes.size() - sizeof(FileHeader) - sizeof(FileHeader::key);
  return {reinterpret_cast<const int32_t*>(bytes.data() + sizeof(FileHeader)),
          size / sizeof(int32_t)};
}

StoredNumbers store_numbers(const NumbersSource& source) {
  StoredNumbers stored;
  if (source.path.empty()) {
    make_all(source, [&](std::span<const int32_t> values) {
      stored.in_memory_.insert(stored.in_memory_.end(), values.begin(), values.end());
    });
    stored.in_memory_.shrink_to_fit();
    return stored;
  }
  auto file = open_numbers(source);
  if (!file) {
    AtomicFile out(source.path);
    const FileHeader header{.signature = kSignature, .key = source.key};
    out.write({reinterpret_cast<const char*>(&header), sizeof(header)});
    make_all(source, [&](std::span<const int32_t> values) {
      out.write({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
    });
    out.write({reinterpret_cast<const char*>(&source.key), sizeof(source.key)});
    out.commit();
    file = open_numbers(source);
    if (!file) throw Error(source.path + ": was changed while it was made");
  }
  stored.file_ = std::move(*file);
  return stored;
}

}  // namespace stepop
