// run_tokenizer encode TOKENIZER.json TEXTS.json [special]: encodes texts for the interop tests. The output
// is a JSON list of the lists of ids. `decode` takes lists of ids instead.
#include "core/base/error.h"
#include "core/tokenizer/encoder.h"
#include "core/tokenizer/gguf_tokenizer.h"
#include "core/tokenizer/model_tokenizer.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

namespace {

using namespace loadline;
using Json = nlohmann::json;

Json read_json(const char* path) {
  std::ifstream file(path);
  return Json::parse(file);
}

void print_gguf(const std::filesystem::path& folder, const std::string& pre) {
  const auto open = [&](const std::string& name) {
    return exists(folder / name) ? std::make_shared<const io::SourceFile>(io::SourceFile::open(folder / name))
                                 : nullptr;
  };
  const auto list = [&](const std::string& name) {
    std::vector<std::string> names;
    if (exists(folder / name))
      for (const auto& entry : std::filesystem::directory_iterator(folder / name))
        names.push_back(entry.path().filename());
    return names;
  };
  Json keys = Json::object();
  const tokenizer::ModelTokenizer model = tokenizer::read_model_tokenizer(open, list);
  tokenizer::GgufTokenizerRequest request;
  request.pre_tokenizer = pre;
  for (const tokenizer::GgufTokenizerKey& key : tokenizer::gguf_tokenizer(model, request).keys)
    std::visit([&](const auto& held) { keys[key.name] = held; }, key.value);
  std::cout << keys << '\n';
}

void run(int argc, char** argv) {
  const std::string task = argv[1];
  if (task == "gguf") return print_gguf(argv[2], argc > 3 ? argv[3] : "");
  if (argc < 4) throw Error(ErrorCode::usage, "ITEMS.json is missing");
  const tokenizer::Tokenizer tokenizer = tokenizer::read_tokenizer_json(io::SourceFile::open(argv[2]));
  const tokenizer::Encoder encoder(tokenizer);
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
  if (argc < 3) {
    std::fputs(
        "usage: run_tokenizer encode|decode TOKENIZER.json ITEMS.json [special]\n       run_tokenizer gguf "
        "FOLDER "
        "[PRE]\n",
        stderr);
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
