#include "runtime/core/base/error.h"

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <cstdlib>
#include <string>
#include <typeinfo>

namespace stepop {
namespace {

/// The type of the current exception, as in source code.
std::string current_exception_type() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "an unknown type";
  int status = 0;
  char* name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
  std::string text = status == 0 ? name : type->name();
  std::free(name);
  return text;
}

}  // namespace

std::string error_text(const std::exception& error) {
  const auto* from_torch = dynamic_cast<const c10::Error*>(&error);
  return from_torch != nullptr ? from_torch->what_without_backtrace() : error.what();
}

std::string text_of_current_exception() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error_text(error);
  } catch (const std::string& text) {
    return text;
  } catch (const char* text) {
    return text != nullptr ? text : "threw a null text";
  } catch (int number) {
    return "threw the number " + std::to_string(number);
  } catch (...) {
    return "threw a " + current_exception_type() + ", which is not a std::exception";
  }
}

}  // namespace stepop
