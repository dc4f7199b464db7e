// Searches for the largest batch that fits into memory.
#include "session/batch_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "models/catalog.hpp"
#include "streams.hpp"
#include "train/batch_search.hpp"
#include "train/inferencer.hpp"
#include "train/trainer.hpp"

namespace scalemark {
namespace {

/// The run itself starts with the smallest batch, until the search has found its own.
constexpr std::int64_t kFirstBatch = 1;

BatchSearch search_with_inferencer(Session& session, const ResolvedConfig& config) {
  std::unique_ptr<Inferencer> inferencer;
  session.world.agree_on([&] {
    inferencer = std::make_unique<Inferencer>(config, *session.device, session.world, kFirstBatch);
  });
  return find_largest_batch(*session.device, session.world,
                            [&](std::int64_t batch) { return inferencer->try_batch(batch); });
}

BatchSearch search_with_trainer(Session& session, const ResolvedConfig& config,
                                bool keeps_weights) {
  RankGroup alone = *session.world.split(session.world.rank());
  const std::int64_t ranks = session.world.size();
  Trainer trainer(config, *session.device, session.world,
                  {kFirstBatch, kFirstBatch * ranks, kFirstBatch});
  if (keeps_weights) trainer.keep_initial_weights();
  return find_largest_batch(*session.device, session.world,
                            [&](std::int64_t batch) { return trainer.try_batch(alone, batch); });
}

}  // namespace

MeasuredConfig choose_batch(Session& session, LoadedConfig loaded, bool keeps_weights) {
  ResolvedConfig& config = loaded.config;
  if (!config.largest_batch) return {std::move(loaded)};
  session.world.watchdog().enter("model");
  BatchSearch search = loaded.command == Command::infer
                           ? search_with_inferencer(session, config)
                           : search_with_trainer(session, config, keeps_weights);
  session.device->release_free_memory();
  // A signal may arrive before any batch was tried. The run that follows stops at its first step.
  config.batch_size = std::max(search.largest, kFirstBatch);
  session.say(fmt::format("batch size max: {} {} a rank, limited by {} ({} tried)",
                          *config.batch_size, find_model(config.model)->sample, search.limited_by,
                          counted(search.tried.size(), "size")));
  return {std::move(loaded), std::move(search)};
}

}  // namespace scalemark
