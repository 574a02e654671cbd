#include "eval_out/eval_writer.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <limits>
#include <utility>
#include <vector>

#include "eval_out/background_queue.h"
#include "eval_out/eval_arrays.h"
#include "eval_out/hdf5_attributes.h"
#include "runtime/files/file_calls.h"
#include "runtime/files/publish.h"
#include "runtime/files/reserve.h"
#include "runtime/files/size_text.h"

namespace stepop {
namespace {

constexpr int64_t kFormatVersion = 1;

std::string rows_text(int64_t first, size_t count) {
  if (count == 1) return fmt::format("row {}", first);
  return fmt::format("rows {} to {}", first, first + static_cast<int64_t>(count) - 1);
}

void check_attributes(const std::string& path, const OrderedMap<Attribute>& attributes) {
  for (const char* own : {"format_version", "rows", "complete"}) {
    if (attributes.contains(own)) {
      throw Error(fmt::format("{}: the attribute \"{}\" is the writer's own", path, own));
    }
  }
}

Hdf5Id create_file(const std::string& part) {
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "HDF5 properties");
  check_hdf5(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG), "HDF5 properties");
#if H5_VERSION_GE(1, 10, 7) && !(H5_VERS_MAJOR == 1 && H5_VERS_MINOR == 12 && H5_VERS_RELEASE == 0)
  // Some network file systems have no locks.
  check_hdf5(H5Pset_file_locking(access, true, true), "HDF5 properties");
#endif
  return {H5Fcreate(part.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose,
          fmt::format("cannot create {}", part)};
}

}  // namespace

struct EvalWriter::Batch {
  int64_t first_row = 0;
  std::vector<int64_t> indices;
  std::vector<EvalColumn> columns;  // in the order of the first batch's arrays
};

/// The name of the file; removes it in the end when it failed before it held anything.
struct PartFile {
  explicit PartFile(std::string part) : path(std::move(part)) {}
  ~PartFile() {
    if (is_worthless) file_calls().unlink(path.c_str());
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  std::string path;
  bool is_worthless = false;
};

/// The HDF5 file. What is written into it finds its space reserved: after a write that finds the
/// disk full, a heap of strings may be longer than the file says it is, and the rows that were
/// there before cannot be read any more.
class EvalWriter::File {
 public:
  File(std::string part, int64_t rows, const OrderedMap<Attribute>& attributes)
      : part_(std::move(part)), rows_(rows) {
    const Hdf5Lock lock;
    file_ = create_file(part_.path);
    part_.is_worthless = true;
    in_context("the attributes", [&] {
      create_attribute(file_, "format_version", kFormatVersion);
      for (const auto& [name, value] : attributes) create_attribute(file_, name, value);
      written_rows_ = create_attribute(file_, "rows", int64_t{0});
      complete_ = create_attribute(file_, "complete", false);
      index_ = create_numbers(file_, "index", rows);
      flush();
    });
    part_.is_worthless = false;
  }

  ~File() {
    const Hdf5Lock lock;
    close_arrays();
    file_.reset();
  }

  /// The arrays of the first batch, empty before. Set by the thread that prepares batches and read
  /// by the one that writes them, with the queue between the two.
  std::vector<EvalArray> arrays;

  void write(const Batch& batch) {
    const Hdf5Lock lock;
    const size_t count = batch.indices.size();
    if (writers_.empty()) create_arrays(batch);
    reserve_growth(batch);
    for (size_t i = 0; i < writers_.size(); ++i) {
      in_context(fmt::format("{}, {}", arrays[i].key, rows_text(batch.first_row, count)),
                 [&] { writers_[i]->write(batch.first_row, batch.columns[i]); });
    }
    in_context(rows_text(batch.first_row, count), [&] {
      write_numbers(index_, batch.first_row, batch.indices);
      // A flush writes its parts in an order of its own. Where rows make the file longer, they must
      // be there before the file claims them.
      if (grows_) flush();
      set_attribute(written_rows_, batch.first_row + static_cast<int64_t>(count));
      flush();
    });
  }

  void finish() {
    const Hdf5Lock lock;
    in_context("the end of the file", [&] {
      for (const auto& writer : writers_) writer->finish();
      flush();
      set_attribute(complete_, true);
      close_arrays();
      const int64_t size = file_size();
      file_.close("cannot close");
      release_space(part_.path, size);
    });
  }

  const std::string& part() const { return part_.path; }

 private:
  template <class Function>
  void in_context(const std::string& what, const Function& function) {
    try {
      function();
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}: {}", part_.path, what, error.what()));
    }
  }

  void create_arrays(const Batch& batch) {
    const auto batch_size = static_cast<int64_t>(batch.indices.size());
    double bytes = 8.0 * static_cast<double>(rows_);
    for (const auto& column : batch.columns) bytes += bytes_of(column, batch_size, rows_);
    part_.is_worthless = true;
    check_space(bytes);
    for (size_t i = 0; i < arrays.size(); ++i) {
      grows_ = grows_ || arrays[i].kind != EvalKind::kTensor;
      in_context(arrays[i].key, [&] {
        writers_.push_back(create_array(file_, arrays[i], rows_, batch.columns[i], batch_size));
      });
    }
    in_context("the first batch", [&] { flush(); });
    reserve_space(part_.path, 0, file_size());
    part_.is_worthless = false;
  }

  /// For what makes the file longer: text, and ragged arrays that were expected to be shorter.
  void reserve_growth(const Batch& batch) {
    int64_t growth = 0;
    for (size_t i = 0; i < writers_.size(); ++i) growth += writers_[i]->growth(batch.columns[i]);
    if (growth == 0) return;
    const int64_t size = file_size();
    reserve_space(part_.path, size, size + growth);
  }

  /// As HDF5 counts it; what is reserved beyond is not in it.
  int64_t file_size() const {
    hsize_t size = 0;
    check_hdf5(H5Fget_filesize(file_, &size), "cannot tell the file's size");
    return static_cast<int64_t>(size);
  }

  /// Finds a disk that is too small now instead of in the middle of the evaluation.
  void check_space(double bytes) const {
    struct statvfs disk {};
    if (::statvfs(part_.path.c_str(), &disk) != 0) return;
    const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
    if (bytes <= free) return;
    throw Error(fmt::format("{}: {} rows need {}, the disk has {} left", part_.path, rows_,
                            size_text(bytes), size_text(free)));
  }

  void flush() { check_hdf5(H5Fflush(file_, H5F_SCOPE_LOCAL), "cannot write"); }

  void close_arrays() {
    writers_.clear();
    index_.reset();
    written_rows_.reset();
    complete_.reset();
  }

  PartFile part_;  // first: destroyed when the file is closed
  int64_t rows_;
  bool grows_ = false;  // has texts or ragged arrays, which are not allocated in advance
  Hdf5Id file_;
  Hdf5Id index_;
  Hdf5Id written_rows_;
  Hdf5Id complete_;
  std::vector<std::unique_ptr<EvalArrayWriter>> writers_;
};

EvalWriter::EvalWriter(std::string path, int64_t rows, OrderedMap<Attribute> attributes,
                       EvalWriterOptions options)
    : path_(std::move(path)), rows_(rows), last_index_(std::numeric_limits<int64_t>::min()) {
  check_attributes(path_, attributes);
  if (rows < 0) throw Error(fmt::format("{}: cannot have {} rows", path_, rows));
  if (options.queued_batches < 1) {
    throw Error(fmt::format("queued_batches must be at least 1, found {}", options.queued_batches));
  }
  file_ = std::make_unique<File>(path_ + ".part", rows, attributes);
  queue_ =
      std::make_unique<BackgroundQueue<Batch>>(static_cast<size_t>(options.queued_batches),
                                               [this](const Batch& batch) { file_->write(batch); });
}

EvalWriter::~EvalWriter() = default;

void EvalWriter::write(const EvalOutputs& outputs, std::span<const int64_t> indices) {
  if (is_finished_) throw Error(path_ + " is finished, it takes no more rows");
  queue_->check();
  if (indices.empty()) return;

  const auto count = static_cast<int64_t>(indices.size());
  const std::string rows = rows_text(next_row_, indices.size());
  const OrderedMap<EvalValue> values = flatten(outputs);
  std::vector<EvalArray> arrays = describe(values, count);
  if (next_row_ > 0) check_same(file_->arrays, arrays, rows);
  if (count > rows_ - next_row_) {
    throw Error(
        fmt::format("{}: {} are more than the {} that it was made for", path_, rows, rows_));
  }
  int64_t last_index = last_index_;
  for (const int64_t index : indices) {
    if (index <= last_index) {
      throw Error(
          fmt::format("{}: {}: example {} comes after example {}; the rows are written "
                      "once each, in the dataset's order",
                      path_, rows, index, last_index));
    }
    last_index = index;
  }

  if (next_row_ == 0) file_->arrays = std::move(arrays);
  Batch batch{next_row_, {indices.begin(), indices.end()}, {}};
  Batch spare = queue_->take_done().value_or(Batch{});
  spare.columns.resize(file_->arrays.size());
  for (size_t i = 0; i < spare.columns.size(); ++i) {
    const EvalArray& array = file_->arrays[i];
    batch.columns.push_back(to_column(array, values.at(array.key), std::move(spare.columns[i])));
  }
  queue_->push(std::move(batch));
  next_row_ += count;
  last_index_ = last_index;
}

void EvalWriter::finish() {
  if (is_finished_) return;
  queue_->drain();
  if (next_row_ != rows_) {
    throw Error(fmt::format("{}: only {} of {} rows were written", path_, next_row_, rows_));
  }
  queue_->close();
  file_->finish();
  publish_file(file_->part(), path_);
  is_finished_ = true;
}

}  // namespace stepop
