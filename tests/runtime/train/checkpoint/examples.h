#pragma once

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <string>

#include "runtime/core/formats/state.h"
#include "tests/places.h"

namespace stepop {

/// Runs safetensors_peer.py; the exit status.
inline int run_peer(const std::string& command, const std::string& path) {
  std::string python = STEPOP_SOURCE_DIR "/.venv/bin/python";
  if (!std::filesystem::exists(python)) python = "python3";
  return std::system(fmt::format("'{}' '{}/tests/runtime/core/formats/safetensors_peer.py' {} '{}'",
                                 python, STEPOP_SOURCE_DIR, command, path)
                         .c_str());
}

/// The tensors of `examples()` in safetensors_peer.py.
inline State examples() {
  const std::map<std::string, at::ScalarType> types = {
      {"F32", at::kFloat}, {"F64", at::kDouble}, {"F16", at::kHalf}, {"BF16", at::kBFloat16},
      {"I8", at::kChar},   {"I16", at::kShort},  {"I32", at::kInt},  {"I64", at::kLong},
      {"U8", at::kByte},   {"BOOL", at::kBool}};
  State tensors;
  for (const auto& [name, type] : types) {
    // Expanded, so the rows share memory.
    tensors[name + ".matrix"] = at::arange(-3, 4).abs().to(type).expand({2, 7});
    tensors[name + ".number"] = at::ones({}, type);
    tensors[name + ".empty"] = at::zeros({0, 3}, type);
  }
  float values[] = {0.1F, -1e30F, std::numeric_limits<float>::infinity()};
  tensors["\u00fcber/\"x\""] = at::from_blob(values, {3}).clone();
  tensors["transposed"] = at::arange(6, at::kFloat).reshape({2, 3}).t().requires_grad_();
  return tensors;
}

inline void check_equal(const State& found, const State& expected) {
  CHECK(found.size() == expected.size());
  for (const auto& entry : expected) {
    const auto& name = entry.first;
    const auto& tensor = entry.second;
    INFO(name);
    REQUIRE(found.contains(name));
    CHECK((found.at(name).scalar_type() == tensor.scalar_type()));
    CHECK(found.at(name).is_contiguous());
    CHECK(at::equal(found.at(name), tensor));
  }
}

}  // namespace stepop
