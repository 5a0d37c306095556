// Names of tensors as names of .npy files, and back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace loadline {

inline constexpr std::string_view kNpyExtension = ".npy";

// The file name of an array. Bytes that file names cannot hold or that would lead out of a folder or hide the
// file become % and two hexadecimal digits: '/', '\\', ':', '%', control characters, a '.' at the beginning,
// and all bytes from 0x80 on unless the name is UTF-8. Nothing for names that no file can have: empty ones,
// and those that would take more than 255 bytes.
std::optional<std::string> npy_file_name(std::string_view tensor);

// The tensor's name: what npy_file_name() was given, or the file name without its extension if that function
// does not give this file name.
std::string npy_tensor_name(std::string_view file);

}  // namespace loadline
