// The table: what a user can choose about opening.
#include "importers/open_options.h"

#include <array>

namespace loadline {
namespace {

constexpr std::array<Option<ResolveOptions>, 1> kOptions = {{
    {.id = "follow_links",
     .group = "Opening",
     .kind = OptionKind::flag,
     .title = "Follow links",
     .brief = "allow links that leave the model's folder",
     .help = "Opens files that are links to places outside the model's folder.",
     .get = [](const ResolveOptions& options) { return OptionValue(options.follow_links); },
     .set = [](ResolveOptions& options,
               const OptionValue& value) { options.follow_links = std::get<bool>(value); }},
}};

}  // namespace

std::span<const Option<ResolveOptions>> open_options() { return kOptions; }

}  // namespace loadline
