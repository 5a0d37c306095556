// run_tokenizer encode FILE TEXTS.json [special]: encodes texts for the interop tests. FILE is a
// tokenizer.json or a SentencePiece model; the output is a JSON list of the lists of ids. `decode` takes
// lists of ids instead.
#include "core/base/error.h"
#include "core/tokenizer/encoder.h"
#include "core/tokenizer/read_tokenizer.h"

#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

namespace {

using namespace loadline;
using Json = nlohmann::json;

Tokenizer read_any(const std::string& path) {
  const SourceFile file = SourceFile::open(path);
  return path.ends_with(".json") ? read_tokenizer_json(file) : read_sentencepiece(file);
}

Json read_json(const char* path) {
  std::ifstream file(path);
  return Json::parse(file);
}

void run(int argc, char** argv) {
  const std::string task = argv[1];
  const Tokenizer tokenizer = read_any(argv[2]);
  const Encoder encoder(tokenizer);
  Json results = Json::array();
  for (const Json& item : read_json(argv[3])) {
    if (task == "decode") {
      results.push_back(encoder.decode(item.get<std::vector<std::uint32_t>>()));
    } else {
      results.push_back(encoder.encode(item.get<std::string>(), argc > 4));
    }
  }
  std::cout << results << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: run_tokenizer encode|decode FILE ITEMS.json [special]\n", stderr);
    return 2;
  }
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
