#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

#include "tests/eval_out/callbacks/run_callback.h"
#include "tests/message_of.h"

namespace stepop {
namespace image_metrics_test {

at::Tensor images(const nlohmann::json& data, const char* key) {
  return doubles(data[key]).view(data["shape"].get<std::vector<int64_t>>());
}

TEST_CASE("PSNR and SSIM are what scikit-image says, of each image and on the mean") {
  for (const char* kind : {"colour_images", "grey_images"}) {
    const auto& data = expected()[kind];
    const EvalOutputs outputs{.outputs = {{"prediction", images(data, "prediction")},
                                          {"target", images(data, "target")}}};
    const auto looked = look("image_metrics", outputs, "{}", TensorData(), {3, 8});
    std::istringstream lines(looked->text("values.csv"));
    std::string line;
    std::getline(lines, line);
    CHECK(line == "index,psnr,ssim");
    for (size_t i = 0; i < 2; ++i) {
      REQUIRE(std::getline(lines, line));
      double index = 0, psnr = 0, ssim = 0;
      REQUIRE(std::sscanf(line.c_str(), "%lf,%lf,%lf", &index, &psnr, &ssim) == 3);
      CHECK(index == (i == 0 ? 3 : 8));
      CHECK(psnr == doctest::Approx(data["psnr"][i].get<double>()).epsilon(1e-6));
      CHECK(ssim == doctest::Approx(data["ssim"][i].get<double>()).epsilon(1e-6));
    }
    CHECK(looked->value("psnr") ==
          doctest::Approx((data["psnr"][0].get<double>() + data["psnr"][1].get<double>()) / 2));
    CHECK(looked->value("ssim") ==
          doctest::Approx((data["ssim"][0].get<double>() + data["ssim"][1].get<double>()) / 2));
  }
}

TEST_CASE("SSIM is scikit-image's, in whatever range the images are") {
  const auto& data = expected()["byte_images"];
  const at::Tensor target = images(data, "target");
  const at::Tensor prediction = images(data, "prediction");
  const auto check = [&](const at::Tensor& said, const at::Tensor& truth, const char* params) {
    CAPTURE(params);
    const auto looked =
        look("image_metrics", {.outputs = {{"prediction", said}, {"target", truth}}}, params);
    for (const char* name : {"psnr", "ssim"}) {
      double mean = 0;
      for (const auto& each : data[name]) mean += each.get<double>() / 3;
      CHECK(looked->value(name) == doctest::Approx(mean).epsilon(1e-5));
    }
  };
  const at::Tensor bytes = prediction.to(at::kByte);
  check(bytes, target.to(at::kByte), "{}");
  check(bytes, target.to(at::kByte), "{data_range: 255}");
  check(prediction / 127.5 - 1, target / 127.5 - 1, "{}");
  check(prediction / 255, target / 255, "{data_range: 1}");
  check(prediction / 255 - 0.5, target / 255 - 0.5, "{data_range: 1}");
  check(prediction, target, "{data_range: 255}");
  check(bytes, target / 127.5 - 1, "{}");
  check(prediction / 255, target.to(at::kByte), "{data_range: 1}");
  check(bytes, target / 255, "{data_range: 1}");
  CHECK(message_of([&] { check(prediction, target, "{}"); })
            .ends_with("from row 0 (example 0 of the dataset) on, and data_range is 2: give the "
                       "largest possible value minus the smallest"));
}

TEST_CASE("equal images have a PSNR without end and an SSIM of 1; images of bytes are taken too") {
  const at::Tensor bytes = at::tensor({0, 255}, at::kByte).repeat({2, 12, 6});
  const at::Tensor floats = bytes.to(at::kFloat).div(127.5).sub(1).unsqueeze(1);
  const EvalOutputs same{.outputs = {{"prediction", bytes}, {"target", bytes.clone()}}};
  CHECK(std::isinf(look("image_metrics", same)->value("psnr")));
  CHECK(look("image_metrics", same)->value("ssim") == doctest::Approx(1));
  // [H, W] and [1, H, W] are not the same shape.
  const EvalOutputs mixed{.outputs = {{"prediction", bytes.unsqueeze(1)}, {"target", floats}}};
  CHECK(look("image_metrics", mixed)->value("ssim") == doctest::Approx(1));
}

TEST_CASE("the target may be the image of the dataset") {
  const at::Tensor zeros = at::zeros({2, 1, 11, 11});
  const auto looked = look("image_metrics", {.outputs = {{"prediction", zeros}}}, "{target: image}",
                           TensorData({{"image", zeros.add(0.2)}}));
  CHECK(looked->value("psnr") == doctest::Approx(20));  // 10 log10(2^2 / 0.2^2)
}

TEST_CASE("what image_metrics cannot compare is named") {
  const auto message = [](const at::Tensor& prediction, const at::Tensor& target,
                          const char* params = "{}") {
    return message_of([&] {
      look("image_metrics", {.outputs = {{"prediction", prediction}, {"target", target}}}, params);
    });
  };
  const at::Tensor good = at::zeros({2, 3, 12, 12});
  CHECK(message(at::zeros({2, 4, 12, 12}), good) ==
        "outputs/prediction must hold images, [C, H, W] with C = 1 or 3 or [H, W], of floats in "
        "[-1, 1] or of uint8; found float32 [4, 12, 12]");
  CHECK(message(good.to(at::kLong), good).ends_with("found int64 [3, 12, 12]"));
  CHECK(message(good, at::zeros({2, 1, 12, 12})) ==
        "outputs/prediction has the shape [3, 12, 12] an example, outputs/target has [1, 12, 12]");
  CHECK(message(at::zeros({2, 10, 12}), at::zeros({2, 10, 12})) ==
        "SSIM needs images of at least 11 x 11 pixels, outputs/target has [10, 12]");
  CHECK(message(good, good.add(NAN)) ==
        "outputs/target has a NaN in row 0 (example 0 of the dataset)");
  CHECK(message(good, good, "{data_range: 0}") ==
        "test.yaml:1: data_range: expected more than 0, found 0");
}

}  // namespace image_metrics_test
}  // namespace stepop
