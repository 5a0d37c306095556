#include "app/gui/state/model/model_path.h"

#include <filesystem>

namespace loadline::gui {

std::string absolute_path(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return path;
  const std::filesystem::path whole = std::filesystem::absolute(path, failed).lexically_normal();
  if (failed) return path;
  return (whole.has_filename() ? whole : whole.parent_path()).string();
}

bool is_same_path(const std::string& a, const std::string& b) {
  return a == b || absolute_path(a) == absolute_path(b);
}

}  // namespace loadline::gui
