# One line per command line: cli_case(NAME EXIT "args" STDOUT regex STDERR regex). All run in one
# folder, where the fixture cases have made models: demo (random), 70b and xl (sparse).
set(CLI_FOLDER ${CMAKE_CURRENT_BINARY_DIR}/cli)

function(cli_case name exit args)
  cmake_parse_arguments(CASE "" "STDOUT;STDERR;SETUP" "" ${ARGN})
  separate_arguments(words UNIX_COMMAND "${args}")
  list(JOIN words "|" words)
  add_test(NAME cli.${name}
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:loadline> "-DARGS=${words}" -DEXIT=${exit}
            "-DSTDOUT=${CASE_STDOUT}" "-DSTDERR=${CASE_STDERR}" -DFOLDER=${CLI_FOLDER}
            -P ${CMAKE_CURRENT_SOURCE_DIR}/cli/run_case.cmake)
  if(CASE_SETUP)
    set_tests_properties(cli.${name} PROPERTIES FIXTURES_SETUP ${CASE_SETUP})
  else()
    set_tests_properties(cli.${name} PROPERTIES FIXTURES_REQUIRED "demo;seventy;xl")
  endif()
endfunction()

cli_case(synth_demo 0 "synth demo demo --random 1 --force" STDOUT "75 tensors.*seed 1" SETUP demo)
cli_case(synth_70b 0 "synth llama-3.1-70b 70b --sparse --force" STDOUT "723 tensors, 70.6 B parameters, 131.42 GiB" SETUP seventy)
cli_case(synth_xl 0 "synth gpt2-xl xl --force" STDOUT "580 tensors.*sparse" SETUP xl)

cli_case(version 0 "--version" STDOUT "^loadline [0-9]+\\.[0-9]+")
cli_case(help 0 "--help" STDOUT "inspect.*plan.*convert.*Exit codes")
cli_case(help_all 0 "--help-all" STDOUT "--staging")
cli_case(unknown_command 2 "frobnicate" STDERR "")
cli_case(unknown_option 2 "inspect demo --frobnicate" STDERR "frobnicate")
cli_case(missing_path 2 "inspect" STDERR "PATH is required")
cli_case(no_such_file 1 "inspect absent" STDERR "absent: (cannot open|no such)")
cli_case(no_such_file_json 1 "inspect absent --json" STDOUT "\"error\": \\{[^}]*\"code\": \"io\"" STDERR "absent")

cli_case(inspect 0 "inspect demo" STDOUT "llama.*31,990,272.*63,980,544 bytes")
cli_case(inspect_tree 0 "inspect demo --tree" STDOUT "7 more like 0")
cli_case(inspect_tensors 0 "inspect demo --tensors --sort size --limit 2" STDOUT "embed_tokens.weight.*lm_head.weight.*and 73 more")
cli_case(inspect_json 0 "inspect demo --json" STDOUT "\"schema_version\": 1.*\"tensor_count\": 75.*\"parameter_count\": 31990272.*\"stored_elements\".*\"tensor_bytes\": 63980544.*\"BF16\".*\"architecture\": \"llama\".*\"tied\".*\"missing\".*\"unclaimed\".*\"notes\".*\"open_ms\".*\"rss_anon_bytes\"")
cli_case(inspect_70b 0 "inspect 70b" STDOUT "141,107,412,992 bytes.*31, 131.42 GiB on disk")
cli_case(inspect_shard 0 "inspect 70b/model-00007-of-00030.safetensors" STDOUT "723.*opened the whole model")
cli_case(inspect_config 0 "inspect demo/config.json" STDOUT "shapes only")

cli_case(plan_table 0 "plan xl" STDOUT "state_dict +file +11.61 GiB +5.80 GiB.*sequential +file +6.10 GiB.*mmap_assign +file +5.80 GiB +- +5.80 GiB.*per_tensor +file +5.80 GiB +306.74 MiB.*staged_ring +file +5.80 GiB +- +- +64.00 MiB")
cli_case(plan_json 0 "plan xl --method staged_ring --json" STDOUT "\"bytes\": 6230444800.*\"rows\".*\"peak\".*\"staging\": 67108864.*\"device\": 6230444800.*\"peak_at\".*\"final\".*\"fits\".*\"lower_bound\"")
cli_case(plan_executorch 0 "plan xl --method executorch_before,executorch_after --activations 1GiB --order largest" STDOUT "before.*12.90 GiB.*after.*6.80 GiB")
cli_case(plan_fits 0 "plan xl --device-budget 6GiB" STDOUT "state_dict.*device over at.*mmap_assign.*fits")
cli_case(plan_no_fit 3 "plan xl --device-budget 5GiB" STDOUT "over at")
cli_case(plan_bare_unit 2 "plan xl --device-budget 5G" STDERR "ambiguous")
cli_case(plan_unknown_method 2 "plan xl --method nope" STDERR "there are: state_dict")
cli_case(plan_unknown_order 2 "plan xl --order nope" STDERR "there are: file")
cli_case(plan_config_alone 0 "plan demo/config.json --method per_tensor" STDOUT "61.02 MiB")

cli_case(convert_gguf 0 "convert demo out/demo.gguf --force --verify" STDOUT "read back and equal")
cli_case(convert_folder 0 "convert demo out/f16 --outtype f16 --max-shard-size 30MB --force --json" STDOUT "model-00001-of-00003.*xxh3.*\"bytes_written\".*\"peak_host_bytes\".*\"memory_budget\"")
cli_case(convert_dry_run 0 "convert demo nowhere/x.safetensors --dry-run" STDOUT "Would write 61.0")
cli_case(convert_unknown_extension 2 "convert demo out/demo.onnx" STDERR "no output format")
cli_case(convert_onto_itself 2 "convert demo demo --force" STDERR "is the folder of the model being read")
cli_case(convert_tiny_budget 2 "convert demo out/b.gguf --memory-budget 1KiB" STDERR "at least 128KiB")
cli_case(convert_without_weights 2 "convert demo/config.json out/c.gguf" STDERR "shapes only")

cli_case(synth_unknown 2 "synth no-such-preset out/x" STDERR "presets: demo")
cli_case(synth_exists 2 "synth demo demo" STDERR "--force")
cli_case(formats 0 "formats" STDOUT "safetensors.*gguf")
cli_case(formats_json 0 "formats --json" STDOUT "\"importers\".*\"exporters\".*\"dtypes\"")
