// Questions about a model's files: problems that slow down loading, and whether an exporter can write them.
#include "app/gui/state/document.h"
#include "app/gui/state/model/fits.h"
#include "core/io/storage_reader.h"

namespace loadline::gui {

void Document::diagnose() {
  if (!model) throw Error(ErrorCode::usage, "no model is open");
  if (findings.busy()) return;
  findings.reset();
  findings.ask(shared_.jobs, "Looking into the files", [graph = model->graph](Progress& progress) {
    const StorageReader reader(graph);
    return loadline::diagnose(reader, progress);
  });
}

void Document::weigh_convert(const ConvertTask& task) {
  convert_fit.reset();
  if (!model || !use_misfit(*model).empty() || task.out.empty()) return;
  const Exporter& exporter = find_exporter(task.request.to);
  convert_fit.ask(shared_.jobs, "Laying out the new file",
                  [graph = model->graph, &exporter, task, assets = shared_.assets](Progress& progress) {
                    return preflight(*graph, exporter,
                                     layout_options(*graph, task.request, *assets, progress), task.out);
                  });
}

std::string diagnosis_error(const Document& document) {
  return document.findings.was_cancelled() ? "Stopped before it was done." : document.findings.error_text();
}

}  // namespace loadline::gui
