// The operators that assets may use, and what their lines may say.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace loadline {

struct OperatorInfo {
  std::string_view name;
  std::string_view attributes;  // what sizes its result, then what only profiles ask; separated by spaces
};

std::span<const OperatorInfo> operators();

// Nothing (nullptr) for a name that is no operator's.
const OperatorInfo* find_operator(std::string_view name);
bool has_attribute(const OperatorInfo& of, std::string_view attribute);

// "embed, norm, ...": for messages.
std::string operator_list();

}  // namespace loadline
