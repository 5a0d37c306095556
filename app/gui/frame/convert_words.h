// The words that ask for a conversion: "gguf out.gguf --outtype q8_0".
#pragma once

#include "app/gui/state/convert_task.h"

#include <string_view>

namespace loadline::gui {

// FORMAT FILE [--OPTION VALUE]..., with the options of `loadline convert`; the file may hold blanks. What is
// written replaces the file that is there, and is verified. Throws Error{usage}.
ConvertTask convert_words(std::string_view words);

}  // namespace loadline::gui
