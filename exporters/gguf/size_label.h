// How large a model is, in one word of its GGUF file.
#pragma once

#include "exporters/exporter.h"

#include <span>
#include <string>

namespace loadline {

// general.size_label as gguf-py (utility.py) makes it of the tensors of a file with llama.cpp's names:
// "8.0B", or "8x7.2B" where stacks of experts hold 8 each; that number is of what all tokens use and one
// expert.
std::string size_label(std::span<const Slot> slots);

}  // namespace loadline
