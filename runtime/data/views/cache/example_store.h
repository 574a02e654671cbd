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

/// Stored examples by index. Several threads call its functions at once.
class ExampleStore {
 public:
  virtual ~ExampleStore() = default;

  /// The example, if it is stored. Its tensors may be shared with other callers and must not be
  /// changed.
  virtual std::optional<Example> find(int64_t index) const = 0;

  /// Stores an example; does nothing when there is no room, or when the example is stored already.
  virtual void add(int64_t index, const Example& example) = 0;

  /// The number of stored examples.
  virtual int64_t count() const = 0;
};

/// Examples in memory, up to `limit` bytes.
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

/// Examples in one file, up to `limit` bytes, which several threads and processes fill together:
///
///   stepop examples 1 <number of examples> <begin of the table>     one line
///   the description of everything on which the examples depend
///   line breaks up to the table, which begins at a multiple of 4096
///   the table: for each example, u64 begin and u64 length of its record; 0 when it is not stored
///   records: u64 index, 16 hex digits: XXH3-64 of the index and the example, 40 zero bytes;
///            then the example (example_bytes.h)
///
/// All numbers are little-endian. A record is appended with one write, then its place is written
/// into the table: a killed process leaves only bytes to which no entry refers. A damaged record,
/// as after a power cut, counts as missing: the example is stored again and its entry in the table
/// is overwritten. Nothing is flushed.
class ExampleFile : public ExampleStore {
 public:
  /// Opens the file at `path`, or makes it unless it exists and was made for the same number of
  /// examples and the same `description`. A file that cannot be written is only read. Throws Error
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
  int64_t table_ = 0;  ///< The table's offset.
  OpenFile file_;      ///< For reading, and for writing into the table.
  OpenFile append_;    ///< Empty when the file cannot be written.
  std::mutex mutex_;   ///< Guards writing.
};

}  // namespace stepop
