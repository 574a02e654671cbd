// Compiles fmt once. With the headers alone (FMT_HEADER_ONLY) each file would compile all of fmt
// again, which takes as long as the rest of the file. LibTorch brings fmt's headers but not its
// library, and fmt's library must have the same version as its headers.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
#if FMT_VERSION < 110000
template FMT_API locale_ref::locale_ref(const std::locale& loc);
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;
template FMT_API void buffer<char>::append(const char*, const char*);
template FMT_API void vformat_to(buffer<char>&, string_view, basic_format_args<format_context>,
                                 locale_ref);
#endif

}  // namespace detail
FMT_END_NAMESPACE
