// The table of options for opening a model.
#include "importers/open_options.h"

#include "core/base/option_members.h"

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
     .access = access::flag<&ResolveOptions::follow_links>},
}};

}  // namespace

std::span<const Option<ResolveOptions>> open_options() { return kOptions; }

}  // namespace loadline
