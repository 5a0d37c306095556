// Makes a config.json say what the weights beside it have become.
#pragma once

#include "core/graph/dtype_and_shape.h"

#include <string>

namespace loadline {

// `text` with every "dtype" and "torch_dtype" of the model and of its parts (text_config, ...) set to
// `outtype`; one is added if there is none. With `unpacked`, what says how weights were packed is removed:
// "quantization_config", "quantization" and "compression_config". The order of keys stays. A text that is no
// JSON object is returned as it is.
std::string cast_config(const std::string& text, DType outtype, bool unpacked);

}  // namespace loadline
