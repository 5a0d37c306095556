# Runs one command line and checks its exit code and output.
#   -DPROGRAM= -DARGS=a|b|c -DEXIT=N -DSTDOUT=regex -DSTDERR=regex -DFOLDER=dir
cmake_minimum_required(VERSION 3.25)
string(REPLACE "|" ";" ARGS "${ARGS}")
file(MAKE_DIRECTORY ${FOLDER}/out)
execute_process(COMMAND ${PROGRAM} ${ARGS} WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE code OUTPUT_VARIABLE out
                ERROR_VARIABLE err)
if(NOT code STREQUAL EXIT)
  message(FATAL_ERROR "exit code ${code}, expected ${EXIT}\n--- stdout\n${out}\n--- stderr\n${err}")
endif()
if(NOT out MATCHES "${STDOUT}")
  message(FATAL_ERROR "stdout does not match '${STDOUT}'\n--- stdout\n${out}\n--- stderr\n${err}")
endif()
if(NOT err MATCHES "${STDERR}")
  message(FATAL_ERROR "stderr does not match '${STDERR}'\n--- stdout\n${out}\n--- stderr\n${err}")
endif()
