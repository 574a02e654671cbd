#include "runtime/data/augmentations/augmentation.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "runtime/core/base/error.h"
#include "runtime/core/base/text.h"
#include "runtime/data/augmentations/chance.h"
#include "runtime/data/augmentations/colour.h"

namespace stepop {
namespace {

std::vector<SceneValue> with_keys(const std::vector<SceneValue>& values,
                                  const std::vector<std::string>& keys) {
  std::vector<SceneValue> kept;
  for (const SceneValue& value : values) {
    if (std::find(keys.begin(), keys.end(), value.key) != keys.end()) kept.push_back(value);
  }
  return kept;
}

const at::Tensor& first_picture(const Scene& scene) {
  return *(scene.images.empty() ? scene.masks : scene.images).at(0).value;
}

}  // namespace

int64_t Scene::height() const { return first_picture(*this).size(-2); }
int64_t Scene::width() const { return first_picture(*this).size(-1); }

Scene Scene::only(const std::vector<std::string>& keys) const {
  return {.images = with_keys(images, keys),
          .masks = with_keys(masks, keys),
          .boxes = with_keys(boxes, keys),
          .keypoints = with_keys(keypoints, keys)};
}

void recolour(Scene& scene, const std::function<at::Tensor(const at::Tensor&)>& change) {
  for (const SceneValue& image : scene.images) *image.value = with_colours(*image.value, change);
}

AugmentationRegistry& augmentations() {
  static AugmentationRegistry registry("augmentation");
  return registry;
}

AugmentationList::AugmentationList(const Config& params, std::string_view key) {
  if (!params.has(key)) return;
  const Value* list = params.peek(key);
  if (!list->is_list()) {
    throw params.error(
        key, fmt::format("expected a list of augmentations, such as [RandomHorizontalFlip, "
                         "{{class: RandomErasing, p: 0.25}}], found {}",
                         list->describe()));
  }
  const size_t count = list->as_list().size();
  for (size_t i = 0; i < count; ++i) {
    const std::string place = join_path(key, std::to_string(i));
    const Component component = read_component(params, place);
    const auto& factory = augmentations().factory(component.name, params, place);
    Entry entry{.place = fmt::format("{} ({})", join_path(params.path(), place), component.name),
                .chance = 1,
                .only = {},
                .augmentation = factory(component.params)};
    entry.chance = get_chance(component.params, "p", entry.augmentation->usual_chance());
    if (component.params.has("only")) {
      entry.only = component.params.get<std::vector<std::string>>("only");
    }
    entries_.push_back(std::move(entry));
  }
}

void AugmentationList::apply(Scene& scene, Random& random) const {
  for (const Entry& entry : entries_) {
    // Each augmentation has its own numbers: what one draws does not change the others.
    Random own(random());
    if (entry.chance < 1 && own.uniform() >= entry.chance) continue;
    try {
      if (entry.only.empty()) {
        entry.augmentation->apply(scene, own);
        continue;
      }
      Scene part = scene.only(entry.only);
      entry.augmentation->apply(part, own);
    } catch (const std::exception& error) {
      throw Error(fmt::format("{}: {}", entry.place, error_text(error)));
    }
  }
}

}  // namespace stepop
