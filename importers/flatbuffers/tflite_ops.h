// Names of LiteRT's built-in operators.
#pragma once

#include <cstdint>
#include <string>

namespace loadline {

// "CONV_2D"; for an unknown code "BUILTIN_400".
std::string tflite_operator_name(std::int32_t code);

}  // namespace loadline
