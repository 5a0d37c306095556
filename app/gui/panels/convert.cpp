// Writing the model as another flat file.
#include "app/gui/fits.h"
#include "app/gui/panels/panels.h"
#include "app/gui/widgets.h"
#include "core/base/text.h"
#include "exporters/exporter.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <imgui_stdlib.h>

namespace loadline::gui {
namespace {

struct Choice {
  std::string_view label;
  std::uint64_t value = 0;
};
constexpr std::array<Choice, 5> kAlignments = {{{"the format's own", 0},
                                                {"64 B", 64},
                                                {"4 KiB (page)", 4096},
                                                {"64 KiB", 65536},
                                                {"2 MiB (huge page)", 2ull << 20}}};
constexpr std::array<Choice, 5> kShards = {{{"one file", 0},
                                            {"1 GB", 1'000'000'000},
                                            {"5 GB", 5'000'000'000},
                                            {"10 GB", 10'000'000'000},
                                            {"50 GB", 50'000'000'000}}};
struct TypeChoice {
  std::string_view label;
  std::optional<DType> dtype;
};
const std::array<TypeChoice, 4> kTypes = {
    {{"as stored", std::nullopt}, {"F32", DType::f32}, {"F16", DType::f16}, {"BF16", DType::bf16}}};

template <typename Row, std::size_t N>
void pick(const Ui& ui, const char* id, float width, const std::array<Row, N>& rows, std::size_t& current) {
  std::array<std::string_view, N> labels;
  for (std::size_t i = 0; i < N; ++i) labels[i] = rows[i].label;
  if (const auto picked = combo(ui, id, width, labels[current], labels, current)) current = *picked;
}

class ConvertPanel final : public Panel {
 public:
  void draw(Workspace& workspace, const Ui& ui) override;

 private:
  void draw_form(Workspace& workspace, const Ui& ui, float width);
  void draw_summary(const Workspace& workspace, const Ui& ui);
  void draw_room(const Workspace& workspace, const Ui& ui);
  void draw_written(const WriteReport& report, const Ui& ui);
  void suggest(const Document& document);
  void take(const ConvertRequest& wanted);
  ConvertRequest request() const;
  // What is written: one file where the format knows no shards.
  std::uint64_t shard_bytes() const {
    return writes_shards(exporters()[exporter_]) ? kShards[shard_].value : 0;
  }

  struct Form {
    std::size_t exporter = 0;
    std::size_t type = 0;
    std::size_t alignment = 0;
    std::size_t shard = 0;
    bool operator==(const Form&) const = default;
  };
  std::optional<Form> weighed_;  // what the document was last asked about
  std::uint64_t seen_model_ = 0;
  std::size_t exporter_ = 0;
  std::size_t type_ = 0;
  std::size_t alignment_ = 0;
  std::size_t shard_ = 0;
  std::string out_;
  std::string suggested_;  // as long as out_ is this, nobody has typed anything else
  std::string measured_;   // the output whose disk was last asked for
  bool verify_ = true;
  bool overwrite_ = false;
};

// In the current folder, under the model's name, with the format's extension unless it becomes a
// folder: never among the files of a model folder or a cache, where it would be taken for one of theirs.
void ConvertPanel::suggest(const Document& document) {
  const Model& model = *document.model;
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::current_path(failed);
  const OutputKind kind = shard_bytes() > 0 ? OutputKind::folder : OutputKind::file;
  suggested_ = (folder / output_name(model.name, exporters()[exporter_], kind)).string();
  out_ = suggested_;
}

// Options that another panel proposes; what it says nothing of stays as it is.
void ConvertPanel::take(const ConvertRequest& wanted) {
  for (std::size_t i = 0; i < exporters().size(); ++i)
    if (exporters()[i].id == wanted.exporter) exporter_ = i;
  for (std::size_t i = 0; i < kAlignments.size(); ++i)
    if (kAlignments[i].value == wanted.options.alignment) alignment_ = i;
}

ConvertRequest ConvertPanel::request() const {
  ConvertRequest request;
  request.exporter = exporters()[exporter_].id;
  request.out = out_;
  request.options.outtype = kTypes[type_].dtype;
  request.options.alignment = kAlignments[alignment_].value;
  request.options.max_shard_bytes = shard_bytes();
  request.verify = verify_;
  request.overwrite = overwrite_;
  return request;
}

void ConvertPanel::draw(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (!document.model) {
    empty_state(ui, "No model is open", "Open one to write it as another flat, mmap-friendly file.");
    return;
  }
  if (seen_model_ != document.id) {
    seen_model_ = document.id;
    suggest(document);
    measured_.clear();
    weighed_.reset();
  }
  if (document.wants_convert) {
    take(*document.wants_convert);
    document.wants_convert.reset();
    suggest(document);
  }
  // a tensor may have no place in the format, or the options none in the exporter
  const Form form_now = {exporter_, type_, alignment_, shard_};
  if (weighed_ != form_now) {
    weighed_ = form_now;
    document.weigh_convert(request());
  }
  if (measured_ != out_) {
    measured_ = out_;
    workspace.measure_disk(out_);
  }
  const float form = std::min(ui.px(420), ImGui::GetContentRegionAvail().x * 0.55f);
  begin_card(ui, "form", {form, 0});
  draw_form(workspace, ui, ImGui::GetContentRegionAvail().x);
  end_card();
  ImGui::SameLine(0, ui.px(12));
  begin_card(ui, "summary", {0, 0});
  draw_summary(workspace, ui);
  end_card();
}

void ConvertPanel::draw_form(Workspace& workspace, const Ui& ui, float width) {
  Document& document = workspace.document();
  const auto form = [this] { return std::pair(exporter_, shard_bytes() > 0); };
  const auto before = form();
  heading(ui, "Write as");
  std::vector<std::string_view> names;
  for (const Exporter& exporter : exporters()) names.push_back(exporter.name);
  if (const auto picked = combo(ui, "##format", width, names[exporter_], names, exporter_))
    exporter_ = *picked;
  pick(ui, "##type", field(ui, "Floating-point tensors"), kTypes, type_);
  pick(ui, "##align", field(ui, "Data aligned to"), kAlignments, alignment_);
  const bool shards = writes_shards(exporters()[exporter_]);
  const float room = field(ui, "Largest file");
  if (shards)
    pick(ui, "##shard", room, kShards, shard_);
  else
    muted(ui, "one file");
  if (form() != before && out_ == suggested_) suggest(document);
  ImGui::SetNextItemWidth(field(ui, "To", 0.12f));
  ImGui::InputText("##out", &out_);
  if (ImGui::IsItemHovered() && !ImGui::IsItemActive()) tooltip(ui, shown(out_));
  checkbox(ui, "Read back and compare before it appears", &verify_);
  checkbox(ui, "Replace an existing file", &overwrite_);
  ImGui::Dummy({0, ui.px(4)});
  const Model& model = *document.model;
  const bool usable =
      use_misfit(model).empty() && convert_misfit(document).empty() && !workspace.conversion.busy();
  if (button(ui, workspace.conversion.busy() ? "Converting" : "Convert", ButtonKind::primary, usable))
    workspace.attempt([&] { workspace.convert(request()); });
  if (const std::string why = use_misfit(model); !why.empty())
    paragraph(ui, "Cannot be converted: " + shown(why), ui.theme->bad);
  else if (!convert_misfit(document).empty())
    paragraph(ui, "Cannot be written that way: " + shown(convert_misfit(document)), ui.theme->bad);
}

void ConvertPanel::draw_summary(const Workspace& workspace, const Ui& ui) {
  const Document& document = workspace.document();
  const Model& model = *document.model;
  const Exporter& exporter = exporters()[exporter_];
  heading(ui, "What will happen");
  paragraph(ui,
            fmt::format("{}, {}, from {}. Bytes are streamed through a bounded buffer: memory does not "
                        "grow with the model. The file appears whole or not at all.",
                        counted(model.graph->tensors.size(), "tensor"), format_bytes(model.weight_bytes),
                        counted(model.graph->files.size(), "file")),
            ui.theme->text);
  for (const DTypeShare& share : model.dtypes) {
    const DType to = converted_dtype(share.dtype, kTypes[type_].dtype);
    const bool fits = exporter.supports(to);
    const std::string_view from_name = dtype_info(share.dtype).name;
    badge(ui, fits ? "ok" : "cannot", fits ? ui.theme->good : ui.theme->bad);
    ImGui::SameLine(0, ui.px(8));
    const std::string bytes = format_bytes(converted_bytes(share, kTypes[type_].dtype));
    paragraph(ui,
              to == share.dtype ? fmt::format("{} passes through, {}", from_name, bytes)
              : fits            ? fmt::format("{} becomes {}, {}", from_name, dtype_info(to).name, bytes)
                                : fmt::format("{} is not a type of this format", dtype_info(to).name),
              ui.theme->text);
  }
  for (const std::string& loss : convert_losses(document)) {
    badge(ui, "left out", ui.theme->warning);
    ImGui::SameLine(0, ui.px(8));
    paragraph(ui, loss, ui.theme->text);
  }
  draw_room(workspace, ui);
  if (workspace.converted()) draw_written(workspace.converted()->report, ui);
}

// Files are written beside their targets first: what they replace frees nothing meanwhile.
void ConvertPanel::draw_room(const Workspace& workspace, const Ui& ui) {
  const Document& document = workspace.document();
  if (!workspace.disk.value() || document.model->shapes_only) return;
  const std::uint64_t needed = converted_bytes(*document.model, kTypes[type_].dtype);
  const std::uint64_t there = workspace.disk.value()->available;
  const bool fits = needed <= there;
  badge(ui, fits ? "ok" : "does not fit", fits ? ui.theme->good : ui.theme->bad);
  ImGui::SameLine(0, ui.px(8));
  paragraph(ui,
            fits
                ? fmt::format("{} to write, {} free on the disk", format_bytes(needed), format_bytes(there))
                : fmt::format("needs {}, {} are free on the disk", format_bytes(needed), format_bytes(there)),
            fits ? ui.theme->text : ui.theme->bad);
  tooltip(ui, "The disk of " + shown(workspace.disk.value()->folder));
}

void ConvertPanel::draw_written(const WriteReport& report, const Ui& ui) {
  ImGui::Dummy({0, ui.px(8)});
  heading(ui, "Written");
  for (const WrittenFile& file : report.files) {
    const FontScope font(ui.fonts.mono);
    name_text(ui, file.path, 0, ui.theme->text);
    muted(ui, fmt::format("{} bytes  xxh3 {:016x}", format_grouped(file.bytes), file.xxh3));
  }
  text(fmt::format("{} in {}, {}", format_bytes(report.bytes_written), format_seconds(report.seconds),
                   format_rate(static_cast<double>(report.bytes_written) / std::max(report.seconds, 1e-9))));
  text(fmt::format("memory: {} of buffers", format_bytes(report.buffer_bytes)));
  if (report.verified) badge(ui, "verified", ui.theme->good);
}

}  // namespace

std::unique_ptr<Panel> make_convert_panel() { return std::make_unique<ConvertPanel>(); }

}  // namespace loadline::gui
