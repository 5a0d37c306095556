// Files that are not to be read: hidden marks say that they are being put in place, edited, or that parts of
// them were taken away; pointers of Git LFS stand for files that were not downloaded; links lead elsewhere.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::io {

class SourceFile;

// The names of this program's hidden files and folders begin with it.
inline constexpr std::string_view kHiddenPrefix = ".loadline-";

// The hidden folder in which an output grows that has the file `file`, or that is the whole folder if `file`
// is empty. The files of one output have one: the parts of a split GGUF file, an ONNX model and its data.
std::string work_folder_path(const std::string& folder, std::string_view file);

// In a work folder, while old files make way and new ones are put in their place.
inline constexpr std::string_view kPublishMark = "publish";
// In a model's folder, from the moment when parts of its weights are in another place only, or nowhere, until
// the files are gone.
inline constexpr std::string_view kConsumedMark = ".loadline-consumed";

struct Mark {
  std::string by;                  // the work folder, as an absolute path
  std::vector<std::string> files;  // relative to the folder that the mark is about
  bool any_file = false;           // it cannot be read: it may be about every file
};
// The mark is there whole or not at all, and durable when this returns. Throws Error{io}.
void put_mark(const std::string& path, const Mark& mark);
// Nothing if there is no such file.
std::optional<Mark> read_mark(const std::string& path);
// The mark of consumed files in a folder; nothing if none of the files that it names is there any more.
std::optional<Mark> consumed_mark(const std::string& folder);
// Whether the mark is of this work folder, which may have been moved since.
bool is_by(const Mark& mark, const std::string& work);

// Throws Error{io} if a mark says that a file is not whole; `consumed` allows for parts that are in another
// place. Costs three queries of names that usually do not exist.
void require_whole(const std::string& path, bool consumed);
// The same for all files of a folder, of which the hidden names are known.
void require_whole(const std::string& folder, std::span<const std::string> hidden, bool consumed);

// --- Pointers of Git LFS, and links out of a folder.

// A pointer of Git LFS, which may stand for any file, has less than kMostPointer bytes.
inline constexpr std::uint64_t kMostPointer = 1024;
// Throws Error{unsupported} for one.
void refuse_pointer(const SourceFile& file);

// Where links in a model's folder may end: inside it or, for a Hugging Face snapshot
// (models--org--name/snapshots/COMMIT), in that repository's blobs/ or the hub cache's shared blobs/.
class FolderBounds {
 public:
  // `folder` must exist; "" is the current folder. Throws Error{io}.
  explicit FolderBounds(const std::filesystem::path& folder);
  // Whether a resolved path is inside.
  bool hold(std::string_view real) const;

 private:
  std::vector<std::filesystem::path> allowed_;  // resolved; the first is the folder itself
};

}  // namespace loadline::io
