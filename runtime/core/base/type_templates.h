#pragma once

// For precompiled headers. Virtual functions of LibTorch's class templates are instantiated by
// Clang in each file that takes such a header, in 0.1 s, unless something within it calls them.

#ifdef __clang__
#include <ATen/core/jit_type.h>

namespace stepop {

/// Is never called.
template <c10::TypeKind kind, class Type>
bool instantiate_type(const Type& type) {
  using Base = c10::SingleElementType<kind, Type>;
  return type.Base::equals(type) && type.Base::containedTypes().empty();
}

inline bool instantiate_types(const c10::ListType& list, const c10::FutureType& future,
                              const c10::AwaitType& await, const c10::RRefType& reference) {
  return instantiate_type<c10::TypeKind::ListType>(list) &&
         instantiate_type<c10::TypeKind::FutureType>(future) &&
         instantiate_type<c10::TypeKind::AwaitType>(await) &&
         instantiate_type<c10::TypeKind::RRefType>(reference);
}

}  // namespace stepop
#endif
