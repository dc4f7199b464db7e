// Reads Open MPI's parameters through MPI_T.
#include "comm/mca_parameters.hpp"

#include <algorithm>
#include <optional>

#include "comm/rank_group_impl.hpp"

namespace scalemark {
namespace {

/// Returns the value as text, or nullopt for a type other than text and int. Open MPI uses int for
/// truth values too.
std::optional<std::string> read(MPI_T_cvar_handle variable, MPI_Datatype type, int count) {
  if (type == MPI_CHAR && count > 0) {
    // Some libraries report the length of the present text as the count, so the buffer is larger.
    std::string text(std::max<std::size_t>(static_cast<std::size_t>(count) + 1, 8192), '\0');
    if (MPI_T_cvar_read(variable, text.data()) != MPI_SUCCESS) return std::nullopt;
    return std::string(text.c_str());
  }
  int number = 0;
  if ((type != MPI_INT && type != MPI_UNSIGNED) || count != 1 ||
      MPI_T_cvar_read(variable, &number) != MPI_SUCCESS)
    return std::nullopt;
  return std::to_string(number);
}

std::optional<std::string> value_of(const std::string& name) {
  int index = 0, count = 0, verbosity = 0, bind = 0, scope = 0, name_length = 0, text_length = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum values = nullptr;
  MPI_T_cvar_handle variable{};
  if (MPI_T_cvar_get_index(name.c_str(), &index) != MPI_SUCCESS ||
      MPI_T_cvar_get_info(index, nullptr, &name_length, &verbosity, &type, &values, nullptr,
                          &text_length, &bind, &scope) != MPI_SUCCESS ||
      MPI_T_cvar_handle_alloc(index, nullptr, &variable, &count) != MPI_SUCCESS)
    return std::nullopt;
  const auto value = read(variable, type, count);
  MPI_T_cvar_handle_free(&variable);
  return value;
}

}  // namespace

std::map<std::string, std::string> mca_parameters(RankGroup& group,
                                                  const std::vector<std::string>& names) {
  std::map<std::string, std::string> found;
  group.impl()->world->call("parameters", [&] {
    int provided = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return;
    for (const std::string& name : names)
      if (auto value = value_of(name)) found[name] = std::move(*value);
    MPI_T_finalize();
  });
  return found;
}

}  // namespace scalemark
