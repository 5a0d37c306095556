// The convert panel: writes the model in another format.
#include "exporters/convert.h"

#include "app/gui/panels/panels.h"
#include "app/gui/parts/option_controls.h"
#include "app/gui/parts/widgets.h"
#include "app/gui/state/model/model.h"
#include "core/base/text.h"
#include "core/io/system_memory.h"
#include "exporters/exporter.h"
#include "exporters/writer/forecast.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/core.h>

namespace loadline::gui {
namespace {

constexpr float kLabels = 0.3f;  // share of a line
constexpr std::string_view kAsker = "convert", kFormat = "to", kType = "outtype";

exporters::ConvertRequest first_request() {
  exporters::ConvertRequest request;
  request.to = exporters::exporters().front().id;
  request.write.verify = true;
  return request;
}

// The bytes to write and those that the disk has free, where both are known.
std::optional<std::pair<std::uint64_t, std::uint64_t>> room_of(const Workspace& workspace) {
  const Document& document = workspace.document();
  if (!workspace.transfers.disk.value() || document.model->shapes_only) return std::nullopt;
  if (!document.checks.convert_fit.value()) return std::nullopt;
  return std::pair(exporters::total_bytes(document.checks.convert_fit.value()->layout),
                   workspace.transfers.disk.value()->available);
}

bool has_room(const Workspace& workspace) {
  const auto room = room_of(workspace);
  return !room || room->first <= room->second;
}

// What comparing the output with its source has found.
void draw_check(const ConversionCheck& check, const Ui& ui) {
  const bool same = check.equal == check.weights;
  const std::string_view how = check.numbers ? "equal as numbers, to within 1/128" : "equal byte for byte";
  badge_line(ui, same ? "ok" : "differs", same ? ui.theme->good : ui.theme->bad,
             fmt::format("{} of {} {}", check.equal, counted(check.weights, "weight"), how), ui.theme->text);
  if (check.missing > 0)
    badge_line(ui, "missing", ui.theme->bad, counted(check.missing, "weight") + " of the source",
               ui.theme->text);
  if (!check.first_difference.empty()) muted(ui, "first difference: " + shown(check.first_difference));
}

void draw_written(Workspace& workspace, const Conversion& done, const Ui& ui) {
  const exporters::WriteReport& report = done.report;
  heading(ui, "Written");
  for (const exporters::WrittenFile& file : report.files) {
    const FontScope font(ui.fonts.mono);
    name_text(ui, file.path, 0, ui.theme->text);
    muted(ui, fmt::format("{} bytes  xxh3 {:016x}", format_grouped(file.bytes), file.xxh3));
  }
  text(fmt::format("{} in {}, {}", format_bytes(report.bytes_written), format_seconds(report.seconds),
                   format_rate(static_cast<double>(report.bytes_written) / std::max(report.seconds, 1e-9))));
  text(fmt::format("memory: {} of buffers", format_bytes(report.buffer_bytes)));
  if (report.verified) badge(ui, "verified", ui.theme->good);
  if (const std::string faults = exporters::faults_text(report); !faults.empty())
    badge_line(ui, "warning", ui.theme->warning, shown(faults), ui.theme->text);
  ImGui::Dummy({0, ui.px(4)});
  if (button(ui, "Open")) workspace.open(done.out);
  ImGui::SameLine(0, ui.px(8));
  const bool comparing = workspace.transfers.checking.busy();
  if (button(ui, comparing ? "Comparing" : "Compare with the source", ButtonKind::normal, !comparing))
    workspace.attempt([&] { workspace.transfers.check_conversion(workspace.document()); });
  if (const auto check = workspace.transfers.checked(workspace.document())) draw_check(*check, ui);
  ImGui::Dummy({0, ui.px(8)});
}

class ConvertPanel final : public Panel {
 public:
  ConvertPanel() : Panel("Open a model to convert it to another flat, mmap-friendly file.") {}

 private:
  void draw_content(Workspace& workspace, const Ui& ui) override;
  void draw_form(Workspace& workspace, const Ui& ui);
  void draw_option(const Document& document, const Ui& ui, const Option<exporters::ConvertRequest>& option);
  void draw_target(Workspace& workspace, const Ui& ui);
  void draw_start(Workspace& workspace, const Ui& ui);
  void weigh(Workspace& workspace);
  void draw_summary(Workspace& workspace, const Ui& ui);
  void draw_progress(Workspace& workspace, const Ui& ui);
  void draw_room(const Workspace& workspace, const Ui& ui);
  void suggest(const Document& document);
  void take(const std::vector<Remedy>& settings);
  ConvertTask task() const;
  const exporters::Exporter& exporter() const;
  exporters::OutputKind kind() const { return exporter().kind(task().request.layout); }
  // What decides how the new file is laid out, as words.
  static std::vector<std::string> form(const ConvertTask& task);

  OptionControls controls_;
  // The options that the document weighed last, and those without the type, for which it weighed all types.
  std::optional<std::vector<std::string>> weighed_, types_weighed_;
  std::uint64_t seen_model_ = 0;
  exporters::ConvertRequest request_ = first_request();
  std::string out_;
  std::string suggested_;  // if out_ equals it, the user has typed no other path
  JobProgress progress_;
  float foot_ = 0;        // the height of what stands below the options
  std::string measured_;  // the output path whose disk was measured last
};

// In the current folder, under the model's name, with the format's extension unless it becomes a
// folder: never among the files of a model folder or a cache, where it would be taken for one of theirs.
void ConvertPanel::suggest(const Document& document) {
  const Model& model = *document.model;
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::current_path(failed);
  suggested_ = (folder / exporters::output_name(model.name, exporter(), kind())).string();
  out_ = suggested_;
}

// Options that another panel proposes; what it says nothing of stays as it is.
void ConvertPanel::take(const std::vector<Remedy>& settings) {
  for (const Remedy& setting : settings)
    if (const Option<exporters::ConvertRequest>* const option =
            find_option(exporters::convert_options(), setting.option))
      set_option(*option, request_, setting.value);
}

const exporters::Exporter& ConvertPanel::exporter() const {
  if (!request_.to.empty()) return exporters::find_exporter(request_.to);
  const exporters::Exporter* const named = exporters::exporter_for(out_);
  return named != nullptr ? *named : exporters::exporters().front();
}

// With what the format takes of the options.
ConvertTask ConvertPanel::task() const {
  ConvertTask task{request_, out_};
  task.request.to = exporter().id;
  for (const Option<exporters::ConvertRequest>& option : exporters::convert_options())
    if (!exporters::takes_option(exporter(), option.id))
      option.set(task.request, option.get(exporters::ConvertRequest()));
  return task;
}

std::vector<std::string> ConvertPanel::form(const ConvertTask& now) {
  std::vector<std::string> words;
  for (const Option<exporters::ConvertRequest>& option : exporters::convert_options())
    words.push_back(print_option(option.kind, option.get(now.request)));
  words.push_back(now.out);  // whose extension may contradict the format
  return words;
}

void ConvertPanel::draw_content(Workspace& workspace, const Ui& ui) {
  Document& document = workspace.document();
  if (seen_model_ != document.id) {
    seen_model_ = document.id;
    suggest(document);
    measured_.clear();
    weighed_.reset();
    types_weighed_.reset();
  }
  if (!document.checks.suggested.empty()) {
    workspace.attempt([&] { take(document.checks.suggested); });
    document.checks.suggested.clear();
    if (out_ == suggested_) suggest(document);  // another format ends otherwise
  }
  if (auto picked = workspace.services.requests.take_picked(kAsker)) out_ = std::move(*picked);
  weigh(workspace);
  const float form = std::min(ui.px(540), ImGui::GetContentRegionAvail().x * 0.6f);
  {
    const CardScope card(ui, "form", {form, 0});
    const float foot = std::clamp(foot_, ui.px(44), ImGui::GetContentRegionAvail().y / 2);
    {
      const ChildScope options("options", {0, ImGui::GetContentRegionAvail().y - foot});
      draw_form(workspace, ui);
    }
    const float top = ImGui::GetCursorPosY();
    draw_start(workspace, ui);
    foot_ = ImGui::GetCursorPosY() - top + ImGui::GetStyle().ItemSpacing.y;
  }
  ImGui::SameLine(0, ui.px(12));
  const CardScope card(ui, "summary", {0, 0});
  draw_summary(workspace, ui);
}

// A tensor may have no place in the format, or the options none in the exporter.
void ConvertPanel::weigh(Workspace& workspace) {
  Document& document = workspace.document();
  if (std::vector<std::string> now = form(task()); weighed_ != now) {
    weighed_ = std::move(now);
    document.checks.weigh_convert(task());
    ConvertTask any_type = task();
    any_type.request.outtype.clear();
    any_type.out = suggested_;  // sizes do not follow from a path that is being typed
    std::vector<std::string> rest = form(any_type);
    if (types_weighed_ != rest && exporters::takes_option(exporter(), kType)) {
      types_weighed_ = std::move(rest);
      std::vector<std::string> words = find_option(exporters::convert_options(), kType)->choices();
      words.emplace_back();
      document.checks.weigh_types(any_type, words);
    }
  }
  if (measured_ != out_) {
    if (!measured_.empty()) request_.write.overwrite = false;  // it was said of another file
    measured_ = out_;
    workspace.transfers.measure_disk(out_);
  }
}

// With what people know a format by, and with the size of the file beside each type.
void ConvertPanel::draw_option(const Document& document, const Ui& ui,
                               const Option<exporters::ConvertRequest>& option) {
  OptionLook look = plain_look(option, request_);
  if (option.id == kFormat) {
    look.can_be_unset = false;
    for (load::OptionWord& row : look.words) row.shown = exporters::find_exporter(row.word).name;
  }
  if (option.id == kType) {
    const std::vector<TypeOffer>& offers = document.checks.type_offers.or_empty();
    const auto words_of = [&](const std::string& word) -> std::string {
      const auto found = std::ranges::find(offers, word, &TypeOffer::word);
      return found == offers.end() ? "" : found->bytes ? format_bytes(*found->bytes) : "not possible";
    };
    for (load::OptionWord& row : look.words) row.beside = words_of(row.word);
    look.unset_beside = words_of("");
    // the largest first, what cannot be written last
    std::ranges::stable_sort(look.words, std::greater<>(), [&](const load::OptionWord& row) {
      const auto found = std::ranges::find(offers, row.word, &TypeOffer::word);
      return found == offers.end() ? 0 : found->bytes.value_or(0);
    });
  }
  controls_.draw_line(
      ui, look, [&](std::string_view word) { set_option(option, request_, word); }, kLabels);
}

void ConvertPanel::draw_target(Workspace& workspace, const Ui& ui) {
  const bool folder = kind() == exporters::OutputKind::folder;
  if (path_field(ui, folder ? "Folder" : "File", kLabels, out_))
    workspace.services.requests.add(OpenBrowser{std::string(kAsker), "Write the model to", out_});
}

void ConvertPanel::draw_start(Workspace& workspace, const Ui& ui) {
  const Document& document = workspace.document();
  const Model& model = *document.model;
  const bool busy = workspace.transfers.conversion.busy();
  // a source that is consumed makes room for its copy; what resumes, is a part or links writes less
  const exporters::WriteOptions& write = request_.write;
  const bool room = has_room(workspace) || write.consume || write.resume || request_.layout.link_files ||
                    write.share.has_value();
  const bool usable =
      use_misfit(model).empty() && document.checks.convert_fit.error_text().empty() && !busy && room;
  if (request_.write.consume) paragraph(ui, "The files of the source are removed.", ui.theme->warning);
  if (button(ui, busy ? "Converting" : "Convert", ButtonKind::primary, usable))
    workspace.attempt([&] { workspace.transfers.convert(workspace.document(), task()); });
  if (const auto& planned = document.checks.convert_fit.value(); planned && usable) {
    ImGui::SameLine(0, ui.px(10));
    control_text(format_bytes(exporters::total_bytes(planned->layout)), ui.theme->muted);
  }
  if (workspace.transfers.disk.value() && workspace.transfers.disk.value()->exists &&
      !request_.write.overwrite && !busy) {
    badge_line(ui, "exists", ui.theme->warning, "The file is there already.", ui.theme->text);
    if (button(ui, "Replace it")) request_.write.overwrite = true;
  }
  if (!room) text_colored(ui.theme->bad, "The disk has too little room.");
  if (const std::string why = use_misfit(model); !why.empty())
    paragraph(ui, "Cannot be converted: " + shown(why), ui.theme->bad);
  else if (!document.checks.convert_fit.error_text().empty())
    paragraph(ui, "Cannot be written with these options: " + shown(document.checks.convert_fit.error_text()),
              ui.theme->bad);
}

// What everybody decides comes first: the format, the type, the file. The rest has defaults.
void ConvertPanel::draw_form(Workspace& workspace, const Ui& ui) {
  const Document& document = workspace.document();
  const auto target = [this] { return std::pair(&exporter(), kind()); };
  const auto before = target();
  const auto takes = [&](std::string_view id) { return exporters::takes_option(exporter(), id); };
  heading(ui, "Write as");
  for (const std::string_view id : {kFormat, kType})
    if (takes(id)) draw_option(document, ui, *find_option(exporters::convert_options(), id));
  draw_target(workspace, ui);
  ImGui::Dummy({0, ui.px(8)});
  heading(ui, "More options");
  for (const Option<exporters::ConvertRequest>& option : exporters::convert_options())
    if (option.id != kFormat && option.id != kType && takes(option.id)) draw_option(document, ui, option);
  if (target() != before && out_ == suggested_) suggest(document);
}

void ConvertPanel::draw_progress(Workspace& workspace, const Ui& ui) {
  const auto job = workspace.services.jobs.find(workspace.transfers.conversion.job());
  if (!job) return;
  heading(ui, "Converting");
  if (progress_.draw(ui, *job)) workspace.transfers.conversion.cancel();
  muted(ui, fmt::format("this process has {} of memory", format_bytes(io::read_process_memory().rss_anon)));
  ImGui::Dummy({0, ui.px(8)});
}

void ConvertPanel::draw_summary(Workspace& workspace, const Ui& ui) {
  const Document& document = workspace.document();
  const Model& model = *document.model;
  // what was done stands above what could be done next, so that it is in sight
  if (workspace.transfers.conversion.busy()) draw_progress(workspace, ui);
  if (const auto done = workspace.transfers.converted(workspace.document()))
    draw_written(workspace, *done, ui);
  heading(ui, "Preview");
  paragraph(ui,
            fmt::format("{}, {}, from {}. Bytes are streamed through a bounded buffer: memory does not "
                        "grow with the model. The file appears whole or not at all.",
                        counted(model.graph->tensors.size(), "tensor"), format_bytes(model.weight_bytes),
                        counted(model.graph->files.size(), "file")),
            ui.theme->text);
  if (!document.checks.convert_fit.error_text().empty()) return;  // draw_start() says why
  for (const exporters::TypeChange& change : document.checks.convert_fit.or_empty().changes) {
    const std::string_view from = graph::dtype_info(change.from).name;
    const std::string bytes = format_bytes(change.bytes);
    const std::string_view verb = change.unpacked ? "is unpacked to" : "becomes";
    badge_line(ui, "ok", ui.theme->good,
               change.from == change.to && !change.unpacked
                   ? fmt::format("{} copied unchanged, {}", from, bytes)
                   : fmt::format("{} {} {}, {}", from, verb, graph::dtype_info(change.to).name, bytes),
               ui.theme->text);
  }
  const exporters::Preflight& planned = document.checks.convert_fit.or_empty();
  for (const std::string& loss : planned.left_out)
    badge_line(ui, "left out", ui.theme->warning, loss, ui.theme->text);
  for (const graph::Note& note : planned.layout.notes)
    badge_line(ui, "note", ui.theme->warning, note.text, ui.theme->text);
  draw_room(workspace, ui);
}

// Files are written beside their targets first: what they replace frees nothing meanwhile.
void ConvertPanel::draw_room(const Workspace& workspace, const Ui& ui) {
  const auto weighed = room_of(workspace);
  if (!weighed) return;
  const auto [needed, there] = *weighed;
  const bool fits = needed <= there;
  badge_line(
      ui, fits ? "ok" : "does not fit", fits ? ui.theme->good : ui.theme->bad,
      fits ? fmt::format("{} to write, {} free on the disk", format_bytes(needed), format_bytes(there))
           : fmt::format("needs {}, {} are free on the disk", format_bytes(needed), format_bytes(there)),
      fits ? ui.theme->text : ui.theme->bad);
  tooltip(ui, "The disk of " + shown(workspace.transfers.disk.value()->folder));
}

}  // namespace

std::unique_ptr<Panel> make_convert_panel() { return std::make_unique<ConvertPanel>(); }

}  // namespace loadline::gui
