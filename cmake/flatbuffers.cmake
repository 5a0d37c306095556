# loadline_flatbuffers(NAME FILE.fbs...): a library of headers that flatc generates, NAME_generated.h each.
function(loadline_flatbuffers name)
  set(folder ${PROJECT_BINARY_DIR}/flatbuffers)
  set(headers "")
  foreach(schema IN LISTS ARGN)
    get_filename_component(stem ${schema} NAME_WE)
    set(header ${folder}/${stem}_generated.h)
    add_custom_command(OUTPUT ${header}
      COMMAND flatbuffers::flatc --cpp -o ${folder} ${PROJECT_SOURCE_DIR}/${schema}
      DEPENDS ${PROJECT_SOURCE_DIR}/${schema} VERBATIM)
    list(APPEND headers ${header})
  endforeach()
  add_custom_target(${name}_headers DEPENDS ${headers})
  add_library(${name} INTERFACE)
  add_dependencies(${name} ${name}_headers)
  target_include_directories(${name} SYSTEM INTERFACE ${folder})
  target_link_libraries(${name} INTERFACE flatbuffers::flatbuffers)
endfunction()
