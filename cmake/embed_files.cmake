# Run by cmake -P: writes HEADER and SOURCE that hold FILES (separated by |) as arrays.
cmake_minimum_required(VERSION 3.25)
string(REPLACE "|" ";" FILES "${FILES}")
file(WRITE ${HEADER} "// Files embedded at build time, by base name.
#pragma once

#include <span>

#include \"embedded/file.h\"

namespace loadline::embedded {

// In the order of the build file.
std::span<const File> ${STEM}();

}  // namespace loadline::embedded
")
get_filename_component(header_name ${HEADER} NAME)
set(text "#include \"embedded/${header_name}\"\n\nnamespace loadline::embedded {\nnamespace {\n\n")
set(rows "")
set(number 0)
foreach(path IN LISTS FILES)
  file(READ ${path} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  get_filename_component(name ${path} NAME)
  string(APPEND text "constexpr unsigned char kFile${number}[] = {${bytes}0};\n")
  string(APPEND rows
    "    {\"${name}\", {reinterpret_cast<const char*>(kFile${number}), sizeof(kFile${number}) - 1}},\n")
  math(EXPR number "${number} + 1")
endforeach()
string(APPEND text "const File kFiles[] = {\n${rows}};\n\n}  // namespace\n\nstd::span<const File> ${STEM}() { return kFiles; }\n\n}  // namespace loadline::embedded\n")
file(WRITE ${SOURCE} "${text}")
