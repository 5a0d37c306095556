// What a tensor is for, guessed from its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace loadline {

enum class Role : std::uint8_t { embedding, attention, mlp, norm, head, other };
inline constexpr std::size_t kRoleCount = 6;
std::string_view role_name(Role role);
Role tensor_role(std::string_view name);

}  // namespace loadline
