# How a room is built: its flags, its library, its embedded assets.
add_library(loadline_options INTERFACE)
target_include_directories(loadline_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(loadline_options INTERFACE -Wall -Wextra -Wshadow -Wconversion
                       # g++ 12 sees overlaps in std::string that are not there (GCC bug 105651)
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
                       # g++ collects its garbage from 128 MiB on: a tenth and more of its time for memory to spare
                       $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>
                       $<$<BOOL:${LOADLINE_WERROR}>:-Werror>)
# What makes a fault in a reader of hostile files hard to use, in everything that is built; tests/bundle/hardened reads
# it from the programs. Sanitizers bring checks of their own, which fortified functions would hide from them; and
# those need an optimizer. Not marked for IBT and SHSTK, because Debian's start files are not.
if(NOT LOADLINE_SANITIZE)
  add_compile_options(-fPIE -fstack-protector-strong)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_compile_options(-fcf-protection=full)
  endif()
  if(NOT CMAKE_BUILD_TYPE STREQUAL Debug)
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  endif()
  add_link_options(-pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
if(LOADLINE_SANITIZE)
  target_compile_options(loadline_options INTERFACE -fsanitize=${LOADLINE_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all
                         # g++ does not follow initialization through what the sanitizers insert
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(NOT LOADLINE_SANITIZE STREQUAL thread)
    target_compile_options(loadline_options INTERFACE
                           $<$<CXX_COMPILER_ID:Clang>:-fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/asan.ignore>)
  endif()
  target_link_options(loadline_options INTERFACE -fsanitize=${LOADLINE_SANITIZE})
endif()

# A whole build parses the common headers once for each target. Builds of every day do without: there each
# file must include what it uses, and ccache shares objects between build folders.
function(loadline_precompile target)
  if(LOADLINE_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.h ${ARGN})
  endif()
endfunction()
if(LOADLINE_PRECOMPILE)
  # ccache finds such objects again when the header's time is not in them
  target_compile_options(loadline_options INTERFACE
                         $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
endif()

# loadline_assets(FOLDER): assets/FOLDER/*.json, embedded as the target embedded_FOLDER
function(loadline_assets folder)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/assets/${folder}/*.json)
  loadline_embed(embedded_${folder} ${folder}_files.h ${files})
endfunction()

# loadline_room(NAME [SOURCES...] [LINK targets...] [PRIVATE targets...]): a static library. A room lists its
# files with target_sources(), so that each can have its line of comment.
function(loadline_room name)
  cmake_parse_arguments(ROOM "" "" "LINK;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ROOM_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC loadline_options ${ROOM_LINK} PRIVATE ${ROOM_PRIVATE})
  loadline_precompile(${name})
  # what fuzzers can reach tells them which branches an input took
  if(LOADLINE_FUZZ AND name MATCHES "^(core_|importers|exporters)" AND NOT name STREQUAL core_gpu)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()
