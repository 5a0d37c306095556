// How rows of Option<T> read and set members of the plain types. A member of a member is named by its path:
// flag_of<&Request::write, &WriteOptions::verify>.
#pragma once

#include "core/base/option.h"

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

namespace loadline {

template <typename T, typename Member>
T struct_with(Member T::*);
// The struct that a path begins in.
template <auto member>
using StructWith = decltype(struct_with(member));

template <auto member, auto... deeper, typename T>
auto& member_of(T& values) {
  if constexpr (sizeof...(deeper) == 0)
    return values.*member;
  else
    return member_of<deeper...>(values.*member);
}

inline OptionValue text_or_none(const std::string& text) {
  return text.empty() ? OptionValue() : OptionValue(text);
}
inline std::string text_in(const OptionValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text == nullptr ? std::string() : *text;
}

template <auto member, auto... deeper>
OptionValue number_of(const StructWith<member>& values) {
  return std::uint64_t{member_of<member, deeper...>(values)};
}
template <auto member, auto... deeper>
void set_number(StructWith<member>& values, const OptionValue& value) {
  auto& number = member_of<member, deeper...>(values);
  number = static_cast<std::remove_reference_t<decltype(number)>>(std::get<std::uint64_t>(value));
}

// Not set where it is 0.
template <auto member, auto... deeper>
OptionValue number_or_none(const StructWith<member>& values) {
  const std::uint64_t number = member_of<member, deeper...>(values);
  return number == 0 ? OptionValue() : OptionValue(number);
}
template <auto member, auto... deeper>
void set_number_or_none(StructWith<member>& values, const OptionValue& value) {
  const auto* const number = std::get_if<std::uint64_t>(&value);
  member_of<member, deeper...>(values) = number == nullptr ? 0 : *number;
}

template <auto member, auto... deeper>
OptionValue optional_number(const StructWith<member>& values) {
  const auto& number = member_of<member, deeper...>(values);
  return number ? OptionValue(*number) : OptionValue();
}
template <auto member, auto... deeper>
void set_optional_number(StructWith<member>& values, const OptionValue& value) {
  const auto* const number = std::get_if<std::uint64_t>(&value);
  member_of<member, deeper...>(values) = number == nullptr ? std::nullopt : std::optional(*number);
}

template <auto member, auto... deeper>
OptionValue flag_of(const StructWith<member>& values) {
  return member_of<member, deeper...>(values);
}
template <auto member, auto... deeper>
void set_flag(StructWith<member>& values, const OptionValue& value) {
  member_of<member, deeper...>(values) = std::get<bool>(value);
}

// Not set where it is empty.
template <auto member, auto... deeper>
OptionValue text_of(const StructWith<member>& values) {
  return text_or_none(member_of<member, deeper...>(values));
}
template <auto member, auto... deeper>
void set_text(StructWith<member>& values, const OptionValue& value) {
  member_of<member, deeper...>(values) = text_in(value);
}

}  // namespace loadline
