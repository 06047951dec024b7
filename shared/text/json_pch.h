// The precompiled header of sim/, traces/ and their tests (scripts/cmake/targets.cmake). It holds
// standard headers, and nlohmann::json, whose members are instantiated once
// (shared/text/json_instances_json.cpp) instead of in every file. Files still include what they
// use.
#pragma once

#include <nlohmann/json.hpp>

#include "shared/text/standard_pch.h"

namespace polyphony {
// The input adapter with which json::parse() reads a std::string.
using JsonInput = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;
}  // namespace polyphony

extern template class nlohmann::basic_json<>;
extern template class nlohmann::detail::serializer<nlohmann::json>;
extern template class nlohmann::detail::lexer<nlohmann::json, polyphony::JsonInput>;
extern template class nlohmann::detail::parser<nlohmann::json, polyphony::JsonInput>;
