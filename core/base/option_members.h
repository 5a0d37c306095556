// Getters and setters for members of plain structs, for rows of Option<T>. A nested member is named by its
// path: access::flag<&Request::write, &WriteOptions::verify>.
#pragma once

#include "core/base/option.h"

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace loadline::access {

template <typename T, typename Member>
T struct_with(Member T::*);
// The struct that the member pointer belongs to.
template <auto member>
using StructWith = decltype(struct_with(member));

template <auto member, auto... deeper, typename T>
auto& member_of(T& values) {
  if constexpr (sizeof...(deeper) == 0)
    return (values.*member);
  else
    return member_of<deeper...>(values.*member);
}

inline std::string text_in(const OptionValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text == nullptr ? std::string() : *text;
}

template <auto first, auto... deeper>
constexpr Access<StructWith<first>> number = {
    [](const auto& values) -> OptionValue { return std::uint64_t{member_of<first, deeper...>(values)}; },
    [](auto& values, const OptionValue& value) {
      auto& member = member_of<first, deeper...>(values);
      member = static_cast<std::remove_reference_t<decltype(member)>>(std::get<std::uint64_t>(value));
    }};

// A number for which 0 means not set.
template <auto first, auto... deeper>
constexpr Access<StructWith<first>> number_or_none = {
    [](const auto& values) {
      const std::uint64_t number = member_of<first, deeper...>(values);
      return number == 0 ? OptionValue() : OptionValue(number);
    },
    [](auto& values, const OptionValue& value) {
      const auto* const number = std::get_if<std::uint64_t>(&value);
      auto& member = member_of<first, deeper...>(values);
      member = static_cast<std::remove_reference_t<decltype(member)>>(number == nullptr ? 0 : *number);
    },
    true};

template <auto first, auto... deeper>
constexpr Access<StructWith<first>> optional_number = {
    [](const auto& values) {
      const auto& member = member_of<first, deeper...>(values);
      return member ? OptionValue(*member) : OptionValue();
    },
    [](auto& values, const OptionValue& value) {
      const auto* const number = std::get_if<std::uint64_t>(&value);
      member_of<first, deeper...>(values) = number == nullptr ? std::nullopt : std::optional(*number);
    },
    true};

template <auto first, auto... deeper>
constexpr Access<StructWith<first>> flag = {
    [](const auto& values) -> OptionValue { return member_of<first, deeper...>(values); },
    [](auto& values, const OptionValue& value) {
      member_of<first, deeper...>(values) = std::get<bool>(value);
    }};

// A text for which empty means not set.
template <auto first, auto... deeper>
constexpr Access<StructWith<first>> text = {
    [](const auto& values) {
      const std::string& member = member_of<first, deeper...>(values);
      return member.empty() ? OptionValue() : OptionValue(member);
    },
    [](auto& values, const OptionValue& value) { member_of<first, deeper...>(values) = text_in(value); },
    true};

// A std::optional written as a word: parse(std::string) and print() convert between the two.
template <auto parse, auto print, auto first, auto... deeper>
constexpr Access<StructWith<first>> word = {[](const auto& values) {
                                              const auto& member = member_of<first, deeper...>(values);
                                              return member ? OptionValue(std::string(print(*member)))
                                                            : OptionValue();
                                            },
                                            [](auto& values, const OptionValue& value) {
                                              const std::string text = text_in(value);
                                              auto& member = member_of<first, deeper...>(values);
                                              member.reset();
                                              if (!text.empty()) member = parse(text);
                                            },
                                            true};

// A vector whose elements are each written as a word. Empty means not set.
template <auto parse, auto print, auto first, auto... deeper>
constexpr Access<StructWith<first>> words = {
    [](const auto& values) {
      std::vector<std::string> texts;
      for (const auto& element : member_of<first, deeper...>(values)) texts.emplace_back(print(element));
      return texts.empty() ? OptionValue() : OptionValue(std::move(texts));
    },
    [](auto& values, const OptionValue& value) {
      std::remove_reference_t<decltype(member_of<first, deeper...>(values))> elements;
      if (const auto* const texts = std::get_if<std::vector<std::string>>(&value))
        for (const std::string& text : *texts) elements.push_back(parse(text));
      member_of<first, deeper...>(values) = std::move(elements);
    },
    true};

}  // namespace loadline::access
