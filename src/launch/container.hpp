// Ranks in containers: the words that the launcher's command line gets, and what ranks are told of
// the image they run in.
#pragma once

#include <filesystem>

#include "config/keys/container.hpp"
#include "launch/launch.hpp"

namespace scalemark {

/// What a launch in a container must see of the host, and with what.
struct ContainerView {
  std::filesystem::path results;  ///< the folder of what it writes
  bool gpus = false;              ///< the devices and libraries of the driver
  bool own_program = true;        ///< the image brings the program; else it is the host's
};

/// Puts the ranks of `request`, whose launcher and program stand, into the container of `settings`,
/// if there is one, and names it to them (platform/container.hpp). Every rank enters one of its
/// own; the launcher stays outside. Throws ConfigError: pyxis without srun, folders that a runtime
/// could not be told of.
void put_in_container(LaunchRequest& request, const ContainerSettings& settings,
                      const ContainerView& view);

/// ConfigError where an image is asked for and this process is to become a rank outside of it.
void refuse_outside_container(const ContainerSettings& settings, bool is_launched);

}  // namespace scalemark
