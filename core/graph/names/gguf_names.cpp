// Looks for the words of the GGUF naming convention, as a whole word of the name.
#include "core/graph/names/gguf_names.h"

#include "core/base/text.h"

#include <array>
#include <string>

namespace loadline {

std::string_view gguf_role(std::string_view file_name) {
  constexpr std::string_view kExtension = ".gguf";
  constexpr std::array<std::string_view, 3> kRoles = {"mmproj", "mtp", "draft"};
  if (!file_name.ends_with(kExtension)) return "";
  file_name.remove_suffix(kExtension.size());
  const std::string name = lower_case(file_name);
  const auto is_end = [](char c) { return c == '-' || c == '_' || c == '.'; };
  for (const std::string_view role : kRoles) {
    const bool first = name.starts_with(role) && (name.size() == role.size() || is_end(name[role.size()]));
    const bool last =
        name.size() > role.size() && name.ends_with(role) && is_end(name[name.size() - role.size() - 1]);
    if (first || last) return role;
  }
  return "";
}

std::string_view set_role(const MetaGraph& graph, FileId file) {
  if (graph.format != "gguf" || graph.files.size() < 2 || file == kNoFile) return "";
  const auto role = [&](FileId id) {
    const std::string_view path = graph.file(id).path;
    return gguf_role(path.substr(path.rfind('/') + 1));
  };
  return role(FileId{0}).empty() ? role(file) : "";
}

}  // namespace loadline
