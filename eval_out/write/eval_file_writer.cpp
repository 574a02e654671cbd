#include "eval_out/write/eval_file_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <utility>

#include "eval_out/hdf5/hdf5_arrays.h"
#include "eval_out/hdf5/hdf5_attributes.h"
#include "eval_out/hdf5/hdf5_driver.h"
#include "eval_out/hdf5/hdf5_file.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "eval_out/read/eval_reader.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/file_calls.h"
#include "runtime/core/system/file_lock.h"
#include "runtime/core/system/reserve.h"

namespace stepop {
namespace {

constexpr int64_t kFormatVersion = 1;

Hdf5Id access_properties() {
  Hdf5Id access = hdf5_file_access(/*is_locked=*/true);
  check_hdf5(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG), "HDF5 properties");
  return access;
}

/// Written chunks replace chunks of zeros. The places of the zeros are not used again, because
/// after a kill in between, the index would still point to them.
Hdf5Id file_properties(EvalCompression compression) {
  Hdf5Id creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose, "HDF5 properties");
  if (compression == EvalCompression::kGzip) {
    check_hdf5(H5Pset_file_space_strategy(creation, H5F_FSPACE_STRATEGY_FSM_AGGR, false,
                                          CompressedArrays::kMinFreePlace),
               "HDF5 properties");
  }
  return creation;
}

Hdf5Id open_attribute(hid_t file, const char* name) {
  return {H5Aopen(file, name, H5P_DEFAULT), H5Aclose, "cannot open the attributes"};
}

}  // namespace

EvalPartFile::~EvalPartFile() {
  if (is_worthless) file_calls().unlink(path.c_str());
}

bool EvalPartFile::can_open(const std::string& part) {
  const OpenFile file(::open(part.c_str(), O_RDWR | O_CLOEXEC));
  if (!file && errno != ENOENT) fail_file("resume " + part, errno);
  return static_cast<bool>(file);
}

void EvalPartFile::make_way(const std::string& name) const {
  if (const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); file) {
    // Readers share HDF5's lock; a writer holds it exclusively.
    const bool is_written = try_lock(file, /*is_shared=*/true) == Locked::kHeld;
    if (is_written) throw Error("cannot create " + name + ": another process is writing it");
  }
  if (file_calls().unlink(path.c_str()) == 0 || errno == ENOENT) return;
  fail_file("create " + name, errno);
}

EvalFileWriter::EvalFileWriter(std::string part, int64_t rows,
                               const OrderedMap<Attribute>& attributes, EvalCompression compression)
    : part_(std::move(part)),
      temporary_(part_.path + std::string(AtomicFile::kTemporarySuffix)),
      rows_(rows),
      compression_(compression),
      last_index_(std::numeric_limits<int64_t>::min()) {
  const Hdf5Lock lock;
  part_.make_way(part_.path);
  temporary_.make_way(part_.path);
  file_ = Hdf5Id(H5Fcreate(temporary_.path.c_str(), H5F_ACC_EXCL, file_properties(compression),
                           access_properties()),
                 H5Fclose, fmt::format("cannot create {}", part_.path));
  temporary_.is_worthless = true;
  in_context("the attributes", [&] {
    create_attribute(file_, "format_version", kFormatVersion);
    for (const auto& [name, value] : attributes) create_attribute(file_, name, value);
    written_rows_ = create_attribute(file_, "rows", int64_t{0});
    complete_ = create_attribute(file_, "complete", false);
    index_ = create_numbers(file_, "index", rows);
  });
}

/// Gives a new file its name, once. Before that the file may be such that nobody can open it: a
/// flush writes its parts in an unspecified order, among them the length that counts. So a kill
/// leaves no file with this name.
void EvalFileWriter::take_name() {
  if (!temporary_.is_worthless) return;
  flush();
  if (file_calls().rename(temporary_.path.c_str(), part_.path.c_str()) != 0) {
    fail_file("create " + part_.path, errno);
  }
  temporary_.is_worthless = false;
  part_.is_worthless = true;
}

EvalFileWriter::EvalFileWriter(Reopened, const std::string& part, int64_t rows)
    : part_(part), temporary_(""), rows_(rows), last_index_(std::numeric_limits<int64_t>::min()) {}

std::unique_ptr<EvalFileWriter> EvalFileWriter::resume(const std::string& part, int64_t rows,
                                                       const OrderedMap<Attribute>& attributes) {
  if (!EvalPartFile::can_open(part)) return nullptr;
  const Hdf5Lock lock;
  std::unique_ptr<EvalFileWriter> writer(new EvalFileWriter(Reopened(), part, rows));
  try {
    const EvalFile file(part, {}, EvalOrigin::kLeftBehind);
    // Without rows there is nothing to resume, and some arrays may not exist yet.
    if (!file.is_of(attributes, rows) || file.rows() == 0) return nullptr;
    writer->arrays = file.arrays();
    writer->first_row_ = writer->claimed_rows_ = file.rows();
    writer->last_index_ = file.index(file.rows() - 1, 1).item<int64_t>();
  } catch (const Error&) {
    return nullptr;
  }  // `file` is closed, because the library opens a file either for reading or for writing
  const Hdf5Id access = access_properties();
  const hid_t file = H5Fopen(part.c_str(), H5F_ACC_RDWR, access);
  if (file < 0) {
    throw Error(fmt::format("cannot resume {}: {}", part,
                            hdf5_was_locked_out()
                                ? "another process has it open; close it there, then start again"
                                : hdf5_reason()));
  }
  writer->file_ = Hdf5Id(file, H5Fclose, part);
  try {
    writer->written_rows_ = open_attribute(writer->file_, "rows");
    writer->complete_ = open_attribute(writer->file_, "complete");
    writer->index_ =
        Hdf5Id(H5Dopen2(writer->file_, "index", H5P_DEFAULT), H5Dclose, "cannot open index");
    if (has_link(writer->file_, "source_index")) {
      writer->source_index_ = open_dataset(writer->file_, "source_index");
    }
    writer->open_arrays();
    return writer;
  } catch (const Error&) {
    return nullptr;
  }
}

EvalFileWriter::~EvalFileWriter() {
  if (is_sound_) part_.is_worthless = false;
  if (is_sound_ && !compressed_.empty()) {
    try {
      compressed_.settle(/*is_last=*/false);
      const Hdf5Lock lock;
      write_compressed();
      claim_rows(compressed_.written_rows(rows_at_once_));
    } catch (const std::exception&) {
      // The rows are not claimed; the next evaluation makes them again.
    }
  }
  const Hdf5Lock lock;
  close_arrays();
  file_.reset();
}

void EvalFileWriter::write(const EvalBatch& batch) {
  is_sound_ = false;
  if (writers_.empty()) create_arrays(batch);
  if (rows_at_once_ == 0) {
    rows_at_once_ = compressed_.rows_at_once(static_cast<int64_t>(batch.indices.size()));
  }
  compressed_.add(batch.columns);  // without the lock: this waits for the compressing threads
  write_batch(batch);
  is_sound_ = true;
}

void EvalFileWriter::write_batch(const EvalBatch& batch) {
  const Hdf5Lock lock;
  const size_t count = batch.indices.size();
  const std::string rows = rows_text(batch.first_row, count);
  reserve_growth(batch);
  for (size_t i = 0; i < writers_.size(); ++i) {
    if (!writers_[i]) continue;
    in_context(fmt::format("{}, {}", arrays[i].key, rows),
               [&] { writers_[i]->write(batch.first_row, batch.columns[i]); });
  }
  write_compressed();
  in_context(rows, [&] {
    write_numbers(index_, batch.first_row, batch.indices);
    if (source_index_ && source_rows) {
      std::vector<int64_t> places;
      const auto* rows = source_rows->rows.const_data_ptr<int64_t>();
      for (const int64_t i : batch.indices) places.push_back(rows[i]);
      write_numbers(source_index_, batch.first_row, places);
    }
    const int64_t end = batch.first_row + static_cast<int64_t>(count);
    claim_rows(compressed_.empty() ? end : compressed_.written_rows(rows_at_once_));
  });
}

/// Writes the compressed chunks, and makes room for them first: at the end, no other call has done
/// so.
void EvalFileWriter::write_compressed() {
  const int64_t bytes = compressed_.growth();
  if (bytes == 0) return;
  room_.ensure(file_, part_.path, bytes, compressed_.growth_to_come());
  try {
    compressed_.write();
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", part_.path, error.what()));
  }
}

void EvalFileWriter::claim_rows(int64_t rows) {
  if (rows <= claimed_rows_) return;
  // A flush writes its parts in an unspecified order. Rows that make the file longer must be
  // written before the file claims them.
  if (grows_) flush();
  set_attribute(written_rows_, rows);
  flush();
  claimed_rows_ = rows;
  part_.is_worthless = false;
}

void EvalFileWriter::finish() {
  is_sound_ = false;
  compressed_.settle(/*is_last=*/true);
  const Hdf5Lock lock;
  write_compressed();
  in_context("the end of the file", [&] {
    take_name();
    if (!compressed_.empty()) claim_rows(rows_);
    for (const auto& writer : writers_) {
      if (writer) writer->finish();
    }
    room_.give_back();
    flush();
    set_attribute(complete_, true);
    close_arrays();
    part_.is_worthless = false;
    const int64_t size = hdf5_file_size(file_);
    file_.close("cannot close");
    release_space(part_.path, size);
  });
}

template <class Function>
void EvalFileWriter::in_context(const std::string& what, const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}: {}", part_.path, what, error.what()));
  }
}

/// Gives arrays of classes their names.
void EvalFileWriter::name_classes() {
  // HDF5 keeps an attribute of at most 64 kB, which has 16 bytes for each text.
  constexpr size_t kMostNames = 4000;
  for (const auto& array : arrays) {
    const auto* names = class_names.find(array.key.substr(array.key.find('/') + 1));
    if (names == nullptr || names->size() > kMostNames) continue;
    in_context(array.key, [&] {
      const Hdf5Id object(H5Oopen(file_, array.key.c_str(), H5P_DEFAULT), H5Oclose, "cannot open");
      add_texts_attribute(object, "class_names", *names);
    });
  }
}

/// Says of which dataset the rows are, so that a table of another length is not joined with them.
void EvalFileWriter::describe_index() {
  in_context("index", [&] {
    if (dataset_size > 0) create_attribute(index_, "count", dataset_size);
    if (!source_rows) return;
    source_index_ = create_numbers(file_, "source_index", rows_);
    create_attribute(source_index_, "count", source_rows->count);
  });
}

void EvalFileWriter::create_arrays(const EvalBatch& batch) {
  const Hdf5Lock lock;
  const auto batch_size = static_cast<int64_t>(batch.indices.size());
  std::vector<int64_t> chunks(arrays.size(), 0);
  if (compression_ == EvalCompression::kGzip) chunks = rows_of_chunks(arrays, batch_size, rows_);
  double bytes = (source_rows ? 16.0 : 8.0) * static_cast<double>(rows_);
  for (size_t i = 0; i < arrays.size(); ++i) {
    // The size of compressed arrays is not known in advance.
    if (chunks[i] == 0) bytes += bytes_of(batch.columns[i], batch_size, rows_);
  }
  check_space(bytes);
  for (size_t i = 0; i < arrays.size(); ++i) {
    grows_ = grows_ || chunks[i] > 0 || arrays[i].kind != EvalKind::kTensor;
    in_context(arrays[i].key, [&] {
      if (chunks[i] > 0) {
        compressed_.create(file_, arrays[i], i, rows_, chunks[i]);
        writers_.push_back(nullptr);
      } else {
        writers_.push_back(create_array(file_, arrays[i], rows_, batch.columns[i], batch_size));
      }
    });
  }
  name_classes();
  // An evaluation without arrays comes here with each batch.
  if (batch.first_row == 0) describe_index();
  in_context("the first batch", [&] { take_name(); });
  reserve_space(part_.path, 0, hdf5_file_size(file_));
}

void EvalFileWriter::open_arrays() {
  for (size_t i = 0; i < arrays.size(); ++i) {
    const bool is_tensor = arrays[i].kind == EvalKind::kTensor;
    Hdf5Id dataset = is_tensor ? open_dataset(file_, arrays[i].key) : Hdf5Id();
    const bool is_compressed = is_tensor && is_chunked(dataset);
    grows_ = grows_ || is_compressed || !is_tensor;
    if (is_compressed) {
      compressed_.open(std::move(dataset), arrays[i], i, first_row_);
      writers_.push_back(nullptr);
    } else {
      writers_.push_back(open_array(file_, part_.path, arrays[i], first_row_));
    }
  }
}

/// Reserves room for data that makes the file longer: compressed chunks, text, and ragged arrays
/// that were expected to be shorter.
void EvalFileWriter::reserve_growth(const EvalBatch& batch) {
  int64_t others = 0;
  for (size_t i = 0; i < writers_.size(); ++i) {
    if (writers_[i]) others += writers_[i]->growth(batch.columns[i]);
  }
  const int64_t growth = compressed_.growth() + others;
  if (growth == 0) return;
  const auto batch_size = static_cast<int64_t>(batch.indices.size());
  const int64_t batches_left = (rows_ - batch.first_row - 1) / batch_size + 1;
  room_.ensure(file_, part_.path, growth, compressed_.growth_to_come() + others * batches_left);
}

/// Detects a disk that is too small now instead of in the middle of the evaluation.
void EvalFileWriter::check_space(double bytes) const {
  struct statvfs disk {};
  const std::string& path = temporary_.is_worthless ? temporary_.path : part_.path;
  if (::statvfs(path.c_str(), &disk) != 0) return;
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (bytes <= free) return;
  throw Error(fmt::format("{}: {} rows need {}, the disk has {} left", part_.path, rows_,
                          size_text(bytes), size_text(free)));
}

void EvalFileWriter::flush() { check_hdf5(H5Fflush(file_, H5F_SCOPE_LOCAL), "cannot write"); }

void EvalFileWriter::close_arrays() {
  writers_.clear();
  compressed_.clear();
  room_.give_back();
  index_.reset();
  source_index_.reset();
  written_rows_.reset();
  complete_.reset();
}

}  // namespace stepop
