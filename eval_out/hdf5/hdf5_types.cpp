#include "eval_out/hdf5/hdf5_types.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/core/base/error.h"

static_assert(std::endian::native == std::endian::little, "the files are little endian");

namespace stepop {
namespace {

Hdf5Id copy_type(hid_t type) { return {H5Tcopy(type), H5Tclose, "HDF5 type"}; }

Hdf5Id half_type() {
  Hdf5Id type = copy_type(H5T_IEEE_F32LE);
  check_hdf5(H5Tset_fields(type, 15, 10, 5, 0, 10), "HDF5 type");  // sign, exponent, mantissa
  check_hdf5(H5Tset_size(type, 2), "HDF5 type");
  check_hdf5(H5Tset_ebias(type, 15), "HDF5 type");
  return type;
}

Hdf5Id bool_type() {
  Hdf5Id type(H5Tenum_create(H5T_STD_I8LE), H5Tclose, "HDF5 type");
  for (const int8_t value : {int8_t{0}, int8_t{1}}) {
    check_hdf5(H5Tenum_insert(type, value == 0 ? "FALSE" : "TRUE", &value), "HDF5 type");
  }
  return type;
}

Hdf5Id complex_type(hid_t part) {
  const size_t size = H5Tget_size(part);
  Hdf5Id type(H5Tcreate(H5T_COMPOUND, 2 * size), H5Tclose, "HDF5 type");
  check_hdf5(H5Tinsert(type, "r", 0, part), "HDF5 type");
  check_hdf5(H5Tinsert(type, "i", size, part), "HDF5 type");
  return type;
}

bool is_complex(hid_t type, size_t part_size) {
  if (H5Tget_nmembers(type) != 2 || H5Tget_member_index(type, "r") != 0 ||
      H5Tget_member_index(type, "i") != 1) {
    return false;
  }
  const Hdf5Id part(H5Tget_member_type(type, 0), H5Tclose, "HDF5 type");
  return H5Tget_class(part) == H5T_FLOAT && H5Tget_size(part) == part_size;
}

/// Whether a type is a half, which has 5 exponent bits.
bool is_half(hid_t type) {
  size_t sign = 0;
  size_t exponent = 0;
  size_t exponent_bits = 0;
  size_t mantissa = 0;
  size_t mantissa_bits = 0;
  check_hdf5(H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits),
             "HDF5 type");
  return exponent_bits == 5 && mantissa_bits == 10;
}

}  // namespace

std::optional<at::ScalarType> stored_type(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16:
    case at::kFloat8_e4m3fn:
    case at::kFloat8_e4m3fnuz:
    case at::kFloat8_e5m2:
    case at::kFloat8_e5m2fnuz:
      return at::kFloat;
    case at::kByte:
    case at::kChar:
    case at::kShort:
    case at::kInt:
    case at::kLong:
    case at::kUInt16:
    case at::kUInt32:
    case at::kUInt64:
    case at::kHalf:
    case at::kFloat:
    case at::kDouble:
    case at::kBool:
    case at::kComplexFloat:
    case at::kComplexDouble:
      return type;
    default:
      return std::nullopt;
  }
}

Hdf5Id hdf5_type(at::ScalarType type) {
  switch (type) {
    case at::kByte:
      return copy_type(H5T_STD_U8LE);
    case at::kChar:
      return copy_type(H5T_STD_I8LE);
    case at::kShort:
      return copy_type(H5T_STD_I16LE);
    case at::kInt:
      return copy_type(H5T_STD_I32LE);
    case at::kLong:
      return copy_type(H5T_STD_I64LE);
    case at::kUInt16:
      return copy_type(H5T_STD_U16LE);
    case at::kUInt32:
      return copy_type(H5T_STD_U32LE);
    case at::kUInt64:
      return copy_type(H5T_STD_U64LE);
    case at::kHalf:
      return half_type();
    case at::kFloat:
      return copy_type(H5T_IEEE_F32LE);
    case at::kDouble:
      return copy_type(H5T_IEEE_F64LE);
    case at::kBool:
      return bool_type();
    case at::kComplexFloat:
      return complex_type(H5T_IEEE_F32LE);
    case at::kComplexDouble:
      return complex_type(H5T_IEEE_F64LE);
    default:
      throw Error(fmt::format("no HDF5 type for {}", type_name(type)));
  }
}

Hdf5Id hdf5_text_type() {
  Hdf5Id type = copy_type(H5T_C_S1);
  check_hdf5(H5Tset_size(type, H5T_VARIABLE), "HDF5 type");
  check_hdf5(H5Tset_cset(type, H5T_CSET_UTF8), "HDF5 type");
  return type;
}

bool is_variable_text(hid_t type) {
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) <= 0) return false;
  const Hdf5Id character(H5Tget_super(type), H5Tclose, "HDF5 type");
  if (H5Tget_size(character) != 1) {
    throw Error(fmt::format("the file is damaged: its text has characters of {} bytes",
                            H5Tget_size(character)));
  }
  return true;
}

std::optional<at::ScalarType> tensor_type(hid_t type) {
  const size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: {
      const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
      if (size == 1) return is_signed ? at::kChar : at::kByte;
      if (size == 2) return is_signed ? at::kShort : at::kUInt16;
      if (size == 4) return is_signed ? at::kInt : at::kUInt32;
      if (size == 8) return is_signed ? at::kLong : at::kUInt64;
      return std::nullopt;
    }
    case H5T_FLOAT:
      // Other types of 2 bytes, such as bfloat16, are converted while they are read.
      if (size == 2) return is_half(type) ? at::kHalf : at::kFloat;
      if (size == 4) return at::kFloat;
      if (size == 8) return at::kDouble;
      return std::nullopt;
    case H5T_ENUM: {
      int8_t yes = 0;
      const bool is_bool = size == 1 && H5Tget_nmembers(type) == 2 &&
                           H5Tenum_valueof(type, "TRUE", &yes) >= 0 && yes == 1;
      return is_bool ? std::optional(at::kBool) : std::nullopt;
    }
    case H5T_COMPOUND:
      if (is_complex(type, 4)) return at::kComplexFloat;
      if (is_complex(type, 8)) return at::kComplexDouble;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace stepop
