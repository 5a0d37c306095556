// Graphs of every kind, shown or asked for.
#include "tests/gui/states.h"

#include "importers/resolve.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"
#include "tests/support/gguf_builder.h"

#include <array>

namespace loadline::gui {
namespace {

// A file with an array of 30,000 strings, there for as long as the program runs.
MetaGraphPtr vocabulary() {
  static const loadline::testing::TemporaryFolder folder;
  static const MetaGraphPtr graph = [] {
    std::vector<std::string> tokens;
    for (int i = 0; i < 30'000; ++i) tokens.push_back("token " + std::to_string(i) + "\x1b\n");
    loadline::testing::GgufBuilder builder;
    builder.key("general.architecture", "llama").tensor("token_embd.weight", {4, 4}, 0, 64);
    builder.strings("tokenizer.ggml.tokens", tokens);
    loadline::testing::write_file(folder / "vocabulary.gguf", builder.bytes());
    return std::make_shared<const MetaGraph>(open_model(folder / "vocabulary.gguf", {}));
  }();
  return graph;
}

constexpr State kStates[] = {
    {"empty", [](Workspace&) {}},
    {"tiny", [](Workspace& workspace) { workspace.show(tiny_graph(), ""); }},
    {"no_tensors", [](Workspace& workspace) { workspace.show(std::make_shared<const MetaGraph>(), ""); }},
    {"llama_70b", [](Workspace& workspace) { workspace.show(llama_70b_graph(), ""); }},
    {"many", [](Workspace& workspace) { workspace.show(many_tensors(20'000), ""); }},
    {"failed", [](Workspace& workspace) { workspace.open("/nonexistent"); }},
    {"unsound", [](Workspace& workspace) { workspace.show(unsound_graph(), ""); }},
    {"talkative", [](Workspace& workspace) { workspace.show(talkative_graph(), ""); }},
    {"shapes", [](Workspace& workspace) { workspace.show(shapes_graph(), ""); }},
    {"encoded", [](Workspace& workspace) { workspace.show(encoded_graph(), ""); }},
    {"operators", [](Workspace& workspace) { workspace.show(operator_graph(3), ""); }},
    {"many_operators",
     [](Workspace& workspace) {
       workspace.show(operator_graph(5000), "");
       workspace.document().operator_shown = 19'000;
       workspace.document().diagnose();
     }},
    {"architecture",
     [](Workspace& workspace) {
       workspace.show(preset_graph("llama-3-8b"), "");
       Asked asked = workspace.document().asked();
       asked.request.forward.profile = "hf_eager";
       asked.request.sequence = 2048;
       asked.first_token = true;
       workspace.document().ask(asked);
     }},
    {"experts",
     [](Workspace& workspace) {
       workspace.show(preset_graph("deepseek-v2-lite"), "");
       workspace.settings.fold_operators = false;
     }},
    {"encoder", [](Workspace& workspace) { workspace.show(preset_graph("bert-base-uncased"), ""); }},
    {"beyond_all_sizes",
     [](Workspace& workspace) {
       workspace.show(preset_graph("llama-3.1-70b"), "");
       Asked asked = workspace.document().asked();
       asked.request.batch = asked.request.sequence = asked.request.past = kMostTokens;
       workspace.document().ask(asked);
     }},
    {"figures_fail",
     [](Workspace& workspace) {
       auto graph = std::make_shared<MetaGraph>(*operator_graph(3));
       for (Value& value : graph->forward->values) {
         value.dtype = DType::f32;
         value.shape = {SizePoly(std::int64_t{1} << 31), SizePoly(std::int64_t{1} << 31)};
       }
       workspace.show(std::move(graph), "");
     }},
    {"no_asset", [](Workspace& workspace) { workspace.show(unknown_family_graph(), ""); }},
    {"annotated",
     [](Workspace& workspace) {
       workspace.show(annotated_graph(300'000), "");
       workspace.document().metadata.look_at(3);
       workspace.document().set_filter("size:>");
     }},
    {"vocabulary",
     [](Workspace& workspace) {
       workspace.show(vocabulary(), "");
       workspace.document().metadata.look_at(vocabulary()->metadata.size() - 1);
       workspace.document().metadata.array()->search("token 1");
       workspace.document().metadata.wants_element = 20'000;
       workspace.document().diagnose();
     }},
    {"array_of_no_file",
     [](Workspace& workspace) {
       MetaGraph graph = *tiny_graph();
       graph.metadata.push_back(
           {"gone", MetaArray{.element = MetaType::u8, .file = FileId{0}, .count = UINT64_MAX, .bytes = 8}});
       workspace.show(std::make_shared<const MetaGraph>(std::move(graph)), "");
       workspace.document().metadata.look_at(2);
       workspace.document().metadata.wants_element = UINT64_MAX;
     }},
    {"unknown_device",
     [](Workspace& workspace) {
       workspace.show(tiny_graph(), "");
       workspace.choose_device("no device is called this");
     }},
    {"unlisted_folder",
     [](Workspace& workspace) {
       workspace.browse("/nonexistent");
       workspace.wants_browser = true;
     }},
};

}  // namespace

std::span<const State> states() { return kStates; }

}  // namespace loadline::gui
