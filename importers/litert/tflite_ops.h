// Names of LiteRT's built-in operators.
#pragma once

#include <cstdint>
#include <string>

namespace loadline {

// "CONV_2D"; "BUILTIN_400" for a code this version does not know.
std::string tflite_operator_name(std::int32_t code);

}  // namespace loadline
