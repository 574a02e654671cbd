#include "eval_out/hdf5/hdf5_attributes.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <type_traits>

#include "eval_out/hdf5/hdf5_references.h"
#include "eval_out/hdf5/hdf5_types.h"

namespace stepop {
namespace {

Hdf5Id attribute_type(const Attribute& value) {
  return std::visit(
      [](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool>) return hdf5_type(at::kBool);
        if constexpr (std::is_same_v<Held, int64_t>) return hdf5_type(at::kLong);
        if constexpr (std::is_same_v<Held, double>) return hdf5_type(at::kDouble);
        if constexpr (std::is_same_v<Held, std::string>) return hdf5_text_type();
      },
      value);
}

template <class T>
T read_number(hid_t attribute, at::ScalarType type, const std::string& context) {
  T value{};
  check_hdf5(H5Aread(attribute, hdf5_type(type), &value), context);
  return value;
}

std::string read_text(hid_t attribute, hid_t type, const std::string& context) {
  if (is_variable_text(type)) {
    char* text = nullptr;
    check_hdf5(H5Aread(attribute, type, static_cast<void*>(&text)), context);
    std::string value = text == nullptr ? "" : text;
    H5free_memory(text);
    return value;
  }
  std::string value(H5Tget_size(type), '\0');
  check_hdf5(H5Aread(attribute, type, value.data()), context);
  return value.substr(0, value.find('\0'));
}

/// Whether the attribute is a text that is stored elsewhere in the file.
bool is_reference(hid_t attribute) {
  const Hdf5Id type(H5Aget_type(attribute), H5Tclose, "HDF5 type");
  return is_variable_text(type);
}

std::optional<Attribute> read_attribute(hid_t attribute, const std::string& context) {
  const Hdf5Id space(H5Aget_space(attribute), H5Sclose, context);
  if (H5Sget_simple_extent_npoints(space) != 1) return std::nullopt;
  const Hdf5Id type(H5Aget_type(attribute), H5Tclose, context);
  switch (H5Tget_class(type)) {
    case H5T_STRING:
      return read_text(attribute, type, context);
    case H5T_INTEGER:
      return read_number<int64_t>(attribute, at::kLong, context);
    case H5T_FLOAT:
      return read_number<double>(attribute, at::kDouble, context);
    case H5T_ENUM:
      if (tensor_type(type) != at::kBool) return std::nullopt;
      return read_number<bool>(attribute, at::kBool, context);
    default:
      return std::nullopt;
  }
}

}  // namespace

Hdf5Id create_attribute(hid_t object, const std::string& name, const Attribute& value) {
  const std::string context = fmt::format("cannot create the attribute {}", name);
  const Hdf5Id space(H5Screate(H5S_SCALAR), H5Sclose, context);
  Hdf5Id attribute(
      H5Acreate2(object, name.c_str(), attribute_type(value), space, H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose, context);
  set_attribute(attribute, value);
  return attribute;
}

void add_texts_attribute(hid_t object, const std::string& name,
                         const std::vector<std::string>& texts) {
  const std::string context = fmt::format("cannot create the attribute {}", name);
  std::vector<const char*> data;
  for (const auto& text : texts) data.push_back(text.c_str());
  const Hdf5Id type = hdf5_text_type();
  const Hdf5Id attribute(
      H5Acreate2(object, name.c_str(), type, hdf5_space({data.size()}), H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose, context);
  check_hdf5(H5Awrite(attribute, type, static_cast<const void*>(data.data())), context);
}

void set_attribute(hid_t attribute, const Attribute& value) {
  const Hdf5Id type = attribute_type(value);
  const auto* text = std::get_if<std::string>(&value);
  const char* characters = text == nullptr ? nullptr : text->c_str();
  const void* data = std::visit([](const auto& held) -> const void* { return &held; }, value);
  if (text != nullptr) data = static_cast<const void*>(&characters);
  check_hdf5(H5Awrite(attribute, type, data), "cannot write an attribute");
}

OrderedMap<Attribute> read_attributes(hid_t object) {
  const std::set<std::string> checked = [&] {
    const Hdf5Id file(H5Iget_file_id(object), H5Fclose, "HDF5 file");
    return Hdf5References(file).check_attributes(object);
  }();
  std::vector<std::string> names;
  const auto keep_name = [](hid_t, const char* name, const H5A_info_t*, void* data) -> herr_t {
    static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
  };
  hsize_t position = 0;
  check_hdf5(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &position, keep_name, &names),
             "cannot list the attributes");
  OrderedMap<Attribute> attributes;
  for (const auto& name : names) {
    const std::string context = fmt::format("cannot read the attribute {}", name);
    const Hdf5Id attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, context);
    if (is_reference(attribute) && !checked.contains(name)) {
      throw Error(
          fmt::format("{}: text in dense storage, or of a shared type, is not read; \"h5repack "
                      "OLD NEW\" writes a file with another one",
                      context));
    }
    if (auto value = read_attribute(attribute, context)) attributes.set(name, *value);
  }
  return attributes;
}

}  // namespace stepop
