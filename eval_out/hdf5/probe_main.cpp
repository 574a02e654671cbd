// The program stepop_probe_hdf5, which probe_hdf5 starts: walks through an HDF5 file, and does not
// load LibTorch for that.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "eval_out/hdf5/hdf5.h"
#include "eval_out/hdf5/hdf5_arrays.h"
#include "eval_out/hdf5/hdf5_attributes.h"
#include "eval_out/hdf5/hdf5_file.h"
#include "eval_out/hdf5/hdf5_probe.h"
#include "eval_out/hdf5/hdf5_types.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/unpack_limit.h"

namespace stepop {
namespace {

constexpr size_t kMostMessage = 4000;

bool is_out_of_memory = false;

/// The library calls it for each of its functions that fails.
herr_t keep_memory_errors(hid_t errors, void*) {
  const auto look = [](unsigned, const H5E_error2_t* error, void*) -> herr_t {
    is_out_of_memory = is_out_of_memory || error->maj_num == H5E_RESOURCE;
    return 0;
  };
  return H5Ewalk2(errors, H5E_WALK_UPWARD, look, nullptr);
}

bool has_usual_filters(hid_t dataset) {
  const Hdf5Id creation(H5Dget_create_plist(dataset), H5Pclose, "HDF5 properties");
  for (int i = 0; i < H5Pget_nfilters(creation); ++i) {
    size_t count = 0;
    unsigned flags = 0;
    const H5Z_filter_t filter = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &count,
                                               nullptr, 0, nullptr, nullptr);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
        filter != H5Z_FILTER_FLETCHER32) {
      return false;
    }
  }
  return true;
}

/// Reads an element: its type is converted, a chunk is found and unpacked. The library's own
/// filters that nobody but it has are less robust: what they packed is read as a whole.
void read_some(hid_t file, hid_t dataset, const std::string& name) {
  const Hdf5Array array = describe_hdf5(dataset, name);  // refuses what lies in other files
  Hdf5Sizes(file).add(dataset, name);
  const auto is_empty = [](int64_t length) { return length == 0; };
  if (array.is_text || !array.dtype || array.shape.empty() ||
      std::any_of(array.shape.begin(), array.shape.end(), is_empty)) {
    return;
  }
  const bool is_whole = !has_usual_filters(dataset);
  std::vector<hsize_t> lengths(array.shape.size(), 1);
  if (is_whole) lengths.assign(array.shape.begin(), array.shape.end());
  lengths[0] = 1;
  const Hdf5Id type = hdf5_type(*array.dtype);
  hsize_t bytes = H5Tget_size(type);
  for (const hsize_t length : lengths) bytes *= length;
  if (is_too_much_unpacked(static_cast<double>(bytes), 0)) return;
  std::vector<char> values(bytes);
  const int64_t rows = is_whole ? array.shape[0] : 1;
  for (int64_t row = 0; row < rows; ++row) {
    check_hdf5(
        H5Dread(dataset, type, hdf5_space(lengths),
                hdf5_rows(dataset, static_cast<hsize_t>(row), lengths), H5P_DEFAULT, values.data()),
        name);
  }
}

void look_at(hid_t file, hid_t object, const std::string& name) {
  if (H5Iget_type(object) == H5I_DATASET) {
    read_some(file, object, name);
  } else if (name == "/") {
    read_attributes(object);
  } else {
    H5Aexists(object, "ragged");
  }
}

/// What probe_hdf5 reads.
std::string walk(const std::string& path) {
  const Hdf5Lock lock;  // with it the library keeps the reason of a failure
  H5Eset_auto2(H5E_DEFAULT, keep_memory_errors, nullptr);
  try {
    const Hdf5Id file = open_hdf5(path);
    visit_hdf5(file, [&](hid_t object, const std::string& name) {
      try {
        look_at(file, object, name);
      } catch (const Error&) {
      }
    });
  } catch (const std::bad_alloc&) {
    return kProbeNoMemory;
  } catch (const std::exception& error) {
    if (is_out_of_memory) return kProbeNoMemory;
    return kProbeRefused + std::string(error.what()).substr(0, kMostMessage);
  }
  return is_out_of_memory ? kProbeNoMemory : kProbePassed;
}

void set_limit(decltype(RLIMIT_CPU) resource, rlim_t most) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  limit.rlim_cur = std::min(limit.rlim_cur, most);
  ::setrlimit(resource, &limit);
}

/// The address space that this process has, in bytes.
rlim_t own_memory() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace
}  // namespace stepop

/// The file, the seconds of the processor and the bytes of memory that it may take.
int main(int argc, char** argv) {
  if (argc != 4) return 2;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int answer = ::dup(STDOUT_FILENO);  // what libraries print goes nowhere
  const int nowhere = ::open("/dev/null", O_RDWR);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  stepop::set_limit(RLIMIT_CORE, 0);
  stepop::set_limit(RLIMIT_CPU, std::strtoull(argv[2], nullptr, 10));
  stepop::set_limit(RLIMIT_AS, stepop::own_memory() + std::strtoull(argv[3], nullptr, 10));
  const std::string text = stepop::walk(argv[1]);
  const auto size = static_cast<ssize_t>(text.size());
  ::_exit(::write(answer, text.data(), text.size()) == size ? 0 : 1);
}
