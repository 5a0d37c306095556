// Drivers, frames that are thrown away, glyphs read back, graphs of every kind.
#include "tests/gui/harness.h"

#include "app/gui/window/still_window.h"
#include "core/base/error.h"
#include "importers/resolve.h"
#include "tests/gui/sample_graphs.h"
#include "tests/support/builders.h"
#include "tests/support/gguf_builder.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include <dlfcn.h>
#include <imgui.h>
#include <imgui_internal.h>

namespace loadline::gui {

// --- Graphs of every kind, shown or asked for.

namespace {

// A file with an array of 30,000 strings, there for as long as the program runs.
graph::MetaGraphPtr vocabulary() {
  static const loadline::testing::TemporaryFolder folder;
  static const graph::MetaGraphPtr graph = [] {
    std::vector<std::string> tokens;
    for (int i = 0; i < 30'000; ++i) tokens.push_back("token " + std::to_string(i) + "\x1b\n");
    loadline::testing::GgufBuilder builder;
    builder.key("general.architecture", "llama").tensor("token_embd.weight", {4, 4}, 0, 64);
    builder.strings("tokenizer.ggml.tokens", tokens);
    loadline::testing::write_file(folder / "vocabulary.gguf", builder.bytes());
    return std::make_shared<const graph::MetaGraph>(importers::open_model(folder / "vocabulary.gguf", {}));
  }();
  return graph;
}

constexpr State kStates[] = {
    {"empty", [](Workspace&) {}},
    {"tiny", [](Workspace& workspace) { workspace.show(tiny_graph(), ""); }},
    {"no_tensors",
     [](Workspace& workspace) { workspace.show(std::make_shared<const graph::MetaGraph>(), ""); }},
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
       workspace.document().forward.shown = 19'000;
       workspace.document().checks.diagnose();
     }},
    {"architecture",
     [](Workspace& workspace) {
       workspace.show(preset_graph("llama-3-8b"), "");
       Asked asked = workspace.document().load.asked();
       asked.request.forward.profile = "hf_eager";
       asked.request.sequence = 2048;
       asked.first_token = true;
       workspace.document().load.ask(asked);
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
       Asked asked = workspace.document().load.asked();
       asked.request.batch = asked.request.sequence = asked.request.past = load::kMostTokens;
       workspace.document().load.ask(asked);
     }},
    {"figures_fail",
     [](Workspace& workspace) {
       auto graph = std::make_shared<graph::MetaGraph>(*operator_graph(3));
       for (graph::Value& value : graph->forward->values) {
         value.dtype = graph::DType::f32;
         value.shape = {graph::SizePoly(std::int64_t{1} << 31), graph::SizePoly(std::int64_t{1} << 31)};
       }
       workspace.show(std::move(graph), "");
     }},
    {"no_asset", [](Workspace& workspace) { workspace.show(unknown_family_graph(), ""); }},
    {"annotated",
     [](Workspace& workspace) {
       workspace.show(annotated_graph(300'000), "");
       workspace.document().metadata.look_at(3);
       workspace.document().table.set_filter("size:>");
     }},
    {"vocabulary",
     [](Workspace& workspace) {
       workspace.show(vocabulary(), "");
       workspace.document().metadata.look_at(vocabulary()->metadata.size() - 1);
       workspace.document().metadata.array()->search("token 1");
       workspace.document().metadata.wants_element = 20'000;
       workspace.document().checks.diagnose();
     }},
    {"array_of_no_file",
     [](Workspace& workspace) {
       graph::MetaGraph graph = *tiny_graph();
       graph.metadata.push_back(
           {"gone",
            graph::MetaArray{
                .element = graph::MetaType::u8, .file = graph::FileId{0}, .count = UINT64_MAX, .bytes = 8}});
       workspace.show(std::make_shared<const graph::MetaGraph>(std::move(graph)), "");
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
       workspace.places.browse("/nonexistent");
       workspace.services.requests.add(OpenBrowser{});
     }},
};

}  // namespace

std::span<const State> states() { return kStates; }

// --- A glyph is four corners that show its own place in the font atlas.

namespace {

struct FontGlyph {
  const ImFontGlyph* glyph = nullptr;
  const ImFont* font = nullptr;
};
using Glyphs = std::map<std::pair<float, float>, FontGlyph>;  // by their upper left corner

Glyphs glyphs_of(const ImFontAtlas& atlas) {
  Glyphs glyphs;
  for (const ImFont* font : atlas.Fonts)
    for (const ImFontGlyph& glyph : font->Glyphs)
      if (glyph.Visible) glyphs.insert({{glyph.U0, glyph.V0}, {&glyph, font}});
  return glyphs;
}

bool shows(const ImDrawVert* corners, const ImFontGlyph& glyph) {
  return corners[1].uv.x == glyph.U1 && corners[1].uv.y == glyph.V0 && corners[2].uv.x == glyph.U1 &&
         corners[2].uv.y == glyph.V1 && corners[3].uv.x == glyph.U0 && corners[3].uv.y == glyph.V1;
}

struct Drawn {
  std::string utf8;
  ImVec2 low, high;  // of the ink
  float line = 0;    // the middle of the line that it stands in
  float size = 0;    // of the font
};

// In the order in which they were drawn.
std::vector<Drawn> drawn_glyphs() {
  const ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  const Glyphs glyphs = glyphs_of(atlas);
  std::vector<Drawn> drawn;
  if (ImGui::GetDrawData() == nullptr) return drawn;  // before the first frame
  const ImDrawData& data = *ImGui::GetDrawData();
  for (int list = 0; list < data.CmdListsCount; ++list) {
    const ImVector<ImDrawVert>& vertices = data.CmdLists[list]->VtxBuffer;
    for (int i = 0; i + 3 < vertices.Size; ++i) {
      const ImDrawVert* corners = vertices.Data + i;
      const auto found = glyphs.find({corners->uv.x, corners->uv.y});
      if (found == glyphs.end() || !shows(corners, *found->second.glyph)) continue;
      const auto& [glyph, font] = found->second;
      char utf8[5] = {};
      const float top = corners->pos.y - glyph->Y0;
      drawn.push_back({ImTextCharToUtf8(utf8, glyph->Codepoint), corners[0].pos, corners[2].pos,
                       top + font->FontSize / 2, font->FontSize});
      i += 3;
    }
  }
  return drawn;
}

bool same_line(const Drawn& a, const Drawn& b) { return std::abs(a.line - b.line) < 1 && a.size == b.size; }

// Of one text: further to the right in the same line, with a blank between them at most.
bool follows(const Drawn& a, const Drawn& b) {
  return same_line(a, b) && b.low.x > a.low.x && b.low.x - a.high.x < a.size * 0.6f;
}

// Without even a blank between them.
bool touches(const Drawn& a, const Drawn& b) {
  return same_line(a, b) && b.low.x > a.low.x && b.low.x - a.high.x < a.size * 0.17f;
}

}  // namespace

std::string drawn_text() {
  std::string text;
  for (const Drawn& glyph : drawn_glyphs()) text += glyph.utf8;
  return text;
}

std::vector<ImVec2> drawn_at(std::string_view words) {
  const std::string wanted = without_blanks(words);
  const std::vector<Drawn> glyphs = drawn_glyphs();
  std::vector<ImVec2> places;
  for (std::size_t first = 0; first < glyphs.size(); ++first) {
    std::string text;
    std::size_t end = first;
    while (end < glyphs.size() && text.size() < wanted.size() &&
           (end == first || follows(glyphs[end - 1], glyphs[end])))
      text += glyphs[end++].utf8;
    if (text != wanted) continue;
    if (first > 0 && touches(glyphs[first - 1], glyphs[first])) continue;
    if (end < glyphs.size() && touches(glyphs[end - 1], glyphs[end])) continue;
    const Drawn &from = glyphs[first], &to = glyphs[end - 1];
    places.push_back({(from.low.x + to.high.x) / 2, (from.line + to.line) / 2});
  }
  return places;
}

std::string without_blanks(std::string_view text) {
  std::string rest;
  for (const char c : text)
    if (c != ' ') rest += c;
  return rest;
}

// --- Frames that are built and thrown away.

namespace {

class NullWindow final : public StillWindow {
 public:
  using StillWindow::StillWindow;

  void frame(const std::function<void()>& build) override {
    if (!ImGui::GetIO().Fonts->IsBuilt()) upload_fonts();
    build_frame(build);
  }
  Picture picture() override { throw Error(ErrorCode::unsupported, "window: this window draws nothing"); }
  void upload_fonts() override {
    unsigned char* pixels = nullptr;
    int width = 0;
    int height = 0;
    ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  }
};

}  // namespace

std::unique_ptr<Window> open_null_window(const WindowOptions& options) {
  return std::make_unique<NullWindow>(options);
}

}  // namespace loadline::gui

// --- Environment and libraries of the software driver.

namespace loadline::gui {

void prepare_drivers() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/share/vulkan/icd.d", ignored))
    if (entry.path().filename().string().starts_with("lvp_icd"))
      ::setenv("VK_ICD_FILENAMES", entry.path().c_str(), 0);
  for (const char* library : {"libVkLayer_khronos_validation.so", "libvulkan_lvp.so"})
    ::dlopen(library, RTLD_NOW | RTLD_NODELETE);
}

}  // namespace loadline::gui

// Asked by the leak checker. The layer keeps objects of its own.
extern "C" const char* __lsan_default_suppressions() { return "leak:libVkLayer_khronos_validation.so\n"; }

// Asked by ThreadSanitizer, which sees none of the driver's own atomics and condition variables.
extern "C" const char* __tsan_default_suppressions() {
  return "race:libvulkan_lvp.so\nrace:libVkLayer_khronos_validation.so\ndeadlock:libVkLayer_khronos_"
         "validation.so\n";
}
