// What commands ask and print, without a process.

#include "app/cli/base/terminal.h"
#include "app/cli/convert/conversion.h"
#include "app/cli/inspect/inspect_views.h"
#include "app/cli/plan/load_flags.h"
#include "app/cli/plan/plan_display.h"
#include "app/report/match_models.h"
#include "app/report/measured_loads.h"
#include "app/report/page_parts.h"
#include "app/report/row_text.h"
#include "core/base/error.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/known_models.h"
#include "core/inspect/doctor.h"
#include "core/io/atomic_file.h"
#include "core/load/request/load_options.h"
#include "exporters/convert.h"
#include "exporters/synth.h"
#include "importers/resolve.h"
#include "tests/forward/graph_builder.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace loadline::cli {

// --- What plan says of a forward pass whose operators nobody knows.

namespace {

graph::MetaGraph foreign(std::string_view config) {
  graph::MetaGraph graph;
  graph.format = "safetensors";
  graph.files = {{"m.safetensors", 1 << 20}};
  graph.storages = {graph::plain_storage(graph::FileId{0}, 0, 96 * 64 * 2)};
  graph.tensors = {{"layers.0.up.weight", graph::DType::bf16, {96, 64}, {}, graph::StorageId{0}, 0}};
  if (!config.empty()) graph.metadata = {{std::string(graph::kConfigKey), std::string(config)}};
  return graph;
}

// Whether these facts follow each other in a text.
bool tells(std::string_view text, std::string_view facts) {
  return (" " + testing::facts(text) + " ").find(facts) != std::string::npos;
}

TEST(ForwardText, AnUnknownFamilyGetsBoundsAndNoPass) {
  const graph::MetaGraph graph =
      foreign(R"({"architectures":["NewForCausalLM"],"num_hidden_layers":2,"hidden_size":64,
                                      "num_attention_heads":4,"torch_dtype":"bfloat16"})");
  const load::RequestPass answer(graph, {.batch = 2, .sequence = 16, .past = 4}, nullptr);
  EXPECT_EQ(answer.pass(), nullptr);
  const Json json = forward_json(answer);
  EXPECT_EQ(json["source"], "estimate");
  EXPECT_EQ(json["activation_lower_bound"], 2 * 16 * 96 * 2);
  EXPECT_EQ(json["kv_bytes"], 2 * 20 * 2 * 2 * 64 * 2);
  EXPECT_FALSE(json.contains("activation_peak"));
  EXPECT_TRUE(tells(forward_text(answer), " 6.00 ")) << forward_text(answer);
}

TEST(ForwardText, AConfigurationThatIsNoneLeavesTheLoad) {
  const graph::MetaGraph graph = foreign("{\"hidden_size\": 64,}");
  const load::RequestPass answer(graph, {.batch = 1, .sequence = 16}, nullptr);
  EXPECT_EQ(answer.pass(), nullptr);
  const std::string text = forward_text(answer);
  EXPECT_TRUE(tells(text, "config.json 1 20 '}'")) << text;
  EXPECT_EQ(text.find("json.exception"), std::string::npos);
}

struct Preset {
  explicit Preset(std::string_view id)
      : graph(forward::config_graph(forward::find_preset(id)->config_json, "config.json")) {}
  Json json(const load::LoadRequest& arguments) const {
    return forward_json(load::RequestPass(graph, arguments, nullptr));
  }
  std::string text(const load::LoadRequest& arguments) const {
    return forward_text(load::RequestPass(graph, arguments, nullptr));
  }
  graph::MetaGraph graph;
};

TEST(ForwardText, NotesWhatASequenceDoesNotSuit) {
  EXPECT_EQ(Preset("gpt2").json({.batch = 1, .sequence = 1024})["notes"], Json::array());
  const Json over = Preset("gpt2").json({.batch = 1, .sequence = 3000, .past = 48})["notes"];
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(testing::facts(over[0].get<std::string>()), "3,048 1,024 wpe.weight");
  EXPECT_EQ(Preset("opt-125m").json({.batch = 1, .sequence = 2048})["notes"], Json::array());
  EXPECT_TRUE(tells(Preset("opt-125m").text({.batch = 1, .sequence = 2049}), "2,049 2,048"));
  EXPECT_EQ(Preset("vit-base").json({.batch = 1, .sequence = 16})["notes"].size(), 1u);
}

TEST(ForwardText, AnEncoderRunsOnce) {
  const Preset whisper("whisper-tiny");
  const Json first = whisper.json({.batch = 1, .sequence = 448});
  const Json later = whisper.json({.batch = 1, .sequence = 1, .past = 447});
  EXPECT_TRUE(first["activation_peak_op"].get<std::string>().find("encoder.") != std::string::npos);
  EXPECT_TRUE(later["activation_peak_op"].get<std::string>().find("encoder.layers") == std::string::npos);
  EXPECT_EQ(later["kv_bytes"], first["kv_bytes"]);
  EXPECT_EQ(later["notes"].size(), first["notes"].size() + 1);
  // T5: six layers, keys and values of 512 source tokens and of 513 target tokens, 512 wide
  const Json t5 = Preset("t5-small").json({.batch = 1, .sequence = 1, .past = 512});
  EXPECT_EQ(t5["kv_bytes"], 6 * 2 * (512 + 513) * 512 * 4);
  EXPECT_TRUE(t5["activation_peak_op"].get<std::string>().find("encoder.block") == std::string::npos);
}

TEST(ForwardText, TellsWhatATokenAddsOnceWindowsAreFull) {
  const std::string text = Preset("gemma-3-1b").text({.batch = 1, .sequence = 4096});
  EXPECT_TRUE(tells(text, "26,624 512 4,096")) << text;
  const Json json = Preset("gemma-3-1b").json({.batch = 1, .sequence = 4096});
  EXPECT_EQ(json["kv_bytes_per_token"], 26'624);
  EXPECT_EQ(json["kv_bytes_per_next_token"], 4'096);
  EXPECT_EQ(Preset("llama-3-8b").text({.batch = 1, .sequence = 16}).find("until"), std::string::npos);
  // a window that no pass fills
  const graph::MetaGraph wide = forward::config_graph(
      R"({"model_type":"mistral","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
          "intermediate_size":96,"vocab_size":100,"sliding_window":4000000000000000000})",
      "config.json");
  for (const char* profile : {"fused", "ggml", "hf_eager", "hf_sdpa"}) {
    load::LoadRequest arguments = {.batch = 1, .sequence = 16, .past = 3};
    arguments.forward.profile = profile;
    EXPECT_EQ(forward_text(load::RequestPass(wide, arguments, nullptr)).find("until"), std::string::npos)
        << profile;
  }
}

TEST(ForwardText, SaysThatAPassIsOfTheTextModel) {
  const graph::MetaGraph graph = forward::config_graph(
      R"({"model_type":"gemma3","architectures":["Gemma3ForConditionalGeneration"],"vision_config":{},
          "text_config":{"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,
                         "head_dim":16,"intermediate_size":96,"vocab_size":100}})",
      "config.json");
  const load::RequestPass answer(graph, {.batch = 1, .sequence = 16}, nullptr);
  EXPECT_TRUE(tells(forward_text(answer), "vision_config")) << forward_text(answer);
  const std::vector<graph::Note> notes = forward::model_claims(graph, *forward::built_in_assets()).notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(testing::facts(notes[0].text), "vision_config");
}

// y = x + x with these sizes, all of them the file's own names unless they are B or S.
graph::MetaGraph file_graph(const std::vector<graph::NamedSize>& sizes) {
  graph::MetaGraph graph;
  graph.format = "onnx";
  graph.files = {{"m.onnx", 100}};
  testing::Builder::Sizes shape;
  for (const graph::NamedSize& size : sizes) shape.push_back(size.taken_as);
  graph::ForwardGraph forward = testing::Builder().op("Add", {"x"}, "y", shape).returns({"y"}).graph();
  for (const graph::NamedSize& size : sizes)
    if (const auto symbol = size.taken_as.as_symbol(); symbol && *symbol > graph::kPast)
      forward.symbols.push_back(size.name);
  forward.values[0].shape = shape;
  forward.sizes = sizes;
  graph.forward = forward;
  return graph;
}

graph::NamedSize named(const std::string& name, graph::SymbolId symbol, bool guessed = false) {
  return {name, graph::SizePoly::symbol(symbol), guessed};
}

std::string refusal(const graph::MetaGraph& graph, const load::LoadRequest& arguments) {
  return testing::facts_of([&] { const load::RequestPass answer(graph, arguments, nullptr); });
}

TEST(ForwardText, SizesByTheFilesOwnNames) {
  const graph::SymbolId own{3}, other{4};
  const graph::MetaGraph graph =
      file_graph({named("s77", graph::kBatch, true), named("height", own), named("width", other)});
  const load::RequestPass plain(graph, {.batch = 2, .sequence = 1}, nullptr);
  EXPECT_EQ(forward_json(plain)["dims"].dump(), R"({"s77":2,"height":1,"width":1})");
  const std::string text = forward_text(plain);
  EXPECT_TRUE(tells(text, "s77 --dim 1 --dim")) << text;

  const load::RequestPass chosen(graph, {.sizes = {{"height", 30}, {"s77", 5}}}, nullptr);
  EXPECT_EQ(forward_json(chosen)["dims"].dump(), R"({"s77":5,"height":30,"width":1})");
  EXPECT_EQ(forward_json(chosen)["batch"], 5);
  EXPECT_EQ(forward_json(chosen)["activation_peak"], 2 * 5 * 30 * 4);
  EXPECT_TRUE(tells(forward_text(chosen), "1 --dim")) << forward_text(chosen);
  ASSERT_NE(chosen.pass(), nullptr);
  EXPECT_EQ(chosen.pass()->symbols, (std::vector<std::uint64_t>{5, 1, 0, 30, 1}));
}

TEST(ForwardText, SizesThatCannotBeChosen) {
  const graph::MetaGraph graph = file_graph({named("batch", graph::kBatch), named("n", graph::kBatch)});
  EXPECT_EQ(refusal(graph, {.sizes = {{"depth", 3}}}), "usage 'depth'");
  EXPECT_EQ(refusal(graph, {.sizes = {{"batch", 3}, {"n", 4}}}), "usage 'batch' 'n' 3 4");
  EXPECT_EQ(refusal(graph, {.batch = 2, .sizes = {{"batch", 3}}}), "usage 2 3");
  EXPECT_EQ(refusal(graph, {.sizes = {{"batch", 3}, {"n", 3}}}), "");
  graph::MetaGraph total = graph;
  total.forward->sizes = {{"total",
                           *graph::SizePoly::sum(graph::SizePoly::symbol(graph::kSequence),
                                                 graph::SizePoly::symbol(graph::kPast)),
                           false}};
  EXPECT_EQ(refusal(total, {.sizes = {{"total", 3}}}), "usage 'total'");
  EXPECT_EQ(refusal(foreign(""), {.sizes = {{"batch", 3}}}), "usage");
}

TEST(ForwardText, AFileOfFixedSizesSaysSo) {
  graph::MetaGraph graph = file_graph({});
  for (graph::Value& value : graph.forward->values)
    value.shape = testing::Builder::Sizes{graph::SizePoly(4), graph::SizePoly(16)};
  const std::string text = forward_text(load::RequestPass(graph, {.batch = 2, .sequence = 8}, nullptr));
  EXPECT_TRUE(tells(text, "--batch --seq --past")) << text;
  graph.forward->values[1].shape.reset();
  const std::string bound = forward_text(load::RequestPass(graph, {.sequence = 8}, nullptr));
  EXPECT_NE(bound.find(" 1 value "), std::string::npos) << bound;
  graph.forward->ops[0].kind = "Loop";
  const std::string estimate = forward_text(load::RequestPass(graph, {.sequence = 8}, nullptr));
  EXPECT_NE(estimate.find("about"), std::string::npos) << estimate;
  EXPECT_TRUE(tells(estimate, "'onnxruntime' 'Loop'")) << estimate;
  graph.forward->values[0].shape.reset();
  const std::string nothing = forward_text(load::RequestPass(graph, {.sequence = 8}, nullptr));
  EXPECT_NE(nothing.find(" 2 values "), std::string::npos) << nothing;
  EXPECT_EQ(nothing.find("live values"), std::string::npos) << nothing;
}

TEST(ForwardText, WithoutAConfigurationThereIsNothingToSay) {
  const graph::MetaGraph graph = foreign("");
  EXPECT_THROW(load::RequestPass(graph, {.batch = 1, .sequence = 16}, nullptr), Error);
  const load::RequestPass unasked(graph, {}, nullptr);
  EXPECT_EQ(unasked.pass(), nullptr);
}

}  // namespace

// --- Options that would be ignored, what a page says was asked for, and requests as words.

namespace {

// A command line of `plan`, without PATH.
struct Line {
  explicit Line(std::vector<std::string> words) : flags(app, load::LoadUser::plan) {
    words.insert(words.begin(), "m");
    std::reverse(words.begin(), words.end());
    app.parse(std::move(words));
    request = flags.request();
  }
  CLI::App app;
  LoadFlags flags;
  load::LoadRequest request;
};

std::string refusal(std::vector<std::string> words) {
  return testing::error_of([&] {
    Line line(std::move(words));
    line.flags.require_used(line.request, load::find_methods(line.request.methods));
  });
}

TEST(LoadFlags, EachMethodSupportsWhatTheTableSays) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> options = {
      {"staging", {"--staging", "1MiB"}},          {"slots", {"--slots", "4"}},
      {"runai_buffer", {"--runai-buffer", "1GB"}}, {"cast", {"--cast", "f32"}},
      {"shard_size", {"--shard-size", "1GB"}},     {"flush", {"--flush", "1MB"}},
      {"doubled_ties", {"--doubled-ties"}},        {"gpu_layers", {"--gpu-layers", "1"}},
      {"place", {"--place", "name:x=host"}},       {"auto_map", {"--auto-map", "1GB"}}};
  for (const load::Method& method : load::methods()) {
    const std::vector<const load::LoadOption*> supported = load::supported_options(method);
    for (const auto& [id, words] : options) {
      const load::LoadOption* const option = load::find_load_option(id);
      const bool listed = std::find(supported.begin(), supported.end(), option) != supported.end();
      EXPECT_EQ(load::supports(method, *option), listed) << method.id << id;
      std::vector<std::string> line = words;
      line.insert(line.end(), {"--method", std::string(method.id)});
      const std::string told = refusal(line);
      EXPECT_EQ(told.empty(), listed) << method.id << id << told;
      if (listed) continue;
      EXPECT_TRUE(told.starts_with(words[0] + " ")) << told;
      EXPECT_NE(told.find(" " + std::string(method.id) + ":"), std::string::npos) << told;
      line.back() += ",all";
      EXPECT_EQ(refusal(line), "");
    }
    EXPECT_TRUE(load::supports(method, *load::find_load_option("activations")));
  }
}

TEST(LoadFlags, CountsWhatIsNamedTwiceOnce) {
  EXPECT_EQ(load::find_methods({"direct", "runai", "direct"}),
            (std::vector<const load::Method*>{&load::find_method("direct"), &load::find_method("runai")}));
  EXPECT_EQ(load::find_methods({"direct", "all"}).size(), load::methods().size());
  EXPECT_EQ(load::order_names({"name", "file", "name"}), (std::vector<std::string>{"name", "file"}));
}

TEST(LoadFlags, AllLeavesWhatIsNamedBesideIt) {
  const std::vector<std::string> names = load::order_names({"largest", "all", "heads.txt"});
  ASSERT_EQ(names.size(), load::orders().size() + 1);
  EXPECT_EQ(names.front(), "largest");
  EXPECT_EQ(names.back(), "heads.txt");
  EXPECT_EQ(load::find_methods({"direct", "all"}).front(), &load::find_method("direct"));
  EXPECT_THROW(load::find_methods({"all", "typo"}), Error);
}

TEST(LoadFlags, EightMethodsAreShownByDefault) {
  graph::MetaGraph graph;
  graph.format = "config";
  const std::vector<const load::Method*> shown = load::find_methods({}, graph);
  EXPECT_EQ(shown.size(), 8u);
  for (const char* id : {"to_device", "sequential", "mmap_assign", "transformers_v5", "accelerate",
                         "llama_cpp_mmap", "executorch_after", "staged_ring"})
    EXPECT_NE(std::find(shown.begin(), shown.end(), &load::find_method(id)), shown.end()) << id;
}

TEST(LoadFlags, NamesTheCompanyThatIsMissing) {
  EXPECT_EQ(testing::facts(refusal({"--profile", "fused"})), "--profile --seq --dim --context");
  EXPECT_EQ(testing::facts(refusal({"--batch", "2"})), "--batch --seq --context");
  EXPECT_EQ(refusal({"--profile", "fused", "--dim", "batch=2"}), "");
}

TEST(LoadFlags, SayWhichOneIsWrong) {
  EXPECT_EQ(testing::facts(refusal({"--slots", "0"})), "--slots 0 1");
  EXPECT_EQ(testing::facts(refusal({"--slots", "x"})), "--slots 'x' 2^64");
  EXPECT_EQ(testing::facts(refusal({"--staging", "64"})), "64 4 16,384 4,096");
  EXPECT_EQ(testing::facts(refusal({"--staging", "64M"})), "--staging '64M' 1024 1000");
  EXPECT_TRUE(refusal({"--method", "stagd_ring"}).ends_with(" staged_ring?"));
  EXPECT_TRUE(refusal({"--memory", "unifed"}).ends_with(" unified?"));
  EXPECT_NE(refusal({"--gpu-layers", "2", "--auto-map", "1GB"}), "");
}

// What a person asked for comes back from its own words: the command of an advice is one.
TEST(LoadFlags, RequestsAndWordsAreTheSame) {
  const Line line({"--method", "accelerate", "--order", "largest", "--place", "name:a, b=host", "--place",
                   "layer:0-3=disk", "--cast", "bf16", "--device-budget", "6GiB", "--seq", "16"});
  const Line again(request_arguments(line.request, load::find_method("accelerate")));
  EXPECT_EQ(again.request, line.request);
  EXPECT_EQ(line.request.place.size(), 2u);
  EXPECT_EQ(request_words(load::LoadRequest{.methods = {"direct"}, .staging_bytes = 1 << 20},
                          load::find_method("direct")),
            " --method direct --order file");
}

TEST(AskedFor, HoldsWhatIsNotTheDefault) {
  const Line line({"--runai-buffer", "1GB", "--flush", "5MB", "--doubled-ties", "--allocator", "torch",
                   "--place", "a=host", "--place", "b=disk", "--method", "runai,direct"});
  const report::OptionList list = report::asked_for(line.request, plan::MemoryKind::discrete);
  const auto value = [&](std::string_view name) {
    const auto found =
        std::find_if(list.begin(), list.end(), [&](const auto& row) { return row.first == name; });
    return found == list.end() ? "" : found->second;
  };
  EXPECT_EQ(value("Run:ai buffer"), "953.67 MiB");
  EXPECT_EQ(value("Flush threshold"), "4.77 MiB");
  EXPECT_EQ(value("Doubled ties"), "yes");
  EXPECT_EQ(value("Allocator"), "torch");
  EXPECT_EQ(value("Placement rules"), "a=host; b=disk");
  EXPECT_EQ(value("Methods"), "runai, direct");
  EXPECT_EQ(value("Staging ring"), "64.00 MiB");
  EXPECT_EQ(value("Ring slots"), "4");
  EXPECT_EQ(value("Memory"), "discrete");
  EXPECT_EQ(value("Cast"), "");
  EXPECT_EQ(list.size(), 9u);
}

TEST(MeasuredLoad, WhatIsSmallIsNotJudged) {
  constexpr std::uint64_t kMiB = 1 << 20;
  report::MeasuredLoad row;
  row.counters.resize(2);
  std::uint64_t &projected = row.counters[1].projected, &measured = row.counters[1].measured;
  row.counters[0].projected = 15 * kMiB;
  EXPECT_EQ(row.agrees(), std::nullopt);
  measured = 16 * kMiB - 1;
  EXPECT_EQ(row.agrees(), std::nullopt);
  measured = 16 * kMiB;  // as much as may lie between them
  EXPECT_EQ(row.agrees(), true);
  measured = 17 * kMiB;
  EXPECT_EQ(row.agrees(), false);
  projected = 1000 * kMiB;
  measured = 1020 * kMiB;
  EXPECT_EQ(row.agrees(), true);
  measured = 1021 * kMiB;
  EXPECT_EQ(row.agrees(), false);
}

}  // namespace

}  // namespace loadline::cli

namespace loadline::tests {

// --- What mends a fault must exist: every remedy names an option of one of the three tables and a value for
// it.

namespace {

// Throws Error{usage} where the option does not take the value; false where there is no such option.
bool takes(const Remedy& remedy) {
  for (const auto& option : importers::open_options())
    if (option.id == remedy.option) {
      importers::ResolveOptions values;
      set_option(option, values, remedy.value);
      return true;
    }
  if (const auto* const option = find_option(exporters::convert_options(), remedy.option)) {
    exporters::ConvertRequest values;
    set_option(*option, values, remedy.value);
    return true;
  }
  if (load::find_load_option(remedy.option) == nullptr) return false;
  load::LoadRequest values;
  load::set_load_option(values, remedy.option, remedy.value);
  return true;
}

// Each {"id", "value"} in the sources of the core that stands where a remedy does.
std::set<std::pair<std::string, std::string>> remedies_in_sources() {
  namespace fs = std::filesystem;
  std::set<std::pair<std::string, std::string>> found;
  const std::regex with(R"re(\.with\(\{"([a-z_]+)", "([^"]*)"\}\))re");
  const std::regex settings(R"re(\.settings = \{(.*)\})re");
  const std::regex pair(R"re(\{"([a-z_]+)", "([^"]*)"\})re");
  for (const char* folder : {"core", "importers", "exporters"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(LOADLINE_SOURCES) / folder)) {
      if (entry.path().extension() != ".cpp") continue;
      std::stringstream stream;
      stream << std::ifstream(entry.path()).rdbuf();
      const std::string text = stream.str();
      for (std::sregex_iterator at(text.begin(), text.end(), with), end; at != end; ++at)
        found.emplace((*at)[1], (*at)[2]);
      for (std::sregex_iterator at(text.begin(), text.end(), settings), end; at != end; ++at) {
        const std::string list = (*at)[1];
        for (std::sregex_iterator one(list.begin(), list.end(), pair); one != end; ++one)
          found.emplace((*one)[1], (*one)[2]);
      }
    }
  return found;
}

TEST(Remedies, NameOptionsThatThereAre) {
  const auto found = remedies_in_sources();
  EXPECT_GE(found.size(), 7u);
  for (const auto& [option, value] : found) {
    SCOPED_TRACE(option + " " + value);
    EXPECT_TRUE(takes({option, value}));
  }
  EXPECT_FALSE(takes({"nothing", "on"}));
  EXPECT_TRUE(found.contains({"follow_links", "on"}));
  EXPECT_TRUE(found.contains({"force", "on"}));
  EXPECT_TRUE(found.contains({"align", "64"}));
}

TEST(Remedies, GoWithTheError) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "there", "x");
  io::AtomicFile file(folder / "there");
  file.sync();
  try {
    file.rename_into_place(false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.remedy(), (Remedy{"force", "on"}));
    EXPECT_EQ(std::string(error.what()).find("--"), std::string::npos);
  }
  try {
    (void)exporters::exporter_for_output("model.xyz");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.remedy(), (Remedy{"to", "safetensors"}));
  }
}

}  // namespace

}  // namespace loadline::tests

namespace loadline::report {

// --- A Hugging Face model beside its GGUF file: the keys that say how it runs.

namespace {

constexpr const char* kConfig = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 320, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
  "rope_theta": 10000.0, "torch_dtype": "float32"})";

class ModelAndFile : public ::testing::Test {
 protected:
  ModelAndFile() {
    Progress progress;
    exporters::synthesize(forward::config_graph(kConfig, "config.json"), folder_ / "m", {.seed = 1},
                          progress);
    exporters::synthesize(forward::config_graph(kConfig, "config.json"), folder_ / "m.gguf",
                          {.seed = 1, .to = "gguf"}, progress);
  }

  // "key: a | b", with "-" for what a model has not
  std::vector<std::string> differences(bool file_first = false) {
    const graph::MetaGraph model = importers::open_model(folder_ / "m", {}),
                           file = importers::open_model(folder_ / "m.gguf", {});
    Progress progress;
    std::vector<std::string> lines;
    for (const inspect::MetadataDifference& found :
         file_first ? diff_model_metadata(file, model, true, progress, problem_)
                    : diff_model_metadata(model, file, true, progress, problem_))
      lines.push_back(found.key + ": " + found.a.value_or("-") + " | " + found.b.value_or("-"));
    return lines;
  }

  // Replaces one text in the model's config.json.
  void set(const std::string& from, const std::string& to) {
    const std::string path = folder_ / "m" + "/config.json";
    std::ifstream in(path);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    std::ofstream(path) << text.replace(at, from.size(), to);
  }

  testing::TemporaryFolder folder_;
  std::string problem_;
};

using Lines = std::vector<std::string>;

TEST_F(ModelAndFile, HaveTheSameKeys) {
  EXPECT_EQ(differences(), Lines());
  EXPECT_EQ(differences(true), Lines());
  EXPECT_EQ(problem_, "");
}

TEST_F(ModelAndFile, AnotherSettingIsAnotherKey) {
  set("10000", "5000");
  EXPECT_EQ(differences(), Lines{"llama.rope.freq_base: 5000 | 10000"});
  EXPECT_EQ(differences(true), Lines{"llama.rope.freq_base: 10000 | 5000"});
}

TEST_F(ModelAndFile, AModelThatCannotBeMappedSaysWhy) {
  set("num_attention_heads", "number_of_heads");
  EXPECT_EQ(differences(), Lines());
  EXPECT_EQ(testing::facts(problem_),
            "config.json 'H' llama.json 16 71 'model_type' 'hidden_size' 'head_dim' 'num_attention_heads'");
}

}  // namespace

}  // namespace loadline::report

namespace loadline::cli {

// --- What commands print, asked without a process: rows of JSON, and that Ctrl-C reaches long lists.

namespace {

graph::MetaGraph three_tensors() {
  graph::MetaGraph graph;
  graph.files = {{"m.safetensors", 100}};
  graph.storages = {graph::plain_storage(graph::FileId{0}, 10, 24)};
  graph.tensors = {{"a\n\"b\"", graph::DType::f32, {2, 3}, {}, graph::StorageId{0}, 0},
                   {"scalar", graph::DType::u8, {}, {}, graph::StorageId{0}, 3},
                   {"t", graph::DType::f32, {3, 2}, {1, 3}, graph::StorageId{0}, 0}};
  return graph;
}

TEST(JsonRows, AreTheArrayThatWouldBePrinted) {
  JsonRows rows("tensors");
  EXPECT_EQ(rows.text(), "");
  Json array = Json::array();
  for (const Json& row : {Json{{"name", "x\n  y"}, {"shape", Json::array()}, {"bytes", 3}},
                          Json{{"name", "\xC3\xA9"}, {"shape", {1, 2}}}, Json("text"), Json::object()}) {
    rows.add(row);
    array.push_back(row);
  }
  EXPECT_EQ("{\n  \"tensors\": [" + rows.text() + "\n  ]\n}", Json({{"tensors", array}}).dump(2, ' ', true));
}

TEST(TensorsJson, HoldsEveryTensorAndItsPlace) {
  const graph::MetaGraph graph = three_tensors();
  const Selection all = {"", graph::all_tensors(graph), 24};
  const Json json = Json::parse("[" + tensors_json({}, graph, all, 0).text() + "]");
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[0]["name"], "a\n\"b\"");
  EXPECT_EQ(json[1]["shape"], Json::array());
  EXPECT_EQ(json[1]["offset"], 13);
  EXPECT_EQ(json[2]["strides"], Json({1, 3}));
  EXPECT_EQ(Json::parse("[" + tensors_json({}, graph, all, 1).text() + "]").size(), 1u);
}

TEST(TensorsJson, StopsWhenAsked) {
  const graph::MetaGraph graph = three_tensors();
  const Selection all = {"", graph::all_tensors(graph), 24};
  std::stop_source stop;
  Context context;
  context.stop = stop.get_token();
  EXPECT_NO_THROW(tensors_json(context, graph, all, 0));
  stop.request_stop();
  EXPECT_THROW(tensors_json(context, graph, all, 0), Error);
  EXPECT_THROW(print_tensors(context, graph, all, 0), Error);
}

}  // namespace

// --- Which share a process takes from the variables of Slurm and MPI.

namespace {

exporters::WriteShare share(const std::map<std::string, std::string>& environment) {
  return share_from_environment([&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  });
}

TEST(Ranks, ComeFromSlurmAndMpi) {
  EXPECT_EQ(share({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}),
            (exporters::WriteShare{2, 4}));
  EXPECT_EQ(share({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}), (exporters::WriteShare{0, 3}));
  EXPECT_EQ(share({{"SLURM_PROCID", "7"}, {"SLURM_NTASKS", "8"}}), (exporters::WriteShare{7, 8}));
  // mpirun in a job of one task; an array whose tasks have a rank 0 each, counted from 1
  EXPECT_EQ(share({{"SLURM_PROCID", "0"},
                   {"SLURM_NTASKS", "1"},
                   {"OMPI_COMM_WORLD_RANK", "1"},
                   {"OMPI_COMM_WORLD_SIZE", "2"}}),
            (exporters::WriteShare{1, 2}));
  EXPECT_EQ(share({{"SLURM_ARRAY_TASK_ID", "4"},
                   {"SLURM_ARRAY_TASK_MIN", "1"},
                   {"SLURM_ARRAY_TASK_COUNT", "4"},
                   {"SLURM_PROCID", "0"},
                   {"SLURM_NTASKS", "1"}}),
            (exporters::WriteShare{3, 4}));
}

TEST(Ranks, WhatDoesNotFitIsAnError) {
  EXPECT_THROW(share({}), Error);
  EXPECT_THROW(share({{"PMI_RANK", "x"}, {"PMI_SIZE", "3"}}), Error);
  EXPECT_THROW(share({{"PMI_RANK", "1"}}), Error);
  EXPECT_THROW(share({{"PMI_RANK", "3"}, {"PMI_SIZE", "3"}}), Error);
  // an array with steps leaves gaps
  EXPECT_THROW(
      share({{"SLURM_ARRAY_TASK_ID", "6"}, {"SLURM_ARRAY_TASK_MIN", "0"}, {"SLURM_ARRAY_TASK_COUNT", "4"}}),
      Error);
}

}  // namespace

// --- The sentence about what an order gains.

namespace {

std::string gain_facts(const std::vector<report::OrderFigures>& rows) {
  const std::string text = report::order_gain_text(rows, "on the device");
  EXPECT_NE(text, "");
  return testing::facts(text);
}

TEST(OrderGain, NamesTheFurthestBelowFileOrder) {
  std::vector<report::OrderFigures> rows = {
      {"m", "file", true, 5000, 1, 1.0},  {"m", "name", false, 4000, 7, 1.5},
      {"m", "\x1b", false, 4000, 3, 0.5}, {"n", "file", true, 9000, 1, 1.0},
      {"n", "name", false, 8500, 7, 1.5}, {"o", "name", false, 1, 7, 1.5}};
  EXPECT_EQ(gain_facts(rows), "x1b 3.91 4.88 1000 3 1 500.0");
  rows[2].jumps = 1;
  EXPECT_EQ(gain_facts(rows), "x1b 3.91 4.88 1000 1 1 500.0");
  rows.resize(2);
  rows[1].peak = 6000;
  EXPECT_EQ(gain_facts(rows), "7");
  rows[1].jumps = 1;
  EXPECT_EQ(gain_facts(rows), "1");
  rows[1].jumps = 0;
  EXPECT_EQ(gain_facts(rows), "");
}

TEST(OrderGain, SaysNothingWithoutSomethingToCompare) {
  EXPECT_EQ(report::order_gain_text({}, "on the device"), "");
  EXPECT_EQ(report::order_gain_text(std::vector<report::OrderFigures>{{"m", "file", true, 5, 1, 1}},
                                    "on the device"),
            "");
  EXPECT_EQ(report::order_gain_text(std::vector<report::OrderFigures>{{"m", "name", false, 5, 1, 1}},
                                    "on the device"),
            "");
}

}  // namespace

// --- Words of a command line that is printed.

namespace {

TEST(ShellWord, IsQuotedWhereItMustBe) {
  EXPECT_EQ(shell_word("--staging"), "--staging");
  EXPECT_EQ(shell_word("models/gpt2-xl_v1.safetensors"), "models/gpt2-xl_v1.safetensors");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("$(rm)"), "'$(rm)'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("name:*=host"), "'name:*=host'");
}

TEST(ShellWord, LetsNothingReachTheTerminal) {
  EXPECT_EQ(shell_word("a\nb"), "$'a\\012b'");
  EXPECT_EQ(shell_word("\x1b[2J"), "$'\\033\\1332J'");
  EXPECT_EQ(shell_word("it's\a"), "$'it\\047s\\007'");
}

}  // namespace

}  // namespace loadline::cli
