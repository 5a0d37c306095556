# What the headers of embedded files share.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/embedded/embedded/file.h @ONLY CONTENT [[
// A file embedded at build time.
#pragma once

#include <string_view>

namespace loadline::embedded {

struct File {
  std::string_view name;  // base name
  std::string_view bytes;
};

}  // namespace loadline::embedded
]])

# Embeds files as byte arrays.
# loadline_embed(TARGET HEADER FILE...) makes a static library TARGET with `HEADER` (included as
# "embedded/HEADER"), which declares loadline::embedded_file(name) over the files' base names.
function(loadline_embed target header)
  set(folder ${CMAKE_BINARY_DIR}/embedded)
  set(source ${folder}/${target}.cpp)
  string(REGEX REPLACE "\\.h$" "" stem ${header})
  list(JOIN ARGN "|" joined)
  add_custom_command(
    OUTPUT ${source} ${folder}/embedded/${header}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${source} -DHEADER=${folder}/embedded/${header} -DSTEM=${stem}
            "-DFILES=${joined}" -P ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
    VERBATIM)
  add_library(${target} STATIC ${source} ${folder}/embedded/${header})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC ${folder})
endfunction()
