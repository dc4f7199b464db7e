// Detects the container of this process and writes it into the system object of a record.
#include "platform/container.hpp"

#include <tuple>
#include <utility>

#include "config/shown_variables.hpp"

namespace scalemark {
namespace {

constexpr const char* kNotTold = "the container was not started by scalemark, and does not tell";

std::string value_of_variable(const std::map<std::string, std::string>& environment,
                              const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

/// Returns what can be seen of a container from inside. Ranks started by scalemark know the binding
/// that was requested.
ContainerFacts facts_from_inside(const std::map<std::string, std::string>& environment) {
  ContainerFacts facts;
  facts.no_digest = "the image's file is not seen from inside";
  for (const auto& [variable, runtime] :
       {std::pair{"APPTAINER_CONTAINER", "apptainer"}, {"SINGULARITY_CONTAINER", "singularity"}})
    if (facts.image.empty() && environment.contains(variable)) {
      facts.image = environment.at(variable);
      facts.runtime = runtime;
    }
  if (environment.contains("SMK_INTERNAL_BINDING")) facts.mpi = "inside";
  return facts;
}

ContainerFacts facts_from(const std::string& text) {
  const Json told = Json::parse(text, nullptr, false);
  ContainerFacts facts;
  if (!told.is_object()) return facts;
  for (const auto& [key, member] : {std::pair{"image", &facts.image},
                                    {"runtime", &facts.runtime},
                                    {"digest", &facts.digest},
                                    {"no_digest", &facts.no_digest},
                                    {"mpi", &facts.mpi}})
    if (const auto found = told.find(key); found != told.end() && found->is_string())
      *member = found->get<std::string>();
  return facts;
}

}  // namespace

std::string ContainerFacts::text() const {
  return Json{{"image", image},
              {"runtime", runtime},
              {"digest", digest},
              {"no_digest", no_digest},
              {"mpi", mpi}}
      .dump();
}

void add_container(SystemInfo& info, const std::map<std::string, std::string>& environment,
                   const std::optional<std::string>& virtualisation) {
  Json& container = info.json["container"];
  const std::string told = value_of_variable(environment, kContainerVariable);
  if (told.empty() && virtualisation != "container") {
    info.unavailable["system.container"] = "no sign of a container";
    return;
  }
  const ContainerFacts facts = told.empty() ? facts_from_inside(environment) : facts_from(told);
  for (const auto& [key, value, reason] :
       {std::tuple<const char*, const std::string&, std::string>{"image", facts.image, kNotTold},
        {"runtime", facts.runtime, kNotTold},
        {"digest", facts.digest, facts.no_digest.empty() ? kNotTold : facts.no_digest},
        {"mpi", facts.mpi, "ranks were started by a launcher that does not tell where it runs"}}) {
    container[key] = value.empty() ? Json(nullptr) : Json(without_credentials(value));
    if (value.empty()) info.unavailable[std::string("system.container.") + key] = reason;
  }
}

}  // namespace scalemark
