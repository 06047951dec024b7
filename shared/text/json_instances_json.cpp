// Instantiates nlohmann::json for every file that is compiled with shared/text/json_pch.h.
#include "shared/text/json_pch.h"

template class nlohmann::basic_json<>;
template class nlohmann::detail::serializer<nlohmann::json>;
template class nlohmann::detail::lexer<nlohmann::json, polyphony::JsonInput>;
template class nlohmann::detail::parser<nlohmann::json, polyphony::JsonInput>;
