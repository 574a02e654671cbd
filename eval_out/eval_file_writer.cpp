#include "eval_out/eval_file_writer.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <limits>
#include <utility>

#include "eval_out/eval_dataset.h"
#include "eval_out/eval_reader.h"
#include "eval_out/hdf5_attributes.h"
#include "runtime/files/file_calls.h"
#include "runtime/files/reserve.h"
#include "runtime/files/size_text.h"

namespace stepop {
namespace {

constexpr int64_t kFormatVersion = 1;

Hdf5Id access_properties() {
  Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "HDF5 properties");
  check_hdf5(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG), "HDF5 properties");
#if H5_VERSION_GE(1, 10, 7) && !(H5_VERS_MAJOR == 1 && H5_VERS_MINOR == 12 && H5_VERS_RELEASE == 0)
  // Some network file systems have no locks.
  check_hdf5(H5Pset_file_locking(access, true, true), "HDF5 properties");
#endif
  return access;
}

Hdf5Id open_attribute(hid_t file, const char* name) {
  return {H5Aopen(file, name, H5P_DEFAULT), H5Aclose, "cannot open the attributes"};
}

/// Whether the file is an evaluation of these attributes that can be gone on with.
bool is_of(const EvalFile& file, int64_t rows, const OrderedMap<Attribute>& attributes) {
  for (const auto& [name, value] : attributes) {
    const Attribute* stored = file.attributes().find(name);
    if (stored == nullptr || *stored != value) return false;
  }
  return file.rows() <= rows && file.index_length() == rows;
}

}  // namespace

EvalFileWriter::PartFile::~PartFile() {
  if (is_worthless) file_calls().unlink(path.c_str());
}

EvalFileWriter::EvalFileWriter(std::string part, int64_t rows,
                               const OrderedMap<Attribute>& attributes)
    : part_(std::move(part)), rows_(rows), last_index_(std::numeric_limits<int64_t>::min()) {
  const Hdf5Lock lock;
  file_ = Hdf5Id(H5Fcreate(part_.path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access_properties()),
                 H5Fclose, fmt::format("cannot create {}", part_.path));
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

EvalFileWriter::EvalFileWriter(Reopened, const std::string& part, int64_t rows)
    : part_(part), rows_(rows), last_index_(std::numeric_limits<int64_t>::min()) {}

std::unique_ptr<EvalFileWriter> EvalFileWriter::go_on(const std::string& part, int64_t rows,
                                                      const OrderedMap<Attribute>& attributes) {
  const Hdf5Lock lock;
  std::unique_ptr<EvalFileWriter> writer(new EvalFileWriter(Reopened(), part, rows));
  try {
    {
      const EvalFile file(part);
      if (!is_of(file, rows, attributes)) return nullptr;
      writer->arrays = file.arrays();
      writer->first_row_ = file.rows();
      if (file.rows() > 0) {
        writer->last_index_ = file.index().select(0, file.rows() - 1).item<int64_t>();
      }
    }  // closed: the library opens a file either for reading or for writing
    writer->file_ =
        Hdf5Id(H5Fopen(part.c_str(), H5F_ACC_RDWR, access_properties()), H5Fclose, "cannot open");
    writer->written_rows_ = open_attribute(writer->file_, "rows");
    writer->complete_ = open_attribute(writer->file_, "complete");
    writer->index_ =
        Hdf5Id(H5Dopen2(writer->file_, "index", H5P_DEFAULT), H5Dclose, "cannot open index");
    for (const auto& array : writer->arrays) {
      writer->grows_ = writer->grows_ || array.kind != EvalKind::kTensor;
      writer->writers_.push_back(open_array(writer->file_, part, array, writer->first_row_));
    }
    return writer;
  } catch (const Error&) {
    return nullptr;
  }
}

EvalFileWriter::~EvalFileWriter() {
  const Hdf5Lock lock;
  close_arrays();
  file_.reset();
}

void EvalFileWriter::write(const EvalBatch& batch) {
  const Hdf5Lock lock;
  const size_t count = batch.indices.size();
  const std::string rows = rows_text(batch.first_row, count);
  if (writers_.empty()) create_arrays(batch);
  reserve_growth(batch);
  for (size_t i = 0; i < writers_.size(); ++i) {
    in_context(fmt::format("{}, {}", arrays[i].key, rows),
               [&] { writers_[i]->write(batch.first_row, batch.columns[i]); });
  }
  in_context(rows, [&] {
    write_numbers(index_, batch.first_row, batch.indices);
    // A flush writes its parts in an order of its own. Where rows make the file longer, they must
    // be there before the file claims them.
    if (grows_) flush();
    set_attribute(written_rows_, batch.first_row + static_cast<int64_t>(count));
    flush();
  });
}

void EvalFileWriter::finish() {
  const Hdf5Lock lock;
  in_context("the end of the file", [&] {
    for (const auto& writer : writers_) writer->finish();
    room_.give_back();
    flush();
    set_attribute(complete_, true);
    close_arrays();
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

void EvalFileWriter::create_arrays(const EvalBatch& batch) {
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
  reserve_space(part_.path, 0, hdf5_file_size(file_));
  part_.is_worthless = false;
}

/// For what makes the file longer: text, and ragged arrays that were expected to be shorter.
void EvalFileWriter::reserve_growth(const EvalBatch& batch) {
  int64_t growth = 0;
  for (size_t i = 0; i < writers_.size(); ++i) growth += writers_[i]->growth(batch.columns[i]);
  if (growth > 0) room_.ensure(file_, part_.path, growth);
}

/// Finds a disk that is too small now instead of in the middle of the evaluation.
void EvalFileWriter::check_space(double bytes) const {
  struct statvfs disk {};
  if (::statvfs(part_.path.c_str(), &disk) != 0) return;
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (bytes <= free) return;
  throw Error(fmt::format("{}: {} rows need {}, the disk has {} left", part_.path, rows_,
                          size_text(bytes), size_text(free)));
}

void EvalFileWriter::flush() { check_hdf5(H5Fflush(file_, H5F_SCOPE_LOCAL), "cannot write"); }

void EvalFileWriter::close_arrays() {
  writers_.clear();
  room_.give_back();
  index_.reset();
  written_rows_.reset();
  complete_.reset();
}

}  // namespace stepop
