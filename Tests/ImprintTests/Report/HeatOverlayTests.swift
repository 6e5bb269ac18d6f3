import ImprintImages
import Testing

@testable import Imprint
@testable import ImprintInterop
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintSynthesis
@testable import ImprintTraining

@Suite("Heat overlay") struct HeatOverlayTests {
    private func map(_ values: [Float], width: Int) -> SaliencyMap {
        SaliencyMap(
            width: width, height: values.count / width, values: values, label: "x", confidence: 1,
            maximum: values.max() ?? 0)
    }

    /// Returns the sum of a pixel's samples.
    private func brightness(_ image: RasterImage, _ x: Int, _ y: Int) -> Int {
        image.samples[((y * image.width + x) * 3)..<((y * image.width + x) * 3 + 3)].reduce(0) { $0 + Int($1) }
    }

    @Test(
        "On a black image the brightness increases with the saliency, for any number of channels and any size",
        arguments: [1, 3, 4], [1, 4, 160])
    func ramp(channels: Int, side: Int) {
        let values: [Float] = [0, 0.1, 0.2, 0.4, 0.8]
        let image = RasterImage(width: 5 * side, height: 2 * side, channels: channels)
        let drawn = HeatOverlay.draw(map(values + values, width: 5), on: image)
        #expect(drawn.width == image.width && drawn.height == image.height && drawn.channels == 3)
        let brightnesses = (0..<5).map { brightness(drawn, $0 * side + side / 2, side) }
        #expect(zip(brightnesses, brightnesses.dropFirst()).allSatisfy { $0 < $1 }, "\(brightnesses)")
        // The last colour is yellow: red and green with little blue.
        let last = drawn.samples.suffix(3).map(Int.init)
        #expect(last[0] > last[2] + 50 && last[1] > last[2] + 30)
        // Colours are interpolated: adjacent pixels differ less than two values of the map do.
        if side == 160 {
            let steps = (1..<image.width).map { abs(brightness(drawn, $0, 0) - brightness(drawn, $0 - 1, 0)) }
            #expect((steps.max() ?? 0) < 12)
        }
    }

    @Test("A map with very low saliency is hardly visible") func faint() {
        let image = RasterImage(width: 4, height: 4, filledWith: 200)
        let none = HeatOverlay.draw(map([Float](repeating: 0, count: 16), width: 4), on: image)
        let little = HeatOverlay.draw(map([Float](repeating: 0.001, count: 16), width: 4), on: image)
        #expect(abs(brightness(none, 1, 1) - brightness(little, 1, 1)) < 15)
        #expect(Set(none.samples).count <= 3)
    }
}
