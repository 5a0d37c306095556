// Built-in assets first, then a folder's over them.
#include "core/forward/assets.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/source_file.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

namespace loadline {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> json_files(const fs::path& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".json") paths.push_back(at->path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string whole_text(const std::string& path) {
  constexpr std::size_t kMostBytes = (1 << 20) + 1;  // one more than an asset may have
  const std::vector<std::byte> bytes = SourceFile::open(path).head(kMostBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Each file of a folder, in place of the row with the same key, in front of the others. How many there are.
template <typename Row, typename Parse>
std::size_t add_folder(const fs::path& folder, std::vector<Row>& rows, std::string Row::*key, Parse parse,
                       std::vector<std::string>& faults) {
  std::vector<Row> own;
  for (const std::string& path : json_files(folder)) {
    try {
      own.push_back(parse(whole_text(path), path));
    } catch (const Error& error) {
      faults.emplace_back(error.what());
    }
  }
  for (const Row& row : own) std::erase_if(rows, [&](const Row& other) { return other.*key == row.*key; });
  rows.insert(rows.begin(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  return own.size();
}

}  // namespace

const Architecture* ForwardAssets::architecture(const ModelConfig& config) const {
  const std::span<const Architecture> all(architectures);
  const Architecture* const own = find_architecture(config, all.first(own_architectures));
  return own != nullptr ? own : find_architecture(config, all.subspan(own_architectures));
}

const Profile& ForwardAssets::profile(std::string_view id) const {
  std::string known;
  for (const Profile& row : profiles) {
    if (row.id == id) return row;
    known += (known.empty() ? "" : ", ") + row.id;
  }
  throw Error(ErrorCode::usage,
              fmt::format("there is no profile '{}'; there are: {}", safe_display(id, 60), known));
}

std::shared_ptr<const ForwardAssets> built_in_assets() {
  static const auto assets = [] {
    auto all = std::make_shared<ForwardAssets>();
    const auto architectures = built_in_architectures();
    const auto profiles = built_in_profiles();
    all->architectures.assign(architectures.begin(), architectures.end());
    all->profiles.assign(profiles.begin(), profiles.end());
    return std::shared_ptr<const ForwardAssets>(std::move(all));
  }();
  return assets;
}

std::shared_ptr<const ForwardAssets> load_assets(const std::string& folder) {
  auto all = std::make_shared<ForwardAssets>(*built_in_assets());
  all->own_architectures = add_folder(fs::path(folder) / "architectures", all->architectures,
                                      &Architecture::family, parse_architecture, all->faults);
  add_folder(fs::path(folder) / "profiles", all->profiles, &Profile::id, parse_profile, all->faults);
  return all;
}

}  // namespace loadline
