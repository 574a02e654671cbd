#include "eval_out/hdf5/hdf5.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include <array>

#include "eval_out/hdf5/hdf5_rows.h"
#include "eval_out/hdf5/hdf5_types.h"
#include "tests/message_of.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace hdf5_test {

TEST_CASE("rows of an array are chosen by as many lengths as it has dimensions") {
  const ScratchFolder folder;
  const Hdf5Lock lock;
  const Hdf5Id file(H5Fcreate(folder.path("a.h5").c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT),
                    H5Fclose, "a.h5");
  const Hdf5Id dataset(H5Dcreate2(file, "x", H5T_STD_I64LE, hdf5_space({4, 2}), H5P_DEFAULT,
                                  H5P_DEFAULT, H5P_DEFAULT),
                       H5Dclose, "x");
  CHECK(H5Sget_select_npoints(hdf5_rows(dataset, 1, {3, 2})) == 6);
  CHECK(message_of([&] { hdf5_rows(dataset, 0, {4}); }) ==
        "HDF5 selection: expected 1 dimensions, the array has 2");
  CHECK(message_of([&] {
          hdf5_rows(dataset, 0, {4, 2, 1});
        }) == "HDF5 selection: expected 3 dimensions, the array has 2");
}

TEST_CASE("a bfloat16 of another program is read by its values, a half as a half") {
  const ScratchFolder folder;
  const Hdf5Lock lock;
  const Hdf5Id file(H5Fcreate(folder.path("a.h5").c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT),
                    H5Fclose, "a.h5");
  const Hdf5Id bfloat16(H5Tcopy(H5T_IEEE_F32LE), H5Tclose, "type");
  REQUIRE(H5Tset_fields(bfloat16, 15, 7, 8, 0, 7) >= 0);
  REQUIRE(H5Tset_size(bfloat16, 2) >= 0);
  REQUIRE(H5Tset_ebias(bfloat16, 127) >= 0);
  CHECK(tensor_type(bfloat16) == at::kFloat);
  CHECK(tensor_type(hdf5_type(at::kHalf)) == at::kHalf);
  const Hdf5Id dataset(
      H5Dcreate2(file, "x", bfloat16, hdf5_space({3}), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
      H5Dclose, "x");
  const std::array<uint16_t, 3> bits = {0x3fc0, 0xc000, 0x0000};  // 1.5, -2, 0
  REQUIRE(H5Dwrite(dataset, bfloat16, H5S_ALL, H5S_ALL, H5P_DEFAULT, bits.data()) >= 0);
  const Hdf5Rows rows(file, "a.h5", describe_hdf5(dataset, "x"));
  CHECK(at::equal(rows.read(0, 3), at::tensor({1.5F, -2.0F, 0.0F})));
}

TEST_CASE("rows that are not there are refused, in memory and from the file") {
  const ScratchFolder folder;
  const Hdf5Lock lock;
  const Hdf5Id file(H5Fcreate(folder.path("a.h5").c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT),
                    H5Fclose, "a.h5");
  const Hdf5Id dataset(
      H5Dcreate2(file, "x", H5T_STD_I64LE, hdf5_space({4}), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
      H5Dclose, "x");
  Hdf5Rows rows(file, "a.h5", describe_hdf5(dataset, "x"), 3);
  for (const bool is_kept : {false, true}) {
    if (is_kept) rows.keep();
    CHECK(rows.gather(std::array<int64_t, 2>{2, 0}).numel() == 2);
    CHECK(message_of([&] {
            rows.gather(std::array<int64_t, 2>{0, 3});
          }) == "a.h5: no row 3 in x, of 3 rows");
    CHECK(message_of([&] { rows.gather(std::array<int64_t, 1>{-1}); }) ==
          "a.h5: no row -1 in x, of 3 rows");
    CHECK(message_of([&] { rows.read(2, 2); }) == "a.h5: no row 3 in x, of 3 rows");
  }
}

}  // namespace hdf5_test
}  // namespace stepop
