#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/system/file_calls.h"
#include "runtime/data/batch.h"

namespace stepop {

/// Examples that are kept, by index. Called by several threads at once.
class ExampleStore {
 public:
  virtual ~ExampleStore() = default;

  /// The example, when it is there. Its tensors may be shared with others, who must not see them
  /// change.
  virtual std::optional<Example> find(int64_t index) const = 0;

  /// Keeps an example; does nothing when there is no room, or when another one has kept it before.
  virtual void add(int64_t index, const Example& example) = 0;

  /// How many examples are there.
  virtual int64_t count() const = 0;
};

/// In memory, up to `limit` bytes.
class ExampleMemory : public ExampleStore {
 public:
  ExampleMemory(int64_t examples, int64_t limit);
  ~ExampleMemory() override;

  std::optional<Example> find(int64_t index) const override;
  void add(int64_t index, const Example& example) override;
  int64_t count() const override;

 private:
  std::vector<std::atomic<const Example*>> examples_;
  std::atomic<int64_t> bytes_ = 0;
  int64_t limit_;
};

/// In one file, up to `limit` bytes, which several threads and processes fill together:
///
///   stepop examples 1 <number of examples> <begin of the table>     one line
///   what the examples depend on, as text
///   line breaks up to the table, which begins at a multiple of 4096
///   the table: of each example u64 begin and u64 length of its record; 0 when it is not there
///   records: u64 index, 16 hex digits: XXH3-64 of the index and of what follows, 40 zero bytes;
///            then the example (example_bytes.h)
///
/// All is little-endian. A record is appended with one write, then its place goes into the table: a
/// process that is killed leaves bytes that nothing refers to. A record that is damaged, as after a
/// power cut, is not there: it is made again and its place is overwritten. Nothing is flushed.
class ExampleFile : public ExampleStore {
 public:
  /// Opens the file at `path`, or makes it when there is none that was made for the same number of
  /// examples and the same `description`. One that cannot be written is read alone. Throws Error
  /// with the path and the system's reason.
  ExampleFile(std::string path, const std::string& description, int64_t examples, int64_t limit);

  std::optional<Example> find(int64_t index) const override;
  /// Throws DiskError for a full disk.
  void add(int64_t index, const Example& example) override;
  int64_t count() const override;

  static constexpr int64_t kMostExamples = int64_t{1} << 30;

 private:
  bool open(const std::string& header);
  void make(const std::string& header) const;

  std::string path_;
  int64_t examples_;
  int64_t limit_;
  int64_t table_ = 0;  ///< Where it begins.
  OpenFile file_;      ///< For reading, and for writing into the table.
  OpenFile append_;    ///< Empty when the file cannot be written.
  std::mutex mutex_;   ///< Of writing.
};

}  // namespace stepop
