// Defines the keys of the container in which ranks are started.
#pragma once

#include "config/keys/group.hpp"

namespace scalemark {

/// Says how images are run for which no runtime is named.
inline constexpr const char* kStandardRuntimes = "pyxis with srun, else apptainer";

struct ContainerSettings {
  std::optional<std::string> container;          ///< image; unset: none
  std::optional<std::string> container_runtime;  ///< a word, or the words before the program
  std::string container_program = "scalemark";   ///< within the image

  static void describe(auto& rows) {
    using S = ContainerSettings;
    rows.group("Container", Role::output, kEverywhere);
    rows.add(
            "container", &S::container, "IMAGE",
            "image that every rank is started in: a file, a folder or a name; MPI's launcher stays "
            "outside")
        .otherwise("no container");
    rows.add("container_runtime", &S::container_runtime, "WORDS",
             "apptainer, singularity, pyxis, or the words before the program, in which {image}, "
             "{results} (folder) and {cwd} are replaced: \"chroot {image}\"")
        .otherwise(kStandardRuntimes);
    rows.add("container_program", &S::container_program, "PATH",
             "scalemark within the image: a name in its PATH, or a path");
  }

  static void check(const auto& whole) {
    const auto& config = whole.given;
    for (const auto& [key, value] : {std::pair{"container", config.container.value_or("image")},
                                     {"container_program", config.container_program}})
      if (value.starts_with('-') || value.starts_with(' '))
        whole.refuse(
            "--{} {}: begins with '{}', so that a runtime would not take it for what it is", key,
            value, value.front());
    if (config.container_runtime && !config.container)
      whole.refuse("--container_runtime: without an image nothing runs in it; give --container");
  }
};

}  // namespace scalemark
